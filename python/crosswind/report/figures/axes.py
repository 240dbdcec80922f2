"""Which of the parameters that vary over the points of a sweep is drawn along the x axis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Axes:
    """What varies.

    Attributes
    ----------
    x : str
        The dotted path along the axis: of those with numbers only, else of all, the one with most values.
    values : list
        Its values, in the order in which they come.
    others : list of str
        The other paths that vary: they make series, or figures.
    """

    x: str
    values: list[Any]
    others: list[str]


def axes(points: Iterable[Mapping[str, Any]]) -> Axes | None:
    """Return the axes of points, each dotted path -> value; None where nothing varies.

    Examples
    --------
    >>> axes([{"a": 1, "b": "x"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}])
    Axes(x='a', values=[1, 2], others=['b'])
    """
    values: dict[str, list[Any]] = {}
    for params in points:
        for path, value in params.items():
            known = values.setdefault(path, [])
            if value not in known:
                known.append(value)
    varied = {path: known for path, known in values.items() if len(known) > 1}
    if not varied:
        return None
    x = max(varied, key=lambda path: (all(isinstance(v, (int, float)) for v in varied[path]), len(varied[path])))
    return Axes(x, varied[x], [path for path in varied if path != x])
