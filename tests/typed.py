"""Commands of the pages, typed in a terminal of 80 columns."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
COLUMNS, ROWS = 80, 30
_FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```$|((?:^(?: {4}|\t).*\n?)+)", re.MULTILINE | re.DOTALL)
_PROMPT = re.compile(r"^\s*(?:\w*\$ )?(crosswind .*)$")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[=>]")


@dataclass
class Command:
    """A line that the reader types, and the lines that the page shows below it."""

    line: str
    shown: list[str] = field(default_factory=list)


def files_of(page: Path) -> dict[str, str]:
    """Return the files that a page has the reader write: blocks with a title."""
    return {title: text for _, title, text in _FENCE.findall(page.read_text()) if title}


def commands_of(page: Path) -> Iterator[Command]:
    """Yield the commands of a page's console blocks, in order."""
    for language, _, text in _FENCE.findall(page.read_text()):
        command = None
        for line in text.splitlines() if language == "console" else ():
            if line.startswith("$ "):
                if command:
                    yield command
                command = Command(line[2:])
            elif command and line.strip() != "...":
                command.shown.append(line)
        if command:
            yield command


def lines_of(page: Path) -> list[str]:
    """Return every `crosswind ...` in any code block of a page, whatever the block is."""
    found = []
    for fenced, indented in _BLOCK.findall(page.read_text()):
        text = (fenced or indented).replace("\\\n", " ")
        found += [match.group(1) for line in text.splitlines() if (match := _PROMPT.match(line))]
    return found


def plain(line: str) -> str:
    """Return a line with every number as `#`, and rates in MB/s: what stays from host to host."""
    line = re.sub(r"\b[kG]B/s", "MB/s", line)
    return " ".join(re.sub(r"[-+]?\d[\d.]*(?:e[-+]?\d+)?", "#", line).split())


def type_in(line: str, folder: Path, seconds: float) -> tuple[int, str, float]:
    """Run a command in a pseudo-terminal; return its exit code, what was on the screen, and the seconds it took."""
    programs = folder / ".programs"
    programs.mkdir(exist_ok=True)
    command = programs / "crosswind"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m crosswind.cli "$@"\n')
    command.chmod(0o755)
    own = Path(sys.executable).parent
    variables = os.environ | {
        "PATH": f"{programs}:{own}:{os.environ['PATH']}",
        "TERM": "xterm",
        "PYTHONPATH": f"{ROOT / 'python'}:{os.environ.get('PYTHONPATH', '')}",
    }
    variables.pop("COLUMNS", None)
    began = time.monotonic()
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe("/bin/sh", ["/bin/sh", "-c", line], variables)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    screen = b""
    while time.monotonic() - began < seconds:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # the other end is closed
                part = b""
            if not part:
                break
            screen += part
    else:
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    text = _ESCAPES.sub("", screen.decode(errors="replace")).replace("\r\n", "\n")
    text = "\n".join(part.rsplit("\r", 1)[-1] for part in text.split("\n"))  # what a bar wrote over is gone
    return os.waitstatus_to_exitcode(status), text, time.monotonic() - began


def settle(page: Path, folder: Path) -> None:
    """Give a folder what a page expects there: the examples, and the files that the page shows."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    for name, text in files_of(page).items():
        (folder / name).write_text(text)
