"""Items, programs and directories that do what they must not do: a map ends as it should, and nothing is left."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from farms import PATIENCE_S, wait_until

import crosswind
from crosswind.run.agents import Limits

pytestmark = pytest.mark.live
MAP = [sys.executable, "-m", "crosswind.cli", "map"]


class Counted:
    """Items whose length is another one than it says."""

    def __init__(self, items, length):
        self.items, self.length = items, length

    def __len__(self):
        return self.length() if callable(self.length) else self.length

    def __iter__(self):
        return iter(range(self.items))


class Reads:
    """Does something where it is read."""

    def __init__(self, *what):
        self.what = what

    def __reduce__(self):
        return self.what


class CannotBeSent:
    def __init__(self, error):
        self.error = error

    def __reduce__(self):
        raise self.error


def raises(error):
    raise error


def same(item):
    return item


def one(_):
    return 1


def after(items, then):
    """Items, and what comes in the place of the next one."""
    yield from items
    yield then()


class OnlyNext:
    """An iterator without `__iter__` of a class, as C extensions have them."""

    def __init__(self):
        self.count = itertools.count()

    def __getitem__(self, at):
        if at == 7:
            raise IndexError
        return at


def grows():
    """A list that grows while it is taken from, and stays short enough to end."""
    items = [0]
    for item in items:
        if len(items) < 50:
            items.append(item + 1)
        yield item


def maps_inside():
    yield from crosswind.map(abs, range(-5, 0), max_workers=1, quiet=True)


def taken_twice():
    """Two maps that draw from one iterator: each item is in one of them."""
    items, lock = iter(range(200)), threading.Lock()

    def shared():
        while True:
            with lock:
                item = next(items, None)
            if item is None:
                return
            yield item

    with contextlib.closing(crosswind.map(same, shared(), max_workers=1, quiet=True)) as first:
        second = list(crosswind.map(same, shared(), max_workers=1, quiet=True))
        return sorted([*first, *second])


def lines():
    with Path(__file__).open() as file:
        yield from file


def mapped(items, function=same):
    return list(crosswind.map(function, items, max_workers=1, quiet=True))


GIVES = {
    "a length that is too small": (lambda: mapped(Counted(20, 3)), list(range(20))),
    "a length that is too large": (lambda: mapped(Counted(3, 2_000)), [0, 1, 2]),
    "a length that no list has": (lambda: mapped(Counted(3, 2**62)), [0, 1, 2]),
    "a class with items by number": (lambda: mapped(OnlyNext()), list(range(7))),
    "a list that grows": (lambda: mapped(grows()), list(range(50))),
    "a map as items": (lambda: mapped(maps_inside()), [5, 4, 3, 2, 1]),
    "two maps of one iterator": (taken_twice, list(range(200))),
    "functions": (lambda: mapped([len, abs, same, lambda: 5], callable), [True] * 4),
    "modules": (lambda: mapped([os, json]), [os, json]),
    "exceptions": (lambda: [str(item) for item in mapped([ValueError(1), KeyError(2)])], ["1", "2"]),
    "the same object each time": (lambda: mapped(itertools.repeat([1], 30)), [[1]] * 30),
    "a dict and its values": (lambda: mapped({"a": 1}.items()), [("a", 1)]),
    "bytes": (lambda: mapped(b"abc"), [97, 98, 99]),
    "a memoryview": (lambda: mapped(memoryview(b"abc")), [97, 98, 99]),
    "lines of a file": (lambda: mapped(map(len, lines())), [len(line) for line in lines()]),
}
RAISES = {
    "a length below 0": (Counted(3, -1), ValueError, 0),
    "a length that raises": (Counted(3, lambda: raises(RuntimeError("no length"))), RuntimeError, 0),
    "an item that cannot be sent": (after([1, 2], lambda: CannotBeSent(TypeError("no"))), TypeError, 2),
    "an item for which memory is short": (after([1], lambda: CannotBeSent(MemoryError("no"))), MemoryError, 1),
    "an item that exits when it is sent": (after([1], lambda: CannotBeSent(SystemExit(3))), SystemExit, 1),
    "an item that cannot be read": ([1, Reads(int, ("x",)), 3], ValueError, 1),
    "an item that exits when it is read": ([1, Reads(sys.exit, (3,)), 3], SystemExit, 1),
    "an iterator that exits": (after([1, 2], lambda: sys.exit(5)), SystemExit, 2),
    "an iterator that is interrupted": (after([1], lambda: raises(KeyboardInterrupt)), KeyboardInterrupt, 1),
    "an iterator that closes itself": (after([1], lambda: raises(GeneratorExit)), GeneratorExit, 1),
    "an iterator that ends by raising": (after([1], lambda: raises(StopIteration)), RuntimeError, 1),
    "an iterator with a group": (after([1], lambda: raises(ExceptionGroup("g", [ValueError(1)]))), ExceptionGroup, 1),
}


@pytest.mark.parametrize("case", GIVES)
def test_odd_items_are_items(case):
    call, expected = GIVES[case]
    assert call() == expected


@pytest.mark.parametrize("case", RAISES)
def test_what_items_raise_comes_after_the_values_of_those_before(case):
    items, error, before = RAISES[case]
    found = []

    def take():
        found.extend(itertools.takewhile(bool, crosswind.map(one, items, max_workers=1, quiet=True)))

    with pytest.raises(error):
        take()
    assert found == [1] * before
    assert mapped([1]) == [1]


# Programs, each a process of its own. What it prints, and how it ends; nothing is left of any.
HEAD = """
import atexit, gc, os, signal, sys, threading, time
import crosswind
from crosswind.run.agents import Limits
def same(item): return item
def waits(item):
    open("begun", "w").close()
    time.sleep(600)
