"""`crosswind blame`: Experiment of kind program -> what each cause of its disturbance costs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli.console import print_json, print_table, tell, tell_warnings
from crosswind.cli.interrupted import tells_what_is_kept
from crosswind.cli.outputs import Force, file_of, writable
from crosswind.cli.settings import Settings, settings_of
from crosswind.cli.verbs import help_of
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.blame.result import Blame
    from crosswind.blame.shares import Estimate

EXAMPLES = """
The program is run again with each cause removed, with each alone, with every combination of them where there are few
(up to 6), and with all causes aligned over the ranks; each for several seeds. What causes do together is shared out by
Shapley's value.

Examples:

    crosswind blame examples/barriers_under_daemons.toml

    crosswind blame experiment.toml --seeds 10 --out blame.json --resume

    crosswind blame experiment.toml --set workload.ranks=1024 --json
"""


def blame(
    experiment: Annotated[
        Path, typer.Argument(help="An experiment.toml of kind program, with a disturbance.", metavar="EXPERIMENT.toml")
    ],
    seeds: Annotated[int, typer.Option(help="Seeds, each for every run.", min=1)] = 5,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="blame.json, written as runs come in; for `crosswind report`.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Keep the runs that stand in --out already.")] = False,
    workers: Annotated[int | None, typer.Option(help="Runs at a time; else one per CPU.", min=1)] = None,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say which cause of a disturbance costs how much."""
    from crosswind.blame import blame as find
    from crosswind.experiment import Experiment

    described = Experiment.load(experiment).fixed(settings_of(settings or []))
    writable(out, "blame", inputs=[experiment, *described.files], force=force)
    with tells_what_is_kept(file_of(out)), progress_bar() as advance:
        found = find(
            described, seeds=seeds, workers=workers, out=file_of(out), resume=resume, force=force, progress=advance
        )
    if out:
        if not file_of(out):
            found.save(out)
        tell(f"wrote {out} ({len(found.runs)} runs)")
    tell_warnings(found.warnings)
    if json:
        print_json(found.summary())
    else:
        _print(found)


def _print(found: Blame) -> None:
    whole, bare = found.makespan, found.undisturbed
    rows = [
        ["makespan", _seconds(whole), ""],
        ["undisturbed", _seconds(bare), ""],
        ["all causes cost", _seconds(found.cost), _of(found.cost, bare)],
        ["beyond the sum of each alone", _seconds(found.together), _of(found.together, bare)],
        ["aligned over the ranks they would cost", _seconds(found.aligned_cost), _of(found.aligned_cost, bare)],
    ]
    programs = "; ".join(dict.fromkeys(f"{one.data['program']}, {one.data['ranks']:,} ranks" for one in found.runs))
    title = f"{found.experiment}: {programs}, {len(found.seeds)} seeds"
    print_table([("", "left"), ("s", "right"), ("of undisturbed", "right")], rows, title=title)
    columns = [("cause", "left"), ("share", "right"), ("costs s", "right"), ("of undisturbed", "right")]
    columns += [("removed saves s", "right"), ("alone costs s", "right")]
    below = found.below_the_noise
    table = [
        [
            one.cause,
            f"{one.part:.1%}" if one.part is not None else "",
            _seconds(one.best),
            _of(one.best, bare),
            _seconds(one.removed),
            _seconds(one.alone),
        ]
        for one in sorted(found.by_cause, key=lambda one: -one.best.mean)
        if one not in below
    ]
    if below:
        together = found.below_together
        table.append(
            [f"{len(below)} causes below the noise, together", "", _seconds(together), _of(together, bare), "", ""]
        )
    print_table(columns, table)


def _seconds(found: Estimate) -> str:
    if not math.isfinite(found.high):
        return f"{found.mean:.5g}"
    return f"{found.mean:.4g} ± {found.high - found.mean:.1g}"


def _of(found: Estimate, whole: Estimate) -> str:
    return f"{found.mean / whole.mean:+.2%}" if whole.mean else ""


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("blame", help=help_of("blame", EXAMPLES))(blame)
