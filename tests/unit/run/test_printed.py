"""What calls print on other hosts: it comes with their outcomes."""

import contextlib
import io
import logging
import pickle
import sys

from crosswind.run import printed
from crosswind.run.calls import Performer, called
from crosswind.run.printed import MARK, Copies, show


class Elsewhere:
    """This process as a node of another process's run."""

    def __init__(self, monkeypatch):
        self.stdout, self.stderr = io.StringIO(), io.StringIO()
        monkeypatch.setattr(printed, "_copies", None)
        monkeypatch.setattr(sys, "stdout", self.stdout)
        monkeypatch.setattr(sys, "stderr", self.stderr)

    def performed(self, function, *args, shown_by="another process"):
        performer = Performer(plain=False)
        performer.shown_by = shown_by
        return performer(called((pickle.dumps(function), pickle.dumps((args, {})))))


def speak(word):
    print("out", word)
    logging.getLogger("crosswind.test").warning("logged %s", word)
    return word


def fail(word):
    print("before", word)
    raise ValueError(word)


def shown(data, node="n"):
    """What is shown of an outcome, and the outcome alone."""
    with contextlib.redirect_stderr(io.StringIO()) as stderr:
        rest = show(data, node)
    return stderr.getvalue(), rest


def test_it_comes_with_the_outcome_and_stays_in_the_log_of_the_agent(monkeypatch):
    node = Elsewhere(monkeypatch)
    node.performed(abs, 1)
    handler = logging.StreamHandler(sys.stderr)  # as `logging.basicConfig` in a task has it
    logger = logging.getLogger("crosswind.test")
    monkeypatch.setattr(logger, "propagate", False)
    monkeypatch.setattr(logger, "handlers", [handler])
    text, rest = shown(node.performed(speak, "word").data)
    assert text == "[n] out word\n[n] logged word\n"
    assert pickle.loads(rest) == "word"
    assert (node.stdout.getvalue(), node.stderr.getvalue()) == ("out word\n", "logged word\n")


def test_a_call_that_raises_and_one_that_is_silent(monkeypatch):
    node = Elsewhere(monkeypatch)
    failed, silent = node.performed(fail, "x"), node.performed(abs, -1).data
    assert failed.is_failure
    assert not silent.startswith(MARK)
    assert show(silent, "n") == silent
    text, rest = shown(failed.data)
    assert text == "[n] before x\n"
    assert rest.startswith(b"\xff")


def test_nothing_is_copied_where_nobody_shows_it_and_where_the_root_computes(monkeypatch):
    node = Elsewhere(monkeypatch)
    for shown_by in (None, printed.THIS_PROCESS):
        assert pickle.loads(node.performed(speak, 1, shown_by=shown_by).data) == 1
        assert sys.stdout is node.stdout


def test_what_is_too_long_is_cut_and_counted():
    copies = Copies()
    copies.add("a" * 70_000)
    copies.add("b")
    text, rest = shown(copies.before(b"outcome"))
    assert text == f"[n] {'a' * 65_536}\n[n] ... 4465 characters are only in the log of the agent\n"
    assert rest == b"outcome"
    assert copies.before(b"outcome") == b"outcome"


def test_what_a_terminal_would_obey_and_what_is_damaged_does_no_harm():
    copies = Copies()
    copies.add("\x1b[2Jgone\udce9\r\n\ttab")
    text, rest = shown(copies.before(b"x"))
    assert text == "[n] \\x1b[2Jgone?\\r\n[n] \ttab\n"
    assert rest == b"x"
    flood = MARK + (10**6).to_bytes(4) + b"a" * 10**6
    assert len(shown(flood)[0]) < 70_000
    for damaged in (MARK, MARK + b"\0", MARK + b"\xff\xff\xff\xffabc"):
        assert shown(damaged)[1] == b""
