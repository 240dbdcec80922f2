"""Injection into real programs: what is held, what is left behind, whatever happens."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from disturbed import HALF

import crosswind
from crosswind.absences import leftovers
from crosswind.doctor.disturbances import left_behind
from crosswind.errors import DescriptionError
from crosswind.inject import inject, means, preview

# All of them: what is disturbed is found, stopped and told within times that a busy machine does not keep.
pytestmark = [pytest.mark.live, pytest.mark.alone]

MOSTLY_AWAY = """
schema_version = 1
name = "mostly away"
[[source]]
kind = "coscheduled"
quantum_s = 0.1
jobs = 5
"""
DAEMON = """
schema_version = 1
name = "a daemon"
[[source]]
kind = "daemon"
cause = "cron"
interval_s = 0.02
duration_s = 0.01
ranks = [%s]
"""
# Computes in a process and a child of it until a file appears.
PROGRAM = """
import os, sys, pathlib
stop = pathlib.Path(sys.argv[1])
child = os.fork()
while not stop.exists():
    sum(range(20000))
if child:
    os.waitpid(child, 0)
    print("done")
"""


def waits_until(true, seconds=30.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def processes_with(word):
    """Process id -> (state, nice level, policy) of those whose command line has this word, the injectors left out."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if os.fsencode(word) in words and b"crosswind.cli" not in words and fields[0] != "Z":
            found[int(entry.name)] = (fields[0], int(fields[16]), int(fields[38]))
    return found


def processes_of(injector):
    """All processes of one trial, by a variable in their environment: command line of each, zombies left out."""
    mark, found = f"CROSSWIND_TRIAL={injector.mark}".encode(), {}
    for entry in Path("/proc").iterdir():
        try:
            is_one = entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0")
            if is_one and (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


def watchdogs_of(injector):
    """Watchdogs of this injector: a fork keeps its environment."""
    return [pid for pid, line in processes_of(injector).items() if line.startswith("undo-watchdog")]


def events_of(group):
    try:
        return (group / "cgroup.events").read_text()
    except OSError:  # it was removed meanwhile
        return ""


def groups_of(injector):
    # Other groups come and go meanwhile, which os.walk passes over.
    name = f"crosswind-{injector.process.pid}-"
    return [Path(at, one) for at, below, _ in os.walk("/sys/fs/cgroup") for one in below if one.startswith(name)]


class Injector:
    """`crosswind inject` as a process of its own, with the program above."""

    def __init__(self, directory, *options, disturbance=MOSTLY_AWAY, new_session=False):
        self.stop = directory / "stop"
        file = directory / "disturbance.toml"
        file.write_text(disturbance)
        self.words = ["inject", str(file), *options, "--", sys.executable, "-c", PROGRAM, str(self.stop)]
        self.log = (directory / "log").open("w+")
        self.mark = f"{os.getpid()}-{directory.name}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "crosswind.cli", *self.words],
            stdout=self.log,
            stderr=self.log,
            start_new_session=new_session,
            env=os.environ | {"CROSSWIND_TRIAL": self.mark},
        )

    def program(self):
        return processes_with(str(self.stop))

    def is_held(self):
        found = self.program()
        frozen = any("frozen 1" in events_of(g) for b in groups_of(self) for g in b.glob("rank-*"))
        return len(found) == 2 and (frozen or {state for state, _, _ in found.values()} <= {"t", "T"})

    def wait_until_held(self):
        waits_until(lambda: self.is_held() or self.process.poll() is not None)
        assert self.process.poll() is None, self.said()

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def assert_nothing_is_left(self):
        waits_until(lambda: not watchdogs_of(self))
        assert groups_of(self) == []
        for state, nice, policy in self.program().values():
            assert (state not in "tT", nice, policy) == (True, os.nice(0), 0)

    def end(self):
        self.stop.touch()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        waits_until(lambda: not self.program())
        self.log.close()


@pytest.fixture
def start(tmp_path):
    started = []

    def begin(*options, **more):
        started.append(Injector(tmp_path, *options, **more))
        return started[-1]

    yield begin
    for injector in started:
        injector.end()


WAYS = ["stop", pytest.param("freeze", marks=pytest.mark.skipif(bool(means()["no_freezer"]), reason="no freezer here"))]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_asks_to_end_ends_the_program_and_leaves_nothing(start, how, number):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("nohup: what these tests start does not hear a hang-up")
    injector = start("--how", how)
    injector.wait_until_held()
    injector.process.send_signal(number)
    code = injector.process.wait(30)
    assert code == (130 if number == signal.SIGINT else 128 + number), injector.said()
    assert injector.program() == {}
    injector.assert_nothing_is_left()


