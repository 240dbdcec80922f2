"""One figure for a paper: a quantity of runs over a swept value, a line for each series, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import wrap
from typing import Any

import altair as alt

from crosswind.documents import Row
from crosswind.errors import DescriptionError
from crosswind.files.output import writable
from crosswind.report.figures.columns import bars, boxes
from crosswind.report.figures.curves import curves
from crosswind.report.figures.export import FORMATS, write_figure
from crosswind.report.figures.figure import Figure
from crosswind.report.figures.look import EXPORT_WIDTH, PX_PER_MM
from crosswind.report.page.inputs import Item, gather
from crosswind.report.words import plain
from crosswind.run.results import Runs
from crosswind.statistics.interval import span

SIZES_MM = (30.0, 400.0)
FORMS = ("points", "bars", "boxes")
BOX_RUNS = 5
"""Of fewer runs, quartiles say nothing that the runs do not."""
NOTE_LETTER_PX = 5.0
FREE = ("seed",)  # a repetition is no other point


def draw(
    items: Item | Sequence[Item],
    out: str | Path = "figure.pdf",
    *,
    x: str,
    series: str | Sequence[str] = (),
    y: str = "makespan_s",
    where: Sequence[str] = (),
    title: str | None = None,
    log: str = "",
    size_mm: tuple[float, float] | None = None,
    form: str = "points",
    force: bool = False,
) -> Path:
    """Draw a quantity of runs over a swept value, and write it as PDF, SVG or PNG.

    Parameters
    ----------
    items : Runs or files of runs; one or several
        Runs of one kind.
    out : path
        Its suffix decides: `.pdf`, `.svg` or `.png`.
    x : str
        A swept path, such as `workload.task_size_mb`, or another column of the runs.
    series : str or sequence of str
        Columns that make a line of its own for each value; `on` is where runs ran.
    y : str
        A column with numbers, such as `makespan_s`, `throughput_tasks_per_s`, `slowdown`.
    where : sequence of str
        `PATH=VALUE`: only runs with this value; the end of a path, such as `order`, is enough where it is of one only.
    title : str, optional
        Above the figure; default: none, a paper has a caption.
    log : str
        Axes with a logarithmic scale: `x`, `y` or `xy`.
    size_mm : (float, float), optional
        Width and height of the whole figure, 30 to 400 mm each. Default: 190 mm of axis, and 79 mm.
    form : {"points", "bars", "boxes"}
        `points`: means, joined by lines along numbers. `bars`: means as bars from zero. `boxes`: quartiles and median
        of at least 5 runs each, whiskers to the least and the greatest. Bars and boxes stand at equal steps along `x`.
    force : bool
        Replace a file that is no figure.

    Returns
    -------
    Path
        `out`.

    Raises
    ------
    DescriptionError
        For a column that does not exist, for `y` without numbers, when a further path varies (a dot would be the mean
        of different experiments), for a suffix that no figure has, for values that a logarithmic scale cannot show,
        for a form that the runs cannot have, and when `out` is no place for one.

    Notes
    -----
    Points and bars are means over repetitions, whiskers their 95 % interval by Student's t. A line below the figure
    says so.

    Examples
    --------
    >>> import tempfile
    >>> from crosswind.run.results import Run, Runs
    >>> same = {"seed": 1, "platform": "p", "order": "arrival", "ports": "multi", "compute": "simulated", "tasks": 9}
    >>> same |= {"throughput_tasks_per_s": 1.0, "nodes": []}
    >>> runs = [Run({"params": {"workload.tasks": n}, "makespan_s": 2.0 * n, **same}) for n in (1, 2)]
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     draw(Runs("e", "sim", runs), Path(directory) / "figure.svg", x="workload.tasks").name
    'figure.svg'
    """
    out = Path(out)
    if out.suffix.lower() not in FORMATS:
        message = f"out is {str(out)!r}: a figure is {', '.join(sorted(FORMATS))}"
        raise DescriptionError(message, "suffix", f"-o {out.stem or 'figure'}.pdf")
    several = items if isinstance(items, Sequence) and not isinstance(items, (str, Runs)) else [items]
    inputs = [item for item in several if isinstance(item, (str, Path))]
    writable(out, "figure", inputs=inputs, force=force)
    runs = _runs(items)
    rows = _rows(runs)
    chosen = [series] if isinstance(series, str) else list(series)
    rows = _only(rows, where)
    x, y, chosen = _column(rows, x), _column(rows, y), [_column(rows, one) for one in chosen]
    found = points(rows, x, chosen, y, swept=_swept(runs))
    words = f"{len(found)} means of {y} over {x}"
    _refuse_not_above_zero(found, log, {"x": x, "y": y})
    _refuse_form(form, found, log, x)
    if size_mm is not None and not all(SIZES_MM[0] <= side <= SIZES_MM[1] for side in size_mm):
        message = f"size_mm is {size_mm[0]:g} x {size_mm[1]:g}; each is {SIZES_MM[0]:g} to {SIZES_MM[1]:g} mm"
        raise DescriptionError(message, "size", "--size 85x60 fits a column of a paper")
    width = size_mm[0] * PX_PER_MM if size_mm else EXPORT_WIDTH
    note = _note(found, form, width)
    write_figure(
        Figure(
            "figure", title or "", words, _chart(form, found, label(x), label(y), log, width).properties(title=note)
        ),
        out,
        size_mm,
    )
    return out


def _refuse_not_above_zero(found: Sequence[Row], log: str, columns: dict[str, str]) -> None:
    if set(log) - {"x", "y"}:
        raise DescriptionError(f"log is {log!r}: it is x, y or xy", "log", "--log y")
    for axis, field in (("x", "x"), ("y", "mean")):
        values = [point[field] for point in found if axis in log]
        wrong = [value for value in values if not (isinstance(value, (int, float)) and value > 0)]
        if wrong:
            message = f"log is {log!r}, and {columns[axis]} has {wrong[0]!r}: a logarithmic scale needs numbers above 0"
            rest = log.replace(axis, "")
            raise DescriptionError(message, "log", f"--log {rest}" if rest else "leave out --log")


def _column(rows: Sequence[Row], name: str) -> str:
    """Return the column of a name, or of the end of one, as the printed table shortens it."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    ending = [column for column in columns if column.endswith(f".{name}")]
    return ending[0] if name not in columns and len(ending) == 1 else name


