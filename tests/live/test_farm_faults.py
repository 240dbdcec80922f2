"""Faults of a live farm: no task is lost, none is delivered twice, the run goes on, and the summary says so."""

import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import cloudpickle
import farms
import pytest
from farms import Flow, point, slowly, take, tree, value, wait_until

from crosswind._core import AGENT_PROTOCOL
from crosswind.errors import AgentLost, DescriptionError
from crosswind.platform import Platform
from crosswind.run.agent import be_agent
from crosswind.run.agents import Launch, Limits, LiveFarm, Task, Work, run_farm

pytestmark = pytest.mark.live

cloudpickle.register_pickle_by_value(farms)

THREE_LEVELS = tree("r", "a<r", "b<r", "c<a", "d<a")
COUNT = 300


def farm_of(platform=THREE_LEVELS, work=None, **options):
    return LiveFarm(platform, point(), work or Work("callable", function=slowly), **options)


def hand_over(farm, count=COUNT):
    for number in range(count):
        farm.submit(Task(pickle.dumps(number)))
    farm.end_of_tasks()


def codes(summary):
    return [event["code"] for event in summary["events"]]


@pytest.mark.parametrize("lost", ["b", "a", "c"], ids=["a leaf", "an inner node", "a leaf of the third level"])
def test_an_agent_killed_with_9_loses_no_task_and_doubles_none(lost):
    with farm_of() as farm:
        hand_over(farm)
        first = take(farm, 20)
        os.kill(farm.processes.pid(lost), signal.SIGKILL)
        rest = take(farm, COUNT - len(first))
        summary, _ = farm.close()
    assert not first.keys() & rest.keys()
    assert {task: value(result) for task, result in {**first, **rest}.items()} == {n: n * n for n in range(COUNT)}
    lost_event = next(event for event in summary["events"] if event["code"] == "agent-lost")
    assert lost_event["node"] == lost
    assert summary["warnings"]
    assert sum(node["tasks"] for node in summary["nodes"]) == COUNT


def test_a_stalled_child_is_given_up_and_comes_back_when_it_wakes():
    with farm_of(tree("r", "a<r", "b<r"), limits=Limits(silence_s=1.0)) as farm:
        hand_over(farm)
        first = take(farm, 10)
        os.kill(farm.processes.pid("a"), signal.SIGSTOP)
        # More than `a` could hold: they can only come after its tasks were given to `b`.
        second = take(farm, 100)
        os.kill(farm.processes.pid("a"), signal.SIGCONT)
        third = take(farm, COUNT - len(first) - len(second))
        summary, _ = farm.close()
    assert len({*first, *second, *third}) == COUNT
    assert "agent-lost" in codes(summary)


def test_a_cut_connection_costs_no_task_and_the_child_dials_again():
    with farm_of(tree("r", "a<r", "b<r")) as farm:
        hand_over(farm)
        first = take(farm, 10)
        _cut_one_connection(farm.processes.pid("a"))
        rest = take(farm, COUNT - len(first))
        summary, _ = farm.close()
    assert len({*first, *rest}) == COUNT
    assert codes(summary)[:1] == ["agent-lost"]


def _cut_one_connection(pid):
    """Resets the agent's only connection, by the kernel's own means (ss -K); skips where it can't."""
    port = None
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "01" and _is_of(pid, words[9]):
            port = int(words[1].split(":")[1], 16)
    assert port, "the agent has no connection"
    done = subprocess.run(["ss", "-K", "sport", "=", f":{port}"], capture_output=True, text=True, check=False)
    if done.returncode or str(port) not in done.stdout:
        pytest.skip(f"this kernel does not cut connections (ss -K): {done.stderr.strip() or 'nothing was cut'}")


def _is_of(pid, inode):
    links = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(str(entry.readlink()))
        except OSError:
            continue
    return f"socket:[{inode}]" in links