def begun():
    while not os.path.exists("begun"): time.sleep(0.01)
"""
SUMS = "print(sum(crosswind.map(same, range(9), max_workers=1)))"
OPEN = "f = crosswind.Farm(max_workers=1)\nf.submit(waits, 1)\nbegun()\n"
PROGRAMS = {
    "ends with calls open": (OPEN + "print('end')", "end"),
    "ends with an idle farm": ("farm = crosswind.Farm(max_workers=1)\nprint(farm.submit(same, 1).result())", "1"),
    "ends with half of a map": ("print(next(crosswind.map(same, range(1000), max_workers=1)))", "0"),
    "ends by an exception in a map": (
        "for item in crosswind.map(same, range(1000), max_workers=1):\n    raise ValueError('own')",
        "ValueError: own",
    ),
    "ends by SystemExit in a farm": (
        "with crosswind.Farm(max_workers=1) as f:\n    f.submit(same, 1)\n    sys.exit('bye')",
        "bye",
    ),
    "ends without its own end": (OPEN + "os._exit(7)", 7),
    "is terminated": (OPEN + "os.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(60)", -signal.SIGTERM),
    "is hung up": (OPEN + "os.kill(os.getpid(), signal.SIGHUP)\ntime.sleep(60)", -signal.SIGHUP),
    "crashes": (OPEN + "import ctypes; ctypes.string_at(0)", -signal.SIGSEGV),
    "runs another program in its place": (OPEN + "os.execv('/bin/echo', ['echo', 'other'])", "other"),
    "submits at its end": (
        """
        f = crosswind.Farm(max_workers=1)
        def late():
            try: print(f.submit(same, 5).result(60))
            except (RuntimeError, crosswind.AgentLost): print('refused')
        atexit.register(late)
        """,
        ("5", "refused"),
    ),
    "begins at its end": (
        """
        def late():
            try: print(list(crosswind.map(same, [5], max_workers=1)))
            except RuntimeError: print('refused')
        atexit.register(late)
        """,
        ("[5]", "refused"),
    ),
    "has a farm that a thread made": (
        """
        made = []
        thread = threading.Thread(target=lambda: made.append(crosswind.Farm(max_workers=1)))
        thread.start(); thread.join()
        with made[0] as f: print(sum(f.map(same, range(50))))
        """,
        "1225",
    ),
    "forks, and the copy ends": (
        """
        with crosswind.Farm(max_workers=1) as f:
            f.submit(same, 1).result()
            if os.fork() == 0: sys.exit(0)
            os.wait(); print(f.submit(same, 2).result(60))
        """,
        "2",
    ),
    "forks, and the copy drops the farm": (
        """
        f = crosswind.Farm(max_workers=1)
        f.submit(same, 1).result()
        if os.fork() == 0:
            del f; gc.collect(); os._exit(0)
        os.wait(); print(f.submit(same, 2).result(60)); f.shutdown()
        """,
        "2",
    ),
    "has a pool beside": (
        """
        import multiprocessing
        with crosswind.Farm(max_workers=1) as f, multiprocessing.get_context('fork').Pool(2) as pool:
            print(pool.map(same, range(3)), f.submit(same, 2).result(60))
        """,
        "[0, 1, 2] 2",
    ),
    "gets signals without end": (
        """
        seen = []
        signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        total = sum(crosswind.map(same, range(50_000), max_workers=1))
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(total, len(seen) > 3)
        """,
        "1249975000 True",
    ),
    "closes its farm in a callback": (
        """
        f, over = crosswind.Farm(max_workers=1), threading.Event()
        f.submit(same, 1).add_done_callback(lambda done: (f.shutdown(), over.set()))
        print(over.wait(60)); f.shutdown()
        """,
        "True",
    ),
    "closes its farm twice": (
        """
        f = crosswind.Farm(max_workers=1)
        f.shutdown(); f.shutdown()
        try: f.submit(same, 1)
        except RuntimeError as error: print(error)
        """,
        "cannot submit a call after shutdown",
    ),
    "has no directory": ("os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\n" + SUMS, "36"),
    "has no streams": (
        """
        out = os.dup(1)
        for one in range(3): os.close(one)
        sys.stdin = sys.stdout = sys.stderr = None
        os.write(out, b'%d' % sum(crosswind.map(same, range(9), max_workers=1)))
        """,
        "36",
    ),
    "has a deep stack": (
        f"def deep(n):\n    if n: deep(n - 1)\n    else: {SUMS}\nsys.setrecursionlimit(700); deep(300)",
        "36",
    ),
    "collects no garbage": ("gc.disable(); gc.set_threshold(0)\n" + SUMS, "36"),
    "has a tracer": ("sys.settrace(lambda *_: None); threading.settrace(lambda *_: None)\n" + SUMS, "36"),
    "may write no file": (
        """
        import resource
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        try: list(crosswind.map(same, range(9), max_workers=1))
        except crosswind.CrosswindError: print('refused')
        """,
        ("refused", ""),
    ),
}
AT_NIGHT = {
    "has a tracer",
    "collects no garbage",
    "is hung up",
    "forks, and the copy drops the farm",
    "begins at its end",
    "ends with an idle farm",
    "ends by SystemExit in a farm",
    "closes its farm twice",
}
MARK = f"CROSSWIND_TEST_{os.getpid()}"


def marked(value):
    """Processes whose environment holds the mark of a test, by their command lines."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and f"{MARK}={value}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes())
    return [line for line in found if line]


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.nightly] if case in AT_NIGHT else []) for case in PROGRAMS]
)
def test_a_program_ends_as_it_would_without_a_farm_and_leaves_nothing(case, tmp_path):
    code, expected = PROGRAMS[case]
    (tmp_path / "temporary").mkdir()
    (tmp_path / "program.py").write_text(HEAD + textwrap.dedent(code) + "\n")
    value = case.replace(" ", "-")
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary"), MARK: value, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    if isinstance(expected, int):
        assert done.returncode == expected, done.stderr
    else:
        last = (done.stdout or done.stderr).strip().splitlines()[-1:] or [""]
        assert last[0] in ((expected,) if isinstance(expected, str) else expected), done.stderr
        assert done.returncode == (1 if expected in {"ValueError: own", "bye"} else 0), done.stderr
    assert "fault of Crosswind" not in done.stderr
    wait_until(lambda: not marked(value), "the end of its agents")
    # What cannot be taken away by a process that is killed, the next one takes away.
    if list((tmp_path / "temporary").iterdir()):
        following = HEAD + "print(next(crosswind.map(same, [1], max_workers=1)))"
        command = [sys.executable, "-c", following]
        subprocess.run(command, env=environment, cwd=tmp_path, check=True, capture_output=True)
    assert [path.name for path in (tmp_path / "temporary").iterdir()] == []


