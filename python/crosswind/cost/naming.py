"""What a process is called: its script, its unit or its program, which say more next week than a number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePath

from crosswind.host import processes

INTERPRETERS = re.compile(r"(python|pypy|perl|ruby|node|lua|php|bash|dash|sh|zsh|java)[\d.]*$")
_WITH_VALUE = ("-X", "-W", "-cp", "-classpath", "--class-path", "-r", "--require", "-I", "-o")
_LONGEST = 48


_LONGEST_COMM = 15


def name_of(pid: int) -> str:
    """Return the name of a process: a script, the unit that it is in, or its program.

    A program that has named itself keeps that name.
    """
    program, script = _program_and_script(pid)
    return script or (unit_of(pid) if INTERPRETERS.fullmatch(program) else None) or program


def stable_name(pid: int) -> str:
    """Return the name of a process, with its number only where no more than its interpreter is known."""
    name = name_of(pid)
    return f"{name} ({pid})" if INTERPRETERS.fullmatch(name) else name


def names_of(pid: int) -> list[str]:
    """Return each name by which a process may be looked for: its script or module, its program, its own name."""
    program, script = _program_and_script(pid)
    return list(dict.fromkeys(name for name in (script, program, processes.name(pid)) if name))


def distinct(names: Sequence[str]) -> list[str]:
    """Return names of which no two are alike: the second `agent.py` is `agent.py #2`.

    Examples
    --------
    >>> distinct(["agent.py", "exporter", "agent.py"])
    ['agent.py', 'exporter', 'agent.py #2']
    """
    found: list[str] = []
    for number, name in enumerate(names):
        before = list(names[:number]).count(name)
        found.append(f"{name} #{before + 1}" if before else name)
    return found


def _program_and_script(pid: int) -> tuple[str, str | None]:
    """Return the name of a process as a program and, of an interpreter, what it runs.

    The kernel keeps 15 bytes of a name: of a longer one, the rest is in the command line.
    """
    comm = processes.name(pid)
    try:
        words = (processes.PROC / str(pid) / "cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return comm, None
    if INTERPRETERS.fullmatch(comm):
        return comm, script_of([word for word in words if word])
    whole = PurePath(words[0]).name
    return (whole if len(comm.encode()) >= _LONGEST_COMM and whole.startswith(comm) else comm), None


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
