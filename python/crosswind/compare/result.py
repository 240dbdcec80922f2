"""The result of a comparison, and what may be compared with a stored one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crosswind.compare.clock import BYS, By
from crosswind.compare.runs import CODES, Judged, Pairs, judge, slowdown
from crosswind.errors import Notice, warning
from crosswind.files.atomic import finite, write_json
from crosswind.files.tabular import Plotted
from crosswind.statistics.interim import Looks
from crosswind.statistics.jackknife import Estimate
from crosswind.tables import Column, Table

if TYPE_CHECKING:
    from crosswind.documents.comparison import ComparisonDocument
    from crosswind.documents.values import Host

SCHEMA_VERSION = 1
KIND = "comparison"
HINT = "`crosswind compare -o` writes one"
FEW_QUADS = 5
_TRIVIAL = ("load_average", "steal_share_since_boot")


@dataclass(frozen=True)
class Comparison(Plotted):
    """Two commands, run in turn in randomised quads.

    Attributes
    ----------
    document : dict
        What was measured, as it stands in the file.
    base : Comparison or None
        An earlier one of the same commands, whose ratio this one's is compared with.
    """

    document: ComparisonDocument = field(repr=False)
    base: Comparison | None = None

    @classmethod
    def load(cls, path: str | Path) -> Comparison:
        """Read a `comparison.json`.

        Raises
        ------
        DescriptionError
            When it is none, or with the first field that is wrong.
        """
        from crosswind.documents.comparison import ComparisonDocument
        from crosswind.documents.reading import read_document

        return cls(read_document(path, KIND, SCHEMA_VERSION, HINT, ComparisonDocument))

    def save(self, path: str | Path) -> None:
        """Write it as a `comparison.json`."""
        write_json(self.document | {"result": finite(self._figures())}, path)

    def to_dict(self) -> dict[str, object]:
        """Return figures, circumstances and every run."""
        return {name: value for name, value in self.document.items() if name != "result"} | self._figures()

    def _figures(self) -> dict[str, object]:
        compared = {"against_base": self.against_base.to_dict()} if self.against_base else {}
        return {
            "outcome": self.verdict.outcome,
            "sentence": self.sentence,
            "verdict": self.verdict.to_dict(),
            "wall": self._judged("wall").to_dict(),
            "cpu": self._judged("cpu").to_dict(),
            "warnings": self.warnings,
            **compared,
        }

    def tables(self) -> list[Table]:
        """Return the mean times by command, and how much longer B takes by wall and by CPU time."""
        means = {
            by: [f"{500 * one:.4g}" for one in self.pairs.by(by).mean(axis=0)] if len(self.pairs) else ["-", "-"]
            for by in BYS
        }
        columns = [Column("", numeric=False), Column("command", numeric=False)]
        columns += [Column("wall, ms"), Column("CPU, ms"), Column("runs")]
        rows = [
            [name, command, *(means[by][k] for by in BYS), str(2 * len(self.pairs))]
            for k, (name, command) in enumerate(zip("AB", self.commands, strict=True))
        ]
        by_command = Table("Times of one run", columns, rows, first=("", "wall, ms", "CPU, ms", "runs", "command"))
        columns = [Column("time", numeric=False), Column("A", "ms"), Column("B", "ms")]
        columns.append(Column("B takes longer", "%", "cost-interval"))
        return [by_command, Table("Times of one run", columns, [[by, *means[by], self._longer(by)] for by in BYS])]

    def _longer(self, by: By) -> str:
        if not len(self.pairs):
            return "-"
        estimate = self.estimate(by)
        half = 100 * estimate.half_width(self.level)
        return f"{100 * estimate.value:+.2f}" + (f" ± {half:.2f}" if math.isfinite(half) else "")

    @property
    def commands(self) -> tuple[str, str]:
        """A and B."""
        a, b = self.document["commands"]
        return a, b

    @property
    def in_shell(self) -> bool:
        """Whether a shell ran them."""
        return bool(self.document.get("shell", False))

    @property
    def by(self) -> By:
        """By what the verdict is: wall or CPU time."""
        found: By = self.document["by"]
        return found

    @property
    def margin(self) -> float:
        """What counts as equivalent, as a share."""
        return float(self.document["margin"])

    @cached_property
    def pairs(self) -> Pairs:
        """The times, one row a quad."""
        return Pairs.of(self.document["wall_s"], self.document["cpu_s"])

    @property
    def looks(self) -> Looks:
        """The looks that were taken."""
        return Looks.from_dict(self.document["looks"])

    @property
    def level(self) -> float:
        """What the interval leaves out."""
        return self.looks.level() if self.looks.taken else 0.05

    def estimate(self, by: By) -> Estimate:
        """Return by how much B takes longer than A."""
        return slowdown(self.pairs, by)

    def _judged(self, by: By) -> Judged:
        return judge(self.estimate(by), self.margin, self.level, len(self.pairs))

    @property
    def verdict(self) -> Judged:
        """The verdict."""
        return self._judged(self.by)

    @property
    def interrupted(self) -> bool:
        """Whether it was asked to end before its time."""
        return bool(self.document.get("interrupted", False))

    @property
    def exit_code(self) -> int:
        """0: equivalent, faster or not slower; 4: slower, or slower than the base was; 3: unknown."""
        if self.against_base is not None:
            return CODES[self.against_base.outcome]
        return CODES[self.verdict.outcome]

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        said = f"{self.verdict.sentence} ({self.by} time, {2 * len(self.pairs)} runs of each)"
        if self.against_base is not None:
            against, half = self.against_base, 50 * (self.against_base.high - self.against_base.low)
            found = f"{100 * against.value:+.2f} % ± {half:.2f}" if np.isfinite(half) else "too few runs"
            outcome = "not settled" if against.outcome == "unknown" else against.outcome
            said += f"; the ratio B/A against the stored one: {outcome}, {found}"
        return said

    @cached_property
    def against_base(self) -> Judged | None:
        """How B/A does against the stored B/A: a ratio of ratios, less 1; None without a base."""
        if self.base is None:
            return None
        now, then = self.estimate(self.by), self.base.estimate(self.by)
        if not (1.0 + now.value > 0.0 and 1.0 + then.value > 0.0):  # no time of B, or none that is known
            return judge(Estimate(math.nan, math.inf, 0), self.margin, self.level, len(self.pairs))
        value = (1.0 + now.value) / (1.0 + then.value) - 1.0
        relative = np.hypot(now.error / (1.0 + now.value), then.error / (1.0 + then.value))
        groups = min(now.groups, then.groups)
        return judge(Estimate(value, float(relative * (1.0 + value)), groups), self.margin, self.level, len(self.pairs))

    @property
    def warnings(self) -> list[Notice]:
        """Warnings of this result."""
        found: list[Notice] = list(self.document["warnings"])
        if len(self.pairs) < FEW_QUADS:
            message = f"only {2 * len(self.pairs)} runs of each: at least {2 * FEW_QUADS} are needed"
            found.append(warning("few-runs", message, "more --seconds"))
        other: By = "cpu" if self.by == "wall" else "wall"
        if not self.verdict.is_final and self._judged(other).is_final:
            message = f"by {other} time it is known: {self._judged(other).sentence}"
            found.append(warning("other-clock", message, f"--by {other}, where that is what counts"))
        if self.base is not None:
            found += _differences(self.base.document["host"], self.document["host"])
            half = self.base.estimate(self.by).half_width(self.level)
            if half > 0.5 * self.margin:
                known = f"± {100 * half:.2g} %" if np.isfinite(half) else "too few runs"
                message = f"the stored ratio is uncertain ({known}), which is part of the interval of the gate"
                found.append(warning("uncertain-base", message, "measure the base with --to-the-end, and longer"))
        return found


def _differences(then: Host, now: Host) -> list[Notice]:
    """Return what differs between two hosts, and so what may be compared."""
    was, is_now = ({"cpu": host.get("cpu"), "kernel": host.get("kernel"), **host["settings"]} for host in (then, now))
    differing = [name for name in was | is_now if name not in _TRIVIAL and was.get(name) != is_now.get(name)]
    found = [
        warning(
            "only-ratios",
            "times of two sessions are not compared, only the ratios B/A",
            "to compare times, give both commands: they run in turn then",
        )
    ]
    if then.get("name") != now.get("name"):
        message = f"the stored result is of host {then.get('name')}, this one of {now.get('name')}"
        found.append(warning("other-host", message, "a ratio may depend on the host: compare on the same one"))
    if differing:
        shown = "; ".join(f"{name}: {was.get(name)} -> {is_now.get(name)}" for name in differing[:5])
        more = f"; and {len(differing) - 5} more" if len(differing) > 5 else ""
        found.append(warning("other-settings", f"settings differ: {shown}{more}", "a ratio may depend on them"))
    return found
