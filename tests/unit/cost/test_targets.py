"""How targets, margins and counters are written, and what is refused before anything is stopped."""

from __future__ import annotations

import os
import struct
import subprocess
import sys

import pytest

from crosswind.cost import cost, targets
from crosswind.cost.counters import block_for, counter
from crosswind.cost.shares import parsed_share
from crosswind.cost.targets import parsed, refuse, started
from crosswind.errors import DescriptionError, MeasurementError
from crosswind.host import processes


class NoJob:
    pid = os.getpid()
    members = frozenset({os.getpid()})

    def cpu_ns(self) -> int:
        return 1_500_000_000


@pytest.mark.parametrize("text", ["1234", "pid:", "pid:abc", "pid:-1", "names:sleep", "cgroup: ", "unit:"])
def test_a_target_that_is_none_is_refused(text):
    with pytest.raises(DescriptionError, match="--of is"):
        parsed(text)


def test_what_stands_after_the_first_colon_is_the_value():
    assert parsed("command:./exporter --at a:1") == ("command", "./exporter --at a:1")


@pytest.mark.parametrize("text", ["0", "100%", "-1%", "one", "nan", ""])
def test_a_margin_that_is_none_is_refused(text):
    with pytest.raises(DescriptionError, match="--margin is"):
        parsed_share(text, "--margin")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"of": []}, "no target: name the process"),
        ({"of": ["pid:1"] * 2}, "the same twice"),
        ({"of": "pid:999999999"}, "no process"),
        ({"of": "command:/no/such/program"}, "cannot be started"),
        ({"of": "cgroup:/no/such/group"}, "not a control group|no control groups"),
        ({"of": "name:no-such-process-*"}, "no process is called that"),
        ({"of": "slurm:none"}, "the number of a job"),
        ({"of": "unit:no-such-unit-of-any-host"}, "no unit is called no-such-unit-of-any-host.service"),
        ({"of": "pid:3", "seconds": 1.0}, "seconds is 1 s"),
        ({"of": "pid:3", "margin": 0.0}, "margin is 0 %"),
        ({"of": "pid:3", "block_ms": 1.0}, "block_ms is 1 ms"),
        ({"of": "pid:3", "job": "me"}, "--job is 'me'"),
        ({"of": "pid:3", "job": 5, "command": ["a"]}, "cannot be combined"),
        ({"of": "command:sleep 60", "job": 999999999}, "no such process"),
        ({"of": "command:sleep 60", "command": ["/no/such/job"]}, "the job '/no/such/job' cannot be started"),
        ({"of": "command:sleep 60", "job": 1, "progress_of": "steps"}, "--progress is 'steps'"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_is_stopped(options, said):
    with pytest.raises(DescriptionError, match=said):
        cost(**{"seconds": 5.0} | options)


def test_a_command_that_ends_by_itself_is_refused(monkeypatch):
    monkeypatch.setattr(targets, "_BEGUN_S", 60.0)  # on a busy host it takes a while to end
    with pytest.raises(DescriptionError, match="the command ended, with status 0"):
        cost("command:true", seconds=5.0)


def test_init_ourselves_our_parents_and_the_watchdog_are_never_stopped():
    for pid in (1, os.getpid(), os.getppid()):
        with pytest.raises(DescriptionError, match=f"would stop process {pid}"):
            refuse({pid}, "--of it")
    with pytest.raises(DescriptionError, match="Crosswind itself"):
        refuse({999999}, "--of it", {999999})
    refuse({999999}, "--of it")


def test_the_server_of_this_login_is_not_stopped(monkeypatch):
    monkeypatch.setattr(processes, "name", lambda pid: "sshd-session")
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    refuse({999999}, "--of it")
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 5 10.0.0.2 22")
    with pytest.raises(DescriptionError, match="serves this login"):
        refuse({999999}, "--of it")


def test_counters_read_what_they_say(tmp_path):
    log, number, mapped = (tmp_path / name for name in ("log", "number", "mapped"))
    log.write_bytes(b"12345")
    number.write_text(" 42\n")
    mapped.write_bytes(struct.pack("=Q", 7))
    for text, value, unit in (
        (f"file:{log}", 5.0, "bytes"),
        (f"count:{number}", 42.0, "counts"),
        (f"u64:{mapped}", 7.0, "counts"),
        ("cpu", 1.5, "CPU s"),
    ):
        read, found = counter(text, NoJob())
        assert (read(), found) == (value, unit)
    read, _ = counter(f"count:{number}", NoJob())
    number.write_text("")  # the job is just writing it
    assert read() == 42.0
    read, _ = counter("io", NoJob())
    before = read()
    log.read_bytes()
    assert read() >= before + 5


def test_a_counter_that_is_written_in_two_steps_is_never_read_as_0(tmp_path):
    path = tmp_path / "mapped"
    path.write_bytes(struct.pack("Q", 1))
    code = "import mmap, struct, sys; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 8); n = 1\n"
    code += "while True: n += 1; struct.pack_into('Q', m, 0, n)"
    with subprocess.Popen([sys.executable, "-S", "-c", code, str(path)]) as writer:
        read, _ = counter(f"u64:{path}", NoJob())
        values = [1.0]
        while values[-1] == 1.0 and writer.poll() is None:
            values.append(read())  # until it begins to write
        values += [read() for _ in range(20_000)]
        writer.kill()
    assert values[-1] > 1.0
    assert values == sorted(values)


def test_counters_that_cannot_be_read_are_refused(tmp_path):
    (tmp_path / "short").write_bytes(b"1234")
    for text in (f"file:{tmp_path}/none", f"u64:{tmp_path}/short", "file:", "clock"):
        with pytest.raises(DescriptionError, match="--progress is"):
            counter(text, NoJob())


def test_a_slow_counter_lengthens_blocks_and_a_dead_one_is_refused():
    assert [block_for(rate) for rate in (5000, 500, 100, 2)] == [0.02, 0.02, 0.1, 5.0]
    for rate in (0.0, 1.0):
        with pytest.raises(MeasurementError, match="must move"):
            block_for(rate)


class RefusesByTheSystem:
    pid = os.getpid()

    def seize(self, pids):
        self.seized = pids
        raise OSError(3, "No such process")


def test_a_command_that_the_system_does_not_let_freeze_is_ended_and_the_error_is_the_systems():
    freezer = RefusesByTheSystem()
    with pytest.raises(OSError, match="No such process"):
        started([sys.executable, "-c", "import time; time.sleep(600)"], "--of", freezer)
    assert processes.has_ended(freezer.seized[0])
