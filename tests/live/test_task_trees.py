"""What a task started ends with it, however the run ends; and what a task may take."""

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from farms import agents_of, wait_until

import crosswind
from crosswind.errors import AgentLost, DescriptionError, MeasurementError
from crosswind.host.cgroup import groups
from crosswind.run.agents import Limits, Task, Work, run_farm
from crosswind.run.calls import CallError
from crosswind.run.command import map_command
from crosswind.run.processes import last_lines
from crosswind.run.spool import Spool
from crosswind.run.this_machine import here, point_of

pytestmark = pytest.mark.live
ROOT = Path(__file__).parents[2]
_NUMBERS = itertools.count()


@pytest.fixture
def seconds():
    """A time to sleep that no other process of this host sleeps; none is left when the test ends."""
    mark = f"7{os.getpid():07}{next(_NUMBERS):02}"
    yield mark
    for pid in sleeping(mark):
        os.kill(pid, signal.SIGKILL)


def sleeping(mark):
    """Processes that have this word in their command line, or in a longer word of it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            # The command itself stands in the command line of the test's own children, too.
            if mark.encode() in words and b"crosswind.cli" not in words and state != "Z":
                found.append(int(entry.name))
    return found


@pytest.fixture
def inputs(tmp_path):
    directory = tmp_path / "in"
    directory.mkdir()
    for number in range(4):
        (directory / f"{number}.txt").write_text(f"text {number}")
    return directory


def started(inputs, command, *options, **popen):
    """The command line over these inputs, as a process."""
    words = [sys.executable, "-m", "crosswind.cli", "map", command, "--inputs", str(inputs / "*.txt")]
    words += ["--out", str(inputs.parent / "out"), *options]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **popen)


COMMANDS = {
    "a child": "sleep {s}; cat {{input}}",
    "a pipe": "cat {{input}} | sleep {s}",
    "in the background": "sleep {s} & cat {{input}}; wait",
    "in a session of its own": "setsid sleep {s} & (setsid sleep {s} &); sleep {s}; cat {{input}}",
    "deaf to SIGTERM": "trap '' TERM; sleep {s}; sleep {s}; cat {{input}}",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_an_interrupted_run_leaves_no_process_no_log_and_no_spool(inputs, seconds, tmp_path, command, number):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    process = started(inputs, command.format(s=seconds), "--grace", "0.5", env={**os.environ, "TMPDIR": str(temporary)})
    wait_until(lambda: sleeping(seconds), "a task")
    assert list(temporary.iterdir())
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    wait_until(lambda: not sleeping(seconds), "the end of all tasks")
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("killed", ["root", "agents"])
@pytest.mark.parametrize("command", [COMMANDS["a pipe"], COMMANDS["in a session of its own"]], ids=["pipe", "session"])
def test_a_root_or_an_agent_that_is_killed_leaves_no_task(inputs, seconds, killed, command):
    process = started(inputs, command.format(s=seconds), "--grace", "0.5")
    try:
        wait_until(lambda: len(agents_of(process.pid)) > 0 and sleeping(seconds), "a task")
        first = sleeping(seconds)
        for pid in [process.pid] if killed == "root" else agents_of(process.pid):
            os.kill(pid, signal.SIGKILL)
        # An agent that was killed is started again, and so are its tasks.
        wait_until(lambda: not set(first) & set(sleeping(seconds)), "the end of what the killed one ran")
    finally:
        process.kill()
        process.communicate()
    wait_until(lambda: not sleeping(seconds), "the end of all tasks")


def test_what_a_command_left_in_the_background_ends_though_it_succeeded(inputs, seconds):
    command = f"(trap '' TERM; sleep {seconds}; sleep {seconds}) > /dev/null & setsid sleep {seconds} & cat {{input}}"
    done = map_command(command, [inputs / "*.txt"], inputs.parent / "out", platform=here(2), grace_s=0.5)
    assert [(inputs.parent / "out" / f"{k}.txt").read_text() for k in range(4)] == [f"text {k}" for k in range(4)]
    assert done[0].events == []
    wait_until(lambda: not sleeping(seconds), "the end of what was left")


def test_a_command_over_its_time_has_failed_with_its_tree_and_the_others_are_done(inputs, seconds):
    command = f"grep -q 2 {{input}} && {{ echo slow >&2; setsid sleep {seconds} & sleep {seconds}; }}; cat {{input}}"
    out = inputs.parent / "out"
    done = map_command(
        command, [inputs / "*.txt"], out, platform=here(2), task_timeout_s=0.5, retries=1, grace_s=0.2, name="{stem}"
    )
    (failure,) = [event for event in done[0].events if event["code"] == "task-failed"]
    assert "2.txt: failed on cpu" in failure["message"]
    assert "over its time of 0.5 s (--task-timeout)" in failure["message"]
    assert failure["message"].endswith("the end of its stderr:\nslow")
    assert "tried 2 times" in next(e["message"] for e in done[0].events if e["code"] == "task-tried-again")
    assert {path.name for path in out.iterdir()} >= {"0", "1", "3"}
    assert not (out / "2").exists()
    wait_until(lambda: not sleeping(seconds), "the end of what was over its time")


def test_the_last_lines_of_a_failed_commands_stderr_are_printed_and_stand_in_the_json(inputs):
    command = "for k in 1 2 3; do echo line $k >&2; done; cat {input}; exit 4"
    process = started(inputs, command)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "exit status: 4; the end of its stderr:\n    line 1\n    line 2\n    line 3\n" in said
    process = started(inputs, command, "--json", "--resume")
    out, _ = process.communicate(timeout=60)
    events = json.loads(out)["runs"][0]["events"]
    assert all(event["message"].endswith("line 1\nline 2\nline 3") for event in events)


def limits_memory():
    return os.geteuid() == 0 and any(os.access(group, os.W_OK) for group in groups("memory"))


def test_a_command_over_its_memory_has_failed_or_the_result_says_that_nothing_limits_it(inputs):
    command = "grep -q 2 {input} && head -c 300M /dev/zero | tail | wc -c; cat {input}"
    done = map_command(command, [inputs / "*.txt"], inputs.parent / "out", platform=here(2), task_memory_mb=40)
    failures = [event["message"] for event in done[0].events if event["code"] == "task-failed"]
    unlimited = [warning for warning in done.warnings if warning["code"] == "task-memory-unlimited"]
    if unlimited:
        assert not failures
        assert "is not limited (--task-memory)" in unlimited[0]["message"]
        assert "no substitute" in unlimited[0]["hint"]
    else:
        (message,) = failures
        assert "2.txt: failed on cpu" in message
        assert "over its memory of 40 MB (--task-memory)" in message
    if limits_memory():
        wait_until(lambda: not [g for at in groups("memory") for g in at.glob("crosswind-task-*")], "no group left")


@pytest.mark.parametrize("retries", [0, 1])
def test_a_call_over_its_time_costs_itself_its_tries_and_no_other_anything(retries):
    def too_long(number):
        import time as clock

        if number == 3:
            clock.sleep(3600)
        return number * number

    with crosswind.Farm(here(2), task_timeout_s=1.0, retries=retries) as farm:
        calls = [farm.submit(too_long, number) for number in range(12)]
        with pytest.raises(CallError, match=r"over its time of 1 s \(task_timeout_s\)"):
            calls[3].result(timeout=60)
        rest = [call.result(timeout=60) for number, call in enumerate(calls) if number != 3]
    assert rest == [number * number for number in range(12) if number != 3]
    codes = [event["code"] for event in farm.run.events]
    assert codes.count("task-over-time") == 1 + retries
    assert codes.count("task-given-up") == 1
    assert "agent-lost" not in codes


def test_a_call_that_raised_is_tried_again_when_asked(tmp_path):
    def second_time(number):
        marker = tmp_path / str(number)
        if not marker.exists():
            marker.touch()
            raise ValueError("not yet")
        return number

    assert list(crosswind.map(second_time, range(5), platform=here(2), retries=1)) == [0, 1, 2, 3, 4]
    for marker in tmp_path.iterdir():
        marker.unlink()
    with pytest.raises(ValueError, match="not yet"):
        next(crosswind.map(second_time, range(5), platform=here(2)))


def test_a_root_that_computes_cannot_keep_a_time_limit_and_says_so():
    described = here(1).to_dict()
    described["node"][0]["compute_per_s"] = 1.0
    with pytest.raises(DescriptionError, match="nothing can end them"):
        crosswind.Farm(crosswind.Platform.from_dict(described), task_timeout_s=1.0)


def watchdogs_of(agent):
    """The processes that undo what an agent leaves, by its end."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                _, name, about = re.fullmatch(r"(\d+) \((.*)\) (.*)", (entry / "stat").read_text(), re.DOTALL).groups()
                if name == "undo-watchdog" and int(about.split()[1]) == agent:
                    found.append(int(entry.name))
    return found


