"""Legends that choose and axes that zoom, written into figures."""

import altair as alt
import pytest

from crosswind.report.figures.look import layered, records
from crosswind.report.figures.touch import CHOSEN, FAINT, ZOOMED, touchable

DATA = records({"t": [0.0, 1.0], "y": [1.0, 2.0], "of": ["a", "b"]})


def chart(x="t:Q", colour="of:N", mark="point", **of_mark):
    base = alt.Chart(DATA).encode(x=x, y="y:Q", **({"color": colour} if colour else {}))
    return getattr(base, f"mark_{mark}")(**of_mark)


def params(spec):
    return [param["name"] for unit in spec.get("layer", [spec]) for param in unit.get("params", [])]


def test_every_layer_with_the_legends_field_fades_and_keeps_its_own_opacity():
    spec = touchable(layered(chart(opacity=0.5), chart(mark="line"), chart(colour=None), height=100).to_dict())
    assert params(spec) == [CHOSEN, ZOOMED]
    opacities = [unit["encoding"].get("opacity") for unit in spec["layer"]]
    assert opacities[0]["condition"] == {"param": CHOSEN, "value": 0.5}
    assert opacities[1]["value"] == FAINT
    assert opacities[2] is None


@pytest.mark.parametrize("x", ["t:Q", "of:N"])
def test_a_parameter_is_held_by_a_mark_that_vega_lite_does_not_take_apart(x):
    """On an error bar it is dropped, and the figure is not drawn: the signal has no source."""
    spec = touchable(layered(chart(x, mark="errorbar"), chart(x), height=100).to_dict())
    assert "params" not in spec["layer"][0]
    assert CHOSEN in params(spec)


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        (chart(colour=None), [ZOOMED]),
        (chart(x="of:N"), [CHOSEN]),
        (chart(x="of:N", colour=None), []),
        (chart(x=alt.X("t:Q", scale=None)), [CHOSEN]),
        (chart(colour=alt.Color("of:N", legend=None)), [ZOOMED]),
        (chart(colour="y:Q"), [ZOOMED]),
    ],
)
def test_a_figure_gets_what_it_has_an_axis_or_a_legend_for(drawn, expected):
    assert params(touchable(drawn.to_dict())) == expected