@pytest.mark.parametrize(("nodes", "again"), [(8, False), (2, True)], ids=["eight agents", "two, started again"])
def test_a_task_that_ends_its_agents_is_given_up_and_the_others_are_done(nodes, again):
    def deadly(number):
        if number == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    work, launch = Work("callable", function=deadly), Launch(again=again)
    with farm_of(tree("r", *(f"n{i}<r" for i in range(nodes))), work, launch=launch) as farm:
        hand_over(farm, 60)
        taken = take(farm, 60)
        summary, _ = farm.close()
    assert {task for task, result in taken.items() if not result.ok} == {5}
    assert "task-given-up" in codes(summary)
    # Five losses are its own; one more each time that an agent dies before the result of the task ahead of it has left,
    # which was seen three times in a run on a crowded host. That task is blamed then; five such times end it, too.
    assert 5 <= codes(summary).count("agent-lost") <= 5 + 4


class LoadedOnce:
    """A function that only the first agent can load: the other one ends with an error of its own."""

    def __init__(self, file):
        self.file = str(file)

    def __reduce__(self):
        return load_once, (self.file,)


def load_once(file):
    os.close(os.open(file, os.O_CREAT | os.O_EXCL))
    return slowly


def test_an_agent_that_ends_with_an_error_of_its_own_is_not_started_again(tmp_path):
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    limits, work = Limits(start_s=5.0), Work("callable", function=LoadedOnce(tmp_path / "loaded"))
    with LiveFarm(tree("r", "a<r", "b<r"), point(), work, limits=limits) as farm:
        before = {name: farm.processes.pid(name) for name in "ab"}
        hand_over(farm, 100)
        assert len(take(farm, 100)) == 100
        wait_until(lambda: "ended with status 1" in farm.processes.lost(), "an agent's end")
        time.sleep(0.5)  # in which it would be started again
        assert {name: farm.processes.pid(name) for name in "ab"} == before


@pytest.mark.parametrize("ends", ["os._exit(0)", "os._exit(1)", "os._exit(7)"])
def test_a_task_that_ends_its_agent_with_any_status_costs_its_tries_and_no_more(ends):
    def deadly(number, ends=ends):
        if number == 5:
            exec(ends, {"os": os})
        return number

    with farm_of(tree("r", "a<r"), Work("callable", function=deadly)) as farm:
        hand_over(farm, 30)
        taken = take(farm, 30)
    assert {task for task, result in taken.items() if not result.ok} == {5}
    assert "task 5 was being computed 5 times when an agent was lost" in taken[5].data.decode()


def test_a_node_that_only_hands_on_gives_its_tasks_back_when_no_node_is_left_below():
    described = tree("r", "a<r", "b<r", "c<a").to_dict()
    next(node for node in described["node"] if node["name"] == "a")["compute_per_s"] = 0.0
    with farm_of(Platform.from_dict(described), launch=Launch(again=False)) as farm:
        flow = Flow(farm)
        flow.until(lambda result: result.node == "c", "c's first result")
        os.kill(farm.processes.pid("c"), signal.SIGKILL)
        # Until b has done what a had for c.
        summary = flow.end()
    lost = [event["node"] for event in summary["events"] if event["code"] == "agent-lost"]
    assert lost == ["c"]


def test_a_file_that_is_gone_when_its_turn_comes_fails_its_task_and_no_agent(tmp_path):
    paths = [tmp_path / f"{number}" for number in range(40)]
    for path in paths:
        path.write_bytes(pickle.dumps(1))
    with farm_of(tree("r", "a<r", "b<r")) as farm:
        for path in paths:
            farm.submit(Task(path))
        paths[-1].unlink()
        paths[-2].write_bytes(b"")
        farm.end_of_tasks()
        taken = take(farm, len(paths))
        summary, _ = farm.close()
    assert {task for task, result in taken.items() if not result.ok} == {38, 39}
    assert "39: No such file" in taken[39].data.decode()
    assert codes(summary) == ["input-lost"] * 2


def test_all_agents_lost_is_an_error_that_says_so():
    limits = Limits(start_s=1.0)
    work, launch = Work("callable", function=slowly), Launch(again=False)
    with LiveFarm(tree("r", "a<r"), point(), work, limits=limits, launch=launch) as farm:
        hand_over(farm, 50)
        take(farm, 5)
        os.kill(farm.processes.pid("a"), signal.SIGKILL)
        with pytest.raises(AgentLost, match="all agents are lost"):
            farm.close()


