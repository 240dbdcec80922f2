"""Recording of noise on this machine: what is in the file, whose it is, what is left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crosswind import record
from crosswind.doctor.disturbances import left_behind
from crosswind.errors import DescriptionError
from crosswind.inject import preview
from crosswind.noise import no_trace

pytestmark = pytest.mark.live

CPU = max(os.sched_getaffinity(0))
WAYS = ["loop", pytest.param("trace", marks=pytest.mark.skipif(bool(no_trace()), reason="no trace here"))]
# Computes for 10 ms of every 30 ms on the CPU that is recorded, under a name of its own.
DAEMON = f"""
import os, pathlib, time
os.sched_setaffinity(0, {{{CPU}}})
pathlib.Path("/proc/self/comm").write_text("cw-test-daemon")
print("on", flush=True)
while os.getppid() == {os.getpid()}:
    end = time.process_time() + 0.01
    while time.process_time() < end:
        pass
    time.sleep(0.02)
"""


@pytest.fixture
def daemon():
    process = subprocess.Popen([sys.executable, "-c", DAEMON], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"on\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def instances_of(number):
    """Trace instances of a process, as a user with a tracefs mount of his own sees them."""
    mount = "mount -t tracefs none /sys/kernel/tracing 2>/dev/null; ls /sys/kernel/tracing/instances"
    done = subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True, text=True, check=False)
    return [name for name in done.stdout.split() if name.startswith(f"crosswind-{number}-")]


@pytest.mark.alone
@pytest.mark.parametrize("how", WAYS)
def test_a_recording_is_a_disturbance_and_its_numbers_are_those_of_its_intervals(how, tmp_path):
    noise = record(0.5, cpus=[CPU], how=how)
    file = tmp_path / "noise.toml"
    noise.save(file)
    [cpu] = noise.summary["cpus"]
    assert noise.summary["length_s"] == pytest.approx(0.5)
    assert sum(cause["intervals"] for cause in cpu["causes"]) == cpu["intervals"]
    assert sum(cause["share"] for cause in cpu["causes"]) == pytest.approx(cpu["share"])
    read_again = preview(file, ["true"], horizon_s=0.5)  # rank 0 replays it all, from some moment on and around
    [rank] = read_again["ranks"]
    # On a busy machine the interval at the seam, up to the longest, may be cut off.
    assert rank["share"] == pytest.approx(cpu["share"], rel=0.01, abs=1e-4 + cpu["longest_s"] / 0.5)


@pytest.mark.alone
@pytest.mark.parametrize("how", WAYS)
def test_a_daemon_on_the_recorded_cpu_is_found_and_by_the_trace_named(how, daemon):
    noise = record(1.0, cpus=[CPU], how=how)
    causes = {cause["cause"]: cause for cause in noise.summary["total"]["causes"]}
    theirs = causes["thread:cw-test-daemon" if how == "trace" else "another thread"]
    assert theirs["intervals"] >= 3
    assert theirs["share"] > 0.02
    assert theirs["longest_s"] > 0.0005
    if how == "trace":
        [process] = theirs["processes"]
        assert (process["pid"], process["command"]) == (daemon.pid, f"{sys.executable} -c")
        assert process["cgroup"] in Path(f"/proc/{daemon.pid}/cgroup").read_text()
        assert process["share"] == pytest.approx(theirs["share"])


@pytest.mark.parametrize("how", WAYS)
def test_ctrl_c_keeps_what_was_recorded_and_leaves_nothing(how, tmp_path):
    file = tmp_path / "noise.toml"
    words = ["record", "--seconds", "600", "--cpus", str(CPU), "--how", how, "-o", str(file), "--json"]
    process = subprocess.Popen([sys.executable, "-m", "crosswind.cli", *words], stdout=subprocess.PIPE, text=True)
    wait_for_loop(process)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    summary = json.loads(said)
    assert process.returncode == 130
    assert summary["interrupted"]
    assert 0.0 < summary["length_s"] < 600
    assert preview(file, ["true"])["causes"]
    assert instances_of(process.pid) == []


@pytest.mark.skipif(bool(no_trace()), reason="no trace here")
def test_a_recorder_that_is_killed_leaves_no_trace_behind(tmp_path):
    words = ["record", "--seconds", "600", "--cpus", str(CPU), "--how", "trace", "-o", str(tmp_path / "noise.toml")]
    process = subprocess.Popen([sys.executable, "-m", "crosswind.cli", *words])
    wait_for_loop(process)
    assert len(instances_of(process.pid)) == 1
    process.kill()
    process.wait()
    end = time.monotonic() + 30
    while instances_of(process.pid):
        assert time.monotonic() < end, "the trace is still there"


def tool_and_watchdog(process):
    """Return both: any thread of the tool may be the parent of its watchdog."""
    texts = [file.read_text() for file in Path(f"/proc/{process.pid}/task").glob("*/children")]
    found = {process.pid} | {int(pid) for text in texts for pid in text.split()}
    assert len(found) == 2
    return found


@pytest.mark.skipif(bool(no_trace()), reason="no trace here")
def test_no_trace_stays_when_all_that_bears_the_recorders_name_is_killed(tmp_path):
    words = ["record", "--seconds", "600", "--cpus", str(CPU), "--how", "trace", "-o", str(tmp_path / "noise.toml")]
    process = subprocess.Popen([sys.executable, "-m", "crosswind.cli", *words])
    wait_for_loop(process)
    for pid in tool_and_watchdog(process):
        if b"crosswind" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
    process.wait()
    end = time.monotonic() + 30
    while instances_of(process.pid):
        assert time.monotonic() < end, "the trace is still there"


@pytest.mark.skipif(bool(no_trace()), reason="no trace here")
def test_a_trace_that_stayed_is_named_and_the_next_recording_removes_it(tmp_path):
    words = ["record", "--seconds", "600", "--cpus", str(CPU), "--how", "trace", "-o", str(tmp_path / "noise.toml")]
    process = subprocess.Popen([sys.executable, "-m", "crosswind.cli", *words])
    wait_for_loop(process)
    family = [os.pidfd_open(pid) for pid in sorted(tool_and_watchdog(process), reverse=True)]
    for one in family:  # the watchdog first
        signal.pidfd_send_signal(one, signal.SIGKILL)
        os.close(one)
    process.wait()
    [instance] = instances_of(process.pid)
    found = left_behind()
    noise = record(0.1, cpus=[CPU], how="loop")
    assert instances_of(process.pid) == []
    # Another session on this host may have removed it first.
    removed = [told for told in noise.warnings if instance in told["message"]]
    assert not removed or (found.level == "warning" and instance in found.message)


def limited_group():
    """A control group of 15 ms of CPU time in each 100 ms, of version 2 or 1; None where none can be made."""
    places = {"/sys/fs/cgroup": ("cpu.max", "15000 100000"), "/sys/fs/cgroup/cpu": ("cpu.cfs_quota_us", "15000")}
    for place, (file, limit) in places.items():
        group = Path(place) / f"cw-quota-{os.getpid()}"
        if not (group.parent / "cgroup.procs").exists():
            continue
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / file).write_text(limit)
        except OSError:
            group.rmdir()
            continue
        return group
    return None


@pytest.mark.parametrize("how", WAYS)
def test_a_quota_that_is_used_up_is_a_cause_of_its_own(how, tmp_path):
    if (group := limited_group()) is None:
        pytest.skip("no group with a quota can be made here")
    words = ["record", "--seconds", "2", "--cpus", str(CPU), "--how", how, "-o", str(tmp_path / "noise.toml"), "--json"]
    join = 'echo $$ > "$0"/cgroup.procs; exec "$@"'
    command = ["sh", "-c", join, str(group), sys.executable, "-m", "crosswind.cli", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    group.rmdir()
    summary = json.loads(done.stdout)
    causes = {cause["cause"]: cause["share"] for cause in summary["total"]["causes"]}
    if not summary["throttled"]:
        pytest.skip("others leave this group less of the CPU than its quota")
    assert "thread:swapper" not in causes  # an idle CPU was withheld
    # Where others compute meanwhile the CPU is theirs, by the trace.
    assert "quota" in causes or (how == "trace" and sum(causes.values()) > 0.5), causes


def wait_for_loop(process):
    """Wait until a thread of the process is bound to the one CPU, and has computed for some time."""
    end = time.monotonic() + 60
    while True:
        assert time.monotonic() < end, "waited in vain"
        assert process.poll() is None
        for thread in Path(f"/proc/{process.pid}/task").iterdir():
            try:
                bound = os.sched_getaffinity(int(thread.name)) == {CPU}
                used = int((thread / "stat").read_text().rsplit(")", 1)[1].split()[11])
            except OSError:
                continue
            if bound and used > 10 and int(thread.name) != process.pid:
                return
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seconds": 0.0}, "seconds"),
        ({"cpus": []}, "cpus"),
        ({"cpus": [100_000]}, "cpus"),
        ({"how": "magic"}, "how"),
        ({"threshold_us": 0.0}, "threshold_us"),
    ],
)
def test_what_cannot_be_recorded_is_refused(options, said):
    with pytest.raises(DescriptionError, match=said):
        record(**{"seconds": 0.1} | options)
