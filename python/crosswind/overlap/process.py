"""One program of an overlap as a process: a burner or a ping; `python -m crosswind.overlap.process`.

Started by `crosswind.overlap.programs`. Its settings are the first line of stdin; it says `ready`, waits for a line
with the common start (ns of the monotonic clock), and says when it was done. Imports nothing but the compiled half.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from crosswind import _core


def main() -> int:
    """Be the program that stdin describes; the end of stdin ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is for the parent process, which ends this one
    _core.end_with_parent()
    settings = json.loads(sys.stdin.readline() or "null")
    if settings is None:
        return 1
    try:
        kind = settings.pop("program")
        token, tls = settings.pop("token", None), settings.pop("tls", None)
        text = json.dumps(settings)
        program = _core.Burner(text) if kind == "burn" else _core.Ping(text, token, tls)
        print("ready", flush=True)
        start = sys.stdin.readline()
        if start:
            print(program.run(int(start)), flush=True)
    except Exception as error:
        code, hint = getattr(error, "code", "failed"), getattr(error, "hint", None)
        told = {"error": str(error), "code": code, "hint": hint, "kind": type(error).__name__}
        print(json.dumps(told), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)
