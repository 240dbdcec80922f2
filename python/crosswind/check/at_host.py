"""What is done on a host of a cluster that is checked: a check, in a process of its own."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind import _core
from crosswind.errors import CrosswindError
from crosswind.measure.cluster.at_host import apart

if TYPE_CHECKING:
    from crosswind.documents.check import CheckDocument


def checked(seconds: float, within_s: float) -> CheckDocument:
    """Check this host for about `seconds`; return the document of a `check.json`.

    Raises
    ------
    MeasurementError
        What the check raised, or that it took longer than `within_s`.
    """
    with tempfile.TemporaryDirectory(prefix="crosswind-check-") as folder:
        out = Path(folder) / "check.json"
        apart(__name__, {"seconds": seconds, "out": str(out)}, within_s, "the check")
        found: CheckDocument = json.loads(out.read_text())
        return found


def main() -> None:
    """Check with the request from stdin; an error is one JSON document on stdout."""
    _core.end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is for the parent process
    from crosswind.check import check

    asked = json.loads(sys.stdin.readline())
    try:
        check(seconds=asked["seconds"]).save(asked["out"])
    except CrosswindError as error:
        print(json.dumps({"message": str(error), "code": error.code, "hint": error.hint}))
        sys.exit(1)