def test_a_task_that_raises_is_a_result_and_the_others_go_on():
    def picky(number):
        if number % 7 == 3:
            raise ValueError(f"not {number}")
        return number

    with farm_of(work=Work("callable", function=picky)) as farm:
        hand_over(farm, 50)
        taken = take(farm, 50)
        summary, _ = farm.close()
    failed = {task for task, result in taken.items() if not result.ok}
    assert failed == {n for n in range(50) if n % 7 == 3}
    text = taken[3].data.decode()
    assert "Traceback" in text
    assert "ValueError: not 3" in text
    assert summary["tasks"] == 50


def test_a_task_that_raised_is_tried_again_when_asked(tmp_path):
    def second_time(path):
        mark = Path(path)
        if not mark.exists():
            mark.touch()
            raise OSError("the first time")
        return "done"

    limits = Limits(retries=1)
    farm = LiveFarm(tree("r", "a<r"), point(), Work("callable", function=second_time), limits=limits)
    with farm:
        farm.submit(Task(pickle.dumps(str(tmp_path / "mark"))))
        farm.end_of_tasks()
        assert value(take(farm, 1)[0]) == "done"
        summary, _ = farm.close()
    assert codes(summary) == ["task-tried-again"]


def test_an_agent_joins_during_the_run_and_gets_tasks():
    limits = Limits(start_s=0.5)
    with LiveFarm(tree("r", "a<r"), point(), Work("callable", function=slowly), limits=limits, token="t" * 20) as farm:
        for number in range(COUNT):
            farm.submit(Task(pickle.dumps(number)))
        first = take(farm, 10)
        about = '{"name": "guest", "compute_per_s": 5.0, "receive_limit_mb_per_s": 1000.0}'
        start = (
            f"from crosswind.run.agent import be_agent; be_agent({farm.address!r}, 'guest', 't' * 20, about={about!r})"
        )
        guest = subprocess.Popen([sys.executable, "-c", start])
        farm.end_of_tasks()
        rest = take(farm, COUNT - len(first))
        summary, _ = farm.close()
        assert guest.wait(20) == 0
    assert len({*first, *rest}) == COUNT
    assert "agent-joined" in codes(summary)
    tasks = {node["name"]: node["tasks"] for node in summary["nodes"]}
    assert tasks["guest"] > 0


ROOT_THAT_DIES = """
    import os, signal, sys
    from pathlib import Path
    sys.path[:0] = {paths!r}
    from farms import point, tree
    from crosswind.run.agents import Task, Work, run_farm

    def source():
        for number in range(200):
            yield Task(str(number).encode(), 0.0, f"{{number:04}}.out")

    def sink(result):
        delivered.append(result.task)
        if {die} and len(delivered) == 30:
            os.kill(os.getpid(), signal.SIGKILL)

    delivered = []
    out = Path({out!r})
    summary, _ = run_farm(
        tree("r", "a<r", "b<r"), point(), Work("command", command="sleep 0.01; cat {{input}} {{input}} > {{output}}"),
        source=source(), sink=sink, out=out, journal=out / "journal", resume={resume},
    )
    print(len(delivered), summary["tasks"])
"""


def root_that_dies(out, *, die, resume):
    paths = [str(Path(__file__).parent)]
    script = textwrap.dedent(ROOT_THAT_DIES).format(paths=paths, out=str(out), die=die, resume=resume)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)


def test_a_root_killed_with_9_goes_on_from_its_journal_and_leaves_no_process(tmp_path):
    killed = root_that_dies(tmp_path, die=True, resume=False)
    assert killed.returncode == -signal.SIGKILL
    there = {path.name for path in tmp_path.glob("*.out")}
    assert 30 <= len(there) < 200
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.out")}
    wait_until(lambda: not _agents_of(tmp_path), "the agents' end")
    again = root_that_dies(tmp_path, die=False, resume=True)
    assert again.returncode == 0, again.stderr
    for number in range(200):
        assert (tmp_path / f"{number:04}.out").read_text() == str(number) * 2
    delivered, computed = map(int, again.stdout.split())
    assert delivered == computed
    assert delivered < 200
    # What the journal knew was not done again: those files are the very ones that were there.
    kept = [name for name, time in before.items() if (tmp_path / name).stat().st_mtime_ns == time]
    assert len(kept) >= 200 - delivered >= 30


