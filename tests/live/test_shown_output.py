"""What tasks print is shown where the program runs, as it comes, from this machine and from others."""

from __future__ import annotations

import logging
import os
import queue
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, nullcontext

import pytest
from farms import PATIENCE_S

import crosswind
from crosswind.run.command import map_command

pytestmark = pytest.mark.live
PROGRAM = """
import logging, sys
import crosswind

def speak(one):
    print("out", one)
    logging.warning("logged %d", one)
    return one

if __name__ == "__main__":
    placing = crosswind.Placing(token_file="token", trusted=True)
    with crosswind.Farm("hosts:hosts.toml", placing=placing, quiet="quiet" in sys.argv) as farm:
        assert farm.submit(speak, 7).result() == 7
        assert sorted(farm.map(speak, range(40), chunksize=8)) == list(range(40))
"""


def made_hosts(tmp_path):
    """A file of hosts in which this machine is both; how the second one serves."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    (tmp_path / "token").write_text("the token of these hosts\n")
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "hosts.toml").write_text(
        f'schema_version = 1\n[[host]]\nname = "head"\nlisten = "127.0.0.1:{port}"\n'
        '[[host]]\nname = "leaf"\nparent = "head"\n'
    )
    command = [sys.executable, "-m", "crosswind.cli", "serve", "--hosts", "hosts.toml", "--name", "leaf"]
    return [*command, "--token-file", "token"]


def said_by_program():
    """The lines of the program's calls, each after the number of its call."""
    for number, one in enumerate((7, *range(40))):
        yield from (f"{number}: out {one}", f"{number}: WARNING:root:logged {one}")