def _refuse_unknown(rows: Sequence[Row], name: str) -> None:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    if name not in columns:
        raise DescriptionError(f"no column {name!r} in these runs", "no-column", f"there are {', '.join(columns)}")


def _chart(form: str, found: Sequence[Row], x: str, y: str, log: str, width: float) -> alt.LayerChart:
    if form == "bars":
        return bars(found, x, y, width)
    return boxes(found, x, y, log, width) if form == "boxes" else curves(found, x, y, log, width)


def _refuse_form(form: str, found: Sequence[Row], log: str, x: str) -> None:
    if form not in FORMS:
        raise DescriptionError(f"form is {form!r}: it is {', '.join(FORMS)}", "form", "--form bars")
    if form != "points" and "x" in log:
        message = f"log is {log!r}, and {form} stand at equal steps along x"
        raise DescriptionError(message, "log", "--log y" if (form, log) == ("boxes", "xy") else "leave out --log")
    if form == "bars" and log:
        message = "bars begin at 0, which a logarithmic axis does not have"
        raise DescriptionError(message, "log", "--form points, or leave out --log")
    fewest = min(found, key=lambda point: point["count"])
    if form == "boxes" and fewest["count"] < BOX_RUNS:
        of = f"{x}={fewest['x']}{', ' if fewest['series'] else ''}{fewest['series']}"
        message = f"boxes need {BOX_RUNS} runs of each point; {of} has {fewest['count']}"
        raise DescriptionError(message, "few-runs", "more `repetitions` in the experiment, or --form bars")


