"""How every figure looks: colours that differ visibly on white and on black, and one configuration.

Marks have mid-tones: contrast of at least 3:1 on white and on the dark page. Those that meet in one figure were
searched to stay apart for people who do not see red, green or blue (tests/unit/report/test_look.py holds both).
Text, axes and grid are greys that the page's style sheet repaints for dark screens and for paper.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import altair as alt

from crosswind.terminal.printable import printable, printable_values

BLUE = "#347ff5"
ORANGE = "#c7741f"
GREEN = "#018c67"
PINK = "#de6391"
GREY = "#829197"
OCHRE = "#896840"
VIOLET = "#7064ba"
CRIMSON = "#d50074"
LILAC = "#a884c0"
INK, MUTED, GRID = "#1c2126", "#59626b", "#dfe3e7"
CHANNEL_COLOURS = (BLUE, ORANGE, GREEN, PINK, OCHRE, GREY)

Drawing = alt.Chart | alt.LayerChart

EXPORT_WIDTH = 720
PX_PER_MM = 96.0 / 25.4
EXPORT_FONT = "Liberation Sans, Arial, sans-serif"

Spec: TypeAlias = dict[str, Any]
"""A Vega-Lite specification, or a part of one."""


def configuration(font: str = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif") -> Spec:
    """Return the Vega-Lite configuration that the report's page and its exported figures share."""
    text = {"labelColor": MUTED, "titleColor": INK, "labelFontSize": 11, "titleFontSize": 11.5, "titleFontWeight": 600}
    return {
        "font": font,
        "background": None,
        "view": {"stroke": None},
        "axis": {**text, "gridColor": GRID, "domainColor": "#aab2ba", "tickColor": "#aab2ba", "labelFlush": False},
        # A label at an end of the axis stands within it: beyond it the figure is cut off.
        "axisX": {"grid": False, "tickCount": 8, "titlePadding": 6, "labelOverlap": "greedy", "labelFlush": True},
        "axisY": {
            "domain": False,
            "ticks": False,
            "tickCount": 5,
            "minExtent": 38,
            "titleAngle": 0,
            "titleAlign": "left",
            "titleAnchor": "end",
            "titleBaseline": "bottom",
            "titleX": -38,
            "titleY": -11,
        },
        "legend": {**text, "orient": "top", "title": None, "symbolStrokeWidth": 2, "padding": 0, "offset": 28},
        "text": {"color": INK, "fontSize": 11},
        "point": {"filled": True},
    }


def dressed(chart: Drawing, title: str = "", width: int = EXPORT_WIDTH, font: str = EXPORT_FONT) -> Spec:
    """Return the specification of a chart at a fixed width, with a title and in the report's look, for export.

    Examples
    --------
    >>> chart = alt.Chart(alt.InlineData(values=[{"x": 1.0}])).mark_point().encode(x="x:Q")
    >>> dressed(chart)["width"]
    720
    """
    spec: Spec = printable_values(chart.to_dict(validate=False))
    spec["width"] = width
    spec["padding"] = 14
    note = spec.get("title")
    if title:
        below = {"subtitle": note["text"], "subtitleColor": MUTED} if isinstance(note, dict) else {}
        spec["title"] = {
            **below,
            "text": printable(title),
            "anchor": "start",
            "frame": "group",
            "fontSize": 15,
            "color": INK,
            "offset": 14,
        }
    spec["config"] = {**configuration(font), "background": "#ffffff"}
    return spec


def sized(spec: Spec, width_mm: float, height_mm: float) -> Spec:
    """Return a specification whose drawing, titles and labels included, has this size on paper.

    Examples
    --------
    >>> spec = sized({"width": 720}, 25.4, 50.8)
    >>> spec["width"], spec["height"], spec["autosize"]["type"]
    (96.0, 192.0, 'fit')
    """
    fit = {"type": "fit", "contains": "padding"}
    return {**spec, "width": width_mm * PX_PER_MM, "height": height_mm * PX_PER_MM, "padding": 4, "autosize": fit}


def layered(*layers: alt.Chart, height: float) -> alt.LayerChart:
    """Return layers as one chart, as wide as its container and `height` pixels high."""
    chart = alt.layer(*layers).properties(width="container", height=height)
    if not isinstance(chart, alt.LayerChart):
        raise TypeError("layers became facets")  # only when one of them had a facet
    return chart


def records(columns: Spec) -> alt.InlineData:
    """Return columns as inline data, numbers at six significant digits so that a page stays small."""
    names = list(columns)
    rows = zip(*(columns[name] for name in names), strict=True)
    return alt.InlineData(
        values=[{name: _short(value) for name, value in zip(names, row, strict=True)} for row in rows]
    )


def _short(value: Any) -> Any:
    if isinstance(value, (str, bool, type(None))):
        return value
    number = float(f"{float(value):.6g}")
    return number if math.isfinite(number) else None