@pytest.mark.parametrize("words", [[], ["quiet"]])
def test_on_the_hosts_of_a_file(tmp_path, words):
    command = made_hosts(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as host:
        done = subprocess.run(
            [sys.executable, "program.py", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        _, said = host.communicate(timeout=20)
    assert done.returncode == 0, done.stderr + said
    expected = [f"[leaf] {line}" for line in said_by_program()]
    assert sorted(done.stderr.splitlines()) == ([] if words else sorted(expected))
    assert ("logged 39" in said) is bool(words)  # what is not shown here stays there


@pytest.mark.parametrize("words", [[], ["--quiet"]])
def test_commands_on_the_hosts_of_a_file(tmp_path, words):
    serving = made_hosts(tmp_path)
    line = "echo \"said {}\" >&2; echo 'a\x1b[7mb' >&2; sleep 0.05; test {} != 3"
    command = [sys.executable, "-m", "crosswind.cli", "map", line, *(f"--values={one}" for one in range(5))]
    command += ["--on", "hosts:hosts.toml", "--token-file", "token", "--joblog", "log", "--out", "results", *words]
    began = time.monotonic()
    with subprocess.Popen(serving, cwd=tmp_path, stderr=subprocess.DEVNULL) as host:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        host.wait(timeout=20)
    ended = time.monotonic()
    assert done.returncode == 3, done.stderr
    shown = [line for line in done.stderr.splitlines() if line.startswith("[leaf]")]
    expected = [f"[leaf] {one}: {text}" for one in range(5) for text in (f"said {one}", "a\\x1b[7mb")]
    assert sorted(shown) == ([] if words else sorted(expected))
    log = [line.split("\t") for line in (tmp_path / "log").read_text().splitlines()[1:]]
    assert {line[1] for line in log} == {"leaf"}
    took = [float(line[3]) for line in log]  # as the node measured, which runs one after the other
    assert min(took) >= 0.05
    assert sum(took) <= ended - began


def on_dask(program):
    """A program on the hosts of a file as one on the workers of Dask."""
    program = program.replace('    placing = crosswind.Placing(token_file="token", trusted=True)\n', "").replace(
        'crosswind.Farm("hosts:hosts.toml", placing=placing,',
        "distributed.Client(n_workers=1, threads_per_worker=1, dashboard_address=None) as client, "
        "crosswind.Farm(client,",
    )
    return program.replace("import crosswind\n", "import crosswind, distributed\n")


def test_on_the_workers_of_dask(tmp_path):
    pytest.importorskip("distributed", reason="distributed is not installed")
    (tmp_path / "program.py").write_text(on_dask(PROGRAM))
    command = [sys.executable, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    told = [line.partition("] ")[2] for line in done.stderr.splitlines() if line.startswith("[")]
    assert sorted(told) == sorted(said_by_program())


class Lines:
    """The lines of a process's standard error, as they come."""

    def __init__(self, process):
        self._lines = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(process.stderr,), daemon=True).start()

    def _read(self, stream):
        for line in stream:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def until(self, wanted):
        """Wait for a line that begins so."""
        while (line := self._lines.get(timeout=PATIENCE_S)) is not None:
            if line.startswith(wanted):
                return
        raise AssertionError(f"no line begins with {wanted!r}")


@contextmanager
def started(command, directory):
    process = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()  # it has ended, or the test has failed


# Each waits after its first line until that has been shown: what comes at the end only never comes.
WAITING = "until test -e {}; do sleep 0.02; done"
MAP = [sys.executable, "-m", "crosswind.cli", "map"]
ON_HOSTS = ["--on", "hosts:hosts.toml", "--token-file", "token"]
CALL = """
import subprocess, sys, time
from pathlib import Path
import crosswind

def speak(ready):
    print("python speaks")
    subprocess.run(["sh", "-c", "echo sh speaks; echo sh complains >&2"], check=True)
    while not Path(ready).exists():
        time.sleep(0.02)

if __name__ == "__main__":
    placing = crosswind.Placing(token_file="token", trusted=True)
    with crosswind.Farm("hosts:hosts.toml", placing=placing,) as farm:
        farm.submit(speak, sys.argv[1]).result()
"""
SPOKEN = ("python speaks", "sh speaks", "sh complains")


@pytest.mark.parametrize("node", ["cpu0", "leaf"])
def test_what_a_command_prints_comes_while_it_runs(tmp_path, node):
    serving = made_hosts(tmp_path)
    ready = tmp_path / "ready"
    command = [*MAP, f"echo begun >&2; {WAITING.format(ready)}; echo {{}}", "--values", "1"]
    command += ON_HOSTS if node == "leaf" else ["-j", "1"]
    host = started(serving, tmp_path) if node == "leaf" else nullcontext()
    with host, started(command, tmp_path) as process:
        Lines(process).until(f"[{node}] 1: begun")
        ready.touch()
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("place", ["here", "hosts", "dask"])
def test_what_a_call_and_its_programs_print_comes_while_it_runs(tmp_path, place):
    serving = made_hosts(tmp_path)
    here = CALL.replace('crosswind.Farm("hosts:hosts.toml", placing=placing,)', "crosswind.Farm(max_workers=1)")
    if place == "dask":
        pytest.importorskip("distributed", reason="distributed is not installed")
    programs = {"here": here, "hosts": CALL, "dask": on_dask(CALL)}
    (tmp_path / "program.py").write_text(programs[place])
    host = started(serving, tmp_path) if place == "hosts" else nullcontext()
    with host, started([sys.executable, "program.py", str(tmp_path / "ready")], tmp_path) as process:
        lines = Lines(process)
        node = {"here": "cpu0", "hosts": "leaf", "dask": "0"}[place]
        for spoken in SPOKEN:
            lines.until(f"[{node}] 0: {spoken}")
        (tmp_path / "ready").touch()
        assert process.wait(PATIENCE_S) == 0


def test_a_command_that_prints_without_end_fills_nothing(tmp_path):
    """100 MB, where no process may write a file of more than 1 MB: what is not shown is counted."""
    line = "yes 'a line of some bytes' | head -c 100000000 >&2; echo {}"
    limited = ["sh", "-c", 'ulimit -f 2048; exec "$@"', "sh", *MAP, line, "--values", "7", "-j", "1"]
    done = subprocess.run(limited, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-1000:]
    assert (tmp_path / "results" / "000000").read_text() == "7\n"
    assert_counted(done.stderr, "[cpu0] 7: ", 100_000_000, 21)


def assert_counted(said, before, printed, line):
    """All lines that were shown, and the bytes that were not, are what was printed."""
    lines = [one.removeprefix(before) for one in said.splitlines() if one.startswith(before)]
    left_out = [int(found[1]) for one in lines if (found := re.fullmatch(r"\.\.\. (\d+) bytes are left out", one))]
    shown = len(lines) - len(left_out)
    assert sum(left_out) > printed / 2
    assert abs(sum(left_out) + line * shown - printed) <= line  # `head` may divide the last one


def floods(count):
    os.write(2, b"the first line\n")
    for _ in range(count):
        os.write(1, b"x" * 999 + b"\n")
    return count


def test_a_call_that_prints_without_end_is_shown_in_part_and_others_are_heard(capfd):
    with crosswind.Farm(max_workers=1) as farm:
        assert farm.submit(floods, 20_000).result(PATIENCE_S) == 20_000
        farm.submit(print, "afterwards").result(PATIENCE_S)
    said = capfd.readouterr().err
    first, last = "[cpu0] 0: the first line\n", "[cpu0] 1: afterwards\n"
    assert said.startswith(first)
    assert said.endswith(last)
    assert_counted(said.replace(first, "").replace(last, ""), "[cpu0] 0: ", 20_000_000, 1_000)


def prints_seldom(number):
    if number % 977 == 500:
        print("python", number)
        logging.getLogger("of a call").warning("logged %d", number)
        print("begun", end=" ")
        print(number)
    return number


def writes_seldom(number):
    if number % 977 == 500:
        os.write(1, f"written {number}\n".encode())
    return number


def writes_always(number):
    os.write(2, f"written {number} and no end".encode())
    return number


def numbers_of(said):
    """The number before each line, and the one in it; the first is None where none stands there."""
    found = [re.fullmatch(r"\[cpu\d\] (?:(\d+): )?\D+(\d+)\D*", line) for line in said.splitlines()]
    assert all(found), said
    return [(one[1] and int(one[1]), int(one[2])) for one in found]


@pytest.mark.parametrize("chunksize", [None, 2_000])
def test_what_one_call_of_a_large_batch_prints_is_known_as_its(chunksize, capfd):
    """Calls of microseconds, of which few print: they travel in batches, in which no call is looked at alone."""
    count = 20_000
    assert list(crosswind.map(prints_seldom, range(count), max_workers=2, chunksize=chunksize)) == list(range(count))
    numbers = numbers_of(capfd.readouterr().err)
    assert sorted(numbers) == sorted(3 * [(number, number) for number in range(500, count, 977)])


@pytest.mark.parametrize("chunksize", [None, 50])
def test_what_every_call_of_a_batch_writes_past_python_is_known_as_its(chunksize, capfd):
    assert list(crosswind.map(writes_always, range(300), max_workers=2, chunksize=chunksize)) == list(range(300))
    assert sorted(numbers_of(capfd.readouterr().err)) == [(number, number) for number in range(300)]


def test_what_is_not_known_to_be_of_a_call_stands_without_a_number(capfd):
    """Few calls of a batch write past Python: of the first such batch of a node it is not known which."""
    count = 20_000
    assert list(crosswind.map(writes_seldom, range(count), max_workers=2)) == list(range(count))
    numbers = numbers_of(capfd.readouterr().err)
    assert sorted(number for _, number in numbers) == list(range(500, count, 977))
    assert {before for before, number in numbers} <= {None, *range(count)}
    assert [pair for pair in numbers if pair[0] not in {None, pair[1]}] == []


def test_calls_of_a_farm_are_known_by_the_order_in_which_they_were_submitted(capfd):
    with crosswind.Farm(max_workers=2) as farm:
        first = farm.submit(time.sleep, 0)
        calls = [first, *(farm.submit(prints_seldom, 977 * number + 500) for number in range(1, 200))]
        last = farm.submit(prints_seldom, farm.submit(int, 500))
        assert [call.result(PATIENCE_S) for call in calls[1:]] == [977 * number + 500 for number in range(1, 200)]
        assert last.result(PATIENCE_S) == 500
    expected = {500: 201, **{977 * number + 500: number for number in range(1, 200)}}
    numbers = numbers_of(capfd.readouterr().err)
    assert {number: before for before, number in numbers} == expected
    assert len(numbers) == 3 * len(expected)


def test_lines_of_different_commands_never_mix(tmp_path, capfd):
    pieces = "for word in one two three; do printf '%s-' {} >&2; printf '%s-' $word >&2; echo {} >&2; done; echo {}"
    map_command(pieces, values=[str(number) for number in range(60)], out=tmp_path / "out", max_workers=4)
    said = capfd.readouterr().err.splitlines()
    found = [re.fullmatch(r"\[cpu\d\] (\d+): (\d+)-(one|two|three)-(\d+)", line) for line in said]
    assert all(found), said
    assert sorted((int(one[1]), one[3]) for one in found) == sorted(
        (number, word) for number in range(60) for word in ("one", "two", "three")
    )
    assert all(one[1] == one[2] == one[4] for one in found)


def dies(last):
    os.write(2, last.encode() + b"\n")
    os.abort()


def test_the_last_words_of_a_call_that_ends_its_process_are_shown(capfd):
    said = ""
    with crosswind.Farm(max_workers=1) as farm:
        with pytest.raises(Exception, match="lost"):
            farm.submit(dies, "terminate called after throwing").result(PATIENCE_S)
        until = time.monotonic() + PATIENCE_S
        # By the node that still ran, or by its watchdog, which knows of no call.
        while not re.search(r"^\[cpu0\] (0: )?terminate called after throwing$", said, re.MULTILINE):
            assert time.monotonic() < until, said
            time.sleep(0.01)
            said += capfd.readouterr().err


def test_inputs_of_the_same_name_are_told_apart(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for directory in ("a", "b"):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "x").write_text(directory)
    map_command("cat {} >&2; echo {}", ["a/x", "b/x"], "out", name="{dir}/{name}", max_workers=1)
    assert sorted(capfd.readouterr().err.splitlines()) == ["[cpu0] a/x: a", "[cpu0] b/x: b"]