# Directories and inputs that change while a command goes over them.


@pytest.fixture
def running(tmp_path):
    """Start a map of forty inputs whose commands wait once the first two results are there: `go` has them go on."""
    (tmp_path / "in").mkdir()
    for number in range(40):
        (tmp_path / "in" / f"{number:02}").write_text(f"{number}\n")
    (tmp_path / "temporary").mkdir()
    processes = []

    def start(*words, command="cat {}", out="out", temporary="temporary"):
        ready = f"case {{name}} in 00|01) ;; *) until test -e {tmp_path}/go; do sleep 0.02; done;; esac; "
        environment = {**os.environ, "TMPDIR": str(tmp_path / temporary)}
        line = [*MAP, ready + command, "in/*", "-o", out, "-j", "2", "--task-timeout", "30", *words]
        with (tmp_path / "said").open("w") as said:
            process = subprocess.Popen(line, cwd=tmp_path, env=environment, stdout=said, stderr=said, text=True)
        processes.append(process)
        wait_until(
            lambda: process.poll() is not None or all((tmp_path / out / f"{n:02}").exists() for n in (0, 1)),
            "the first results",
        )
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()


def right(directory):
    """The numbers of the inputs whose results are there; each is right."""
    found = {path.name: path.read_text() for path in directory.iterdir() if path.name.isdigit()}
    assert all(text == f"{int(name)}\n" for name, text in found.items()), found
    return sorted(map(int, found))


