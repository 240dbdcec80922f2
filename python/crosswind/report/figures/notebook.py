"""A result's figures in a notebook: `.plot()`."""

from __future__ import annotations

from typing import Any

from crosswind.errors import DescriptionError
from crosswind.report.figures.look import Drawing
from crosswind.report.page.inputs import gather


def plot(result: Any, which: str | None = None) -> Drawing:
    """Return one of the figures that a report draws of a result.

    Parameters
    ----------
    result : Measurement, Fit, Plan, Platform, Sweep, Runs, Trace, Blame, Overlap or another that a report takes
        What to draw; each has it as `.plot()`.
    which : str, optional
        The figure's identifier or the end of it, such as `residuals`; default: the first.

    Returns
    -------
    altair.Chart or altair.LayerChart
        A notebook shows it; `.save("figure.svg")` writes it.

    Raises
    ------
    DescriptionError
        When a report does not take it, when nothing of it is drawn, or `which` names no figure; the hint has the names.

    Examples
    --------
    >>> from crosswind.platform import Platform
    >>> root = {"name": "r", "compute_per_s": 2.0}
    >>> leaf = {"name": "a", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0}
    >>> pair = Platform.from_dict({"schema_version": 1, "name": "pair", "node": [root, leaf]})
    >>> from crosswind.plan import plan
    >>> type(plot(plan(pair, task_size_mb=1.0, task_work=1.0), "nodes")).__name__
    'LayerChart'
    """
    contents = gather([result]).contents
    sections = [one for kind, items in contents.items() for one in kind.sections(items, contents)]
    figures = [figure for section in sections for figure in section.figures]
    if not figures:
        raise DescriptionError(
            f"a report draws no figure of a {type(result).__name__}", "no-figure", "report() has tables"
        )
    chosen = (
        figures[:1] if which is None else [one for one in figures if one.id == which or one.id.endswith(f"-{which}")]
    )
    if not chosen:
        hint = f"there are {', '.join(figure.id for figure in figures)}"
        raise DescriptionError(f"no figure {which!r}", "no-figure", hint)
    return chosen[0].chart.properties(width=600)
