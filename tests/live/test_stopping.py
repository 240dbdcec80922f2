"""What has not begun when a map or a farm is stopped is not begun, whatever stops it, and nothing stays."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from farms import tree, wait_until

import crosswind
from crosswind import Farm
from crosswind.run import agent_process
from crosswind.run.this_machine import here

pytestmark = pytest.mark.live
CALLS, SECONDS = 60, 0.3
NODES = 2


class Begun:
    """Calls that leave a file when they begin."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(self, number):
        (self.directory / f"{number}").touch()
        time.sleep(SECONDS)
        return number

    @property
    def count(self):
        return len(list(self.directory.iterdir()))

    def settled(self):
        """How many had begun by the time that none ran any more."""
        time.sleep(2 * SECONDS)
        return self.count


@pytest.fixture
def begun(tmp_path):
    (tmp_path / "begun").mkdir()
    return Begun(tmp_path / "begun")


def fails(begun):
    def call(number):
        begun(number)
        raise ValueError(number)

    return call


def few(taken):
    """As many as were taken, and what nodes began meanwhile: a few, even if this process waited for a processor."""
    return taken + CALLS // 4


def test_break_lets_no_call_begin(begun):
    for _ in crosswind.map(begun, range(CALLS), max_workers=NODES):
        break
    assert begun.settled() <= few(1)


def test_break_ends_a_map_of_endless_items(begun):
    for number in crosswind.map(begun, itertools.count(), max_workers=NODES):
        if number == 5:
            break
    assert begun.settled() <= few(6)


def test_an_exception_lets_no_call_begin(begun):
    with pytest.raises(ValueError, match="0"):
        list(crosswind.map(fails(begun), range(CALLS), max_workers=NODES))
    assert begun.settled() <= few(1)


def test_results_that_are_deleted_or_closed_let_no_call_begin(begun):
    results = crosswind.map(begun, range(CALLS), max_workers=NODES)
    next(results)
    del results
    assert begun.settled() <= few(1)
    results = crosswind.map(begun, range(CALLS, 2 * CALLS), max_workers=NODES)
    results.close()
    assert begun.settled() <= 2 * few(1)
    assert list(results) == []


def test_results_that_nobody_takes_are_warned_of(begun):
    with pytest.warns(RuntimeWarning, match="dropped before any was taken"):
        crosswind.map(begun, range(CALLS), max_workers=NODES)
    assert begun.settled() <= few(0)


def test_with_out_what_runs_at_a_break_is_kept(begun, tmp_path):
    out = tmp_path / "out"
    for _ in crosswind.map(begun, range(CALLS), max_workers=NODES, out=out):
        break
    kept = len(list(out.glob("*.pickle")))
    assert kept == begun.count
    assert list(crosswind.map(begun, range(8), max_workers=NODES, out=out, resume=True)) == list(range(8))


def test_a_map_begins_before_its_results_are_taken(begun):
    results = crosswind.map(begun, range(4), max_workers=NODES)
    for _ in range(100):
        if begun.count:
            break
        time.sleep(0.1)
    assert begun.count
    assert list(results) == [0, 1, 2, 3]


def test_calls_are_running_only_where_a_node_computes_them_and_others_can_be_cancelled(begun):
    with Farm(max_workers=NODES) as farm:
        calls = [farm.submit(begun, number) for number in range(CALLS)]
        calls[0].result()
        while not any(call.running() for call in calls):
            time.sleep(0.01)
        assert sum(call.running() for call in calls) <= NODES
        cancelled = [call.cancel() for call in calls]
        assert sum(cancelled) >= CALLS - few(1)
    assert begun.settled() + sum(cancelled) == CALLS
    assert [call.cancelled() for call in calls] == cancelled
    assert all(call.done() for call in calls)


def test_calls_are_withdrawn_from_nodes_below_nodes(begun):
    with Farm(tree("root", "upper<root", "lower<upper"), buffer_tasks=4) as farm:
        calls = [farm.submit(begun, number) for number in range(CALLS)]
        calls[0].result()
        cancelled = sum(call.cancel() for call in reversed(calls))
    assert begun.settled() + cancelled == CALLS
    assert cancelled > CALLS // 2


def test_a_farm_goes_on_with_what_was_not_cancelled(begun):
    with Farm(max_workers=NODES) as farm:
        calls = [farm.submit(begun, number) for number in range(12)]
        assert calls[11].cancel()
        assert [call.result() for call in calls[:11]] == list(range(11))
        assert farm.submit(begun, 12).result() == 12
    assert not (begun.directory / "11").exists()


def test_shutdown_cancels_what_has_not_begun(begun):
    farm = Farm(max_workers=NODES)
    calls = [farm.submit(begun, number) for number in range(CALLS)]
    calls[0].result()
    farm.shutdown(cancel_futures=True)
    cancelled = sum(call.cancelled() for call in calls)
    assert begun.count + cancelled == CALLS
    assert begun.count <= few(1)


