"""Claims about both directions at once: synergy (K-5), and figure 5b."""

from __future__ import annotations

import math

from crosswind.lab.papers.grading import Claim, barred, between, check, check_readings, unsettled, word
from crosswind.lab.papers.interference_in_java import printed

ALIKE_DEGREES = -45.0
"""Of contours where both directions cost the same."""
POINTS = (
    "the rates behind them, experiment by experiment ([10]); here `crosswind measure --direction both` fits plane and"
    " separate rates to the same points (`synergy` of the fit, with its interval)"
)
METRIC = (
    "whether an error is a part of the full rate or of the measured one (E1-4): the papers print both for one data set"
)


def claims() -> list[Claim]:
    """Grade K-5."""
    return [_synergy()]


def planned(sent: float, received: float) -> float:
    """Return the compute rate on the printed plane, as a part of the full rate.

    Examples
    --------
    >>> round(planned(3.0, 9.5), 3)
    0.469
    """
    plane = printed.PLANE
    return plane["constant"] - plane["receive"] * received - plane["send"] * sent


def _synergy() -> Claim:
    ratios = {way: printed.PLANE[way] / printed.ALONE[way] for way in printed.ALONE}
    angle = -math.degrees(math.atan2(printed.PLANE["receive"], printed.PLANE["send"]))
    off = {corner: abs(planned(*corner) - rate) for corner, rate in printed.CORNERS.items()}
    relative = {corner: off[corner] / rate for corner, rate in printed.CORNERS.items()}
    errors = dict(zip(printed.EXAMPLE_MOST.items(), (max(off.values()), max(relative.values())), strict=True))
    (low_from, low_to), (high_from, high_to) = _pairs()
    checks = [
        barred(
            check(
                "the example: both rates of the plane are below those of one direction alone",
                max(ratios.values()) < 1,
                f"receiving {ratios['receive']:.2f} of it, sending {ratios['send']:.2f} (printed)",
                word('"both higher"'),
            ),
            "own figures",
            f"the four rates are the claim's own figures; what settles it: {POINTS}",
        ),
        barred(
            check(
                "all experiments: separate rates err more than planes, in the mean and at most",
                printed.SEPARATE_MEAN > printed.PLANE_MEAN and printed.SEPARATE_MOST > printed.PLANE_MOST,
                f"{printed.SEPARATE_MEAN:.1%} and {printed.PLANE_MEAN:.1%}, at most {printed.SEPARATE_MOST:.1%} and"
                f" {printed.PLANE_MOST:.1%} (printed)",
                word('"increases the mean error"'),
            ),
            "cannot fail",
            "a plane that is fitted to points is nearer to them than one that is not, whatever the sign of the error;"
            f" what settles it: {POINTS}",
        ),
        check(
            f"figure 5b: contours are closer to {printed.CONTOUR_DEGREES:g} than to {ALIKE_DEGREES:g} degrees",
            abs(angle - printed.CONTOUR_DEGREES) < abs(angle - ALIKE_DEGREES),
            f"{angle:.1f} from the plane",
            word('"closer to a -60% angle"'),
        ),
        check_readings(
            "figure 5b: its four printed points lie within the largest error of the plane",
            [
                (f"errors as {metric}", worst <= most, f"{worst:.1%} of {most:.1%}")
                for (metric, most), worst in errors.items()
            ],
            between(0, max(printed.EXAMPLE_MOST.values()), "at most 5.2%; 12.4% in the other paper"),
            METRIC,
        ),
        barred(
            check(
                "figure 5b: received MB/s cost less while sending at 10.5 MB/s than at 3",
                high_from - high_to < low_from - low_to,
                f"{low_from - low_to:.3f} and {high_from - high_to:.3f} s/MB (printed)",
                word('"steeper"'),
            ),
            "own figures",
            f"what is printed is the two groups of points from which the text observes it; what settles it: {POINTS}",
        ),
        unsettled(
            "two-way with one near node: each direction is faster than where both send, or both receive (3.8)",
            "`crosswind measure --direction both` and `--direction each` on two hosts whose link is full",
        ),
    ]
    return Claim("K-5", "3.3, 3.8", "Sending and receiving at once cost less than both apart", checks)


def _pairs() -> tuple[tuple[float, float], tuple[float, float]]:
    """Return figure 5b's compute rates over MB/s received, at 3 and at 10.5 MB/s sent, as slopes' ends."""
    found = []
    for sent in (3.0, 10.5):
        (first, high), (last, low) = sorted((got, rate) for (out, got), rate in printed.CORNERS.items() if out == sent)
        found.append((high / (last - first), low / (last - first)))
    return found[0], found[1]
