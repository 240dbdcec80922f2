"""`crosswind plan overlap`: a measurement of a GPU -> the fastest way to do a kernel and a transfer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.inputs import refuse_missing
from crosswind.cli.outputs import Json
from crosswind.cli.verbs import help_of

if TYPE_CHECKING:
    from crosswind.gpu.overlap import StepPlan

EXAMPLES = """
Examples:

    crosswind plan overlap gpu.parquet --kernel triad --kernel-ms 20 --traffic h2d --mb 600

    crosswind plan overlap gpu.parquet --kernel tensor --kernel-ms 5 --traffic d2d --mb 2000 --json

`crosswind measure --gpu` makes the file. Name the measured kernel that is most like yours: tensor or fma where
arithmetic limits it, triad where memory does, chase where it waits for single loads.

Exit codes: 0 decided, 2 bad input, 3 the ways are not distinguishable.
"""
UNDECIDED = 3


def overlap(
    measurement: Annotated[Path, typer.Argument(help="A file of `measure --gpu`.", metavar="FILE")],
    kernel: Annotated[str, typer.Option(metavar="NAME", help="The measured kernel most like the step's.")],
    kernel_ms: Annotated[
        float, typer.Option(metavar="MS", min=1e-6, help="Time of the step's kernels without traffic.")
    ],
    traffic: Annotated[str, typer.Option(metavar="NAME", help="The kind of transfer: h2d, d2h, both, d2d, ...")],
    mb: Annotated[float, typer.Option(metavar="MB", min=1e-6, help="Size of the transfer, all directions together.")],
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    json: Json = False,
) -> None:
    """Predict a step of a kernel and a transfer each way."""
    refuse_missing(measurement, hint="`crosswind measure --gpu -o FILE` makes one")
    from crosswind.gpu.fit import fit_gpu
    from crosswind.gpu.overlap import plan_overlap

    fit = fit_gpu(measurement, seed=seed)
    step = plan_overlap(fit, kernel, traffic, kernel_ms / 1e3, mb)
    show(
        None if json else _answer(step),
        earlier=fit.warnings,
        source=str(measurement),
        document=as_dict(step) if json else None,
    )
    raise typer.Exit(0 if step.decided else UNDECIDED)


def _answer(step: StepPlan) -> Answer:
    """Return the fastest way, and each way with its time."""
    from crosswind.gpu.words import gb_per_s

    best = step.best
    if not step.decided:
        line = "Overlapping and serialising are not distinguishable: the intervals overlap."
    else:
        serial = next(one for one in step.choices if one.way == "serialise")
        by = f" with {best.by}" if best.by != step.traffic else ""
        at = f", {gb_per_s(best.mb_per_s)} GB/s" if best.way == "overlap at a limited rate" else ""
        gain = f" instead of {1e3 * serial.seconds:.4g} ms one after the other" if best is not serial else ""
        line = f"Fastest: {best.way}{by}{at}, {_ms(best)}{gain}."
    several = len({one.by for one in step.choices}) > 1
    columns = [("way", "left"), *([("by", "left")] if several else []), ("transfer GB/s", "right"), ("step", "right")]
    rows = [
        [
            one.way,
            *([one.by] if several else []),
            gb_per_s(one.mb_per_s) if one.mb_per_s else "alone",
            _ms(one),
        ]
        for one in step.choices
    ]
    what = f"{step.traffic} of {step.amount_mb:g} MB beside {1e3 * step.kernel_s:g} ms of {step.kernel}"
    return Answer(
        [line], [Section(columns, rows, first=("step", "way", "by"))], [f"{what}. ±: 95 % confidence interval"]
    )


def as_dict(step: StepPlan) -> dict[str, object]:
    """Return the JSON document."""
    return {
        "schema_version": 1,
        **{name: value for name, value in vars(step).items() if name != "choices"},
        "decided": step.decided,
        "choices": [vars(one) for one in step.choices],
    }


def _ms(choice: Any) -> str:
    half = 1e3 * (choice.ci95[1] - choice.ci95[0]) / 2.0
    return (
        f"{1e3 * choice.seconds:.4g} ± {half:.2g} ms"
        if half > 1e-6 * choice.seconds
        else f"{1e3 * choice.seconds:.4g} ms"
    )


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("overlap", help=help_of("plan overlap", EXAMPLES))(overlap)
