"""Java: the JDK at hand, 17 or later; virtual threads need 21."""

from __future__ import annotations

import os
import re
from pathlib import Path

from crosswind.errors import DescriptionError
from crosswind.measure.runtime import at_hand

OPTIONS: dict[str, tuple[str, ...] | str] = {
    "threads": ("platform", "virtual-traffic", "virtual"),
    "io": ("stream", "direct", "heap"),
    "buffers": ("reuse", "fresh"),
    "gc": ("serial", "parallel", "g1", "z"),
    "carriers": "N",
    "yield": ("no", "yield", "park"),
    "java": "PATH",
}
OLDEST, OLDEST_WITH_VIRTUAL_THREADS = 17, 21
_COLLECTORS = {"serial": "UseSerialGC", "parallel": "UseParallelGC", "g1": "UseG1GC", "z": "UseZGC"}
_OF_THE_PROBE = ("threads", "io", "buffers", "yield")


def command(options: dict[str, str], probes: Path, directory: Path) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs the probe, compiled into `directory`, and variables for its environment."""
    java = _java(options.get("java"))
    version = major(at_hand.said([java, "-version"]))
    if version < OLDEST:
        raise DescriptionError(f"java: {java} is Java {version}; {OLDEST} or later is needed", "no-runtime")
    virtual = options.get("threads", "platform") != "platform"
    if virtual and version < OLDEST_WITH_VIRTUAL_THREADS:
        message = f"java: virtual threads need Java {OLDEST_WITH_VIRTUAL_THREADS} or later; {java} is Java {version}"
        raise DescriptionError(message, "no-runtime", "name another with java=PATH")
    if "carriers" in options and not virtual:
        raise DescriptionError("java: carriers are given without virtual threads", "runtime", "add threads=virtual")
    words = [java]
    if "gc" in options:
        words.append(f"-XX:+{_COLLECTORS[options['gc']]}")
    if "carriers" in options:
        count = options["carriers"]
        words.append(f"-Djdk.virtualThreadScheduler.parallelism={count}")
        words.append(f"-Djdk.virtualThreadScheduler.maxPoolSize={count}")
    words += [*_compiled(java, probes / "Probe.java", directory)]
    words += [f"{key}={options[key]}" for key in _OF_THE_PROBE if key in options]
    return words, {}


def major(text: str) -> int:
    """Return the major version in what `java -version` says; 0 where it says none.

    Examples
    --------
    >>> major('openjdk version "17.0.15" 2025-04-15'), major('openjdk version "25" 2025-09-16')
    (17, 25)
    """
    match = re.search(r'version "(\d+)', text)
    return int(match[1]) if match else 0


def _java(asked: str | None) -> str:
    home = os.environ.get("JAVA_HOME")
    names = [*([f"{home}/bin/java"] if home else []), "java"]
    return at_hand.found("java", asked, names, "install a JDK, 17 or later, or name one: --runtime 'java java=PATH'")


def _compiled(java: str, source: Path, directory: Path) -> list[str]:
    """Compile with the compiler beside it, or any at hand: what runs it may be newer, and may have none."""
    beside = Path(java).resolve().parent / "javac"
    names = [*([str(beside)] if beside.exists() else []), "javac"]
    hint = "a JDK has it; what runs the probe may be another Java"
    compiler = at_hand.found("java", None, names, hint)
    at_hand.said([compiler, "--release", str(OLDEST), "-d", str(directory), str(source)])
    return ["-cp", str(directory), "Probe"]