def _agents_of(directory):
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(directory).encode() in line:
                found.append(entry.name)
    return found


def test_another_runs_journal_and_one_that_is_not_to_be_resumed_are_refused(tmp_path):
    journal = tmp_path / "journal"
    work = Work("command", command="cat {input}")
    run_farm(tree("r", "a<r"), point(), work, source=[Task(b"x")], journal=journal)
    with pytest.raises(DescriptionError, match="another run"):
        run_farm(tree("r", "a<r"), point(), Work("noop"), source=[], journal=journal, resume=True)
    with pytest.raises(DescriptionError, match="exists: an earlier run"):
        run_farm(tree("r", "a<r"), point(), work, source=[], journal=journal)


def test_only_what_changed_is_done_again_in_a_resumed_run(tmp_path):
    def run(tasks, command="cat {input}"):
        done, befores = [], []
        run_farm(
            tree("r", "a<r"),
            point(),
            Work("command", command=command),
            source=[Task(data) for data in tasks],
            sink=lambda result: done.append(result.task),
            journal=tmp_path / "journal",
            resume=True,
            on_before=befores.append,
        )
        return sorted(done), befores[0].summary()

    assert run([b"a", b"b", b"c"]) == ([0, 1, 2], {"done": 0, "again": {}, "new": 3, "gone": 0})
    assert run([b"a", b"B"]) == ([1], {"done": 1, "again": {"input changed": 1}, "new": 0, "gone": 1})
    found = {"done": 0, "again": {"command or --name changed": 2}, "new": 0, "gone": 1}
    assert run([b"a", b"B"], "cat  {input}") == ([0, 1], found)


DISK_FULL = """
    import resource, signal, sys
    from pathlib import Path
    sys.path[:0] = {paths!r}
    from farms import point, tree
    from crosswind.errors import MeasurementError
    from crosswind.run.agents import Task, Work, run_farm

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    out = Path({out!r})
    delivered = []

    def source():
        # Here, since the agents have their own disk: what is set before they start holds for them too.
        if {full}:
            resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
        for number in range(100):
            yield Task(bytes(5000 if number == 60 else 10), 0.0, f"{{number}}.out")

    try:
        run_farm(tree("r", "a<r"), point(), Work("command", command="cat {{input}}"), source=source(),
                 sink=lambda result: delivered.append(result.task), out=out, journal=out / "journal", resume=not {full})
    except MeasurementError as error:
        print(error.code, len(delivered))
        sys.exit(error.exit_code)
    print("done", len(delivered))
"""


def test_a_full_disk_at_the_root_ends_the_run_with_exit_1_and_an_intact_journal(tmp_path):
    def run(full):
        paths = [str(Path(__file__).parent)]
        script = textwrap.dedent(DISK_FULL).format(paths=paths, out=str(tmp_path), full=full)
        return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)

    full = run(True)
    assert full.returncode == 1, full.stderr
    assert full.stdout.startswith("disk-full")
    assert not (tmp_path / "60.out").exists()
    assert not list(tmp_path.glob(".*.part"))
    rest = run(False)
    assert rest.returncode == 0, rest.stderr
    assert (tmp_path / "60.out").stat().st_size == 5000
    assert len(list(tmp_path.glob("*.out"))) == 100


# --- strangers


def connect(farm):
    host, _, port = farm.address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=10)