PROMPT = """
import os, signal, time
signal.signal(signal.SIGINT, %s)
print("there", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("on_ctrl_c", ["signal.SIG_DFL", "lambda *_: os._exit(0)"])
def test_ctrl_c_at_a_terminal_counts_though_the_program_ends_of_it_first(tmp_path, on_ctrl_c):
    disturbance = tmp_path / "disturbance.toml"
    disturbance.write_text(DAEMON % 0)
    program = PROMPT % on_ctrl_c
    command = [sys.executable, "-m", "crosswind.cli", "inject", str(disturbance), "--", sys.executable, "-c", program]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **streams) as process:
        assert process.stdout.readline() == "there\n"
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the injector and its program alike
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said


@pytest.mark.parametrize("how", WAYS)
def test_an_injector_that_is_killed_leaves_a_program_that_goes_on(start, how):
    injector = start("--how", how)
    injector.wait_until_held()
    injector.process.kill()
    injector.process.wait()
    injector.assert_nothing_is_left()
    assert len(injector.program()) == 2
    injector.stop.touch()
    waits_until(lambda: not injector.program())
    assert "done" in injector.said()


def test_an_injector_that_is_killed_with_its_whole_group_leaves_no_process_stopped(start):
    injector = start("--how", "stop", new_session=True)
    injector.wait_until_held()
    os.killpg(injector.process.pid, signal.SIGKILL)
    injector.process.wait()
    injector.assert_nothing_is_left()


def killed(injector, chosen):
    """Kill those processes of a trial, the program left out, whose command line is chosen; as `pkill -9 -f` would."""
    program = injector.program()
    while found := [
        pid
        for pid, line in processes_of(injector).items()
        if pid not in program and pid not in injector.program() and chosen(line)
    ]:
        for pid in found:
            os.kill(pid, signal.SIGKILL)
    injector.process.wait()
    return program


@pytest.mark.parametrize("options", [("stop",), ("stop", "--pin"), ("freeze",), ("freeze", "--pin"), ("burn", "--pin")])
def test_when_all_that_bears_the_commands_name_is_killed_nothing_is_left(start, options):
    if "freeze" in options and means()["no_freezer"]:
        pytest.skip("no freezer here")
    injector = start("--how", *options)
    if "burn" in options:
        waits_until(lambda: len(injector.program()) == 2)
    else:
        injector.wait_until_held()
    program = killed(injector, lambda line: "crosswind" in line)
    injector.assert_nothing_is_left()
    assert injector.program().keys() == program.keys()
    assert {frozenset(os.sched_getaffinity(pid)) for pid in program} == {frozenset(os.sched_getaffinity(0))}
    injector.stop.touch()
    waits_until(lambda: not injector.program())
    assert "done" in injector.said()


def test_what_is_stopped_goes_on_when_the_watchdog_is_killed_with_the_command(start):
    injector = start("--how", "stop")
    injector.wait_until_held()
    if "T" in {state for state, _, _ in injector.program().values()}:
        pytest.skip("tracing is not permitted here")
    program = killed(injector, lambda line: True)
    waits_until(lambda: all(state not in "tT" for state, _, _ in injector.program().values()))
    assert injector.program().keys() == program.keys()
    assert leftovers() == [] or all(str(pid) not in one["name"] for one in leftovers() for pid in program)


@pytest.mark.skipif(bool(means()["no_freezer"]), reason="no freezer here")
def test_a_frozen_group_of_a_command_that_was_killed_with_its_watchdogs_is_named_and_removed(start, tmp_path):
    injector = start("--how", "freeze")
    injector.wait_until_held()
    program = killed(injector, lambda line: True)
    [group] = groups_of(injector)
    found = left_behind()
    injected = inject(written(tmp_path, HALF), ["true"])
    assert groups_of(injector) == []
    # Another session on this host may have removed it first.
    removed = [told for told in injected.warnings if str(group) in told["message"]]
    # What was killed between two intervals had thawed it.
    assert not removed or f"control group {group}" in found.message
    injector.stop.touch()
    waits_until(lambda: not injector.program())
    assert len(program) == 2


@pytest.mark.parametrize("how", WAYS)
def test_a_program_that_is_killed_is_reported_and_its_children_go_on(start, how):
    injector = start("--how", how)
    injector.wait_until_held()
    parent = min(injector.program())
    os.kill(parent, signal.SIGKILL)
    assert injector.process.wait(30) == 1
    assert "was ended by SIGKILL" in injector.said()
    injector.assert_nothing_is_left()
    assert len(injector.program()) == 1


@pytest.mark.parametrize("how", WAYS)
def test_a_program_that_ends_by_itself_leaves_nothing(start, how):
    injector = start("--how", how)
    injector.wait_until_held()
    injector.stop.touch()
    code, said = injector.process.wait(30), injector.said()
    assert code == 0 or (code == 3 and "late" in said), said  # on a busy host
    injector.assert_nothing_is_left()


def test_the_limit_ends_the_program_and_its_children(start):
    injector = start("--limit-s", "1.0")
    assert injector.process.wait(30) == 1
    assert "the limit was reached" in injector.said()
    assert injector.program() == {}
    injector.assert_nothing_is_left()


def test_at_the_limit_only_the_disturbance_ends_where_the_program_is_to_go_on(start):
    injector = start("--limit-s", "0.7", "--keep-running", "--how", "stop")
    injector.wait_until_held()
    time.sleep(0.7)  # beyond the limit, whenever that was
    assert all(not injector.is_held() for _ in range(20) if not time.sleep(0.02))
    assert len(injector.program()) == 2
    injector.stop.touch()
    assert injector.process.wait(30) == 3, injector.said()
    injector.assert_nothing_is_left()


def test_a_watchdog_that_is_killed_ends_the_disturbance_and_the_program_goes_on(start):
    injector = start("--how", "stop")
    injector.wait_until_held()
    [watchdog] = watchdogs_of(injector)
    os.kill(watchdog, signal.SIGKILL)
    waits_until(lambda: not injector.is_held())
    assert all(not injector.is_held() for _ in range(30) if not time.sleep(0.02))
    injector.stop.touch()
    assert injector.process.wait(30) == 3
    assert "the watchdog was ended" in injector.said()
    injector.assert_nothing_is_left()


def test_an_injector_that_is_stopped_itself_holds_no_process_for_long(start):
    injector = start("--how", "stop")
    injector.wait_until_held()
    injector.process.send_signal(signal.SIGSTOP)
    waits_until(lambda: not injector.is_held())
    injector.process.send_signal(signal.SIGCONT)
    injector.wait_until_held()
    injector.stop.touch()
    assert injector.process.wait(30) == 3
    assert "late on average" in injector.said()
    injector.assert_nothing_is_left()


def written(directory, text):
    file = directory / "disturbance.toml"
    file.write_text(text)
    return file


COMPUTES = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"


@pytest.mark.parametrize("how", WAYS)
def test_a_program_that_is_away_half_of_the_time_takes_about_twice_as_long(tmp_path, how):
    injected = inject(written(tmp_path, HALF), [sys.executable, "-c", COMPUTES], how=how)
    summary = injected.summary
    [rank] = summary["ranks"]
    assert injected.succeeded
    assert 0.4 < rank["share"] < 0.6
    # It computes only while it is not away. How long others keep it from computing is theirs.
    computed = summary["cpu_user_s"] + summary["cpu_system_s"]
    assert summary["elapsed_s"] > 0.9 * (computed + rank["away_s"])
    assert summary["elapsed_s"] > 1.5 * computed


def test_what_was_injected_can_be_injected_again(tmp_path):
    first = inject(written(tmp_path, HALF), ["sleep", "0.3"])
    again = tmp_path / "again.toml"
    first.save(again)
    assert 'kind = "recorded"' in again.read_text()
    second = inject(again, ["sleep", "0.3"])
    counts = [injected.summary["ranks"][0]["intervals"] for injected in (first, second)]
    assert counts[0] > 3
    assert abs(counts[0] - counts[1]) <= 2  # the length of a sleep differs a little
    assert second.summary["ranks"][0]["causes"][0]["cause"] == "coscheduled"


def test_while_the_program_is_held_its_processor_is_busy_unless_it_is_to_idle(tmp_path):
    for busy in (True, False):
        injected = inject(written(tmp_path, HALF), [sys.executable, "-c", COMPUTES], how="stop", pin=True, busy=busy)
        [rank] = injected.summary["ranks"]
        assert rank["busy_cpus"] == (rank["cpus"] if busy else [])
        changes = preview(tmp_path / "disturbance.toml", ["true"], how="stop", busy=busy)["changes"]
        assert any("SCHED_IDLE" in change for change in changes) == busy


def test_a_disturbance_begins_when_the_command_says_that_it_begins(tmp_path):
    begun = tmp_path / "begun"
    code = "import pathlib, sys, time; time.sleep(0.3); pathlib.Path(sys.argv[1]).touch(); time.sleep(0.3)"
    injected = inject(written(tmp_path, HALF), [sys.executable, "-c", code, str(begun)], start_file=begun)
    [rank] = injected.summary["ranks"]
    assert 0.3 <= injected.summary["start_s"] < injected.elapsed_s
    assert rank["intervals"] >= 1
    with pytest.raises(DescriptionError, match="not there yet"):
        inject(written(tmp_path, HALF), ["true"], start_file=begun)


def test_a_command_that_never_begins_is_a_warning(tmp_path):
    injected = inject(written(tmp_path, HALF), ["true"], start_file=tmp_path / "begun")
    assert [warning["code"] for warning in injected.warnings] == ["no-start"]
    assert not injected.trustworthy


def test_a_disturbance_may_be_json(tmp_path):
    file = tmp_path / "half.json"
    file.write_text(json.dumps(crosswind.Disturbance.from_toml(HALF).to_dict()))
    assert crosswind.Disturbance.load(file).to_dict() == crosswind.Disturbance.from_toml(HALF).to_dict()
    assert inject(file, ["sleep", "0.1"]).summary["ranks"][0]["intervals"] >= 1


LAUNCHER = """
import os, subprocess, sys, time
code = "import time; time.sleep(1.0)"
told = [{**os.environ, "OMPI_COMM_WORLD_RANK": rank} for rank in "01"]
ranks = [subprocess.Popen([sys.executable, "-c", code], env=environment) for environment in told]
print(*(rank.pid for rank in ranks), flush=True)
status = max(rank.wait() for rank in ranks)
time.sleep(1.2)  # a launcher outlives its ranks, and is looked at once more
sys.exit(status)
"""


def test_ranks_are_told_by_their_launcher_and_only_the_one_that_is_named_is_disturbed(tmp_path, capfd):
    file = written(tmp_path, DAEMON % 1)
    injected = inject(file, [sys.executable, "-c", LAUNCHER], ranks=2, how="stop")
    started = [int(word) for word in capfd.readouterr().out.split()]
    assert injected.summary["ranks_told_by"] == "OMPI_COMM_WORLD_RANK"
    ranks = {rank["rank"]: rank for rank in injected.summary["ranks"]}
    assert {rank: found["pids"] for rank, found in ranks.items()} == {0: [started[0]], 1: [started[1]]}
    assert ranks[0]["intervals"] == 0
    assert ranks[1]["intervals"] > 10


def test_fewer_ranks_than_were_asked_for_are_told_and_end_with_3(tmp_path):
    file = written(tmp_path, HALF)
    begin = [sys.executable, "-m", "crosswind.cli", "inject", str(file), "--ranks", "3", "--"]
    ranks = "for RANK in 0 1; do RANK=$RANK LOCAL_RANK=$RANK WORLD_SIZE=2 sleep 0.7 & done; wait"
    for command, said in [
        (["sh", "-c", ranks], "of 3 ranks 2 were found"),
        (["sleep", "0.3"], "of 3 ranks 1 was found"),
    ]:
        done = subprocess.run([*begin, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 3, done.stderr
        assert said in done.stderr


def test_a_daemon_computes_on_the_cpu_of_a_rank_that_is_bound_to_it(tmp_path):
    injected = inject(written(tmp_path, DAEMON % 0), [sys.executable, "-c", COMPUTES], pin=True)
    [rank] = injected.summary["ranks"]
    assert rank["cpus"] == [min(os.sched_getaffinity(0))]
    assert rank["causes"][0]["how"] == ["burn"]
    assert rank["intervals"] > 5


def test_binding_is_undone_where_the_program_goes_on(start):
    injector = start("--pin")
    waits_until(lambda: len(injector.program()) == 2)
    injector.wait_until_held()
    injector.process.kill()
    injector.process.wait()
    injector.assert_nothing_is_left()
    assert {frozenset(os.sched_getaffinity(pid)) for pid in injector.program()} == {frozenset(os.sched_getaffinity(0))}


def test_a_dry_run_says_what_it_would_do_and_does_nothing(tmp_path):
    file = written(tmp_path, HALF)
    made = tmp_path / "made"
    found = preview(file, ["touch", str(made)], how="stop")
    assert not made.exists()
    assert found["causes"] == [{"cause": "coscheduled", "daemon": False, "how": ["stop"]}]
    assert found["ranks"][0]["share"] == pytest.approx(0.5)
    done = subprocess.run(
        [sys.executable, "-m", "crosswind.cli", "inject", str(file), "--dry-run", "--json", "--", "touch", str(made)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["name"] == "half"
    assert not made.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ranks": 1}, "rank"),
        ({"limit_s": 0.0}, "limit_s"),
        ({"how": "magic"}, "how is"),
        ({"seed": -1}, "seed"),
        ({"ranks": 0}, "ranks is 0"),
    ],
)
def test_what_cannot_be_injected_is_refused_before_anything_starts(tmp_path, options, said):
    made = tmp_path / "made"
    with pytest.raises(DescriptionError, match=said):
        inject(written(tmp_path, DAEMON % 3), ["touch", str(made)], **options)
    assert not made.exists()


def test_a_program_that_does_not_exist_is_refused_and_nothing_is_left(tmp_path):
    with pytest.raises(DescriptionError, match="no/such/program"):
        inject(written(tmp_path, HALF), ["no/such/program"])
    with pytest.raises(DescriptionError, match="there is no command"):
        inject(written(tmp_path, HALF), [])
