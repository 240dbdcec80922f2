"""What is frozen is thawed, whatever is killed; what was stopped already, or belongs to another session, is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from freezing import (
    FORKS,
    ONE,
    PATIENCE_S,
    SPIN,
    THREADS,
    grouped,
    is_frozen,
    later,
    running,
    runs_again,
    state,
    stops,
    wait_until,
)

from crosswind import _core
from crosswind.cost.targets import opened
from crosswind.doctor.disturbances import left_frozen
from crosswind.errors import CrosswindError, DescriptionError, MeasurementError
from crosswind.host import processes
from crosswind.host.cgroup import unified_mount

pytestmark = pytest.mark.live

MEANS = ["tracing", "signals"]


def threads(pid: int) -> set[str]:
    texts = (Path(f"/proc/{pid}/task/{task}/stat").read_text() for task in processes.threads(pid))
    return {text.rpartition(")")[2].split()[0] for text in texts}


def seized(freezer: _core.Freezer, pid: int, how: str) -> _core.Frozen:
    found = freezer.seize([pid], by_signals=how == "signals")
    assert found.how == how
    return found


@pytest.mark.parametrize("how", MEANS)
@pytest.mark.parametrize("text", [ONE, THREADS], ids=["one thread", "six threads"])
def test_every_thread_is_stopped_and_continued(freezer, text, how):
    with running(text) as target:
        wait_until(lambda: len(processes.threads(target.pid)) == (6 if text is THREADS else 1))
        found = seized(freezer, target.pid, how)
        for _ in range(20):
            freezer.freeze(found, later())
            wait_until(lambda: threads(target.pid) <= set("Tt"))
            freezer.thaw(found)
            wait_until(lambda: not threads(target.pid) & set("Tt"))
        assert runs_again(target.pid)


HOLDS = """
import sys, time
from crosswind import _core
from crosswind.cost.targets import opened
freezer = _core.Freezer()
if sys.argv[3] == "signals":
    pid = int(sys.argv[1].partition(":")[2])
    freezer.freeze(freezer.seize([pid], by_signals=True), time.monotonic_ns() + int(float(sys.argv[2]) * 1e9))
else:
    opened(sys.argv[1], freezer).freeze(time.monotonic_ns() + int(float(sys.argv[2]) * 1e9))
