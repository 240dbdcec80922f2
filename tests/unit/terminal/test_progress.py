"""Progress of long work: shown at a terminal and in a notebook, never where output is piped."""

import io
import sys
from types import SimpleNamespace

import pytest
import rich.console

from crosswind.terminal.progress import progress_bar, progress_lines, progress_of_long_work


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


def test_what_is_piped_is_told_nothing(monkeypatch):
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    with progress_bar() as advance:
        assert advance is None
    with progress_of_long_work(0.0) as advance:
        advance(0.5, "half")
    assert stderr.getvalue() == ""


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
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bar() as advance:
        assert advance is None
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
