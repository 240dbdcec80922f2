"""The result of a cluster's check: which hosts and links differ from the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.check.decision import CODES, Judged, Outcome, together
from crosswind.check.outliers import LEAST_OTHERS, judged_hosts, judged_links, worst_first
from crosswind.check.result import Check
from crosswind.errors import Notice, warning
from crosswind.files.atomic import finite, write_json
from crosswind.files.tabular import Plotted
from crosswind.terminal.printable import printable

if TYPE_CHECKING:
    from crosswind.documents.check import ClusterCheckDocument

SCHEMA_VERSION = 1
KIND = "cluster-check"
HINT = "`crosswind check --on dask:... --save` writes one"
MOST_NAMED = 3


@dataclass(frozen=True)
class ClusterCheck(Plotted):
    """Checks of hosts, and the rates of the links between them.

    Attributes
    ----------
    document : dict
        What was measured, as it stands in the file.
    """

    document: ClusterCheckDocument = field(repr=False)

    @classmethod
    def load(cls, path: str | Path) -> ClusterCheck:
        """Read a `cluster-check.json`.

        Raises
        ------
        DescriptionError
            When it is none, or with the first field that is wrong.
        """
        from crosswind.documents.check import ClusterCheckDocument
        from crosswind.documents.reading import read_document

        return cls(read_document(path, KIND, SCHEMA_VERSION, HINT, ClusterCheckDocument))

    def save(self, path: str | Path) -> None:
        """Write it as a `cluster-check.json`."""
        write_json(finite(self.to_dict()), path)

    def to_dict(self) -> dict[str, object]:
        """Return what was measured, and the verdicts with their intervals."""
        document = {name: value for name, value in self.document.items() if name != "result"}
        result = {
            "outcome": self.outcome,
            "sentence": self.sentence,
            "hosts": {host: [vars(each) for each in found] for host, found in self.hosts.items()},
            "links": [vars(each) for each in self.links.values()],
        }
        return document | {"result": result}

    @cached_property
    def checks(self) -> dict[str, Check]:
        """Each host's check."""
        return {host: Check(found) for host, found in self.document["checks"].items()}

    @property
    def tolerance(self) -> float:
        """The permitted loss against the median of the others, 0 to 1."""
        return float(self.document["tolerance"])

    @cached_property
    def hosts(self) -> dict[str, list[Judged]]:
        """Each host's measures against those of the others, the worst first; those that failed there are unknown."""
        readings = {host: found.readings for host, found in self.checks.items()}
        found = judged_hosts(readings, self.tolerance, [host for host, found in self.checks.items() if found.busy])
        return {
            host: sorted([*each, *self.checks[host].failures(each)], key=worst_first) for host, each in found.items()
        }

    @cached_property
    def links(self) -> dict[tuple[str, str], Judged]:
        """Each link's rate, (from, to), against those of the others."""
        rates = {(one["from"], one["to"]): float(one["receive_limit_mb_per_s"]) for one in self.document["links"]}
        return judged_links(rates, self.tolerance)

    @property
    def judged(self) -> list[tuple[str, Judged]]:
        """Every verdict with its host; a link's host is empty, since its name says both ends."""
        ours = [(host, each) for host, found in self.hosts.items() for each in found]
        return ours + [("", each) for each in self.links.values()]

    @property
    def outcome(self) -> Outcome:
        """Sick when one host or link is; unknown when something could not be measured or decided."""
        found = together([each for _, each in self.judged])
        return "unknown" if found == "healthy" and self.document["failed"] else found

    @property
    def interrupted(self) -> bool:
        """Whether it was asked to end before its time."""
        return bool(self.document["interrupted"])

    @property
    def exit_code(self) -> int:
        """0 healthy, 1 sick, 3 unknown."""
        return CODES[self.outcome]

    @property
    def sentence(self) -> str:
        """One line, fit for a log."""
        counts = f"{len(self.checks)} hosts and {len(self.links)} links"
        if self.outcome == "healthy":
            return f"healthy: {counts} within {100 * self.tolerance:g} % of the others"
        of = [(host, each) for host, each in self.judged if each.outcome == self.outcome]
        named = [f"{host} {each.shown}".strip() + (f" ({each.why})" if each.why else "") for host, each in of]
        named += [f"{where}: {why}" for where, why in self.document["failed"].items()] if self.outcome != "sick" else []
        more = f", and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
        said = f"{self.outcome}: {', '.join(named[:MOST_NAMED])}{more}, against the median of {counts}"
        return printable(said)

    @property
    def warnings(self) -> list[Notice]:
        """Warnings of this result."""
        found = []
        if len(self.document["hosts"]) <= LEAST_OTHERS:
            message = f"{len(self.document['hosts'])} hosts are too few to tell which is the odd one"
            hint = f"{LEAST_OTHERS + 1} at least; with fewer, `crosswind check --baseline` on each"
            found.append(warning("few-hosts", message, hint))
        busy = [host for host, one in self.checks.items() if one.busy]
        if busy:
            message = f"busy hosts: {', '.join(busy[:10])}"
            found.append(warning("busy-host", message, "check again when they are idle"))
        failed = list(self.document["failed"].items())
        if failed:
            (where, why), count = failed[0], len(failed)
            message = f"{count} could not be measured, such as {where}: {why}"
            found.append(warning("missing", message, "the same command measures all again"))
        return found
