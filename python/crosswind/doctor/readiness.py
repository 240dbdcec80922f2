"""Findings -> which verbs are ready here, and the few things that are worth changing first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.doctor.finding import Finding

MOST_CHANGES = 2

_SHORT = {
    "foreign-load": "the host is busy",
    "softirq-load": "network traffic of others takes CPU time",
    "steal": "the hypervisor takes CPU time",
    "cpus": "too few CPUs",
    "cpu-quota": "a CPU quota holds",
    "frequency": "the clock follows the load",
    "clock": "a slow clock source",
    "schedstat": "CPU time of threads cannot be read",
    "memory": "memory is short",
    "open-files": "too few files may be open",
    "offloads": "offloads are off",
    "peer": "the peer does not answer",
    "peer-handshake": "the peer does not answer as Crosswind",
    "peer-kernel": "the peer runs another kernel",
    "peer-place": "the peer is this machine",
    "left-frozen": "a control group is still frozen",
    "leftovers": "an earlier run left something behind",
}
"""Codes of findings, in the words of a table."""
_MEASURING = "measure, fit, overlap"
_COMPARING = "cost, compare, check"
_DISTURBING = "record, inject, blame -- COMMAND"
_OTHERS = "plan, run, map, report"
_STOPS_COMPARING = (
    "foreign-load",
    "softirq-load",
    "steal",
    "cpu-quota",
    "frequency",
    "schedstat",
    "left-frozen",
    "memory",
)
_STOPS_DISTURBING = ("left-frozen", "leftovers")


@dataclass(frozen=True)
class Readiness:
    """Whether some verbs are ready.

    Attributes
    ----------
    verbs : str
        Names, as a list in words.
    ready : bool
    why : str
        What is in the way, or what to expect; empty where nothing is.
    """

    verbs: str
    ready: bool
    why: str = ""


def disturbing(findings: Sequence[Finding]) -> list[Finding]:
    """Return what will disturb a measurement, the worst first."""
    levels = ("problem", "warning")
    return sorted((one for one in findings if one.level in levels), key=lambda one: levels.index(one.level))


def readiness(findings: Sequence[Finding]) -> list[Readiness]:
    """Return which verbs are ready, in four groups.

    Examples
    --------
    >>> busy = Finding("foreign-load", "warning", "others use 1.3 CPUs")
    >>> [(one.verbs, one.ready) for one in readiness([busy])][:2]
    [('measure, fit, overlap', False), ('cost, compare, check', False)]
    >>> [one.ready for one in readiness([Finding("clock", "ok", "clock source tsc")])]
    [True, True, True, True]
    """
    worst = disturbing(findings)
    hinders = [one for one in worst if one.code in _STOPS_COMPARING]
    left = [one for one in worst if one.code in _STOPS_DISTURBING]
    rootless = [one for one in findings if one.code in ("record", "inject-priority") and one.level == "note"]
    return [
        Readiness(_MEASURING, not worst, _words(worst)),
        Readiness(_COMPARING, not hinders, f'{_words(hinders)}: expect "not settled"' if hinders else ""),
        Readiness(_DISTURBING, not left, _words(left) or ("without root: less exact, see --all" if rootless else "")),
        Readiness(_OTHERS, True),
    ]


def _words(findings: Sequence[Finding]) -> str:
    return ", ".join(dict.fromkeys(_SHORT.get(one.code, one.code.replace("-", " ")) for one in findings[:MOST_CHANGES]))


def verdict(findings: Sequence[Finding]) -> str:
    """Return the first line: ready, or not, and why.

    Examples
    --------
    >>> verdict([Finding("steal", "warning", "steal 12 %")])
    'Not ready to measure: the hypervisor takes CPU time.'
    """
    worst = disturbing(findings)
    return f"Not ready to measure: {_words(worst)}." if worst else "Ready. Nothing here will disturb a measurement."