def is_stopped(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize("end", ["as it should", "killed", "killed, with its watchdog stopped"])
def test_what_a_function_left_behind_ends_with_its_agent(seconds, end):
    def leaves(seconds):
        import subprocess as children

        children.Popen(["sleep", seconds])
        children.Popen(["sleep", seconds], start_new_session=True)
        children.run(["sh", "-c", "(setsid sleep $0 > /dev/null 2>&1 &)", seconds], check=True)
        return True

    with crosswind.Farm(here(1), limits=Limits(grace_s=0.5)) as farm:
        assert farm.submit(leaves, seconds).result(timeout=60)
        wait_until(lambda: len(sleeping(seconds)) == 3, "three that were left")
        if end != "as it should":
            (agent,) = agents_of(os.getpid())
            if "watchdog" in end:
                (watchdog,) = watchdogs_of(agent)
                os.kill(watchdog, signal.SIGSTOP)
                wait_until(lambda: is_stopped(watchdog), "the stop")
            os.kill(agent, signal.SIGKILL)
            wait_until(lambda: not sleeping(seconds), "the end of what was left")
            assert farm.submit(pow, 2, 3).result(timeout=60) == 8
    wait_until(lambda: not sleeping(seconds), "the end of what was left")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_an_agent_that_is_told_to_end_leaves_and_the_others_do_its_tasks(number):
    with crosswind.Farm(here(2)) as farm:
        calls = [farm.submit(pow, k, 2) for k in range(200)]
        calls[0].result(timeout=60)
        os.kill(agents_of(os.getpid())[0], number)
        assert [call.result(timeout=60) for call in calls] == [k * k for k in range(200)]


@pytest.fixture
def tiny(tmp_path):
    """A file system of 256 KiB."""
    place = tmp_path / "tiny"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k,nr_inodes=64", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs root and a file system to mount")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def filled(place, files=False):
    """Fill a file system: its bytes, and where asked its places for files."""

    def fill():
        if files:
            for number in itertools.count():
                (place / str(number)).touch()
        with (place / "ballast").open("wb", buffering=0) as ballast:
            while True:
                ballast.write(bytes(4096))

    with pytest.raises(OSError, match="No space"):
        fill()


