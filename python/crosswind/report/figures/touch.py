"""What a reader can do to a figure on the page: click in its legend, and zoom along a numeric or time axis.

Written into the specification after it is drawn, so that every figure has it and no figure has to ask for it. Without
ctrl (or cmd) the wheel and a finger scroll the page, as they do everywhere else; two fingers on a touchpad are ctrl
and the wheel.
"""

from __future__ import annotations

from collections.abc import Iterator

from crosswind.report.figures.look import Spec

CHOSEN, ZOOMED = "chosen", "zoomed"
FAINT = 0.12
"""Opacity of what is not chosen in the legend."""
_HELD = "event.ctrlKey || event.metaKey"
_ZOOM = f"wheel![{_HELD}]"
_MOVE = f"[pointerdown[{_HELD}], window:pointerup] > window:pointermove!"


def touchable(spec: Spec) -> Spec:
    """Return a Vega-Lite specification with a legend that chooses and an x axis that zooms, where it has them.

    Examples
    --------
    >>> colour = {"field": "order", "type": "nominal"}
    >>> encoding = {"x": {"field": "t", "type": "quantitative"}, "color": colour}
    >>> found = touchable({"mark": "point", "encoding": encoding})
    >>> [param["name"] for param in found["params"]]
    ['chosen', 'zoomed']
    """
    units = list(_units(spec))
    by_legend = [unit for unit in units if _legend_field(unit)]
    if by_legend:
        first = _legend_field(by_legend[0])
        alike = [unit for unit in by_legend if _legend_field(unit) == first]
        select = {"type": "point", "fields": [first]}
        holder = next((unit for unit in alike if not _composite(unit)), alike[0])
        _params(holder).append({"name": CHOSEN, "select": select, "bind": "legend"})
        for unit in alike:
            _faint_unless_chosen(unit)
    zoomable = next((unit for unit in units if _zooms(unit) and not _composite(unit)), None)
    if zoomable is not None and all(_zooms(unit) or "x" not in unit.get("encoding", {}) for unit in units):
        select = {"type": "interval", "encodings": ["x"], "zoom": _ZOOM, "translate": _MOVE}
        _params(zoomable).append({"name": ZOOMED, "select": select, "bind": "scales"})
    return spec


def _units(spec: Spec) -> Iterator[Spec]:
    if "layer" in spec:
        for one in spec["layer"]:
            yield from _units(one)
    elif "mark" in spec:
        yield spec


def _composite(unit: Spec) -> bool:
    """Whether Vega-Lite makes several marks of it: those cannot hold a parameter."""
    mark = unit["mark"]
    return (mark["type"] if isinstance(mark, dict) else mark) in ("boxplot", "errorband", "errorbar")


def _params(unit: Spec) -> list[Spec]:
    found: list[Spec] = unit.setdefault("params", [])
    return found


def _legend_field(unit: Spec) -> str | None:
    """Return the field by whose values the legend's entries are named; None where there is no such legend."""
    colour = unit.get("encoding", {}).get("color", {})
    discrete = colour.get("type") in ("nominal", "ordinal")
    field = colour.get("field")
    return str(field) if discrete and field and colour.get("legend", True) is not None else None


def _faint_unless_chosen(unit: Spec) -> None:
    mark, own = unit["mark"], unit["encoding"].get("opacity")
    if own and set(own) != {"value"}:  # it says something already
        return
    opacity = own["value"] if own else mark.get("opacity", 1.0) if isinstance(mark, dict) else 1.0
    unit["encoding"]["opacity"] = {"condition": {"param": CHOSEN, "value": opacity}, "value": FAINT * opacity}


def _zooms(unit: Spec) -> bool:
    x = unit.get("encoding", {}).get("x", {})
    drawn = x.get("type") in ("quantitative", "temporal") and "field" in x
    return drawn and x.get("scale", {}) is not None and not x.get("stack") and "aggregate" not in x and "bin" not in x
