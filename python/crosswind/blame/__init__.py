"""Blame: which cause of a disturbance costs a parallel program how much.

| question | module |
|---|---|
| how is a joint cost shared out, and how well is it known? | `shares` |
| which runs does that need? | `variants` |
| their results? | `result` |
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosswind.blame.result import Blame
    from crosswind.experiment import Experiment
    from crosswind.run.grid import Progress

SEEDS = 5


def blame(
    experiment: Experiment | str | Path,
    *,
    seeds: int = SEEDS,
    workers: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    progress: Progress | None = None,
) -> Blame:
    """Run a program again with each cause of its disturbance removed, and with all causes aligned.

    Parameters
    ----------
    experiment : Experiment or path
        Of kind program, with a disturbance, without a sweep (fix its paths). Its repetitions do not count.
    seeds : int
        How many seeds, at least 1; the same for every variant, so that differences are paired.
    workers : int, optional
        Runs at a time, at least 1; default: one per CPU. They change nothing in the result.
    out : path, optional
        A `blame.json` that is written as runs come in.
    resume : bool
        Keep the runs that stand in `out` already; refused when they are of another experiment.
    force : bool
        Replace a file of another kind, or of another experiment, in `out`; else it is refused.
    progress : callable, optional
        Called as `progress(fraction, message)`, with the time left in the message.

    Returns
    -------
    Blame
        What causes do together is shared out by Shapley's value. For up to 6 causes every combination is run,
        2^causes + 1 runs per seed. For more, each cause is run alone and removed, and all are added one after the other
        in an order that is drawn for each seed and in its reverse: 4 causes - 3 runs per seed.

    Raises
    ------
    DescriptionError
        When there is nothing to blame, or more than one thing; when `out` holds something else.
    KeyboardInterrupt
        After ctrl-C; the runs that were finished stand in `out`.
    """
    from crosswind.blame.result import Blame, Store
    from crosswind.blame.variants import Variants
    from crosswind.experiment import Experiment
    from crosswind.run.grid import run_grid

    if not isinstance(experiment, Experiment):
        experiment = Experiment.load(experiment)
    variants = Variants(experiment, seeds)
    store = Store(variants.causes)
    runs = run_grid(variants, workers=workers, out=out, resume=resume, force=force, store=store, progress=progress)
    return Blame(variants.causes, runs)
