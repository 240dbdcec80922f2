"""`crosswind run --beside`: parallel programs that share this machine's processors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.console import number_of
from crosswind.cli.outputs import file_of, writable, written
from crosswind.cli.settings import set_fields, settings_of
from crosswind.errors import DescriptionError
from crosswind.run.ranking import ranked
from crosswind.statistics.digits import with_half
from crosswind.statistics.interval import span
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.run.results import ProgramRun, Runs

PANEL = "Several jobs on this machine"
JOB_OPTIONS = ("other_jobs", "schedule", "quantum_s", "spin_us")
ALL = "local,gang,block,implicit"

OtherJobs = Annotated[
    list[Path] | None,
    typer.Option(
        "--beside",
        metavar="EXPERIMENT.toml",
        help="With --on local: another parallel program at the same time, on the same CPUs. Repeat for more.",
        rich_help_panel=PANEL,
    ),
]
Schedules = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="Which job runs when: local (quanta of each CPU), gang (of all CPUs together), block (the kernel decides, "
        f"waiting ranks block), implicit (the same, but they poll first). [default: {ALL}]",
        rich_help_panel=PANEL,
    ),
]
Quantum = Annotated[
    float | None,
    typer.Option("--quantum-s", help="Length of a quantum, s. [default: 0.1]", rich_help_panel=PANEL),
]
SpinUs = Annotated[
    float | None,
    typer.Option(
        "--spin-us",
        help="implicit: how long a waiting rank polls before it blocks, us. [default: a measured round trip]",
        min=0.0,
        max=1e6,
        rich_help_panel=PANEL,
    ),
]


def with_others(
    files: Sequence[Path],
    on: str,
    settings: list[str],
    schedule: str | None,
    quantum_s: float | None,
    spin_us: float | None,
    out: Path | None,
    force: bool,
    json: bool,
) -> None:
    """Run the jobs, print what sharing costs them, and write the runs."""
    from crosswind.experiment import Experiment
    from crosswind.run.jobs import QUANTUM_S, run_jobs

    if on != "local":
        message = f"--beside goes with --on local, where jobs share this machine's CPUs; --on is {on}"
        raise DescriptionError(message, "argument", "--on local")
    fields = settings_of(settings)
    experiments = [set_fields(Experiment.load(file), fields) for file in files]
    read = [*files, *(file for experiment in experiments for file in experiment.files)]
    writable(out, "runs", inputs=read, force=force)
    with progress_bar() as advance:
        done = run_jobs(
            experiments,
            schedules=[name.strip() for name in (schedule or ALL).split(",")],  # type: ignore[misc]
            quantum_s=QUANTUM_S if quantum_s is None else quantum_s,
            spin_s=None if spin_us is None else spin_us * 1e-6,
            progress=advance,
        )
    if out:
        done.save(out)
    show(
        None if json else answer_of(done),
        warnings=done.warnings,
        wrote=written(file_of(out), number_of(len(done), "run")),
        document=done.summary() if json else None,
    )


def answer_of(done: Runs[ProgramRun]) -> Answer:
    """Return what each schedule costs each job, and which one is faster by more than chance explains."""
    points = {tuple(runs[0].params[name] for name in ("schedule", "on", "job")): runs for runs in done.by_point()}
    schedules = list(dict.fromkeys(schedule for schedule, on, _ in points if on == "local" and schedule != "alone"))
    jobs = list(dict.fromkeys(job for _, _, job in points))
    lasts = {name: _by_repetition(max, [points[name, "local", job] for job in jobs]) for name in schedules}
    alone = _by_repetition(sum, [points["alone", "local", job] for job in jobs])
    lines = [*_which(lasts, len(jobs)), f"One after the other, each alone, they take {_seconds(alone)}."]
    rows = []
    for name in schedules:
        for job in jobs:
            simulated = points.get((name, "sim", job))
            live = points[name, "local", job]
            rows.append(
                [
                    name,
                    job,
                    _mean([run.makespan_s for run in live]),
                    _mean([run.slowdown_dedicated for run in live]),
                    _mean([run.slowdown_dedicated for run in simulated]) if simulated else "",
                ]
            )
    columns = [("schedule", "left"), ("job", "left"), ("s", "right"), ("times alone", "right"), ("simulated", "right")]
    notes = ["times alone: over the same job alone, live or simulated; the kernel's own schedules are not simulated"]
    if len(alone) > 1:
        notes.append(f"±: half of the 95 % interval of the mean of {len(alone)} repetitions")
    notes += [note for name in schedules if (note := _switches(name, points[name, "local", jobs[0]]))]
    return Answer(lines, [Section(columns, rows)], notes)


def _which(lasts: Mapping[str, list[float]], jobs: int) -> list[str]:
    """Return the sentences about when the last job is done under each schedule."""
    repetitions = len(next(iter(lasts.values())))
    if len(lasts) == 1:
        ((name, last),) = lasts.items()
        return [f"All {jobs} jobs together take {_seconds(last)} under {name}."]
    names = list(lasts)
    rows = ranked([[[lasts[name][turn] for name in names] for turn in range(repetitions)]], names, "schedule", "s").rows
    several = [f"{_seconds(lasts[row.value])} under {row.value}" for row in rows]
    if repetitions == 1:
        return [
            f"All {jobs} jobs together took {', '.join(several)}, each in a single run.",
            "Which schedule is the fastest is not known from one run each: --set repetitions=5 tells.",
        ]
    tied = [row.value for row in rows[1:] if row.is_tied]
    if not tied:
        others = ", ".join(several[1:])
        return [f"{rows[0].value} is the fastest: all {jobs} jobs together take {several[0]}, {others}."]
    return [
        f"All {jobs} jobs together take {', '.join(several)}.",
        f"That {rows[0].value} is faster than {' or '.join(tied)} may be chance in {repetitions} repetitions.",
    ]


def _switches(schedule: str, runs: Sequence[ProgramRun]) -> str:
    """Return how exactly jobs were switched; empty where nothing was measured."""
    found = [one for run in runs if (one := run.data.get("switches")) is not None]
    if not found:
        return ""
    late_us = 1e6 * fmean(one["late_mean_s"] for one in found)
    note = f"{schedule}: {sum(one['count'] for one in found)} switches, done {late_us:.0f} us after they were due"
    if schedule != "gang":
        return note
    mean_us, most_us = 1e6 * fmean(one["skew_mean_s"] for one in found), 1e6 * max(one["skew_max_s"] for one in found)
    return f"{note}, ranks {mean_us:.0f} us apart on average, {most_us:.0f} us at most"


def _by_repetition(of_jobs: Callable[[list[float]], float], by_job: Sequence[Sequence[ProgramRun]]) -> list[float]:
    """Return the sum or the maximum of the jobs' times, by repetition, s."""
    return [of_jobs([run.makespan_s for run in together]) for together in zip(*by_job, strict=True)]


def _mean(values: list[float], unit: str = "") -> str:
    mean, _, high = span(values)
    return with_half(mean, high - mean, unit)


def _seconds(values: list[float]) -> str:
    return _mean(values, " s")
