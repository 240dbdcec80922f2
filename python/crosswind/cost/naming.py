"""What a process is called: its script, its unit or its program, which say more next week than a number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePath

from crosswind.cost import processes

INTERPRETERS = re.compile(r"(python|pypy|perl|ruby|node|lua|php|bash|dash|sh|zsh|java)[\d.]*$")
_WITH_VALUE = ("-X", "-W", "-cp", "-classpath", "--class-path", "-r", "--require", "-I", "-o")
_LONGEST = 48


def name_of(pid: int) -> str:
    """Return the name of a process: a script, the unit that it is in, or its program.

    A program that has named itself keeps that name.
    """
    comm = processes.name(pid)
    try:
        words = (processes.PROC / str(pid) / "cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return comm
    if not INTERPRETERS.fullmatch(comm):
        return comm
    return script_of([word for word in words if word]) or unit_of(pid) or comm


def script_of(words: Sequence[str]) -> str | None:
    """Return the script or module that an interpreter runs, or None.

    Examples
    --------
    >>> script_of(["python3", "-S", "/opt/agent.py", "--interval", "1"]), script_of(["python3", "-m", "a.exporter"])
    ('agent.py', 'a.exporter')
    >>> script_of(["python3", "-c", "while True: pass"]), script_of(["java", "-jar", "/opt/agent.jar"])
    (None, 'agent.jar')
    """
    rest = iter(words[1:])
    for word in rest:
        if word in ("-m", "-jar"):
            named = next(rest, None)
            return PurePath(named).name if named and word == "-jar" else named
        if word in _WITH_VALUE:
            next(rest, None)
        elif word.startswith("-c") or word == "-e":
            return None
        elif not word.startswith("-"):
            return PurePath(word).name
    return None


def unit_of(pid: int) -> str | None:
    """Return the service of systemd in which a process is, or None."""
    try:
        text = Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return None
    found = re.findall(r"/([^/\n]+\.service)(?=/|$)", text, re.MULTILINE)
    return found[-1] if found else None


def shortened(text: str) -> str:
    """Return a command on one line, cut short.

    Examples
    --------
    >>> shortened("./job  --name " + "a" * 50)
    './job --name aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'
    """
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
