"""Progress of long work: a bar at a terminal and in a notebook, whole lines in a log, more rarely as time passes."""

import io
import sys
from itertools import pairwise
from types import SimpleNamespace

import pytest
import rich.console

from crosswind.terminal import progress as module
from crosswind.terminal.progress import progress_bar, progress_lines, progress_of_long_work


@pytest.fixture(autouse=True)
def on(monkeypatch):
    monkeypatch.delenv("CROSSWIND_PROGRESS")
    monkeypatch.delenv("FORCE_COLOR", raising=False)


@pytest.fixture
def clock(monkeypatch):
    """The time, in a list."""
    now = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


@pytest.fixture
def notebook(monkeypatch):
    """What a Jupyter kernel is asked to show: each display, and each change of it."""
    shown = []

    def display(bundle, *, raw, display_id):
        shown.append(bundle)
        return SimpleNamespace(update=lambda bundle, raw: shown.append(bundle))

    kernel = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    return shown


def terminal(monkeypatch):
    """Make standard error a terminal, and return it; called by a test, as pytest changes it before each."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def test_a_log_gets_a_whole_line_every_ten_seconds_and_more_rarely_later(capsys, clock):
    with progress_bar() as advance:
        for second in range(7200):
            clock[0] = 100.0 + second
            advance(second / 7200, f"second {second}")
    lines = capsys.readouterr().err.splitlines()
    seconds = [int(line.split(", ")[1].removeprefix("second ")) for line in lines]
    assert seconds[:7] == [10, 20, 30, 40, 50, 60, 70]
    pauses = [later - before for before, later in pairwise(seconds)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == 600
    assert len(lines) < 40
    assert lines[6] == "crosswind: 1 %, second 70, 70 s so far"
    assert all(line.startswith("crosswind: ") and line.endswith(" so far") for line in lines)


def test_short_work_leaves_a_log_alone(capsys, clock):
    with progress_bar() as advance:
        for second in range(10):
            clock[0] = 100.0 + second
            advance(0.5, "half")
    assert capsys.readouterr().err == ""


def test_what_is_not_known_yet_is_no_share_in_a_log_either(capsys, clock):
    with progress_bar() as advance:
        clock[0] += 12.0
        advance(0.0, "connecting\x1b[2J")
    assert capsys.readouterr().err == "crosswind: connecting\\x1b[2J, 12 s so far\n"


def test_a_log_of_a_library_gets_nothing_unasked(capsys, clock):
    with progress_of_long_work(0.0) as advance:
        clock[0] += 60.0
        advance(0.5, "half")
    assert capsys.readouterr().err == ""


def test_progress_is_turned_off(monkeypatch):
    monkeypatch.setenv("CROSSWIND_PROGRESS", "0")
    for shown in (progress_bar, progress_lines):
        with shown() as advance:
            assert advance is None


def test_a_terminal_shows_the_message_of_long_work(monkeypatch):
    stderr = terminal(monkeypatch)
    with progress_of_long_work(0.0) as advance:
        advance(1.0, "4 of 4, 0 s left")
    assert "4 of 4, 0 s left" in stderr.getvalue()


def test_short_work_shows_nothing_and_builds_nothing(monkeypatch):
    stderr = terminal(monkeypatch)
    monkeypatch.setattr(rich.console, "Console", None)
    with progress_of_long_work(3600.0) as advance:
        advance(1.0, "done")
    assert stderr.getvalue() == ""


def test_a_notebook_shows_one_bar_that_moves(notebook):
    with progress_bar() as advance:
        advance(0.25, "1 of 4, 3 s left")
        advance(1.0, "4 of 4, 0 s left <b>")
    first, last = notebook
    assert "1 of 4, 3 s left" in first["text/plain"]
    assert 'value="0.2500"' in first["text/html"]
    assert "4 of 4, 0 s left &lt;b&gt;" in last["text/html"]


def test_ipython_in_a_terminal_is_no_notebook(notebook, monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=SimpleNamespace))
    with progress_bar() as advance:
        advance(1.0, "done")
    assert notebook == []


def test_beside_the_output_of_a_program_progress_is_whole_lines(monkeypatch):
    """A bar and "200 iterations, mean 0.0965 s" shared one line."""
    stderr = terminal(monkeypatch)
    with progress_lines(0.0) as advance:
        stderr.write("its own output\n")
        advance(0.01, "the command runs for 10 s")
    assert stderr.getvalue() == "its own output\ncrosswind: the command runs for 10 s\n"


def test_what_is_not_known_yet_is_no_share(monkeypatch):
    """`connecting` stood beside 0 % for 94 s."""
    stderr = terminal(monkeypatch)
    with progress_of_long_work(0.0) as advance:
        advance(0.0, "connecting")
        advance(1.0, "connected")
    assert "0 %" not in stderr.getvalue()