def test_a_call_is_cancelled_by_another_ones_callback(begun):
    with Farm(max_workers=1) as farm:
        first = farm.submit(begun, 0)
        others = [farm.submit(begun, number) for number in range(1, CALLS)]
        first.add_done_callback(lambda _: [other.cancel() for other in others])
    assert sum(other.cancelled() for other in others) >= CALLS - few(1)


PROGRAM = """
import os, re, sys, time
import crosswind
{task}
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
BEGINS = "def task(number):\n    open(f'{begun}/{number}', 'w').close()\n    "
TASKS = {  # none of them ever ends
    "sleeps": BEGINS + "time.sleep(100_000)",
    "holds the lock": BEGINS + "re.match(r'(a+)+$', 'a' * 60 + 'b')",
    "holds the lock in C": BEGINS + "import ctypes; ctypes.PyDLL(None).sleep(100_000)",
    "turns": BEGINS + "while True: pass",
}
WAYS = {
    "map": "for _ in crosswind.map(task, range(400), max_workers=2): pass",
    "farm": "with crosswind.Farm(max_workers=2) as farm: list(farm.map(task, range(40)))",
}


def started(task, way, begun, **more):
    code = PROGRAM.format(task=TASKS[task], call=WAYS[way])
    code = f"begun = {str(begun.directory)!r}\n" + textwrap.dedent(code)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, **more)
    wait_until(lambda: begun.count >= 2 or process.poll() is not None, "two calls")
    assert process.poll() is None
    return process


def agents_of(process):
    """Processes whose parent is this one."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    found = [path.read_text().split() for path in children.parent.parent.glob("*/children")]
    return [int(pid) for pids in found for pid in pids]