print(freezer.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder():
    """Start a process that freezes something and then sleeps; returns it and the process of its freezer."""
    started = []

    def start(text: str, how: str = "any", due_s: float = 60.0) -> tuple[subprocess.Popen[str], int]:
        command = [sys.executable, "-c", HOLDS, text, str(due_s), how]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return started[-1], int(started[-1].stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("how", MEANS)
def test_a_process_goes_on_after_kill_9_of_the_command(holder, how):
    with running(THREADS) as target:
        process, _ = holder(f"pid:{target.pid}", how)
        assert stops(target.pid)
        process.kill()
        assert runs_again(target.pid)


def test_a_traced_process_goes_on_after_kill_9_of_the_command_and_its_freezer(holder):
    with running(THREADS) as target:
        process, freezer = holder(f"pid:{target.pid}")
        assert stops(target.pid)
        os.kill(process.pid, signal.SIGSTOP)  # it cannot help
        os.kill(freezer, signal.SIGKILL)
        assert runs_again(target.pid)
        process.kill()


@pytest.mark.parametrize("how", MEANS)
def test_a_process_goes_on_after_kill_9_of_the_freezer(freezer, how):
    with running(ONE) as target:
        found = seized(freezer, target.pid, how)
        freezer.freeze(found, later())
        os.kill(freezer.pid, signal.SIGKILL)
        with pytest.raises(MeasurementError, match="the watchdog was ended"):
            freezer.thaw(found)
        assert runs_again(target.pid)


@pytest.mark.parametrize("how", MEANS)
def test_a_process_goes_on_when_the_command_is_stopped_itself(holder, how):
    with running(ONE) as target:
        process, _ = holder(f"pid:{target.pid}", how, 0.1)
        process.send_signal(signal.SIGSTOP)
        assert runs_again(target.pid)


def test_a_group_is_thawed_after_kill_9_of_the_command_and_of_all_that_bears_its_name(holder):
    with running(ONE) as target, grouped(target.pid) as group:
        process, freezer = holder(f"cgroup:/{group.name}")
        wait_until(lambda: is_frozen(group))
        assert state(target.pid) not in "Tt"
        assert "crosswind" not in Path(f"/proc/{freezer}/cmdline").read_text()
        assert "crosswind" not in Path(f"/proc/{freezer}/comm").read_text()
        assert os.getsid(freezer) == freezer
        process.kill()
        wait_until(lambda: not is_frozen(group))
        assert runs_again(target.pid)


def test_a_group_is_thawed_after_everything_in_the_commands_own_group_is_killed(holder):
    with running(ONE) as target, grouped(target.pid) as group:
        below = group.with_name(group.name + "-tool")
        below.mkdir()
        try:
            text = f"import os; open({str(below / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n" + HOLDS
            command = [sys.executable, "-c", text, f"cgroup:/{group.name}", "60", "any"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                process.stdout.readline()
                wait_until(lambda: is_frozen(group))
                (below / "cgroup.kill").write_text("1")
            wait_until(lambda: not is_frozen(group))
        finally:
            wait_until(lambda: not (below / "cgroup.procs").read_text())
            below.rmdir()


@pytest.mark.parametrize("how", MEANS)
def test_an_orphan_of_a_daemon_goes_on_at_the_end(freezer, orphans, how):
    """`cost` once left workers stopped whose helper had ended meanwhile."""
    with running(FORKS) as daemon:
        found = seized(freezer, daemon.pid, how)
        for _ in range(5):
            daemon.stdin.write("\n")
            daemon.stdin.flush()
            orphans.append(int(daemon.stdout.readline()))
            freezer.freeze(found, later())
            if how == "tracing":
                assert all(stops(pid) for pid in orphans)
                assert set(orphans) <= set(freezer.members(found))
            freezer.thaw(found)
        freezer.freeze(found, later())
        freezer.close()
        assert all(runs_again(pid) for pid in orphans)


@pytest.mark.parametrize("how", MEANS)
def test_workers_go_on_when_their_master_is_killed_while_all_are_stopped(freezer, orphans, how):
    text = SPIN + "import os\npid = os.fork()\nif pid: print(pid, flush=True)\nspin()"
    with running(text) as master:
        worker = int(master.stdout.readline())
        orphans.append(worker)
        found = seized(freezer, master.pid, how)
        freezer.freeze(found, later())
        assert stops(worker)
        master.kill()
        master.wait()
        freezer.freeze(found, later())
        freezer.thaw(found)
        assert runs_again(worker)


@pytest.mark.parametrize("how", MEANS)
def test_what_is_stopped_already_is_refused_and_stays_so(freezer, how):
    with running(ONE) as target:
        os.kill(target.pid, signal.SIGSTOP)
        wait_until(lambda: state(target.pid) == "T")
        with pytest.raises(DescriptionError, match="already stopped"):
            seized(freezer, target.pid, how)
        freezer.close()
        assert state(target.pid) == "T"


@pytest.mark.parametrize("how", MEANS)
def test_a_child_that_was_stopped_already_stays_stopped(freezer, orphans, how):
    text = SPIN + "import os\npid = os.fork()\nif pid: print(pid, flush=True)\nspin()"
    with running(text) as parent:
        child = int(parent.stdout.readline())
        orphans.append(child)
        os.kill(child, signal.SIGSTOP)
        wait_until(lambda: state(child) == "T")
        found = seized(freezer, parent.pid, how)
        for _ in range(3):
            freezer.freeze(found, later())
            freezer.thaw(found)
        assert runs_again(parent.pid)
        freezer.close()
        wait_until(lambda: state(child) == "T")
        os.kill(child, signal.SIGCONT)
        assert runs_again(child)


def test_a_stop_by_job_control_in_mid_session_stays_one(freezer):
    with running(THREADS) as target:
        found = seized(freezer, target.pid, "tracing")
        os.kill(target.pid, signal.SIGSTOP)
        wait_until(lambda: threads(target.pid) <= set("Tt"))
        freezer.freeze(found, later())
        freezer.thaw(found)
        freezer.close()
        wait_until(lambda: threads(target.pid) == {"T"})
        os.kill(target.pid, signal.SIGCONT)
        assert runs_again(target.pid)


def test_signals_reach_a_traced_process_at_once_or_at_the_thaw(freezer):
    text = """
import os, signal, time
count = 0
def counted(*_):
    global count
    count += 1
    os.write(1, b"%d\\n" % count)
signal.signal(signal.SIGUSR1, counted)
print("ready", flush=True)
while True: time.sleep(60)
"""
    with running(text) as target:
        target.stdout.readline()
        found = seized(freezer, target.pid, "tracing")
        for each in range(1, 51):
            os.kill(target.pid, signal.SIGUSR1)
            assert int(target.stdout.readline()) == each
        freezer.freeze(found, later())
        os.kill(target.pid, signal.SIGUSR1)
        assert stops(target.pid)
        freezer.thaw(found)
        assert int(target.stdout.readline()) == 51
        os.kill(target.pid, signal.SIGTERM)
        assert target.wait(PATIENCE_S) == -signal.SIGTERM


def test_a_program_that_a_thread_replaces_stays_seized(freezer):
    exec_ = f"import os, sys; os.execv(sys.executable, [sys.executable, '-S', '-c', {ONE!r}])"
    text = f"import sys, threading\nsys.stdin.readline()\nthreading.Thread(target=lambda: exec({exec_!r})).start()"
    with running(text) as target:
        found = seized(freezer, target.pid, "tracing")
        target.stdin.write("\n")
        target.stdin.flush()
        wait_until(lambda: b"spin" in Path(f"/proc/{target.pid}/cmdline").read_bytes())
        for _ in range(5):
            freezer.freeze(found, later())
            wait_until(lambda: threads(target.pid) == {"t"})
            freezer.thaw(found)
        assert runs_again(target.pid)
        assert freezer.members(found) == [target.pid]


def test_a_thread_a_zombie_and_what_is_not_there_are_refused(freezer):
    with running(THREADS) as target:
        wait_until(lambda: len(processes.threads(target.pid)) == 6)
        thread = max(processes.threads(target.pid))
        with pytest.raises(DescriptionError, match=f"{thread} is a thread of process {target.pid}"):
            opened(f"pid:{thread}", freezer)
        zombie = subprocess.Popen(["true"])
        wait_until(lambda: state(zombie.pid) == "Z")
        with pytest.raises(DescriptionError, match="zombie"):
            opened(f"pid:{zombie.pid}", freezer)
        zombie.wait()
        with pytest.raises(DescriptionError, match="no process"):
            freezer.seize([zombie.pid])


def test_a_second_session_on_the_same_is_refused(freezers):
    with running(ONE) as target, grouped(target.pid) as group:
        for first, second in (
            ("tracing", "tracing"),
            ("tracing", "signals"),
            ("tracing", "group"),
            ("signals", "tracing"),
            ("signals", "signals"),
            ("signals", "group"),
            ("group", "tracing"),
            ("group", "signals"),
            ("group", "group"),
        ):
            one, other = freezers(), freezers()

            def take(by: _core.Freezer, how: str) -> _core.Frozen:
                return by.seize_group(group) if how == "group" else seized(by, target.pid, how)

            found = take(one, first)
            with pytest.raises(CrosswindError, match=r"another session|already traced"):
                take(other, second)
            one.freeze(found, later())
            with pytest.raises(CrosswindError, match=r"another session|already traced"):
                take(other, second)
            other.close()
            wait_until(lambda by=first: is_frozen(group) if by == "group" else stops(target.pid))
            one.close()
            assert runs_again(target.pid)


def test_a_frozen_group_and_what_is_in_it_are_refused_and_stay_frozen(freezers):
    with running(ONE) as target, grouped(target.pid) as group:
        (group / "cgroup.freeze").write_text("1")
        wait_until(lambda: is_frozen(group))
        for text in (f"cgroup:/{group.name}", f"pid:{target.pid}"):
            freezer = freezers()
            with pytest.raises(DescriptionError, match="already frozen"):
                opened(text, freezer)
            freezer.close()
            wait_until(lambda: is_frozen(group))


def test_a_group_that_a_killed_session_left_frozen_is_thawed_by_the_next(holder, freezer):
    with running(ONE) as target, grouped(target.pid) as group:
        process, guard = holder(f"cgroup:/{group.name}")
        os.kill(process.pid, signal.SIGSTOP)
        os.kill(guard, signal.SIGKILL)
        process.kill()
        process.wait()
        wait_until(lambda: processes.has_ended(guard) and is_frozen(group))

        def is_named() -> bool:
            return any(str(group) in finding.message for finding in left_frozen(unified_mount()))

        assert is_named()
        found = opened(f"cgroup:/{group.name}", freezer)
        assert found.members == {target.pid}
        found.freeze(later())
        assert not is_named()  # it is a session's that lives
        found.thaw()
        assert runs_again(target.pid)


def test_a_process_under_a_debugger_is_refused(freezers, orphans):
    freezer, other = freezers(), freezers()
    text = SPIN + "import os\npid = os.fork()\nif pid: print(pid, flush=True)\nspin()"
    with running(text) as parent:
        child = int(parent.stdout.readline())
        orphans.append(child)
        held = other.seize([child])
        with pytest.raises(DescriptionError, match=f"process {child} is already traced, by process {other.pid}"):
            freezer.seize([parent.pid])
        other.freeze(held, later())
        other.close()
        assert runs_again(child)
        assert runs_again(parent.pid)


def test_a_command_that_daemonises_at_once_is_held_and_ended(freezer, orphans):
    target = opened("command:sh -c '(setsid sleep 987 &); exec sleep 986'", freezer)
    wait_until(lambda: target.refresh() or {processes.name(pid) for pid in target.members} == {"sleep"})
    assert len(target.members) == 2
    orphans.extend(target.members)
    target.freeze(later())
    assert all(stops(pid) for pid in target.members)
    target.close()
    freezer.close()
    wait_until(lambda: all(processes.has_ended(pid) for pid in target.members))


FEW_DESCRIPTORS = """
import resource, sys
from crosswind import _core
from crosswind.cost.targets import opened
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
freezer = _core.Freezer()
try: opened(sys.argv[1], freezer)
except Exception as error: print(type(error).__name__, error)
freezer.close()
"""


def test_a_target_of_more_processes_than_descriptors_is_refused(orphans):
    with running("import os\nfor _ in range(40):\n  if os.fork() == 0: break\n" + SPIN + "time.sleep(60)") as target:
        wait_until(lambda: len(processes.with_descendants([target.pid])) == 41)
        members = processes.with_descendants([target.pid])
        orphans.extend(members - {target.pid})
        command = [sys.executable, "-c", FEW_DESCRIPTORS, f"pid:{target.pid}"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
        assert said.startswith("DescriptionError")
        assert "more processes than descriptors may be open (64)" in said
        assert not {state(pid) for pid in members} & set("Tt")


UNPRIVILEGED_SESSION = """
import os, sys, time
from crosswind import _core
from crosswind.cost.targets import opened
from crosswind.errors import CrosswindError
os.setresgid(65534, 65534, 65534); os.setgroups([]); os.setresuid(65534, 65534, 65534)
freezer = _core.Freezer()
try:
    target = opened(sys.argv[1], freezer)
    told = target.warning()
    print(target.frozen.how, told["code"] if told else None, flush=True)
    sys.stdin.readline()
    target.freeze(time.monotonic_ns() + 10**10)
    print("frozen", flush=True)
    sys.stdin.readline()
    target.thaw()
    target.close()
except CrosswindError as error:
    print(error, flush=True)
finally:
    freezer.close()
"""
BECOMES = """
import os, sys
os.setgroups([])
children = []
for k in range(3):
    pid = os.fork()
    if pid == 0:
        if k == 1: os.setresuid(65534, 65534, 0)
        else: os.setresuid(65534, 65534, 65534)
        if k == 1:
            sys.stdin.readline()
            os.setresuid(0, 0, 0)
            print("root", flush=True)
        spin()
    children.append(pid)
print(*children, flush=True)
os.setresuid(65534, 65534, 65534)
spin()
"""


@pytest.fixture
def unprivileged():
    """Start an ordinary user's process that takes a target when told to."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    started = []

    def start(text: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", UNPRIVILEGED_SESSION, text]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def test_another_users_process_is_refused_before_anything_is_stopped(unprivileged):
    with running(ONE) as target:
        said = unprivileged(f"pid:{target.pid}").communicate(timeout=PATIENCE_S)[0]
        assert f"process {target.pid}" in said
        assert "another user's" in said
        assert runs_again(target.pid)


def test_a_tree_whose_child_becomes_roots_is_refused_in_mid_session_and_all_of_it_runs(unprivileged, orphans):
    with running(SPIN + BECOMES) as target:
        children = [int(word) for word in target.stdout.readline().split()]
        orphans.extend(children)
        session = unprivileged(f"pid:{target.pid}")
        assert session.stdout.readline() == "signals watchdog-only\n"
        target.stdin.write("\n")
        target.stdin.flush()
        assert target.stdout.readline() == "root\n"
        session.stdin.write("\n")
        session.stdin.flush()
        assert f"process {children[1]}" in session.stdout.readline()
        assert session.wait(PATIENCE_S) == 0
        assert all(runs_again(pid) for pid in [target.pid, *children])


BECOMES_UNPRIVILEGED = """
import ctypes, os
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: may be traced by processes of one user
print("unprivileged", flush=True)
spin()
"""


def test_a_group_into_which_roots_process_moves_in_mid_session_is_refused_and_the_whole_group_runs(unprivileged):
    with running(SPIN + BECOMES_UNPRIVILEGED) as target, running(ONE) as other, grouped(target.pid) as group:
        assert target.stdout.readline() == "unprivileged\n"
        session = unprivileged(f"cgroup:/{group.name}")
        assert session.stdout.readline() == "tracing None\n"
        (group / "cgroup.procs").write_text(str(other.pid))
        session.stdin.write("\n")
        session.stdin.flush()
        assert f"process {other.pid}" in session.stdout.readline()
        assert session.wait(PATIENCE_S) == 0
        assert runs_again(target.pid)
        assert runs_again(other.pid)
