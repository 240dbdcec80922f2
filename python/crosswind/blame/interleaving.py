"""A real command under several disturbances in turn: blocks in random order, and what differs between them."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosswind.blame.shares import Estimate, Floats, estimate
from crosswind.disturbance import Disturbance
from crosswind.errors import CrosswindError, DescriptionError
from crosswind.files.atomic import write_text
from crosswind.inject import Injected, inject
from crosswind.terminal.progress import Advance, duration

BARE, DISTURBED = "undisturbed", "disturbed"


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
    """

    command: list[str]
    variants: list[str]
    elapsed_s: Floats
    interrupted: bool
    warnings: list[dict[str, str]]

    def of(self, variant: str) -> Floats:
        """Return the times of a variant, s, by block."""
        return self.elapsed_s[:, self.variants.index(variant)]

    def mean_s(self, variant: str) -> Estimate:
        """Return its mean time with the 95 % interval, s."""
        return estimate(self.of(variant))

    def longer(self, variant: str, than: str) -> Estimate:
        """Return by how much one takes longer than another, as a part of the other, with the 95 % interval.

        Of the geometric mean of the ratios within blocks, so that a block that was disturbed by others counts no more
        than the rest.
        """
        logs = estimate(np.log(self.of(variant) / self.of(than)))
        mean, low, high = (float(np.expm1(one)) for one in (logs.mean, logs.low, logs.high))
        return Estimate(mean, low, high)

    def more_s(self, variant: str, than: str) -> Estimate:
        """Return by how much one takes longer than another, s, with the 95 % interval; paired by block."""
        return estimate(self.of(variant) - self.of(than))

    def to_dict(self) -> dict[str, Any]:
        """Return every time."""
        times = {name: self.of(name).tolist() for name in self.variants}
        return {"command": self.command, "elapsed_s": times, "interrupted": self.interrupted, "warnings": self.warnings}


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
    told: dict[str, dict[str, str]] = {}
    begun = time.monotonic()
    interrupted = False
    with tempfile.TemporaryDirectory(prefix="crosswind-") as directory:
        for number, one in enumerate(variants.values()):
            write_text(one.to_toml(), Path(directory) / f"{number}.toml")
        while len(rows) < blocks and not interrupted:
            row = dict.fromkeys(names, float("nan"))
            for name in draw.sample(names, len(names)):
                done = len(rows) * len(names) + sum(np.isfinite(list(row.values())))
                if progress:
                    left = (time.monotonic() - begun) / max(done, 1) * (blocks * len(names) - done)
                    when = f", about {duration(left)} left" if done else ""
                    progress(done / (blocks * len(names)), f"block {len(rows) + 1} of {blocks}: {name}{when}")
                file = Path(directory) / f"{names.index(name)}.toml"
                run = inject(file, command, seed=seed + len(rows), **options)
                if run.summary["ended"] == "asked":
                    interrupted = True
                    break
                _check(run, name)
                told |= {warning["message"]: warning for warning in run.warnings}
                row[name] = run.elapsed_s
            else:
                rows.append(list(row.values()))
    if len(rows) < 2:
        raise KeyboardInterrupt
    return Turns(list(command), names, np.array(rows), interrupted, list(told.values()))


def _check(run: Injected, name: str) -> None:
    summary = run.summary
    if summary["ended"] == "limit":
        raise CrosswindError(f"the limit was reached, {name}", "limit", "--limit-s gives each run longer")
    if not run.succeeded:
        message = f"the command ended with status {summary['exit_status']}, {name}"
        raise CrosswindError(message, "command-failed", "times of a command that fails are not compared")
