"""Runs commands one after the other for `crosswind compare`, times each, and ends what it leaves behind.

A process of its own, without the rest of Crosswind: all that descends from it is the command's, as orphans become its
children (`PR_SET_CHILD_SUBREAPER`). One line of JSON asks for a run, one answers. It ends with its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

_PDEATHSIG, _SUBREAPER = 1, 36  # include/uapi/linux/prctl.h
_PATIENCE_S = 5.0


def children() -> list[int]:
    """Return the children of this process."""
    try:
        with open("/proc/thread-self/children") as file:  # noqa: PTH123 (imports as little as it can)
            return [int(word) for word in file.read().split()]
    except OSError:
        me = str(os.getpid())
        found = []
        for entry in os.listdir("/proc"):  # noqa: PTH208
            with contextlib.suppress(OSError, IndexError):
                if entry.isdigit() and _stat(int(entry)).split()[1] == me:
                    found.append(int(entry))
        return found


def _stat(pid: int) -> str:
    with open(f"/proc/{pid}/stat", errors="replace") as file:  # noqa: PTH123
        return file.read().rpartition(")")[2]


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", errors="replace") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        return "?"


def end_all() -> list[str]:
    """End every child, and what becomes one by that, until there is none; return the names of those that ran."""
    ended: dict[int, str] = {}
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        left = children()
        if not left:
            break
        for pid in left:
            ended.setdefault(pid, _name(pid))
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)
    return list(ended.values())


def run(words: list[str]) -> dict[str, Any]:
    """Run a command; return wall s, CPU s, its exit status and the names of what it left behind."""
    begun = time.perf_counter()
    null = subprocess.DEVNULL
    process = subprocess.Popen(words, stdin=null, stdout=null, stderr=null, process_group=0)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    wall_s = time.perf_counter() - begun
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        left = []
    else:
        left = end_all()
    return {
        "wall_s": wall_s,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "status": process.returncode,
        "left": left,
    }


def main() -> None:
    """Serve runs until the input ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SUBREAPER, 1, 0, 0, 0):
        raise SystemExit("no child subreaper")

    def ended(number: int, frame: object) -> None:
        end_all()
        os._exit(0)

    signal.signal(signal.SIGTERM, ended)
    libc.prctl(_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    for line in sys.stdin:
        try:
            answer = run(json.loads(line))
        except OSError as error:
            answer = {"error": (error.strerror or str(error)).lower()}
        print(json.dumps(answer), flush=True)
    end_all()


if __name__ == "__main__":
    main()
