"""One rank of a parallel program as a process: `python -m crosswind.run.rank`.

Started by `crosswind.run.ranks`. Imports nothing but the compiled half, so that ranks start at once.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence

from crosswind import _core
from crosswind.run.agent import first_line


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a rank; the token is the first line of stdin, and the end of stdin ends it."""
    parser = argparse.ArgumentParser(prog="python -m crosswind.run.rank", description=__doc__)
    parser.add_argument("--conductor", required=True, metavar="HOST:PORT")
    parser.add_argument("--rank", required=True, type=int)
    parser.add_argument("--patience-s", type=float, default=60.0)
    parser.add_argument("--tracer", type=int, default=0, metavar="PID")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is for the parent process, which ends this one
    if options.tracer:
        _core.permit_tracing(options.tracer)
    config = {
        "rank": options.rank,
        "conductor": options.conductor,
        "patience_s": options.patience_s,
        "log": None,
    }
    try:
        _core.run_rank(json.dumps(config), first_line())
    except Exception as error:
        print(f"rank {options.rank}: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)
