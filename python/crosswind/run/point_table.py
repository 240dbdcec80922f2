"""The points of runs, or the ranks of an order, as a table in a file: CSV with every figure, LaTeX for a paper."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from crosswind.documents import Row
from crosswind.errors import DescriptionError
from crosswind.files.atomic import write_text
from crosswind.files.kinds import TABLE_COMMENT
from crosswind.run.ranking import Ranking
from crosswind.run.results import Runs
from crosswind.statistics.interval import digits_of, span

SUFFIXES = (".csv", ".tex")
_DESCRIBED = (
    "seed",
    "platform",
    "order",
    "ports",
    "compute",
    "tasks",
    "program",
    "ranks",
    "disturbance",
    "hosts",
    "queue",
)
"""Columns of a run that are no result."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""With these a spreadsheet begins a formula, which it runs; an apostrophe before them stops that."""
_OF_FLOW = ("flow.mean_s", "flow.p95_s", "flow.mean_slowdown", "flow.late")
_IN_PAPERS = ("makespan_s", "slowdown", "of_bound", *_OF_FLOW)
"""Results that a LaTeX table has, of those that there are."""
_LATEX = {
    **dict.fromkeys("&%$#_{}", "\\{}"),
    "~": "\\textasciitilde{{}}",
    "^": "\\textasciicircum{{}}",
    "\\": "\\textbackslash{{}}",
}


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return mean, half of its 95 % interval, least, quartiles and largest of values.

    Quartiles interpolate between the two values around them (type 7 of Hyndman and Fan, the default of R and numpy).

    Examples
    --------
    >>> spread([4.0, 1.0, 3.0, 2.0, 5.0])["q25"], spread([2.0])["median"]
    (2.0, 2.0)
    """
    mean, low, _ = span(values)
    q25, _, q75 = quantiles(values, n=4, method="inclusive") if len(values) > 1 else (values[0],) * 3
    ends = {"min": min(values), "q25": q25, "median": median(values), "q75": q75, "max": max(values)}
    return {"mean": mean, "half95": mean - low, **ends}


def point_rows(runs: Runs[Any]) -> list[Row]:
    """Return one row per point: what the sweep set, the number of runs, and the spread of every result.

    Streams have a row per stream and job of each point. Columns are `RESULT.mean`, `.half95` (half of the 95 % interval
    of the mean), `.min`, `.q25`, `.median`, `.q75`, `.max`.
    """
    rows = []
    for alike in runs.by_point():
        several = [run.rows() for run in alike]
        for place, first in enumerate(several[0]):
            same = [rows_of[place] for rows_of in several if place < len(rows_of)]
            swept = {path: value for path, value in alike[0].params.items() if path != "seed"}
            row: Row = {path: _cell(value) for path, value in swept.items()}
            row |= {name: first[name] for name in first if name not in swept and _is_described(name, first[name])}
            row["runs"] = len(same)
            for name in first:
                values = [one[name] for one in same if isinstance(one.get(name), int | float)]
                if name not in ("seed", *swept) and not _is_described(name, first[name]) and values:
                    row |= {f"{name}.{part}": value for part, value in spread(values).items()}
            rows.append(row)
    return rows


def rank_rows(ranking: Ranking) -> list[Row]:
    """Return one row per ranked value, the best first."""
    return [
        {
            ranking.path: _cell(row.value),
            "rank.mean": row.rank,
            "best_at_points": row.best_at,
            "points": ranking.points,
            "seeds": ranking.seeds,
            "behind": row.behind,
            "behind.half95": row.half,
        }
        for row in ranking.rows
    ]


def check_table(path: str | Path) -> None:
    """Refuse a table's file whose suffix is neither .csv nor .tex.

    Raises
    ------
    DescriptionError
        When it is another.
    """
    if Path(path).suffix not in SUFFIXES:
        message = f"{path}: a table is written as .csv or .tex"
        raise DescriptionError(message, "out", f"{Path(path).stem or 'table'}.csv")


def write_points(runs: Runs[Any], path: str | Path) -> None:
    """Write the points of runs as a table: `.csv` with every figure, `.tex` (booktabs) with mean ± half.

    Raises
    ------
    DescriptionError
        When the suffix is another.

    Examples
    --------
    >>> import tempfile
    >>> from crosswind.run.results import Run
    >>> one = {"params": {"x": 1}, "tasks": 5, "platform": "p", "order": "planned", "ports": "multi"}
    >>> one |= {"compute": "simulated", "throughput_tasks_per_s": 1.0}
    >>> made = [Run({**one, "seed": seed, "makespan_s": 10.0 + seed}) for seed in range(3)]
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     file = Path(directory) / "points.csv"
    ...     write_points(Runs("e", "sim", made), file)
    ...     "makespan_s.median" in file.read_text()
    True
    """
    check_table(path)
    rows = point_rows(runs)
    if Path(path).suffix == ".csv":
        write_text(_csv(rows), path)
        return
    shown = [name for name in _IN_PAPERS if any(f"{name}.mean" in row for row in rows)]
    heads = [
        name for name in dict.fromkeys(name for row in rows for name in row) if "." not in name or name in _swept(runs)
    ]
    columns = [name for name in heads if name in _swept(runs) or name in ("name", "what")]
    cells = [
        [*(_latex(str(row.get(name, ""))) for name in columns), *(_mean(row, name) for name in shown)] for row in rows
    ]
    caption = f"{runs.experiment}: {len(runs)} runs, mean and half of its 95 % interval"
    write_text(_tabular([*map(_short, columns), *map(_short, shown)], len(columns), cells, caption), path)


def write_ranks(ranking: Ranking, path: str | Path) -> None:
    """Write ranks and differences as a table: `.csv`, or `.tex` (booktabs).

    Raises
    ------
    DescriptionError
        When the suffix is another.
    """
    check_table(path)
    if Path(path).suffix == ".csv":
        write_text(_csv(rank_rows(ranking)), path)
        return
    cells = [
        [
            _latex(str(_cell(row.value))),
            f"{row.rank:.2f}",
            f"{row.best_at}",
            "--" if place == 0 else _plus_minus(100 * row.behind, None if row.half is None else 100 * row.half),
        ]
        for place, row in enumerate(ranking.rows)
    ]
    heads = [_short(ranking.path), "mean rank", f"best at (of {ranking.points})", "behind the best, \\%"]
    caption = f"{ranking.measure}: {ranking.points} points, {ranking.seeds} common seeds; differences paired by seed"
    caption += ", 95 % for all pairs at once"
    write_text(_tabular(heads, 1, cells, caption), path)


def _is_described(name: str, value: Any) -> bool:
    return name != "seed" and (name in _DESCRIBED or isinstance(value, str))


def _swept(runs: Runs[Any]) -> list[str]:
    return list(dict.fromkeys(path for run in runs for path in run.params if path != "seed"))


def _cell(value: Any) -> Any:
    if isinstance(value, Mapping):
        return value.get("name") or json.dumps(value)
    return value if isinstance(value, str | int | float) else json.dumps(value)


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV in which no spreadsheet finds a formula.

    Examples
    --------
    >>> _csv([{"order": "=1+1", "s": -2.5}, {"order": "a,b", "more": 1}]).splitlines()
    ['order,s,more', "'=1+1,-2.5,", '"a,b",,1']
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines: list[list[Any]] = [columns, *([row.get(name) for name in columns] for row in rows)]
    return "".join(",".join(map(_csv_cell, line)) + "\n" for line in lines)


def _csv_cell(value: Any) -> str:
    if not isinstance(value, str):
        return "" if value is None else str(value)
    safe = f"'{value}" if value[:1] in _FORMULA else value
    quoted = safe.replace('"', '""')
    return f'"{quoted}"' if any(letter in safe for letter in ',"\r\n') else safe


def _tabular(heads: Sequence[str], left: int, cells: Sequence[Sequence[str]], comment: str) -> str:
    r"""Return a table in LaTeX, with the lines of booktabs.

    Examples
    --------
    >>> print(_tabular(["order", "s"], 1, [["a", "1"]], "one"), end="")
    % Crosswind: one
    % \usepackage{booktabs}
    \begin{tabular}{lr}
    \toprule
    order & s \\
    \midrule
    a & 1 \\
    \bottomrule
    \end{tabular}
    """
    sides = "l" * left + "r" * (len(heads) - left)
    lines = [
        f"{TABLE_COMMENT}{' '.join(comment.split())}",
        "% \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{{sides}}}",
        "\\toprule",
    ]
    lines += [" & ".join(heads) + " \\\\", "\\midrule", *(" & ".join(row) + " \\\\" for row in cells)]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


def _mean(row: Mapping[str, Any], name: str) -> str:
    mean, half = row.get(f"{name}.mean"), row.get(f"{name}.half95")
    return "" if mean is None else _plus_minus(mean, half if row["runs"] > 1 else None)


def _plus_minus(value: float, half: float | None) -> str:
    r"""Return a number in LaTeX, to the digits that its interval supports; four without one.

    Examples
    --------
    >>> _plus_minus(12.3456, 0.21), _plus_minus(12.3456, None), _plus_minus(1234567.0, 0.0)
    ('$12.3 \\pm 0.2$', '$12.35$', '$1.235 \\times 10^{6}$')
    """
    if half:
        digits = digits_of(half)
        return f"${value:.{digits}f} \\pm {half:.{digits}f}$"
    text = f"{value:.4g}"
    mantissa, e, exponent = text.partition("e")
    return f"${mantissa} \\times 10^{{{int(exponent)}}}$" if e else f"${text}$"


def _short(name: str) -> str:
    return _latex(name.rsplit(".", 1)[-1])


def _latex(text: str) -> str:
    r"""Return text in which LaTeX finds no command.

    Examples
    --------
    >>> print(_latex("a_b & 50% \\x"))
    a\_b \& 50\% \textbackslash{}x
    """
    return "".join(_LATEX[letter].format(letter) if letter in _LATEX else letter for letter in text)
