"""Which way a step of one kernel and one transfer is fastest: overlapped, serialised, or overlapped within a limit.

The limit is one of the rate, or of the number of blocks or threads that copy.

The model is fluid: while both run, the kernel loses what was measured at the transfer's rate, and the transfer has the
rate that it reaches beside the kernel; when one has ended, the other continues alone, at its full rate.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from crosswind.errors import DescriptionError
from crosswind.gpu.device import base_of, traffic_of
from crosswind.gpu.fit import GpuFit, Loss, PairFit
from crosswind.statistics.interval import student_half

SERIAL: Final = "serialise"
OVERLAP: Final = "overlap"
LIMITED: Final = "overlap at a limited rate"


@dataclass(frozen=True)
class Choice:
    """One way to do the step.

    Attributes
    ----------
    way : str
        `serialise`, `overlap` or `overlap at a limited rate`.
    by : str
        The kind of traffic that does it: the step's, or the same with another number of blocks or threads.
    mb_per_s : float
        Rate of the transfer while the kernel runs; 0 where they are serialised.
    seconds, ci95 : float, tuple of float
        Predicted time of the step, and its 95 % interval.
    """

    way: str
    by: str
    mb_per_s: float
    seconds: float
    ci95: tuple[float, float]


@dataclass(frozen=True)
class StepPlan:
    """What a step takes each way.

    Attributes
    ----------
    kernel, traffic : str
        Names.
    kernel_s, amount_mb : float
        The kernel's time without traffic, s; the transfer's size, all directions together, MB.
    choices : tuple of Choice
        Fastest first.
    """

    kernel: str
    traffic: str
    kernel_s: float
    amount_mb: float
    choices: tuple[Choice, ...]

    @property
    def best(self) -> Choice:
        """The fastest; of ways that overlap and are not distinguishable, the one that needs no limit."""
        first = self.choices[0]
        return self.unlimited if first.way != SERIAL and self.unlimited.ci95[0] <= first.ci95[1] else first

    @property
    def unlimited(self) -> Choice:
        """The step's own traffic, overlapped without a limit."""
        return next(one for one in self.choices if (one.way, one.by) == (OVERLAP, self.traffic))

    @property
    def decided(self) -> bool:
        """Whether overlapping and serialising are apart by more than their intervals."""
        serial = next(one for one in self.choices if one.way == SERIAL)
        other = next(one for one in self.choices if one.way != SERIAL)
        return other.ci95[1] < serial.ci95[0] or serial.ci95[1] < other.ci95[0]


def plan_overlap(fit: GpuFit, kernel: str, traffic: str, kernel_s: float, amount_mb: float) -> StepPlan:
    """Predict a step of a kernel and a transfer each way.

    Parameters
    ----------
    fit : GpuFit
        Of the device on which the step runs.
    kernel, traffic : str
        The measured kernel that is most like the step's, and the kind of transfer.
    kernel_s : float
        Time of the step's kernels without traffic, above 0 s.
    amount_mb : float
        Bytes of the transfer, all directions together, above 0 MB.

    Returns
    -------
    StepPlan

    Raises
    ------
    DescriptionError
        When the pair was not measured, or an amount is not above 0.
    """
    for name, value in (("kernel_s", kernel_s), ("amount_mb", amount_mb)):
        if not (0.0 < value < math.inf):
            raise DescriptionError(f"{name} is {value:g}; it must be above 0", name)
    with contextlib.suppress(DescriptionError):
        traffic = traffic_of(traffic).name
    pair = fit.pair(kernel, traffic)
    if pair is None:
        known = ", ".join(f"{one.traffic} beside {one.kernel}" for one in fit.pairs[:4])
        message = f"{traffic} beside {kernel} was not measured; the file has {known}, ..."
        raise DescriptionError(message, "not-measured", "`crosswind fit FILE` lists its pairs")
    alone = pair.alone_mb_per_s
    serial = kernel_s + amount_mb / alone
    choices = [
        Choice(SERIAL, traffic, 0.0, serial, (serial, serial)),
        _overlapped(pair, pair.unpaced, OVERLAP, kernel_s, amount_mb),
    ]
    choices += [_overlapped(pair, loss, LIMITED, kernel_s, amount_mb) for loss in pair.losses]
    choices += [
        _overlapped(one, one.unpaced, OVERLAP, kernel_s, amount_mb)
        for one in fit.pairs
        if one.kernel == kernel and one.traffic != traffic and base_of(one.traffic) == base_of(traffic)
    ]
    return StepPlan(kernel, traffic, kernel_s, amount_mb, tuple(sorted(choices, key=lambda one: one.seconds)))


