"""Go: compiled by the toolchain at hand; GOMAXPROCS is the number of CPUs when it starts, unless it is given."""

from __future__ import annotations

import os
from pathlib import Path

from crosswind.measure.runtime import at_hand

OPTIONS: dict[str, tuple[str, ...] | str] = {"gomaxprocs": "N", "go": "PATH"}


def command(options: dict[str, str], probes: Path, directory: Path) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs the probe, compiled into `directory`, and variables for its environment."""
    hint = "install Go, or name it: --runtime 'go go=PATH'"
    compiler = at_hand.found("go", options.get("go"), ["go"], hint)
    program = directory / "probe-go"
    # One file, no modules, nothing from the network.
    environment = {**os.environ, "GO111MODULE": "off", "GOFLAGS": "", "GOTOOLCHAIN": "local"}
    if not ({"HOME", "XDG_CACHE_HOME", "GOCACHE"} & set(environment)):
        environment["GOCACHE"] = str(directory / "cache")
    at_hand.said([compiler, "build", "-o", str(program), str(probes / "probe.go")], environment)
    return [str(program)], {"GOMAXPROCS": options["gomaxprocs"]} if "gomaxprocs" in options else {}
