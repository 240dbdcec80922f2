"""Python: the interpreter that runs Crosswind, or another (`python=PATH`); with the GIL or free-threaded."""

from __future__ import annotations

import sys
from pathlib import Path

from crosswind.measure.runtime import at_hand

OPTIONS: dict[str, tuple[str, ...] | str] = {
    "io": ("threads", "asyncio"),
    "switch_interval": "SECONDS",
    "python": "PATH",
}


def command(options: dict[str, str], probes: Path, directory: Path) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs the probe, and variables for its environment."""
    del directory  # nothing is compiled
    hint = "name another: --runtime 'python python=PATH'"
    python = at_hand.found("python", options.get("python"), [sys.executable], hint)
    given = [f"{key}={options[key]}" for key in ("io", "switch_interval") if key in options]
    # -S and -E: whatever else is installed there is not loaded.
    return [python, "-S", "-E", str(probes / "probe.py"), *given], {}
