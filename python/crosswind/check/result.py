"""The result of a check."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosswind.check.decision import CODES, Judged, Outcome, Reading, judge, together, unknown
from crosswind.check.network import is_always_measured
from crosswind.check.outliers import worst_first
from crosswind.check.surroundings import changes, is_busy
from crosswind.documents import Arguments
from crosswind.errors import Notice, warning
from crosswind.files.atomic import finite, write_json
from crosswind.files.reading import Links
from crosswind.terminal.printable import printable

if TYPE_CHECKING:
    from crosswind.documents.check import CheckDocument

SCHEMA_VERSION = 1
KIND = "check"
HINT = "`crosswind check --save` writes one"
MOST_NAMED = 3
"""Measures that the sentence names."""


@dataclass(frozen=True)
class Check:
    """Readings and settings of a node.

    Attributes
    ----------
    document : dict
        What was measured, as it stands in the file.
    base : Check or None
        The baseline; None: it is held against earlier checks.
    past : sequence of Check or None
        Earlier checks of the same node, in the order of time; fewer than 5: nothing is judged without a baseline. None:
        there is no history.
    peers : sequence of Check or None
        The newest checks of other nodes; fewer than 3 of the same kind: nothing is judged without a baseline.
    """

    document: CheckDocument = field(repr=False)
    base: Check | None = None
    past: Sequence[Check] | None = None
    peers: Sequence[Check] | None = None

    @classmethod
    def load(cls, path: str | Path, *, links: Links = "own") -> Check:
        """Read a `check.json`; a link is followed as `links` says (`crosswind.files.reading.read_bytes`).

        Raises
        ------
        DescriptionError
            When it is none, or with the first field that is wrong.
        """
        from crosswind.documents.check import CheckDocument
        from crosswind.documents.reading import read_document

        return cls(read_document(path, KIND, SCHEMA_VERSION, HINT, CheckDocument, links))

    def save(self, path: str | Path) -> None:
        """Write it as a `check.json`."""
        write_json(finite(self.to_dict()), path)

    def to_dict(self) -> dict[str, object]:
        """Return what was measured and, with a baseline, the verdict with its intervals."""
        document = {name: value for name, value in self.document.items() if name != "result"}
        if not self.is_judged:
            return document
        result = {
            "outcome": self.outcome,
            "sentence": self.sentence,
            "judged": [vars(each) for each in self.judged],
            "changed": self.changed,
            "busy": self.busy,
        }
        return document | {"result": result}

    @cached_property
    def readings(self) -> dict[str, Reading]:
        """Each measure by its name."""
        return {name: Reading.from_dict(found) for name, found in self.document["readings"].items()}

    @property
    def node(self) -> str:
        """The host's name."""
        return str(self.document["host"].get("name"))

    @property
    def busy(self) -> bool:
        """Whether others used much of the host meanwhile."""
        return is_busy(self.document["load"])

    @property
    def tolerance(self) -> float:
        """The permitted loss, 0 to 1."""
        return float(self.document["tolerance"])

    @cached_property
    def judged(self) -> list[Judged]:
        """Each measure that both have, against the baseline or else earlier checks; of a file as it was judged then."""
        if self.base is None and self.peers is not None:
            from crosswind.check import peers

            if len(peers.alike(self, self.peers)) < peers.LEAST_PEERS:
                return []
            found = peers.against(self, self.peers)
            return sorted(found + self.failures(found), key=worst_first)
        if self.base is None and not self.past:
            stored: Sequence[Mapping[str, Any]] = self.document["result"]["judged"] if "result" in self.document else []
            known: list[Arguments] = [{k: math.nan if v is None else v for k, v in one.items()} for one in stored]
            return [Judged(**each) for each in known]
        if self.base is None:
            from crosswind.check.history import against

            found = against(self, self.past or ())
            return sorted(found + self.failures(found), key=worst_first) if found else []
        then = self.base.readings
        names = [name for name in self.readings if name in then]
        found = [
            judge(name, self.readings[name], then[name], self.tolerance, len(names), busy=self.busy) for name in names
        ]
        missing = [name for name in then if name not in self.readings and is_always_measured(name)]
        found += [unknown(name, then[name], self.tolerance, self.why_missing(name)) for name in missing]
        return sorted(found + self.failures(found), key=worst_first)

    def why_missing(self, name: str) -> str:
        """Return why a measure is missing."""
        return str(self.document.get("failed", {}).get(name, "not measured"))

    def failures(self, found: Sequence[Judged]) -> list[Judged]:
        """Return the verdicts on measures that were tried and failed, beside those of `found`."""
        names = [name for name in self.document.get("failed", {}) if name not in {each.name for each in found}]
        return [unknown(name, Reading(unit="share"), self.tolerance, self.why_missing(name)) for name in names]

    @property
    def is_judged(self) -> bool:
        """Whether there is a baseline, or are enough earlier checks."""
        return self.base is not None or bool(self.judged)

    @property
    def changed(self) -> list[str]:
        """Settings that differ from the baseline's, or the last check's; they do not make a node sick."""
        then = self.base or (self.past[-1] if self.past else None)
        if then is None:
            return list(self.document["result"]["changed"]) if "result" in self.document else []
        return changes(then.document["host"], self.document["host"])

    @property
    def outcome(self) -> Outcome:
        """The verdict; unknown without a baseline, and where a measure failed."""
        return together(self.judged)

    @property
    def interrupted(self) -> bool:
        """Whether it was asked to end before its time."""
        return bool(self.document["interrupted"])

    @property
    def exit_code(self) -> int:
        """0 healthy, 1 sick, 3 unknown, or nothing to compare with."""
        return CODES[self.outcome]

    @property
    def sentence(self) -> str:
        """One line, fit for a drain reason."""
        from crosswind.check.history import LEAST_PAST, MOST_PAST, quiet
        from crosswind.check.peers import LEAST_PEERS, alike

        past = None if self.past is None else len(quiet(self.past))
        peers = None if self.peers is None else len(alike(self, self.peers))
        if not self.is_judged and peers is not None:
            return f"No verdict: {peers} of the {LEAST_PEERS} checks of other nodes of this kind needed so far"
        if not self.is_judged:
            needed = f", and {past} of the {LEAST_PAST} quiet-host checks needed so far" if past is not None else ""
            return f"No verdict: no baseline{needed}"
        counted = [each for each in self.judged if each.outcome == self.outcome]
        if self.outcome == "healthy":
            of = f" of the median of {min(past, MOST_PAST)} earlier checks" if past and self.base is None else ""
            of = f" of the median of {peers} other nodes" if peers else of
            said = f"{len(self.judged)} measures within tolerance{of}"
        else:
            said = ", ".join(each.shown + (f" ({each.why})" if each.why else "") for each in counted[:MOST_NAMED])
            said = said or "no measure in common with the baseline"
            said += f", and {len(counted) - MOST_NAMED} more" if len(counted) > MOST_NAMED else ""
        names = [each.partition(":")[0] for each in self.changed]
        if names:
            said += f"; changed: {', '.join(names[:3])}" + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        busy = " (busy host)" if self.busy and self.outcome == "unknown" else ""
        return printable(f"{self.outcome}{busy}: {said}")  # names from a file may hold line ends

    @property
    def warnings(self) -> list[Notice]:
        """Warnings of this result."""
        found: list[Notice] = list(self.document["warnings"])
        load = self.document["load"]
        if self.busy and self.outcome == "unknown":  # a load is no reason for the other verdicts
            message = f"the host is busy: other processes use {100 * load['others']:.0f} % of the CPUs, "
            message += f"the hypervisor takes {100 * load['steal']:.1f} %"
            found.append(warning("busy-host", message, "check again when the node is idle"))
        if hidden := self.document["hidden"]:
            found.append(warning("hidden", hidden, "check the host of the virtual machine as well"))
        if self.base is not None and self.base.busy:
            message = "the baseline was measured on a busy host"
            found.append(warning("busy-baseline", message, "save another on an idle, healthy node"))
        if self.base is not None:
            missing = sorted(self.base.readings.keys() ^ self.readings.keys())
            if missing:
                message = f"not in both checks: {', '.join(missing)}"
                found.append(warning("not-in-both", message, "save a baseline with the same options"))
        return found
