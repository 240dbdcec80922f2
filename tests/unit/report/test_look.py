"""Colours of figures: seen on white and on the dark page, and told apart by people who see fewer colours."""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from crosswind.report.figures import look
from crosswind.report.figures.lanes import KINDS as ACTIVITIES
from crosswind.report.figures.orders import ORDERS
from crosswind.report.figures.ranks import COLOURS, DOING, NO_RANK, OTHER
from crosswind.report.figures.scatter import KINDS
from crosswind.report.figures.timeline import COUNTERS
from crosswind.report.figures.tree import LIMITS

# Colours that meet in one figure.
FIGURES = {
    "limits": [colour for _, colour in LIMITS.values()],
    "kinds of blocks": [*KINDS.values(), look.ORANGE],
    "counters": [*(colour for _, colour in COUNTERS.values()), look.CRIMSON],
    "orders": [*ORDERS.values()],
    "activities": [colour for _, colour in ACTIVITIES.values()],
    "ranks": [*DOING.values(), *COLOURS, OTHER[1], NO_RANK[1]],
    "channels": [look.GREY, *look.CHANNEL_COLOURS[:4], look.VIOLET],
}
# Machado, Oliveira, Fernandes: "A Physiologically-based Model for Simulation of Color Vision Deficiency" (2009),
# severity 1.0, on linear RGB.
VISIONS = {
    "all colours": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
JUST_SEEN = 2.3  # CIE 1976 colour difference that is just noticeable; a legend needs several times as much


def linear(colour: str) -> np.ndarray:
    values = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    xyz = TO_XYZ @ np.clip(rgb, 0, 1) / [0.95047, 1.0, 1.08883]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("figure", FIGURES)
def test_colours_of_one_figure_can_be_told_apart(figure, vision):
    seen = {colour: lab(np.array(VISIONS[vision]) @ linear(colour)) for colour in FIGURES[figure]}
    assert len(seen) == len(FIGURES[figure])
    for one, other in combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 4 * JUST_SEEN, (one, other)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_stand_out_from_the_page(scheme):
    style = (Path(look.__file__).parents[1] / "page" / "templates" / "style.css").read_text()
    page = re.findall(r"--page: (#[0-9a-f]{6})", style)[0 if scheme == "light" else 1]
    for colour in {colour for colours in FIGURES.values() for colour in colours}:
        light, dark = sorted((float(TO_XYZ[1] @ linear(c)) for c in (colour, page)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3.0, colour