def test_a_task_that_an_agent_cannot_keep_names_the_full_spool_and_no_other_task_is_blamed(inputs, tiny, monkeypatch):
    (inputs / "2.txt").write_bytes(bytes(1_000_000))
    monkeypatch.setenv("TMPDIR", str(tiny))
    monkeypatch.setattr(tempfile, "tempdir", str(tiny))
    tasks = (Task(file, 1.0) for file in sorted(inputs.iterdir()))
    work = Work("command", command="sleep 0.5; cat {input}")
    described = point_of("full", 4, 0.3, "arrival", None)
    with pytest.raises(AgentLost, match=f"no space left on {tiny}") as raised:
        # Agents end for want of space until they are not started again; how long they are waited for then is short.
        run_farm(here(2), described, work, source=tasks, limits=Limits(start_s=3.0))
    assert "given up" not in str(raised.value)


def test_a_command_that_failed_for_want_of_space_says_so(inputs, tiny, seconds, tmp_path):
    for other in "123":  # a task that arrives once the disk is full would end its agent
        (inputs / f"{other}.txt").unlink()
    waits = f"while [ ! -e {tmp_path / 'go'} ]; do sleep 0.0{seconds}; done; cat {{input}} > {{output}}"
    process = started(inputs, waits, env={**os.environ, "TMPDIR": str(tiny)})
    wait_until(lambda: sleeping(seconds), "a task")
    filled(tiny)
    (tmp_path / "go").touch()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3, said
    assert f"no space left on {tiny}" in said
    assert "Traceback" not in said


def test_a_temporary_directory_that_is_full_is_named(tiny, monkeypatch):
    filled(tiny, files=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tiny))
    with pytest.raises(MeasurementError) as raised:
        Spool()
    assert str(raised.value) == f"no space left on {tiny}"
    assert raised.value.code == "disk-full"
    assert "TMPDIR" in raised.value.hint


def test_an_agent_that_said_nothing_on_a_full_disk_is_not_silent_about_it(tiny):
    log = tiny / "a.log"
    log.touch()
    assert last_lines(log) == ""
    filled(tiny)
    assert last_lines(log) == f": no space left on {tiny}"