def _note(found: Sequence[Row], form: str, width: float) -> Any:
    """Return the lines below a figure that say what its marks are."""
    counts = sorted({point["count"] for point in found})
    many = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    drawn = {"points": "Points", "bars": "Bars", "boxes": "Boxes"}[form]
    if form == "boxes":
        text = f"{drawn}: quartiles and median of {many} runs. Whiskers: least and greatest."
    elif counts[-1] < 2:
        text = f"{drawn}: one run each, so no interval is known."
    else:
        text = f"{drawn}: means of {many} runs. Whiskers: 95 % confidence intervals."
    lines = wrap(text, int(width // NOTE_LETTER_PX))
    return alt.TitleParams(lines, orient="bottom", anchor="start", fontSize=10, fontWeight="normal", offset=8)


def points(
    rows: Sequence[Row], x: str, series: Sequence[str] = (), y: str = "makespan_s", *, swept: Sequence[str] = ()
) -> list[Row]:
    """Return `x`, `series`, `mean`, `low`, `high`, `count`, `values` of each point; errors as of `draw`.

    `swept` are the columns that are no results: rows of a point may not differ in them.
    """
    for name in (x, y, *series):
        _refuse_unknown(rows, name)
    if not all(isinstance(row.get(y), (int, float)) for row in rows):
        raise DescriptionError(f"column {y!r} does not hold numbers in every run", "no-number", "--y makespan_s")
    _refuse_mixed(rows, {x, *series}, swept)
    groups: dict[tuple[str, Any], list[float]] = {}
    for row in rows:
        groups.setdefault((", ".join(str(row.get(name)) for name in series), row.get(x)), []).append(float(row[y]))
    found = []
    for (name, at), values in groups.items():
        mean, low, high = span(values)
        point = {"x": at, "series": name, "mean": mean, "low": low, "high": high}
        found.append(point | {"count": len(values), "values": values})
    return found


def label(column: str) -> str:
    """Return a column as the title of an axis, with its unit in words.

    Examples
    --------
    >>> label("workload.task_size_mb"), label("makespan_s"), label("policy.order")
    ('task size, MB', 'makespan, s', 'order')
    >>> label("workload.task_size_mb.mean"), label("workload.task_work.sigma"), label("of_bound")
    ('mean task size, MB', 'sigma of task work', 'throughput, part of the upper bound')
    """
    if column in _TITLES:
        return _TITLES[column]
    *before, name = column.split(".")
    if name in _MOMENTS and before:
        what, comma, unit = label(before[-1]).partition(", ")
        own = f"{name} {what}" if name in ("mean", "median", "low", "high") else f"{name} of {what}"
        return own + ("" if name == "sigma" else comma + unit)
    name = name.partition("[")[0]
    for ending, unit in _ENDINGS:
        if name.endswith(ending):
            return f"{name.removesuffix(ending).replace('_', ' ')}, {unit}"
    return _UNITS.get(name, name.replace("_", " "))


_ENDINGS: tuple[tuple[str, str], ...] = (("_tasks_per_s", "tasks/s"), ("_mb_per_s", "MB/s"), ("_s_per_mb", "s/MB"))
_ENDINGS += (("_bytes", "bytes"), ("_packets", "packets"), ("_mb", "MB"), ("_s", "s"))
_MOMENTS = ("mean", "median", "sigma", "low", "high")  # of a distribution
_UNITS = {"task_work": "task work, work units", "buffer_tasks": "tasks ahead at a node", "tasks": "tasks"}
_TITLES = {
    "of_bound": "throughput, part of the upper bound",
    "of_root_only": "makespan, part of the root alone",
    "slowdown": "slowdown, times coscheduled",
    "slowdown_dedicated": "slowdown, times dedicated",
}


def _runs(items: Item | Sequence[Item]) -> list[Runs[Any]]:
    contents = gather(items).contents
    others = sorted({kind.noun for kind, of_kind in contents.items() for one in of_kind if not isinstance(one, Runs)})
    runs = [one for of_kind in contents.values() for one in of_kind if isinstance(one, Runs)]
    if others or not runs:
        raise DescriptionError(
            f"a figure over a swept value is drawn of runs, not of a {' or a '.join(others)}",
            "no-runs",
            "`crosswind run EXPERIMENT --out runs.json`; of everything else: `crosswind report FILE --figures DIR`",
        )
    return runs


def _rows(runs: Sequence[Runs[Any]]) -> list[Row]:
    return [{"on": one.on} | row for one in runs for row in one.to_arrow().to_pylist()]


def _swept(runs: Sequence[Runs[Any]]) -> list[str]:
    """Return what makes runs different experiments: swept paths, where they ran, and the platform."""
    return ["on", "platform", *dict.fromkeys(path for one in runs for run in one for path in run.params)]


def _only(rows: list[Row], where: Sequence[str]) -> list[Row]:
    for condition in where:
        name, equals, wanted = condition.partition("=")
        if not equals:
            raise DescriptionError(f"where is {condition!r}, without a value", "where", f"--where {name}=VALUE")
        path = _column(rows, name)
        _refuse_unknown(rows, path)
        kept = [row for row in rows if _is(row.get(path), wanted)]
        if not kept:
            values = list(dict.fromkeys(_written(row.get(path)) for row in rows))
            message = f"where {condition!r} holds for no run; of {path}: {', '.join(values)}"
            raise DescriptionError(message, "where", f"--where {path}={values[0]}")
        rows = kept
    return rows


def _written(value: Any) -> str:
    """Return a value as tables and TOML write it."""
    return plain(value) if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def _is(value: Any, wanted: str) -> bool:
    """Whether a value is the one that was typed; numbers however they are written."""
    if wanted in (str(value), _written(value)):
        return True
    with suppress(ValueError):
        return isinstance(value, (int, float)) and not isinstance(value, bool) and float(wanted) == value
    return False


def _refuse_mixed(rows: Sequence[Row], told: set[str], swept: Sequence[str]) -> None:
    """Refuse points that would be means over different experiments: what varies must be named, or fixed."""
    columns = [name for name in swept if name not in told and name not in FREE]
    for name in columns:
        values = list(dict.fromkeys(str(row.get(name)) for row in rows))
        groups: dict[tuple[str, ...], set[str]] = {}
        for row in rows:
            groups.setdefault(tuple(str(row.get(one)) for one in sorted(told)), set()).add(str(row.get(name)))
        if any(len(different) > 1 for different in groups.values()):
            raise DescriptionError(
                f"{name} varies, too ({', '.join(values[:6])}): a dot would be a mean over different experiments",
                "mixed",
                f"--where {name}={values[0]}, or --series {name} as well",
            )
