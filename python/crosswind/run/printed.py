"""What tasks print on the nodes, shown where the program runs as it comes: each line after its node and its task.

Of commands it is their standard error, of Python functions both streams, with what programs print that they start. A
node passes on limited amounts (crates/live, printer.rs) and counts what it leaves out.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

from crosswind.terminal.printable import printable


class Printed(NamedTuple):
    """Lines that a task printed."""

    node: str
    task: int
    call: int
    """The call of a batch that printed them, from 1; 0 for another task, and where it is not known."""
    left_out: int
    """Bytes before the text that were left out, because there were too many."""
    text: bytes


def show(said: Iterable[Printed], number_of: Callable[[int, int], int | None]) -> None:
    r"""Show what calls printed, each line after the name of its node and, where it is known, the number of its call.

    Examples
    --------
    >>> with contextlib.redirect_stderr(sys.stdout):
    ...     show([Printed("cpu0", 3, 2, 0, b"one\ntwo\n")], lambda task, call: 100 * task + call)
    [cpu0] 302: one
    [cpu0] 302: two
    """
    for one in said:
        number = number_of(one.task, one.call)
        write(lines_of(one, f"[{one.node}] " if number is None else f"[{one.node}] {number}: "))


def lines_of(said: Printed, before: str) -> list[str]:
    """Return what a task printed as lines, each after a text."""
    text = printable(said.text.decode(errors="replace"), lines=True)
    lines = text.split("\n")[: text.count("\n")]  # other characters end lines too, for `splitlines`
    left_out = [f"... {said.left_out} bytes are left out"] if said.left_out else []
    return [f"{before}{line}" for line in (*left_out, *lines)]


def write(lines: Iterable[str]) -> None:
    """Write lines to standard error at once, so that no other thread's text comes between them."""
    text = "".join(f"{line}\n" for line in lines)
    if text and sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # closed: a run does not end for that
            sys.stderr.write(text)
            sys.stderr.flush()