def becomes_a_fifo(path):
    path.unlink()
    os.mkfifo(path)


def becomes_a_directory(path):
    path.unlink()
    path.mkdir()


def becomes_a_device(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def becomes_a_loop(path):
    path.unlink()
    path.symlink_to(path.name)


def becomes_a_link_to_nothing(path):
    path.unlink()
    path.symlink_to("/no/such/file")


CHANGES = {
    30: becomes_a_fifo,
    31: becomes_a_directory,
    32: becomes_a_device,
    33: becomes_a_loop,
    34: becomes_a_link_to_nothing,
    35: Path.unlink,
}


def test_inputs_that_become_what_no_task_can_read_cost_their_tasks_and_no_neighbour(running, tmp_path):
    process = running()
    for number, change in CHANGES.items():
        change(tmp_path / "in" / f"{number}")
    (tmp_path / "go").touch()
    assert process.wait(PATIENCE_S) == 3, (tmp_path / "said").read_text()
    assert right(tmp_path / "out") == [number for number in range(40) if number not in CHANGES]
    said = (tmp_path / "said").read_text()
    assert "Traceback" not in said
    for number in CHANGES:
        path = tmp_path / "in" / f"{number}"
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        path.write_text(f"{number}\n")
    done = subprocess.run([*MAP, "cat {}", "in/*", "-o", "out", "--resume", "-q"], cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert right(tmp_path / "out") == list(range(40))


def removes(out):
    subprocess.run(["rm", "-rf", str(out)], check=True)


def moves_away(out):
    out.rename(out.with_name("elsewhere"))


def replaces_by_a_file(out):
    moves_away(out)
    out.write_text("mine")


def replaces_by_a_link(out):
    moves_away(out)
    out.symlink_to("elsewhere")


def takes_the_lock_away(out):
    (out / ".crosswind-lock").unlink()


def takes_the_journal_away(out):
    (out / ".crosswind-journal").unlink()


OUTS = [removes, moves_away, replaces_by_a_file, replaces_by_a_link, takes_the_lock_away, takes_the_journal_away]
HARMLESS = {replaces_by_a_link, takes_the_lock_away, takes_the_journal_away}


@pytest.mark.parametrize("change", OUTS, ids=lambda change: change.__name__.replace("_", " "))
def test_an_out_that_is_taken_away_ends_the_run_with_a_sentence_and_a_resume_completes_it(running, tmp_path, change):
    process = running()
    change(tmp_path / "out")
    (tmp_path / "go").touch()
    status, said = process.wait(PATIENCE_S), (tmp_path / "said").read_text()
    assert "Traceback" not in said
    assert "fault of Crosswind" not in said
    assert status in ({0, 1} if change in HARMLESS else {1}), said
    if (tmp_path / "out").is_file():
        assert (tmp_path / "out").read_text() == "mine"
        (tmp_path / "out").unlink()
    words = ["--force"] if change is takes_the_journal_away else ["--resume"]
    done = subprocess.run(
        [*MAP, "cat {}", "in/*", "-o", "out", "-q", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert right(tmp_path / "out") == list(range(40))


def test_a_temporary_directory_that_is_removed_costs_no_result(running, tmp_path):
    process = running()
    subprocess.run(["rm", "-rf", str(tmp_path / "temporary")], check=True)
    (tmp_path / "go").touch()
    status, said = process.wait(PATIENCE_S), (tmp_path / "said").read_text()
    assert "Traceback" not in said
    found = right(tmp_path / "out")
    assert (status, found) == (0, list(range(40))) or (
        status != 0 and re.search("no such file|lost|failed", said, re.I)
    ), said


def test_two_runs_into_one_directory_are_refused_while_the_first_goes_on(running, tmp_path):
    process = running()
    for words in ([], ["--resume"], ["--force"]):
        done = subprocess.run(
            [*MAP, "cat {}", "in/*", "-o", "out", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2, done.stderr
        assert str(process.pid) in done.stderr
    (tmp_path / "go").touch()
    assert process.wait(PATIENCE_S) == 0
    assert right(tmp_path / "out") == list(range(40))


@pytest.fixture
def tiny(tmp_path):
    """A function that mounts a small file system, and one that makes it larger."""
    mounted = []

    def mount(options):
        place = tmp_path / f"tiny{len(mounted)}"
        place.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=False, capture_output=True
        )
        if done.returncode:
            pytest.skip("a small file system takes root")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "-l", str(place)], check=True)


ROOMS = {
    "bytes": ("size=64k", "size=8m", 6_000),
    "inodes": ("size=8m,nr_inodes=24", "nr_inodes=4096", 10),
}


@pytest.mark.parametrize("room", ROOMS)
def test_an_out_without_room_ends_the_run_with_a_sentence_and_a_resume_completes_it(tiny, tmp_path, room):
    few, many, size = ROOMS[room]
    place = tiny(few)
    (tmp_path / "in").mkdir()
    for number in range(40):
        (tmp_path / "in" / f"{number:02}").write_text("x" * size)
    line = [*MAP, "cat {}", "in/*", "-o", str(place / "out"), "-q"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "no space left" in done.stderr.lower()
    assert "Traceback" not in done.stderr
    subprocess.run(["mount", "-o", f"remount,{many}", str(place)], check=True)
    done = subprocess.run([*line, "--resume"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [path.read_text() for path in sorted((place / "out").glob("[0-9]*"))] == ["x" * size] * 40


def test_a_call_that_holds_the_interpreter_longer_than_a_silence_is_waited_for():
    """Agents answer from a thread of Rust: a C extension that keeps Python's lock is no lost node."""

    def holds(seconds):
        import ctypes

        ctypes.PyDLL(None).usleep(int(seconds * 1e6))
        return seconds

    limits = Limits(silence_s=0.3)
    with crosswind.Farm(max_workers=1, quiet=True, limits=limits) as farm:
        assert [farm.submit(holds, seconds).result(PATIENCE_S) for seconds in (1.5, 0.0)] == [1.5, 0.0]


def test_a_call_that_holds_the_interpreter_over_its_time_is_ended():
    def holds(number):
        if number == 1:
            import re

            re.match(r"(a+)+$", "a" * 40 + "b")
        return number

    with crosswind.Farm(max_workers=1, quiet=True, task_timeout_s=1.0) as farm:
        calls = [farm.submit(holds, number) for number in range(4)]
        with pytest.raises(crosswind.CallError, match="over its time"):
            calls[1].result(PATIENCE_S)
        assert [calls[number].result(PATIENCE_S) for number in (0, 2, 3)] == [0, 2, 3]
