"""Blame for a real program: it runs without each cause in turn, in blocks, and the differences are what causes cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosswind.blame.interleaving import BARE, DISTURBED, Turns, run_in_turns
from crosswind.blame.shares import Leading, leading
from crosswind.disturbance import Disturbance
from crosswind.errors import DescriptionError
from crosswind.files.atomic import write_json
from crosswind.statistics.digits import in_seconds, part_of
from crosswind.statistics.interval import MeanInterval
from crosswind.tables import Column, Table

MOST_CAUSES = 8
"""Causes that are removed in turn unless some are named: each is one more run in every block."""
WITHOUT = "without "
"""Begins the name of the variant that lacks a cause."""
KIND = "command-blame"
SCHEMA_VERSION = 1
NOT_SETTLED = "not distinguishable from 0"


@dataclass(frozen=True)
class CommandBlame:
    """What removing each cause of a disturbance saves a command.

    Attributes
    ----------
    disturbance : str
        Its name.
    causes : list of str
        Those that were removed in turn.
    kept : list of str
        Those that were always there.
    turns : Turns
        Every time.
    """

    disturbance: str
    causes: list[str]
    kept: list[str]
    turns: Turns

    @classmethod
    def load(cls, path: str | Path) -> CommandBlame:
        """Read what `crosswind blame -o FILE -- COMMAND` wrote: the times are read, everything else follows from them.

        Raises
        ------
        DescriptionError
            When it is another file, or with the first field that is wrong.
        """
        from crosswind.documents.blame import CommandBlameDocument
        from crosswind.documents.reading import read_document

        hint = "`crosswind blame FILE.toml -o blame.json -- COMMAND` writes one"
        document = read_document(path, KIND, SCHEMA_VERSION, hint, CommandBlameDocument)
        times = document["elapsed_s"]
        turns = Turns(
            document["command"],
            list(times),
            np.array(list(times.values()), dtype=float).T,
            document["interrupted"],
            document["warnings"],
            document.get("iterations_s"),
        )
        return cls(document["disturbance"], [row["cause"] for row in document["causes"]], document["kept"], turns)

    @property
    def blocks(self) -> int:
        """How often each variant ran."""
        return len(self.turns.elapsed_s)

    @property
    def cost(self) -> MeanInterval:
        """What all causes cost together, as a part of the undisturbed time."""
        return self.turns.longer(DISTURBED, BARE)

    @property
    def makespan(self) -> MeanInterval:
        """Time of the disturbed command, s."""
        return self.turns.mean_s(DISTURBED)

    @property
    def undisturbed(self) -> MeanInterval:
        """Time of the command without any cause, s."""
        return self.turns.mean_s(BARE)

    @property
    def cost_s(self) -> MeanInterval:
        """What all causes cost together, s."""
        return self.turns.more_s(DISTURBED, BARE)

    def removed_saves_s(self, cause: str) -> MeanInterval:
        """Return what removing a cause saves, s, while all others stay."""
        return self.turns.more_s(DISTURBED, WITHOUT + cause)

    @property
    def leading(self) -> Leading:
        """Which causes save most when they are removed."""
        whole = self.turns.of(DISTURBED)
        return leading({cause: whole - self.turns.of(WITHOUT + cause) for cause in self.causes})

    @property
    def notes(self) -> list[str]:
        """Sentences on what times are of, and how many blocks are needed."""
        found, told = [], self.turns.settled
        if told is not None:
            runs = [len(run) for of in (self.turns.iterations or {}).values() for run in of]
            count = f"{min(runs)}" if min(runs) == max(runs) else f"{min(runs)} to {max(runs)}"
            warm_up = f"without the first {told.warm_up}, the warm-up, " if told.warm_up else ""
            worth = f"{float(np.median(told.worth)):.0f} independent ones"
            found.append(f"Times are of an iteration: {count} a run, {warm_up}worth {worth}.")
        needed = self.turns.needed("--blocks")
        return [*found, needed] if needed else found

    def tables(self) -> list[Table]:
        """Return what removing each cause saves, the most first."""
        columns = [
            Column("cause", numeric=False),
            Column("removing it saves", term="interval-blocks"),
            Column("removed saves", "s", "removed-cost"),
            Column("", numeric=False),
        ]
        saves = sorted(((one, self.removed_saves_s(one)) for one in self.causes), key=lambda item: -item[1].mean)
        rows = [
            [cause, part_of(one, self.undisturbed), in_seconds(one), "" if one.excludes_zero else NOT_SETTLED]
            for cause, one in saves
        ]
        first = ("removing it saves", "cause", "")
        return [Table("What removing each cause saves", columns, rows, first=first)]

    def to_dict(self) -> dict[str, object]:
        """Return figures and every time."""
        rows = [{"cause": cause, "removed_saves_s": _ends(self.removed_saves_s(cause))} for cause in self.causes]
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": KIND,
            "disturbance": self.disturbance,
            "makespan_s": _ends(self.makespan),
            "undisturbed_s": _ends(self.undisturbed),
            "cost": _ends(self.cost),
            "causes": rows,
            "kept": self.kept,
            **self.turns.to_dict(),
        }

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        write_json(self.to_dict(), path)


def blame_command(
    disturbance: Disturbance | str | Path,
    command: Sequence[str],
    *,
    blocks: int = 5,
    causes: Sequence[str] | None = None,
    **options: Any,
) -> CommandBlame:
    """Find what each cause of a disturbance costs a real command.

    Parameters
    ----------
    disturbance : Disturbance or path
        What is injected.
    command : sequence of str
        Program and arguments.
    blocks : int
        Runs of each variant, at least 2: without any cause, with all, without each.
    causes : sequence of str, optional
        Causes to remove in turn; default: the first 8 of the file.
    **options
        As of `crosswind.blame.interleaving.run_in_turns`.

    Returns
    -------
    CommandBlame

    Raises
    ------
    DescriptionError
        When a cause is not in the disturbance, or an argument is out of range.
    CrosswindError
        When the command fails.
    """
    whole = disturbance if isinstance(disturbance, Disturbance) else Disturbance.load(disturbance)
    asked = list(dict.fromkeys(causes)) if causes else whole.causes[:MOST_CAUSES]
    for cause in asked:
        if cause not in whole.causes:
            hint = f"it has {', '.join(whole.causes)}"
            raise DescriptionError(f"cause is {cause!r}, which is not in the disturbance", "argument", hint)
    variants = {BARE: whole.keeping(()), DISTURBED: whole}
    variants |= {WITHOUT + cause: whole.without(cause) for cause in asked}
    turns = run_in_turns(variants, command, blocks=blocks, **options)
    return CommandBlame(whole.name, asked, [cause for cause in whole.causes if cause not in asked], turns)


def _ends(found: MeanInterval) -> dict[str, float]:
    return {"mean": found.mean, "low": found.low, "high": found.high}
