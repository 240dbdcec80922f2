"""Receiving and sending at once: a plane through (received, sent, compute rate), against the two lines of each alone.

rate = C - IR'_r TR(A) - IR'_s TR(B); usually IR' < IR, the synergy of both (interference-in-java, section 3.3, K-M5).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crosswind.model.concurrent_blocks import Blocks
from crosswind.model.line import Errors, errors, least_squares, r_squared
from crosswind.statistics.bootstrap import mean_of_cycles

Floats = NDArray[np.float64]

WELL_CONDITIONED = 30.0
"""Condition number of the scaled rates, above which noise of 1 % would be read as a difference of the directions."""


@dataclass(frozen=True)
class PlaneFit:
    """Both directions at once; rates are parts of the idle rate, TR in MB/s.

    Attributes
    ----------
    constant, ir_receive_s_per_mb, ir_send_s_per_mb : float
        The plane.
    interaction, t_interaction : float
        Coefficient of received times sent, (s/MB)^2, when that term is added, and it over its standard error (as if
        points were independent). Positive: less is lost together than the plane says.
    alone_receive_s_per_mb, alone_send_s_per_mb : float
        The rates of each direction alone.
    errors : Errors
        Of the plane, over its points.
    errors_separate : Errors
        Of 1 - IR_r TR - IR_s TR with the rates of each direction alone, over the same points.
    r_squared : float
        Of the plane.
    synergy, synergy_ci95 : float, tuple of float
        Mean over the points with both directions of (measured - what the separate rates say): parts of the idle rate
        gained by doing both at once, each cycle over its own idle blocks; the interval holds the uncertainty of the
        separate rates too.
    contour_degrees : float
        Angle of the lines of equal compute rate, received to the right and sent upwards: -45 where both cost alike,
        steeper where receiving costs more (figure 5b of the paper: about -60).
    points, points_together : int
        Number of points, and those with both directions.
    """

    constant: float
    ir_receive_s_per_mb: float
    ir_send_s_per_mb: float
    interaction: float
    t_interaction: float
    alone_receive_s_per_mb: float
    alone_send_s_per_mb: float
    errors: Errors
    errors_separate: Errors
    r_squared: float
    synergy: float
    synergy_ci95: tuple[float, float]
    contour_degrees: float
    points: int
    points_together: int

    def rate(self, received_mb_per_s: Floats, sent_mb_per_s: Floats) -> Floats:
        """Return the plane's normalised compute rate at these totals, MB/s."""
        return self.constant - self.ir_receive_s_per_mb * received_mb_per_s - self.ir_send_s_per_mb * sent_mb_per_s


def fit_plane(
    blocks: Blocks, reference: float, alone: tuple[float, float], alone_half_width: tuple[float, float]
) -> PlaneFit | None:
    """Fit the plane by least squares.

    Over the blocks of the phase `together`, as in the papers, when their rates span a plane; else over all blocks,
    those of one direction alone included.

    Parameters
    ----------
    blocks : Blocks
        Alone and together.
    reference : float
        Compute rate that is called 1, work units/s.
    alone, alone_half_width : tuple of float
        Interference rates of receiving and of sending alone, s/MB, and half of their 95 % intervals.

    Returns
    -------
    PlaneFit or None
        None unless at least 3 blocks had both directions at once.
    """
    both = blocks.used[:, blocks.receives].any(axis=1) & blocks.used[:, ~blocks.receives].any(axis=1)
    if np.count_nonzero(both) < 3:
        return None
    every = np.column_stack([np.ones(both.size), blocks.received_mb_per_s, blocks.sent_mb_per_s])
    rows = np.flatnonzero(blocks.together)
    if not _span_a_plane(every[rows]):
        rows = np.arange(both.size)
    (ones, received, sent), y = every[rows].T, blocks.work_per_s[rows] / reference
    cycle, both = blocks.cycle[rows], np.asarray(both)[rows]
    (constant, receive, send), _ = least_squares(np.column_stack([ones, received, sent]), y)
    bent, bent_errors = least_squares(np.column_stack([ones, received, sent, received * sent]), y)
    flat = constant + receive * received + send * sent
    separate = 1.0 - alone[0] * received - alone[1] * sent
    # How well the separate rates are known is part of how well the synergy is known.
    synergy, low, high = mean_of_cycles((blocks.over_own_idle(reference)[rows] - separate)[both], cycle[both])
    known = np.hypot(alone_half_width[0] * received[both].mean(), alone_half_width[1] * sent[both].mean())
    low, high = synergy - float(np.hypot(synergy - low, known)), synergy + float(np.hypot(high - synergy, known))
    return PlaneFit(
        constant=float(constant),
        ir_receive_s_per_mb=float(-receive),
        ir_send_s_per_mb=float(-send),
        interaction=float(bent[3]),
        t_interaction=float(bent[3] / bent_errors[3]) if bent_errors[3] > 0 else float("nan"),
        alone_receive_s_per_mb=alone[0],
        alone_send_s_per_mb=alone[1],
        errors=errors(y, flat, 3),
        errors_separate=errors(y, separate),
        r_squared=r_squared(y, flat),
        synergy=synergy,
        synergy_ci95=(low, high),
        contour_degrees=contour_degrees(-receive, -send),
        points=y.size,
        points_together=int(np.count_nonzero(both)),
    )


def _span_a_plane(design: Floats) -> bool:
    """Return whether the rates of these blocks tell the two directions apart."""
    if len(design) < 8 or not np.all(np.abs(design).max(axis=0) > 0):
        return False
    return bool(np.linalg.cond(design / np.linalg.norm(design, axis=0)) < WELL_CONDITIONED)


def contour_degrees(ir_receive_s_per_mb: float, ir_send_s_per_mb: float) -> float:
    """Return the angle of the lines of equal compute rate, degrees, received to the right and sent upwards.

    Examples
    --------
    >>> round(contour_degrees(0.0427, 0.0265), 1)
    -58.2
    """
    return float(-np.degrees(np.arctan2(ir_receive_s_per_mb, ir_send_s_per_mb)))