GREETING = b"XWFM" + AGENT_PROTOCOL.to_bytes(2) + b"\x00\x00" + bytes(32)
ABUSES = {
    "another protocol": b"GET / HTTP/1.1\r\n\r\n",
    "another version": b"XWFM\x00\x09\x00\x00" + bytes(32),
    "a length that lies": GREETING + b"\xff\xff\xff\xff\x01",
    "a frame before the token": GREETING + struct.pack(">IBQ", 9, 7, 5),
    "a wrong token": GREETING + struct.pack(">IB", 36, 1) + bytes(32) + b"\x00\x01a",
    "an unknown kind": GREETING + struct.pack(">IB", 1, 200),
}


@pytest.mark.parametrize("abuse", ABUSES)
def test_a_stranger_is_refused_logged_once_and_disturbs_no_node(abuse, tmp_path):
    launch = Launch(logs=tmp_path)
    with farm_of(tree("r", "a<r"), launch=launch) as farm:
        for _ in range(3):
            with connect(farm) as stranger:
                stranger.sendall(ABUSES[abuse])
                while stranger.recv(4096):
                    pass
        hand_over(farm, 20)
        assert len(take(farm, 20)) == 20
        summary, _ = farm.close()
    assert summary["events"] == []
    refused = [line for line in (tmp_path / "root.log").read_text().splitlines() if "refused" in line]
    assert len(refused) == 1, refused


def test_an_agent_with_a_wrong_token_is_refused_and_so_is_a_parent_with_one():
    with farm_of(tree("r", "a<r", "b<r"), token="the right token of this farm", launch=Launch(by_hand=True)) as farm:
        with pytest.raises(AgentLost, match="does not know the token"):
            be_agent(farm.address, "a", "a wrong token of this farm", patience_s=5.0)
        with pytest.raises(AgentLost, match='no node "z"'):
            be_agent(farm.address, "z", "the right token of this farm", patience_s=5.0)
        farm.interrupt()
    # A listener that accepts every caller and proves nothing is not a parent.
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        port = server.getsockname()[1]
        start = f"from crosswind.run.agent import be_agent; be_agent('127.0.0.1:{port}', 'a', 't' * 20, patience_s=5.0)"
        agent = subprocess.Popen([sys.executable, "-c", start], stderr=subprocess.PIPE, text=True)
        connection, _ = server.accept()
        with connection:
            connection.sendall(GREETING)
            connection.recv(4096)
            settings = b'{"run": {}}'
            connection.sendall(struct.pack(">IB", 1 + 32 + len(settings), 2) + bytes(32) + settings)
            _, said = agent.communicate(timeout=30)
    assert agent.returncode != 0
    assert "does not know the token" in said


def test_the_token_stands_in_no_command_line_and_no_log(tmp_path):
    token = "a secret not to be shown"
    with farm_of(tree("r", "a<r"), token=token, launch=Launch(logs=tmp_path)) as farm:
        pid = farm.processes.pid("a")
        hand_over(farm, 10)
        assert len(take(farm, 10)) == 10
        assert token.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert token.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
        farm.close()
    assert all(token not in path.read_text() for path in tmp_path.glob("*.log"))


def test_files_that_cannot_be_read_cost_their_tasks_only(tmp_path):
    (tmp_path / "file").write_text("whole")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    names = ["no-such-file", "file", "fifo", "directory", "file"]
    with farm_of(tree("r", "a<r"), Work("command", command="cat {input}")) as farm:
        for name in names:
            farm.submit(Task(tmp_path / name))
        results = take(farm, len(names))
        assert [results[number].ok for number in range(len(names))] == [False, True, False, False, True]
        said = [results[number].data.decode() for number in (0, 2, 3)]
    assert "no-such-file" in said[0]
    assert "it is a FIFO, not a regular file" in said[1]
    assert "it is a directory, not a regular file" in said[2]


def test_what_tasks_print_on_a_node_with_children_holds_nothing_up():
    def prints(number):
        print("x" * 50_000, flush=True)
        return number

    with farm_of(tree("r", "a<r", "b<a"), Work("callable", function=prints)) as farm:
        hand_over(farm, 40)
        assert len(take(farm, 40)) == 40
        summary, _ = farm.close()
    assert {node["name"]: node["tasks"] > 0 for node in summary["nodes"]}["a"]
