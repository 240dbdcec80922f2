"""What tasks print is shown whole, and nothing in it is obeyed."""

import io
import sys

import pytest

from crosswind.run.printed import Printed, lines_of, show, write


def shown(monkeypatch, *said, numbers=None):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    show([Printed(*one) for one in said], lambda task, call: (numbers or {}).get((task, call)))
    return sys.stderr.getvalue()


def test_each_line_comes_after_its_node_and_the_number_of_its_call_where_it_is_known(monkeypatch):
    said = ("a", 0, 2, 0, b"one\n\ntwo\n"), ("b", 1, 0, 0, b"three\n"), ("b", 2, 0, 0, b"four\n")
    text = shown(monkeypatch, *said, numbers={(0, 2): 5, (1, 0): 0})
    assert text == "[a] 5: one\n[a] 5: \n[a] 5: two\n[b] 0: three\n[b] four\n"


def test_what_was_left_out_is_counted_where_it_was(monkeypatch):
    assert shown(monkeypatch, ("a", 0, 0, 12, b"one\n")) == "[a] ... 12 bytes are left out\n[a] one\n"
    assert shown(monkeypatch, ("a", 0, 0, 3, b"")) == "[a] ... 3 bytes are left out\n"


def test_what_a_terminal_would_obey_and_what_is_damaged_does_no_harm(monkeypatch):
    said = "\x1b[2Jgone\u2028on\r\n\ttab\n".encode() + b"\xff\n"
    assert shown(monkeypatch, ("a", 0, 0, 0, said)) == "[a] \\x1b[2Jgone\\u2028on\\r\n[a] \ttab\n[a] \ufffd\n"
    assert lines_of(Printed("a", 0, 0, 0, b""), "") == []


@pytest.mark.parametrize("stderr", [None, io.StringIO()])
def test_a_standard_error_that_is_closed_ends_nothing(monkeypatch, stderr):
    if stderr is not None:
        stderr.close()
    monkeypatch.setattr(sys, "stderr", stderr)
    write(["a line"])
