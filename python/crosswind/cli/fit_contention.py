"""`crosswind fit contention`: measured flows -> which part of a link they use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.inputs import refuse_missing
from crosswind.cli.outputs import Force, Json, writable, written
from crosswind.cli.verbs import help_of

By = Literal["latency", "throughput"]

EXAMPLES = """
Examples:

    crosswind fit contention flows.csv -o contention.json

    crosswind fit contention runs.json --by throughput --link-mb-per-s 110
"""


def contention(
    files: Annotated[
        list[Path], typer.Argument(help="Tables (*.csv) of flows, or runs.json of kind streams.", metavar="FILE...")
    ],
    by: Annotated[By, typer.Option(help="Measure the flows' loss by latency or throughput (runs only).")] = "latency",
    link_mb_per_s: Annotated[
        float | None, typer.Option(metavar="MB/S", help="With --by throughput: rate of the link.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the fit, as JSON.")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Fit which part of a link several flows use."""
    refuse_missing(*files)
    from crosswind.model.flows import fit_contention

    of = {"files": [str(file) for file in files], "link_mb_per_s": link_mb_per_s}
    writable(out, "contention", inputs=files, force=force, of=of)
    found = fit_contention(files, link_mb_per_s=link_mb_per_s, by=by, seed=seed)
    if out:
        found.save(out)
    show(
        None if json else _answer(found),
        warnings=found.warnings,
        wrote=written(out),
        document=found.to_dict() if json else None,
    )


def _interval(ends: list[float | None] | None) -> str:
    if ends is None:
        return ""
    low, high = ends
    return f"{low:.4g} or more" if high is None else f"{low:.4g} .. {high:.4g}"


def _answer(found: Any) -> Answer:
    kinds = any(point["kind"] for point in found.points)
    columns = [("flows", "right")] + ([("kind", "left")] if kinds else [])
    columns += [("effective", "right"), ("95 %", "right"), ("samples", "right")]
    columns += [(form["form"], "right") for form in found.forms if form["form"] != "literal"]
    rows = []
    for point in found.points:
        head = [str(point["flows"])] + ([point["kind"]] if kinds else [])
        head += [f"{point['ratio']:.4f}", _interval(point["ratio_ci95"]), str(point["samples"])]
        rows.append(head + [f"{point['forms'][form['form']]:.4f}" for form in found.forms if form["form"] != "literal"])
    title = f"part of a link that flows use, over one flow alone, by {found.data['by']}"
    points = Section(columns, rows, title=title)
    few = 3 + kinds
    narrow = Section(columns[:few], [row[:few] for row in rows], title=title)
    columns = [("form", "left"), ("", "left"), ("", "right"), ("95 %", "right"), ("rms", "right"), ("MaxErr", "right")]
    columns += [("", "left")]
    best = found.effective["elsewhere"]["form"]
    says = {best: "used between and beyond the measured points", "literal": "as printed, over its value for one flow"}
    rows = [
        [
            form["form"],
            form["parameter"],
            f"{form['value']:.5g}",
            _interval(form["value_ci95"]),
            f"{form['rms']:.4f}",
            f"{form['max_error']:.4f}",
            says.get(form["form"], ""),
        ]
        for form in found.forms
    ]
    most = max(found.points, key=lambda point: point["flows"])
    line = f"{most['flows']} flows together use {100 * most['ratio']:.0f} % of what one flow alone uses of the link."
    second = f"Between and beyond the measured points, the form `{best}` is used."
    forms = Section(columns, rows)
    return Answer([line, second], [narrow], wide=[points, forms], rest="Forms, samples")


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("contention", help=help_of("fit contention", EXAMPLES))(contention)
