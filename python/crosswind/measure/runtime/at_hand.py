"""Programs on this machine: where one is, what it says, and one clear sentence where it is missing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from crosswind.errors import DescriptionError, MeasurementError

PATIENCE_S = 120.0


def found(runtime: str, asked: str | None, names: Sequence[str], hint: str) -> str:
    """Return the path of the program that was asked for, or of the first of some names that is there.

    Raises
    ------
    DescriptionError
        When there is none.
    """
    for name in [asked] if asked else names:
        if path := shutil.which(name):
            return path
    what = f"{asked!r} is not a program" if asked else f"there is no `{names[-1]}` on this machine"
    raise DescriptionError(f"{runtime}: {what}", "no-runtime", hint)


def said(command: Sequence[str], environment: dict[str, str] | None = None) -> str:
    """Return what a program says, on either stream.

    Raises
    ------
    MeasurementError
        When it fails.
    """
    try:
        done = subprocess.run(
            command,
            check=False,  # what it says goes into the error
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MeasurementError(f"{command[0]}: {error}", "runtime", "run it by itself") from None
    text = (done.stdout + done.stderr).strip()
    if done.returncode:
        words = " ".join(map(str, command))
        raise MeasurementError(f"`{words}` failed with exit status {done.returncode}: {text[-400:]}", "runtime")
    return text
