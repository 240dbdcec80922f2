"""Blame for a real program: it runs without each cause in turn, in blocks, and the differences are what causes cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosswind.blame.shares import Estimate
from crosswind.blame.turns import BARE, DISTURBED, Turns, run_in_turns
from crosswind.disturbance import Disturbance
from crosswind.errors import DescriptionError
from crosswind.files.stored import write_json

MOST_CAUSES = 8
"""Causes that are removed in turn unless some are named: each is one more run in every block."""
_WITHOUT = "without "


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

    @property
    def cost(self) -> Estimate:
        """What all causes cost together, as a part of the undisturbed time."""
        return self.turns.longer(DISTURBED, BARE)

    @property
    def makespan(self) -> Estimate:
        """Time of the disturbed command, s."""
        return self.turns.mean_s(DISTURBED)

    @property
    def undisturbed(self) -> Estimate:
        """Time of the command without any cause, s."""
        return self.turns.mean_s(BARE)

    def removed_saves_s(self, cause: str) -> Estimate:
        """Return what removing a cause saves, s, while all others stay."""
        return self.turns.more_s(DISTURBED, _WITHOUT + cause)

    def to_dict(self) -> dict[str, Any]:
        """Return figures and every time."""
        rows = [{"cause": cause, "removed_saves_s": _ends(self.removed_saves_s(cause))} for cause in self.causes]
        return {
            "schema_version": 1,
            "kind": "command-blame",
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
        As of `crosswind.blame.turns.run_in_turns`.

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
    variants |= {_WITHOUT + cause: whole.without(cause) for cause in asked}
    turns = run_in_turns(variants, command, blocks=blocks, **options)
    return CommandBlame(whole.name, asked, [cause for cause in whole.causes if cause not in asked], turns)


def _ends(found: Estimate) -> dict[str, float]:
    return {"mean": found.mean, "low": found.low, "high": found.high}