def _overlapped(pair: PairFit, at: Loss, way: str, kernel_s: float, amount_mb: float) -> Choice:
    """Predict the step with the transfer at one measured rate, with what is not known of loss and rate."""
    unlimited = way == OVERLAP
    later = pair.alone_mb_per_s if unlimited else at.mb_per_s
    expected = overlapped_s(kernel_s, amount_mb, at.loss, at.mb_per_s, later)
    beside = (1.0 - pair.traffic_ci95[1], 1.0 - pair.traffic_ci95[0]) if unlimited else (1.0, 1.0)
    scale = pair.alone_mb_per_s if unlimited else at.mb_per_s
    below = above = 0.0
    for loss in at.ci95:
        other = overlapped_s(kernel_s, amount_mb, loss, at.mb_per_s, later) - expected
        below, above = max(below, -other), max(above, other)
    slow = fast = 0.0
    for part in beside:
        other = overlapped_s(kernel_s, amount_mb, at.loss, max(part * scale, 1e-9), later) - expected
        fast, slow = max(fast, -other), max(slow, other)
    return Choice(
        way,
        pair.traffic,
        at.mb_per_s,
        expected,
        (expected - math.hypot(below, fast), expected + math.hypot(above, slow)),
    )


def overlapped_s(
    kernel_s: float, amount_mb: float, loss: float, beside_mb_per_s: float, alone_mb_per_s: float
) -> float:
    """Return the time of a step whose kernel and transfer begin together, s.

    Parameters
    ----------
    kernel_s, amount_mb : float
        The kernel's time without traffic, s; the transfer's bytes, MB.
    loss : float
        Part of the kernel's rate that is lost while both run, below 1.
    beside_mb_per_s, alone_mb_per_s : float
        The transfer's rate beside the kernel and after it, MB/s.

    Examples
    --------
    >>> overlapped_s(1.0, 100.0, 0.5, 100.0, 200.0)  # the transfer ends after 1 s, with half of the kernel left
    1.5
    >>> overlapped_s(1.0, 400.0, 0.5, 100.0, 200.0)  # the kernel ends after 2 s, with 200 MB left
    3.0
    """
    transfer_s = amount_mb / beside_mb_per_s
    slowed_s = kernel_s / (1.0 - loss)
    if transfer_s <= slowed_s:
        return transfer_s + kernel_s - transfer_s * (1.0 - loss)
    return slowed_s + (amount_mb - slowed_s * beside_mb_per_s) / alone_mb_per_s


@dataclass(frozen=True)
class RecordedStep:
    """One size of step of a measurement, predicted by a fit that has not seen it, and as it was.

    Attributes
    ----------
    kernel, traffic, amount_mb : str, str, float
        The pair, and the transfer's bytes, all directions together, MB.
    predicted : Choice
        The step overlapped.
    measured_s, half_s : float
        Mean of the step's times, and half of its 95 % interval, s.
    """

    kernel: str
    traffic: str
    amount_mb: float
    predicted: Choice
    measured_s: float
    half_s: float

    @property
    def agrees(self) -> bool:
        """Whether the two intervals have a value in common."""
        low, high = self.predicted.ci95
        return low <= self.measured_s + self.half_s and self.measured_s - self.half_s <= high


def recorded_steps(fit: GpuFit) -> list[RecordedStep]:
    """Return each size of step that was measured twice or more, beside its prediction."""
    columns, found = fit.measurement.columns(), []
    chunks = {one["traffic"]: one["chunk_bytes"] / 1e6 for one in fit.measurement.header["pairs"]}
    for pair in fit.pairs:
        of_pair = (columns["kernel"] == pair.kernel) & (columns["traffic"] == pair.traffic)
        steps = of_pair & (columns["phase"] == "step")
        chunk_mb, directions = chunks[pair.traffic], 2 if pair.traffic == "both" else 1
        for asked_mb in np.unique(columns["amount_mb"][steps]):
            these = steps & (columns["amount_mb"] == asked_mb)
            amount_mb = round(asked_mb / chunk_mb) * chunk_mb * directions
            took = np.maximum(columns["dt_s"][these], columns["moved_s"][these])
            if took.size < 2 or amount_mb <= 0:
                continue
            kernel_s = float(columns["work"][these].mean()) / pair.work_per_s
            predicted = plan_overlap(fit, pair.kernel, pair.traffic, kernel_s, amount_mb).unlimited
            half_s = student_half(float(took.var(ddof=1)), took.size)
            found.append(RecordedStep(pair.kernel, pair.traffic, amount_mb, predicted, float(took.mean()), half_s))
    return found
