"""`crosswind plan tolerance`: Disturbance -> what a program tolerates of it; or a recorded program instead."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.console import narrow_width
from crosswind.cli.given import refuse_others
from crosswind.cli.outputs import Json
from crosswind.cli.verbs import help_of
from crosswind.errors import DescriptionError
from crosswind.files.recorded import is_recorded
from crosswind.plan.tolerance import Tolerance, plan_tolerance, plan_tolerance_of_recording
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.documents.tolerance import Limit

EXAMPLES = """
Examples:

    crosswind plan tolerance daemons.toml --ranks 64 --work-per-barrier-s 0.007

    crosswind plan tolerance daemons.toml --ranks 64 --work-per-barrier-s 0.007 --slowdown 1.2 --simulate

    crosswind plan tolerance app.trace

    crosswind plan tolerance app.trace --disturbance daemons.toml --slowdown 1.2

Of a recording (`crosswind record -- mpirun ...`) the limits are those of the recorded program itself, simulated.
Without --disturbance they are those of a daemon that takes 1 ms each second on every rank.
"""

MOST_LIMITS = 12
MOST_LETTERS = 24
LARGE = 1e9

# What each closed form says, as people read it.
_FORMS = {
    "local": ("about", "barriers under local scheduling"),
    "skew": ("at most", "late quanta and returns, any program"),
    "daemons_exposed": ("at least", "daemons, barriers"),
    "daemons_union": ("at most", "daemons, any program"),
    "daemons_additive": ("at most", "daemons if no two coincided"),
    "shared_nodes": ("at most", "shared nodes, any program; reached by balanced ones"),
}


def tolerance(
    file: Annotated[
        Path,
        typer.Argument(
            help="A disturbance.toml; or a recorded program (app.trace, a directory of traces).",
            metavar="DISTURBANCE.toml",
        ),
    ],
    ranks: Annotated[int | None, typer.Option(help="Ranks of the program (at least 1).")] = None,
    work_per_barrier_s: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Work of each rank between two barriers, s.")
    ] = None,
    slowdown: Annotated[
        float, typer.Option(metavar="TIMES", help="Most that each source alone may slow the program.")
    ] = 1.05,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Search for each limit in the simulator too, by bisection.")
    ] = False,
    disturbance: Annotated[
        Path | None,
        typer.Option(metavar="DISTURBANCE.toml", help="Of a recorded program: what takes its processors away."),
    ] = None,
    json: Json = False,
) -> None:
    """Find what a program tolerates of a disturbance."""
    if is_recorded(file):
        hint = "leave it out: a recording has its own ranks and computing, and its limits are always simulated"
        refuse_others("a recording", ("slowdown", "disturbance", "json"), hint)
        with progress_bar() as advance:
            found = plan_tolerance_of_recording(file, disturbance, slowdown=slowdown, progress=advance)
        warnings = found.data["warnings"]
        show(None if json else _answer(found), warnings=warnings, document=found.to_dict() if json else None)
        return
    if disturbance is not None:
        message = f"--disturbance belongs to a recorded program; {file} is to be a disturbance itself"
        raise DescriptionError(message, "argument", "crosswind plan tolerance app.trace --disturbance daemons.toml")
    if ranks is None or work_per_barrier_s is None:
        missing = "--ranks" if ranks is None else "--work-per-barrier-s"
        hint = "what a program tolerates depends on its ranks, and on what each computes between two barriers"
        raise DescriptionError(f"a tolerance needs {missing}", "usage", hint)
    with progress_bar() as advance:
        found = plan_tolerance(
            file,
            ranks=ranks,
            work_per_barrier_s=work_per_barrier_s,
            slowdown=slowdown,
            simulate=simulate,
            progress=advance,
        )
    show(None if json else _answer(found), document=found.to_dict() if json else None)


def _answer(found: Tolerance) -> Answer:
    d = found.data
    rows = [[_shown(value), *_FORMS[name], name] for name, value in found.expected.items() if value is not None]
    title = f"{d['disturbance']}: {d['ranks']} ranks, {d['work_per_barrier_s']:g} s of work between two barriers"
    columns = [("slowdown", "right"), ("", "left"), ("of", "left"), ("closed form", "left")]
    expected = Section(columns, rows or [["1", "", "nothing", ""]], title=title)
    simulated = "seeds" in d
    shown = found.limits[:MOST_LIMITS]
    rows = [
        [
            _short(limit["cause"]),
            limit["field"],
            _shown(limit["given"], 6),
            limit["relation"],
            "none" if limit["field"] == "ranks" and limit["limit"] < 1 else _shown(limit["limit"], 6),
            *(_simulated(limit) if simulated else ()),
            limit["unit"],
            "" if limit["kept"] else "not kept",
        ]
        for limit in shown
    ]
    columns = [("cause", "left"), ("field", "left"), ("is", "right"), ("may be", "left")]
    columns += [("limit", "right")]
    columns += [("simulated", "right"), ("range", "right")] if simulated else []
    columns += [("unit", "left"), ("", "left")]
    title = f"for a slowdown of at most {d['slowdown']:g} by each source alone"
    first = ("cause", "limit", "", "field", "may be", "is", "simulated", "unit", "range")
    whole = Section(columns, rows, title=title, first=[name for name in first if name in dict(columns)])
    notes = []
    if len(found.limits) > len(shown):
        notes.append(f"and {len(found.limits) - len(shown)} more limits, which are kept most easily: --json")
    if found.limits and not simulated:
        notes.append("These limits come from formulas and are conservative; --simulate finds the real ones.")
    elif simulated:
        what = "the recorded program" if "recorded" in d else "barriers that cost nothing else"
        notes.append(f"simulated: mean of {d['seeds']} seeds, {what}; range: least to most")
    by = "simulated" if simulated else "limit"
    at = [[name for name, _ in columns].index(name) for name in ("cause", "field", "is", "may be", by)]
    narrow = [[row[at[0]], row[at[1]], row[at[2]], f"{row[at[3]]} {row[at[4]]}", row[-1]] for row in rows]
    heads = [("cause", "left"), ("field", "left"), ("is", "right"), (f"may be{', simulated' * simulated}", "left")]
    heads.append(("", "left"))
    limits = Section(heads, narrow, title=title, first=("cause", f"may be{', simulated' * simulated}", "", "field"))
    lines = [_sentence(found)]
    if recorded := d.get("recorded"):
        lines.append(f"Replayed {recorded['replayed_s']:.4g} s of {recorded['recorded_s']:.4g} s recorded.")
    return Answer(lines, [limits], notes, wide=[expected, whole], rest="Expected slowdowns, units")


def _sentence(found: Tolerance) -> str:
    """Return how many limits are kept, and the one that is exceeded most."""
    d = found.data
    broken = [limit for limit in found.limits if not limit["kept"]]
    most = f"a slowdown of at most {d['slowdown']:g} by each source alone"
    if not broken:
        return f"All {len(found.limits)} limits are kept for {most}, with {d['ranks']} ranks."
    worst = max(broken, key=_factor)
    line = f"{len(broken)} of {len(found.limits)} limits are not kept for {most}, with {d['ranks']} ranks."
    if worst["limit"] and worst["given"]:
        limit = f"{worst['relation']} {_shown(worst['limit'], 3)} {worst['unit']}".strip()
        line += f" The farthest off: {worst['cause']}, {worst['field']} {worst['given']:g}, may be {limit}."
    return line


def _factor(limit: Limit) -> float:
    """Return how many times a limit is exceeded; 0 where that is no number."""
    given, most = limit["given"], limit["limit"]
    if not given or not most:
        return 0.0
    return float(max(given / most, most / given))


def _shown(value: float | None, digits: int = 4) -> str:
    """Return a number; of a bound so large that it says nothing, that."""
    if value is None:
        return "none"
    return f"{value:.{digits}g}" if abs(value) < LARGE else f"> {LARGE:g}"


def _short(cause: str) -> str:
    """Return a cause that leaves room for the limit on a terminal."""
    if narrow_width() is None or len(cause) <= MOST_LETTERS:
        return cause
    return f"{cause[: MOST_LETTERS - 1]}…"


def _simulated(limit: Limit) -> list[str]:
    if limit["simulated"] is None:
        return ["none near", ""]
    return [f"{limit['simulated']:.4g}", f"{limit['simulated_low']:.4g} .. {limit['simulated_high']:.4g}"]


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("tolerance", help=help_of("plan tolerance", EXAMPLES))(tolerance)
