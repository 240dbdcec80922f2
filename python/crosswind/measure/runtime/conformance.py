"""Does a probe keep to the protocol? The test itself is `crates/measure/src/foreign/check.rs`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from crosswind import _core
from crosswind.measure.runtime.spec import launched, parse_runtime


def check_probe(command: str | Sequence[str], *, own_work: bool = False) -> list[dict[str, str]]:
    """Start a probe, ask it step by step, and return what was found.

    Parameters
    ----------
    command : str or sequence of str
        As `--runtime` takes it, in one text or word by word.
    own_work : bool
        Whether it computes work of its own.

    Returns
    -------
    list of dict
        `step`, `verdict` ("ok", "note", "wrong") and `message`; it ends at the first step that is wrong.

    Raises
    ------
    DescriptionError
        When it names a runtime that is not on this machine.

    Examples
    --------
    >>> [finding["verdict"] for finding in check_probe(["/no/such/probe"])]
    ['wrong']
    """
    spec = parse_runtime(command if isinstance(command, str) else shlex.join(command))
    with TemporaryDirectory(prefix="crosswind-") as directory:
        launch = launched(spec, Path(directory))
        settings = {"command": launch.command, "environment": list(launch.environment.items()), "own_work": own_work}
        text = _core.Probe.check(json.dumps(settings))
    findings: list[dict[str, str]] = json.loads(text)
    return findings
