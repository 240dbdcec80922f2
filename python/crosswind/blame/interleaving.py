"""A real command under several disturbances in turn: blocks in random order, and what differs between them."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from crosswind.blame.iterations import Settled, settled, source
from crosswind.blame.shares import Floats
from crosswind.disturbance import Disturbance
from crosswind.errors import CrosswindError, DescriptionError, Notice
from crosswind.files.atomic import write_text
from crosswind.inject import NOT_INJECTED, Injected, inject
from crosswind.statistics.interval import SHOWN, MeanInterval, mean_interval, student_half
from crosswind.terminal.progress import Advance, duration

BARE, DISTURBED = "undisturbed", "disturbed"
MOST_BLOCKS = 1000
"""The most blocks that are named as needed."""


@dataclass(frozen=True)
class Turns:
    """Times of a command, one row per block, one column per variant.

    Attributes
    ----------
    command : list of str
        Program and arguments.
    variants : list of str
        Names, in the order of the columns.
    elapsed_s : array of shape (blocks, variants)
        Wall time of each run, s.
    interrupted : bool
        Whether ctrl-C ended it; blocks that were complete are kept.
    warnings : list of dict
        Those of all runs, each once.
    iterations : dict or None
        Iteration times of each run, s, by variant and block; then `of` and all that follows are of mean iterations.
    """

    command: list[str]
    variants: list[str]
    elapsed_s: Floats
    interrupted: bool
    warnings: list[Notice]
    iterations: dict[str, list[list[float]]] | None = None

    @property
    def is_incomplete(self) -> bool:
        """Whether a rank was not found, or nothing was injected: then the times are not of the disturbance."""
        return any(warning["code"] in NOT_INJECTED for warning in self.warnings)

    @cached_property
    def settled(self) -> Settled | None:
        """What the iterations come to without the warm-up; None where whole runs are timed."""
        return settled(self.iterations, BARE) if self.iterations else None

    def of(self, variant: str) -> Floats:
        """Return the times of a variant, s, by block: of whole runs, or mean times of an iteration."""
        times = self.settled.means if self.settled else self.elapsed_s
        return times[:, self.variants.index(variant)]

    def _variance(self, *variants: str, relative: bool = False) -> float:
        """Return the variance of a block's sum or difference that the runs' own iterations show; 0 for whole runs."""
        if self.settled is None:
            return 0.0
        errors = self.settled.errors / self.settled.means if relative else self.settled.errors
        places = [self.variants.index(variant) for variant in variants]
        return float((errors[:, places] ** 2).sum(axis=1).mean())

    def mean_s(self, variant: str) -> MeanInterval:
        """Return its mean time with the 95 % interval, s."""
        return mean_interval(self.of(variant), self._variance(variant))

    def longer(self, variant: str, than: str) -> MeanInterval:
        """Return by how much one takes longer than another, as a part of the other, with the 95 % interval.

        Of the geometric mean of the ratios within blocks, so that a block that was disturbed by others counts no more
        than the rest.
        """
        logs = mean_interval(np.log(self.of(variant) / self.of(than)), self._variance(variant, than, relative=True))
        mean, low, high = (float(np.expm1(one)) for one in (logs.mean, logs.low, logs.high))
        return MeanInterval(mean, low, high)

    def more_s(self, variant: str, than: str) -> MeanInterval:
        """Return by how much one takes longer than another, s, with the 95 % interval; paired by block."""
        return mean_interval(self.of(variant) - self.of(than), self._variance(variant, than))

    def blocks_to_show(self, share: float = SHOWN) -> int | None:
        """Return about how many blocks show a cost of this share of the undisturbed time; None: more than 1000.

        By the variant that differs most between blocks from the disturbed one. The spread of few blocks is itself
        known to a factor of two only.
        """
        others = [name for name in self.variants if name != DISTURBED]
        spread = max(
            max(float((self.of(DISTURBED) - self.of(one)).var(ddof=1)), self._variance(DISTURBED, one))
            for one in others
        )
        wanted = share * float(self.of(BARE).mean())
        return next((n for n in range(2, MOST_BLOCKS + 1) if student_half(spread, n) <= wanted), None)

    def needed(self, option: str) -> str:
        """Return how many more runs show a cost of 1 %, as a sentence; empty where there are enough.

        Parameters
        ----------
        option : str
            What sets the number of runs of each on the command line.
        """
        blocks = self.blocks_to_show()
        if blocks is None:
            return f"More than {MOST_BLOCKS} runs of each would be needed to show a cost of 1 %."
        if blocks <= len(self.elapsed_s):
            return ""
        return f"About {blocks} runs of each are needed to show a cost of 1 %: {option} {blocks}."

    def to_dict(self) -> dict[str, object]:
        """Return every time."""
        times = dict(zip(self.variants, self.elapsed_s.T.tolist(), strict=True))
        told = {"iterations_s": self.iterations, "warm_up": self.settled.warm_up} if self.settled else {}
        about = {"command": self.command, "interrupted": self.interrupted, "warnings": self.warnings}
        return about | {"elapsed_s": times, "blocks_to_show_1_percent": self.blocks_to_show()} | told


def compare_injected(
    disturbance: Disturbance | str | Path, command: Sequence[str], *, pairs: int = 5, **options: Any
) -> Turns:
    """Run a command with and without a disturbance in turn, and measure by how much the disturbance slows it.

    Parameters
    ----------
    disturbance : Disturbance or path
        What is injected.
    command : sequence of str
        Program and arguments.
    pairs : int
        Runs of each, at least 2. The order within a pair is drawn.
    **options
        As of `run_in_turns`.

    Returns
    -------
    Turns
        With the variants `undisturbed` and `disturbed`; both run under the injector, so that it costs both the same.

    Raises
    ------
    DescriptionError, CrosswindError
        As of `run_in_turns`.

    Examples
    --------
    >>> job = {"kind": "job", "ranks": [0], "share": 0.5, "slice_s": 0.01}
    >>> half = Disturbance.from_dict({"schema_version": 1, "name": "half", "source": [job]})
    >>> turns = compare_injected(half, ["sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"], pairs=2)
    >>> turns.elapsed_s.shape
    (2, 2)
    """
    whole = disturbance if isinstance(disturbance, Disturbance) else Disturbance.load(disturbance)
    variants = {BARE: whole.keeping(()), DISTURBED: whole}
    return run_in_turns(variants, command, blocks=pairs, **options)


def run_in_turns(
    variants: Mapping[str, Disturbance],
    command: Sequence[str],
    *,
    blocks: int,
    seed: int = 1,
    iterations: str | None = None,
    progress: Advance | None = None,
    **options: Any,
) -> Turns:
    """Run a command once under each disturbance in every block.

    Parameters
    ----------
    variants : mapping
        Name to disturbance.
    command : sequence of str
        Program and arguments.
    blocks : int
        Runs of each, at least 2.
    seed : int
        Of the order; block b draws its disturbances with seed + b, so that causes come at the same times in all its
        runs.
    iterations : str, optional
        Where the iteration times of a run are: in a file with a time in s a line, which each run makes, and which is
        removed after it; or "re:PATTERN" with one group, matched in what the run prints.
    progress : callable, optional
        Called with the fraction done (0 to 1) and the time left.
    **options
        As of `crosswind.inject`: `limit_s`, `how`, `pin`, `busy`, `ranks`, `start_file`, `stdout_to_stderr`.

    Raises
    ------
    DescriptionError
        When an argument is out of range.
    CrosswindError
        When the command fails, or reaches the limit.
    KeyboardInterrupt
        After ctrl-C, when no two blocks are complete.
    """
    if blocks < 2:
        raise DescriptionError(f"{blocks} runs of each are too few for an interval; at least 2", "argument")
    draw, names = random.Random(seed), list(variants)
    rows: list[list[float]] = []
    told: dict[str, Notice] = {}
    kept: dict[str, list[list[float]]] = {name: [] for name in names}
    begun = time.monotonic()
    interrupted = False

    def turns() -> Turns:
        found = kept if iterations is not None else None
        return Turns(list(command), names, np.array(rows), interrupted, list(told.values()), found)

    with tempfile.TemporaryDirectory(prefix="crosswind-") as directory:
        from_run = source(iterations, directory) if iterations is not None else None
        words = from_run.command(command) if from_run else command
        for number, one in enumerate(variants.values()):
            write_text(one.to_toml(), Path(directory) / f"{number}.toml")
        while len(rows) < blocks and not interrupted:
            row, told_times = dict.fromkeys(names, float("nan")), dict[str, list[float]]()
            needed = turns().blocks_to_show() if progress and len(rows) > 1 else None
            shown = f"; about {needed} blocks show a cost of 1 %" if needed else ""
            for name in draw.sample(names, len(names)):
                done = len(rows) * len(names) + sum(np.isfinite(list(row.values())))
                if progress:
                    left = (time.monotonic() - begun) / max(done, 1) * (blocks * len(names) - done)
                    when = f", about {duration(left)} left" if done else ""
                    progress(done / (blocks * len(names)), f"block {len(rows) + 1} of {blocks}: {name}{when}{shown}")
                file = Path(directory) / f"{names.index(name)}.toml"
                run = inject(file, words, seed=seed + len(rows), **options)
                if from_run:
                    from_run.on_end()
                if run.summary["ended"] == "asked":
                    interrupted = True
                    break
                _check(run, name)
                told |= {warning["message"]: warning for warning in run.warnings}
                row[name] = run.elapsed_s
                if from_run:
                    told_times[name] = from_run.taken()
            else:
                rows.append(list(row.values()))
                for name, times in told_times.items():
                    kept[name].append(times)
    if len(rows) < 2:
        raise KeyboardInterrupt
    return turns()


def _check(run: Injected, name: str) -> None:
    summary = run.summary
    if summary["ended"] == "limit":
        raise CrosswindError(f"the limit was reached, {name}", "limit", "--limit-s gives each run longer")
    if not run.succeeded:
        message = f"the command ended with status {summary['exit_status']}, {name}"
        raise CrosswindError(message, "command-failed", "times of a command that fails are not compared")
