"""Node: one event loop that computes and moves bytes in turns, or a worker thread that computes."""

from __future__ import annotations

from pathlib import Path

from crosswind.measure.runtime import at_hand

OPTIONS: dict[str, tuple[str, ...] | str] = {"compute": ("loop", "worker"), "node": "PATH"}


def command(options: dict[str, str], probes: Path, directory: Path) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs the probe, and variables for its environment."""
    del directory  # nothing is compiled
    hint = "install Node, or name it: --runtime 'node node=PATH'"
    node = at_hand.found("node", options.get("node"), ["node", "nodejs"], hint)
    given = [f"compute={options['compute']}"] if "compute" in options else []
    return [node, str(probes / "probe.js"), *given], {}
