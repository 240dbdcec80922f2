"""`crosswind cost` with real processes: what is stopped goes on however we end, and known duties are found."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from freezing import ONE, PATIENCE_S, end, grouped, is_frozen, running, runs_again, state, stops, wait_until

from crosswind.cost import cost
from crosswind.errors import DescriptionError, MeasurementError
from crosswind.host import processes

pytestmark = pytest.mark.live

CPU = max(os.sched_getaffinity(0))
DAEMON = """
import os, sys, time
os.sched_setaffinity(0, {CPU})
while True:
    begun = time.thread_time()
    while time.thread_time() - begun < BURST: pass
    time.sleep(REST)
"""


def daemon(burst_s: float, rest_s: float) -> list[str]:
    text = DAEMON.replace("CPU", str(CPU)).replace("BURST", str(burst_s)).replace("REST", str(rest_s))
    return [sys.executable, "-S", "-c", text]


@pytest.fixture
def bystander():
    """Something to stop: a process that computes and forks nothing."""
    process = subprocess.Popen(daemon(0.001, 0.009))
    wait_until(lambda: processes.stat(process.pid) is not None)
    yield process
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGCONT)
    process.kill()
    process.wait()


def crosswind(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "crosswind.cli", "cost", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_kill_9_of_a_session_leaves_nothing_stopped_and_ends_its_kernels(bystander):
    process = crosswind("--of", f"pid:{bystander.pid}", "--seconds", "20")
    assert stops(bystander.pid)
    below = processes.with_descendants([process.pid]) - {process.pid}
    process.kill()
    process.communicate()
    assert runs_again(bystander.pid)
    wait_until(lambda: all(processes.has_ended(pid) for pid in below))


def test_a_kernel_whose_session_was_killed_while_it_started_does_not_begin(tmp_path):
    counter = tmp_path / "counter"
    counter.write_bytes(bytes(8))
    ended = subprocess.Popen(["true"])
    ended.wait()
    command = [sys.executable, "-m", "crosswind.cost.kernel", "burn", str(CPU), str(counter), str(ended.pid)]
    assert subprocess.run(command, timeout=PATIENCE_S, check=True).returncode == 0
    assert counter.read_bytes() == bytes(8)


def test_kill_9_of_all_that_bears_the_name_leaves_nothing_stopped(bystander):
    """As `pkill -9 -f crosswind` does; it left the target stopped in 5 of 8 tries."""
    process = crosswind("--of", f"pid:{bystander.pid}", "--seconds", "20")
    assert stops(bystander.pid)
    for pid in sorted(processes.with_descendants([process.pid])):
        with contextlib.suppress(OSError):  # what ended with the first
            if b"crosswind" in Path(f"/proc/{pid}/cmdline").read_bytes():
                end(pid)
    process.communicate()
    assert runs_again(bystander.pid)


def said(*arguments: str) -> tuple[int, str]:
    process = crosswind(*arguments)
    _, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, err


def test_what_is_stopped_already_and_a_threads_number_end_with_a_sentence(bystander):
    os.kill(bystander.pid, signal.SIGSTOP)
    wait_until(lambda: state(bystander.pid) == "T")
    code, err = said("--of", f"pid:{bystander.pid}", "--seconds", "5")
    assert (code, state(bystander.pid)) == (2, "T"), err
    assert f"process {bystander.pid} is already stopped" in err
    text = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\ntime.sleep(60)"
    with running(text) as other:
        wait_until(lambda: len(processes.threads(other.pid)) == 2)
        thread = max(processes.threads(other.pid))
        for option, rest in (("--of", ()), ("--job", ("--of", "command:sleep 60"))):
            code, err = said(option, f"pid:{thread}", *rest, "--seconds", "5")
            assert (code, f"a thread of process {other.pid}" in err) == (2, True), err


def test_a_second_session_on_the_same_process_is_refused(bystander):
    first = crosswind("--of", f"pid:{bystander.pid}", "--seconds", "20", "--to-the-end")
    assert stops(bystander.pid)
    code, err = said("--of", f"pid:{bystander.pid}", "--seconds", "5")
    assert (code, "another session" in err or "already traced" in err) == (2, True), err
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=PATIENCE_S)
    assert runs_again(bystander.pid)


def test_a_group_that_is_removed_in_mid_session_ends_it_with_a_result():
    with running(ONE) as target, grouped(target.pid) as group:
        process = crosswind("--of", f"cgroup:/{group.name}", "--seconds", "20", "--to-the-end", "--json")
        wait_until(lambda: is_frozen(group))
        (group.parent / "cgroup.procs").write_text(str(target.pid))
        with contextlib.suppress(OSError):
            group.rmdir()
        out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 3, err
        assert "target-ended" in {told["code"] for told in json.loads(out)["warnings"]}
        assert runs_again(target.pid)


def test_where_only_signals_stop_it_the_session_says_first_what_two_kills_would_leave(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    from crosswind.cost import result, session, targets  # noqa: F401 (its files are closed to the other user)
    from crosswind.host.description import describe

    describe()
    # A process that may not be dumped may not be traced by its own user either.
    hidden = "import ctypes, os; os.setgroups([]); os.setresgid(*[65534] * 3); os.setresuid(*[65534] * 3)\n"
    hidden += "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); print(flush=True)\n"
    with running(hidden + ONE) as target, running(ONE) as job:
        target.stdout.readline()
        reading, writing = os.pipe()
        if (pid := os.fork()) == 0:
            try:
                os.setgroups([])
                os.setresgid(*[65534] * 3)
                os.setresuid(*[65534] * 3)
                first: list[str] = []

                def notify(told: dict[str, str]) -> None:
                    first.append(f"{told['code']} {state(target.pid) in 'Tt'}")

                found = cost(f"pid:{target.pid}", job=job.pid, progress_of="cpu", seconds=5, notify=notify)
                os.write(writing, repr((first, [told["code"] for told in found.warnings])).encode())
            except BaseException as error:
                os.write(writing, repr(error).encode())
            finally:
                os._exit(0)
        os.close(writing)
        os.waitpid(pid, 0)
        text = os.read(reading, 4096).decode()
        os.close(reading)
        assert "watchdog-only False" in text
        assert text.count("watchdog-only") == 2
        assert runs_again(target.pid)


def test_ctrl_c_keeps_what_was_measured_and_a_second_session_goes_on_with_it(bystander, tmp_path):
    file = tmp_path / "cost.json"
    arguments = ["--of", f"pid:{bystander.pid}", "--seconds", "10", "--to-the-end", "-o", str(file), "--json"]
    process = crosswind(*arguments)
    for _ in range(5):  # of two blocks in four
        assert stops(bystander.pid)
        assert runs_again(bystander.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, err
    assert runs_again(bystander.pid)
    first = json.loads(out)
    assert first["costs"][0]["quads"] >= 1
    arguments[arguments.index("10")] = "5"
    out, err = crosswind(*arguments, "--resume").communicate(timeout=30)
    second = json.loads(out)
    assert second["costs"][0]["quads"] > first["costs"][0]["quads"], err
    assert second["looks"]["taken"][0] == first["looks"]["taken"][0]
    assert second["looks"]["taken"][-1][1] <= 0.05


@pytest.mark.alone
def test_a_daemon_of_10_percent_costs_more_than_the_margin(tmp_path):
    script = tmp_path / "daemon.py"
    script.write_text(DAEMON.replace("CPU", str(CPU)).replace("BURST", "0.001").replace("REST", "0.009"))
    found = cost(f"command:{sys.executable} -S {script}", seconds=8)
    one = found.costs[0]
    assert one.headline == "exchange", one.why
    assert found.verdict.outcome == "above", found.sentence
    assert 0.04 < one.duty.value < 0.25
    assert one.quads.x_cpu_s[:, 0].sum() < 0.1 * one.quads.x_cpu_s[:, 1].sum()


def test_the_cpu_time_of_what_runs_is_counted_up_to_the_moment():
    busy = subprocess.Popen(["taskset", "-c", str(CPU), "sh", "-c", "while :; do :; done"])
    try:
        used = processes.CpuTime()
        used.watch({busy.pid})
        until, moved = time.monotonic() + PATIENCE_S, 0
        # Alone on a CPU it moves at ticks only, once in at least 1 ms, unless the kernel is made to count.
        while moved < 35:
            assert time.monotonic() < until, f"of 49 readings {moved} differed by less than 1 ms from the one before"
            seen = []
            for _ in range(50):
                time.sleep(0.0003)
                seen.append(used.ns())
            moved = sum(0 < now - before < 1_000_000 for before, now in itertools.pairwise(seen))
        assert os.sched_getscheduler(busy.pid) == os.SCHED_OTHER
    finally:
        busy.kill()
        busy.wait()


def test_intervals_hold_all_of_a_burst_that_outlasts_a_tick(tmp_path):
    script = tmp_path / "daemon.py"
    # One that reads its own CPU clock has the kernel count, too.
    by_the_wall = DAEMON.replace("thread_time", "monotonic").replace("BURST", "0.03").replace("REST", "0.27")
    script.write_text(by_the_wall.replace("CPU", str(CPU)))
    found = cost(f"command:{sys.executable} -S {script}", seconds=10, intervals=True)
    undisturbed = found.document["undisturbed"]
    kept = sum(duration for _, duration in found.document["intervals"]["of"][0])
    assert kept > 0.8 * sum(used for [used] in undisturbed["cpu_s"]) > 0.0


@pytest.mark.alone
def test_two_targets_are_measured_alone_and_together(bystander):
    other = subprocess.Popen(["sleep", "60"])
    try:
        found = cost([f"pid:{bystander.pid}", f"pid:{other.pid}"], seconds=6, to_the_end=True)
    finally:
        other.kill()
        other.wait()
    assert [len(one.names) for one in found.costs] == [1, 1, 2]
    assert all(len(one.quads) >= 2 for one in found.costs)
    if found.shares:  # none where a busy host leaves an estimate beyond what a share can be
        assert sum(found.shares.values()) == pytest.approx(found.costs[-1].best.value)
    assert found.costs[0].duty.value > 10 * found.costs[1].duty.value


def test_a_job_that_reads_what_the_target_writes_has_no_cost(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = subprocess.Popen(["sh", "-c", f"exec cat /dev/zero > {fifo}"])
    reader = subprocess.Popen(["sh", "-c", f"exec cat {fifo} > /dev/null"])
    try:
        found = cost(f"pid:{writer.pid}", job=reader.pid, progress_of="io", seconds=6)
        assert found.sentence.startswith("the job waits for cat, ")
        assert found.verdict.outcome == "unknown"
        wait_until(lambda: state(writer.pid) != "T")
    finally:
        for process in (writer, reader):
            process.kill()
            process.wait()


def test_a_job_that_ends_at_once_is_said_at_once(bystander):
    with pytest.raises(MeasurementError, match=r"the job ended .*, before anything was measured"):
        cost(f"pid:{bystander.pid}", command=["sleep", "0.1"], seconds=20)


def test_a_process_is_named_by_its_script_and_has_a_life(tmp_path):
    script = tmp_path / "exporter.py"
    script.write_text("import time\ntime.sleep(600)")
    with subprocess.Popen([sys.executable, "-S", str(script)]) as process:
        try:
            wait_until(lambda: processes.name(process.pid).startswith("python"))
            found = cost(f"pid:{process.pid}", seconds=5, to_the_end=True)
        finally:
            process.kill()
    assert found.targets[0]["name"] == "exporter.py"
    assert 0.0 < found.targets[0]["age_s"] < 600.0
    assert found.verdict.outcome == "unknown"


def test_the_position_of_a_jobs_input_tells_its_progress(bystander, tmp_path):
    data = tmp_path / "data"
    data.write_bytes(os.urandom(1 << 20) * 256)
    with data.open("rb") as file:
        job = subprocess.Popen(["gzip", "-1", "-c"], stdin=file, stdout=subprocess.DEVNULL)
        try:
            found = cost(f"pid:{bystander.pid}", job=job.pid, seconds=5, to_the_end=True)
        finally:
            job.kill()
            job.wait()
    assert (found.job["progress"], found.job["unit"]) == ("stdin-position", "bytes")
    assert found.costs[0].quads.work.sum() > 0


def test_a_helper_that_the_job_started_is_investigated_and_is_no_part_of_it(tmp_path):
    """The question whether the progress thread pays, where it is a process."""
    script = tmp_path / "helper.py"
    script.write_text(DAEMON.replace("CPU", str(CPU)).replace("BURST", "0.001").replace("REST", "0.009"))
    loop = f"import os; os.sched_setaffinity(0, {{{CPU}}})\nwhile True: os.write(1, b'x')"
    job = subprocess.Popen(
        ["sh", "-c", f'"$0" -S {script} & exec "$0" -S -c "$1" > {tmp_path}/log', sys.executable, loop]
    )
    try:
        wait_until(lambda: len(processes.with_descendants([job.pid])) == 2)
        (helper,) = processes.with_descendants([job.pid]) - {job.pid}
        found = cost(f"pid:{helper}", job=job.pid, progress_of=f"file:{tmp_path}/log", seconds=5, to_the_end=True)
    finally:
        for pid in processes.with_descendants([job.pid]):
            os.kill(pid, signal.SIGKILL)
        job.wait()
    one = found.costs[0]
    assert len(one.quads) >= 2
    assert one.duty.value > 0.0
    x_cpu_s, job_cpu_s = one.quads.x_cpu_s.sum(axis=0), one.quads.job_cpu_s.sum(axis=0)
    assert x_cpu_s[0] < 0.1 * x_cpu_s[1]
    assert job_cpu_s.min() > 0.0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("pid:1", "init|Crosswind"),
        ("pid:2", "thread of the kernel"),
        (f"pid:{os.getpid()}", "Crosswind itself"),
        (f"pid:{os.getppid()}", "Crosswind"),
    ],
    ids=["init", "kernel thread", "itself", "parent"],
)
def test_what_must_not_be_stopped_is_refused(text, reason):
    with pytest.raises(DescriptionError, match=reason):
        cost(text, seconds=5)


def test_a_job_is_not_stopped_for_itself(bystander):
    with pytest.raises(DescriptionError, match="the job itself"):
        cost(f"pid:{bystander.pid}", job=bystander.pid, progress_of="cpu", seconds=5)


def test_children_that_end_between_two_looks_are_not_cleared():
    """A shell that starts programs uses next to nothing itself; what they use was in no count."""
    starts = "while :; do python3 -S -c 'sum(range(2000000))'; sleep 0.1; done"
    found = cost(f"command:sh -c {shlex.quote(starts)}", margin=0.005, seconds=8, to_the_end=True)
    assert found.document["unseen_s"][0] > 0.0
    assert found.verdict.outcome != "below"