def is_there(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pids, within_s=30.0):
    until = time.monotonic() + within_s
    while any(map(is_there, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(is_there, pids))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("task", TASKS)
def test_ctrl_c_ends_a_program_and_its_agents_whatever_their_tasks_do(begun, task, way):
    process = started(task, way, begun)
    agents = agents_of(process)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[0] == "interrupted\n"
    assert process.returncode == 0
    assert agents
    assert gone(agents, 0.0)


def test_after_ctrl_c_what_was_done_is_kept_although_the_others_never_end(begun, tmp_path):
    code = """
    import os, time, crosswind
    def task(number):
        open(f"{begun}/{number}-{os.getpid()}", "w").close()
        return number if number < 20 or os.environ.get("ALL") else time.sleep(100_000)
    print(sum(crosswind.map(task, range(24), max_workers=2, out=f"{begun}/../out", resume=bool(os.environ.get("ALL")))))
    """
    code = f"begun = {str(begun.directory)!r}\n" + textwrap.dedent(code)
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
    kept = lambda: len(list(tmp_path.glob("out/*.pickle")))  # noqa: E731
    wait_until(lambda: (kept() >= 20 and begun.count >= 22) or process.poll() is not None, "the calls that return")
    agents = agents_of(process)
    process.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in process.communicate(timeout=60)[1]
    assert gone(agents, 0.0)
    assert kept() == 20
    before = begun.count
    environment = {**os.environ, "ALL": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, timeout=60, check=True)
    assert done.stdout.split() == [str(sum(range(24))).encode()]
    assert begun.count - before == 4


@pytest.mark.parametrize("task", TASKS)
def test_a_killed_program_takes_its_agents_along_whatever_their_tasks_do(begun, task):
    process = started(task, "map", begun)
    agents = agents_of(process)
    process.kill()
    process.communicate()
    assert agents
    assert gone(agents)


def watchdogs_of(agents):
    """The processes that end what agents leave."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            text = (entry / "stat").read_text()
            if "(undo-watchdog)" in text and int(text.rpartition(")")[2].split()[1]) in agents:
                found.append(int(entry.name))
    return found


def state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("task", TASKS)
def test_stopped_agents_with_stopped_watchdogs_end_with_a_killed_program(begun, task):
    process = started(task, "map", begun)
    agents = agents_of(process)
    watchdogs = watchdogs_of(agents)
    assert len(watchdogs) == len(agents) == NODES
    for pid in (*watchdogs, *agents):
        os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: all(state(pid) == "T" for pid in (*watchdogs, *agents)), "the stops")
    process.kill()
    process.communicate()
    assert gone([*agents, *watchdogs])


def test_a_program_that_leaves_its_farm_open_ends_and_leaves_nothing(begun, tmp_path):
    code = """
    import time, crosswind
    def task(number):
        time.sleep(60)
    farm = crosswind.Farm(max_workers=2)
    farm.submit(task, 1)
    results = crosswind.map(abs, range(400), max_workers=2)
    next(results)
    """
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=environment, timeout=30, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "temporary").iterdir()) == []


def test_the_logs_of_a_program_that_was_killed_are_taken_away_by_the_next(begun, tmp_path):
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    process = started("sleeps", "map", begun, env=environment)
    agents = agents_of(process)
    process.terminate()
    process.communicate()
    assert gone(agents)
    assert list((tmp_path / "temporary").iterdir()) != []
    code = "import crosswind; list(crosswind.map(abs, [1]))"
    subprocess.run([sys.executable, "-c", code], env=environment, timeout=60, check=True)
    assert list((tmp_path / "temporary").iterdir()) == []


def stops_itself(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGSTOP)
    return number


def test_a_task_that_stops_its_agent_costs_its_own_tries_only(monkeypatch):
    monkeypatch.setattr(agent_process, "STOPPED_S", 0.3)
    results = list(crosswind.map(stops_itself, range(40), max_workers=NODES, return_exceptions=True))
    assert [result for result in results if isinstance(result, int)] == [n for n in range(40) if n != 3]
    assert "task 3 was being computed" in str(results[3])


def leaves_a_daemon(path):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            Path(path).write_text(str(os.getpid()))
            time.sleep(120)
        os._exit(0)
    while not Path(path).exists() or not Path(path).read_text():
        time.sleep(0.01)


def test_processes_that_tasks_forked_end_with_their_agent(tmp_path):
    paths = [str(tmp_path / f"{number}") for number in range(3)]
    list(crosswind.map(leaves_a_daemon, paths, max_workers=NODES))
    assert gone([int(Path(path).read_text()) for path in paths])


def reads_its_input(_):
    return sys.stdin.read(), subprocess.run(["cat"], capture_output=True, check=True).stdout


def test_the_input_of_tasks_is_empty():
    assert list(crosswind.map(reads_its_input, range(3), max_workers=NODES)) == [("", b"")] * 3


def test_a_submit_in_a_copy_of_the_process_is_refused():
    with Farm(here(1)) as farm:
        reading, writing = os.pipe()
        if os.fork() == 0:
            said = b"nothing"
            try:
                farm.submit(abs, 1)
            except RuntimeError as error:
                said = str(error).encode()
            os.write(writing, said)
            os._exit(0)
        os.wait()
        assert b"belongs to the process that made it" in os.read(reading, 200)


def test_functions_of_modules_beside_the_program_are_found(tmp_path):
    """As multiprocessing finds them: the directory of the script is no directory of the agents."""
    (tmp_path / "helper.py").write_text("def twice(number): return 2 * number")
    (tmp_path / "program.py").write_text("import crosswind, helper\nprint(list(crosswind.map(helper.twice, range(3))))")
    command = [sys.executable, tmp_path / "program.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "[0, 2, 4]\n", done.stderr


def prints(number):
    print("printed", number)
    print("warned", number, file=sys.stderr)
    return number


def test_what_calls_print_is_shown_with_its_node_and_number_unless_it_is_to_be_quiet(capsys):
    assert list(crosswind.map(prints, range(2), max_workers=1)) == [0, 1]
    assert capsys.readouterr().err.splitlines() == [
        "[cpu0] 0: printed 0",
        "[cpu0] 0: warned 0",
        "[cpu0] 1: printed 1",
        "[cpu0] 1: warned 1",
    ]
    assert list(crosswind.map(prints, range(2), max_workers=1, quiet=True)) == [0, 1]
    assert capsys.readouterr().err == ""


def test_a_callback_that_cancels_all_others_holds_up_nothing():
    """It runs in the thread that takes answers, which must not wait for what only it can take."""
    with crosswind.Farm(max_workers=2) as farm:
        futures = [farm.submit(time.sleep, 0.0005 if number < 3_000 else 0.01) for number in range(6_000)]
        begun = []

        def cancel_all(_):
            begun.append(time.monotonic())
            for future in futures:
                future.cancel()
            begun.append(time.monotonic())

        futures[1_000].add_done_callback(cancel_all)
    assert begun[1] - begun[0] < 20
    assert sum(future.cancelled() for future in futures) > 4_000
    assert all(future.done() for future in futures)


@pytest.mark.parametrize("kill", [True, False])
def test_a_stopped_agent_ends_with_its_program(begun, kill):
    """It sees no end by itself."""
    process = started("sleeps", "map", begun)
    agents = agents_of(process)
    for agent in agents:
        os.kill(agent, signal.SIGSTOP)
    process.send_signal(signal.SIGKILL if kill else signal.SIGINT)
    process.communicate(timeout=30)
    assert agents
    assert gone(agents)


def computes_for_ever(path):
    Path(path).touch()
    while True:
        time.sleep(1.0)


def test_a_task_of_asyncio_that_is_cancelled_ends_its_farm(tmp_path):
    """Ctrl-C cancels the task that `asyncio.run` runs: calls that never return would hold up the loop for ever."""

    async def main():
        with Farm(max_workers=1) as farm:
            running = asyncio.ensure_future(asyncio.wrap_future(farm.submit(computes_for_ever, tmp_path / "begun")))
            while not (tmp_path / "begun").exists():
                await asyncio.sleep(0.01)
            asyncio.get_running_loop().call_soon(asyncio.current_task().cancel)
            await running

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
