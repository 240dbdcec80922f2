"""The law through three measured points: alone, receiving at most, and both at most.

interference-aware-scheduling, section 3.1, with its misprinted formula corrected (E0-1); the formula itself stands
once, in `crates/model/src/law.rs`. This file finds the three points in a measurement and says how well the law holds
elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crosswind import _core
from crosswind.model.concurrent_blocks import Blocks
from crosswind.model.hull import Hull
from crosswind.model.interval import TOP_ABOVE
from crosswind.model.line import Errors, errors

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ThreePointFit:
    """rate = 1 - IR_r TR_in - IR_s TR_out, exact at three measured points.

    Attributes
    ----------
    ir_receive_s_per_mb, ir_send_s_per_mb : float
        Rates.
    corners : tuple of (received MB/s, sent MB/s, normalised rate)
        The three points: alone (0, 0), receiving at most (MR), both at most (RR, SR).
    hull : Hull
        Of the corners: inside it the law interpolates.
    errors, errors_inside : Errors
        Over all points, and over those inside the hull.
    plane_errors_inside : Errors
        Of the plane by least squares, over the points inside the hull (K-6).
    inside, points : int
        How many points lie inside, of how many.
    """

    ir_receive_s_per_mb: float
    ir_send_s_per_mb: float
    corners: tuple[tuple[float, float, float], ...]
    hull: Hull
    errors: Errors
    errors_inside: Errors
    plane_errors_inside: Errors
    inside: int
    points: int


def fit_three_points(blocks: Blocks, reference: float, plane: Floats) -> ThreePointFit | None:
    """Find the three points and take the law through them.

    Parameters
    ----------
    blocks : Blocks
        Alone and together.
    reference : float
        Mean compute rate without traffic, work units/s (C^n of the paper; E0-3: not the maximum).
    plane : numpy.ndarray, shape (n,)
        What the plane by least squares says at each block, to be compared.

    Returns
    -------
    ThreePointFit or None
        None when there is no block that only receives, or none with both directions near their most.
    """
    received, sent, y = blocks.received_mb_per_s, blocks.sent_mb_per_s, blocks.work_per_s / reference
    receiving, sending = blocks.used[:, blocks.receives].any(axis=1), blocks.used[:, ~blocks.receives].any(axis=1)
    alone_receiving, both = receiving & ~sending, receiving & sending
    if not alone_receiving.any() or not both.any():
        return None
    most = alone_receiving & (received >= TOP_ABOVE * np.quantile(received[alone_receiving], 0.9))
    # Both at most: the sender's highest rates, and among them those that also receive most.
    high = both & (sent >= TOP_ABOVE * np.quantile(sent[both], 0.9))
    high &= received >= TOP_ABOVE * np.quantile(received[high], 0.9)
    corners = [(0.0, 0.0, 1.0)]
    corners += [(float(received[at].mean()), float(sent[at].mean()), float(y[at].mean())) for at in (most, high)]
    (_, _, _), (mr, _, c_r), (rr, sr, c_sr) = corners
    ir_receive, (ir_send,) = _core.three_point(1.0, (mr, c_r), [(sr, rr, c_sr)])
    predicted = 1.0 - ir_receive * received - ir_send * sent
    hull = Hull([c[0] for c in corners], [c[1] for c in corners])
    inside = hull.contains(received, sent)
    return ThreePointFit(
        ir_receive_s_per_mb=ir_receive,
        ir_send_s_per_mb=ir_send,
        corners=tuple(corners),
        hull=hull,
        errors=errors(y, predicted),
        errors_inside=errors(y[inside], predicted[inside]),
        plane_errors_inside=errors(y[inside], plane[inside]),
        inside=int(np.count_nonzero(inside)),
        points=y.size,
    )
