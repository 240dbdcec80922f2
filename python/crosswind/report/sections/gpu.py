"""The section about a GPU: what each kind of traffic costs each kernel, and what the kernel costs the traffic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crosswind.errors import DescriptionError, Notice
from crosswind.gpu.fit import GpuFit, Loss, PairFit, fit_gpu
from crosswind.gpu.measurement import GpuMeasurement
from crosswind.gpu.words import gb_per_s, per_cent, sentences
from crosswind.report.figures.curves import COLOURS, curves
from crosswind.report.figures.figure import Figure, identifier
from crosswind.report.sections.section import Answer, Kind, Term, each, of_type
from crosswind.report.words import number
from crosswind.tables import Column, Table

TERMS = (
    Term(
        "gpu-kernel-loss",
        "kernel loses",
        "The part of the kernel's own rate that is lost while the traffic moves as fast as it can. Half of the 95 % "
        "interval stands behind ±; it is a bootstrap over whole cycles.",
    ),
    Term(
        "gpu-traffic-loss",
        "traffic loses",
        "The part of the traffic's own rate that is lost beside the kernel.",
    ),
    Term(
        "gpu-ir",
        "interference rate (IR) of a GPU",
        "The part of the kernel's rate that is lost per GB/s of traffic: minus the slope of the line through the paced "
        "rates. Where the line is bent, use the losses at each rate instead.",
    ),
)


@dataclass(frozen=True)
class GpuSection:
    """One measured GPU."""

    id: str
    title: str
    where: str
    large: list[Answer]
    headline: str
    findings: list[str]
    losses: list[Figure]
    slowed: list[Figure]
    table: Table
    additive: Table | None
    warnings: list[Notice]

    @property
    def figures(self) -> list[Figure]:
        """Every figure of the section."""
        return [*self.losses, *self.slowed]

    @property
    def terms(self) -> Sequence[Term]:
        """The terms that it links to."""
        return TERMS


def gpu_section(fit: GpuFit, place: int) -> GpuSection:
    """Prepare the section of a GPU at `place` (from 1)."""
    header, prefix = fit.measurement.header, f"gpu-{place}"
    device, groups = header["device"], _groups(fit)
    kernels = list(dict.fromkeys(one.kernel for one in fit.pairs))
    told, answers = sentences(fit), _answers(fit)
    return GpuSection(
        id=prefix,
        title=f"What do kernels and copies cost each other on {device['name']}?",
        where=(
            f"{len(fit.pairs)} pair{'' if len(fit.pairs) == 1 else 's'} of kernel and traffic, "
            f"{min(one.cycles for one in fit.pairs)} cycles or more of each in {header['elapsed_s']:.0f} s; "
            f"{header['ended']}"
        ),
        large=answers,
        headline=told[0] if told else "No kernel and no traffic loses anything that is distinguishable from 0.",
        findings=told[len(answers) :],
        losses=[
            _losses(kernel, name, of_kernel, f"{prefix}-{place_of}")
            for place_of, kernel in enumerate(kernels, 1)
            for name, pairs in groups
            if (of_kernel := [one for one in pairs if one.kernel == kernel])
        ],
        slowed=[_slowed(name, pairs, prefix) for name, pairs in groups],
        table=fit.tables()[0],
        additive=_additive(fit),
        warnings=fit.warnings,
    )


def _answers(fit: GpuFit) -> list[Answer]:
    """Return in large type the kernel that loses most and the traffic that loses most, as `sentences` names them."""
    found = []
    costly = [one for one in fit.pairs if one.costs]
    if costly:
        one = max(costly, key=lambda pair: pair.unpaced.loss)
        rate = f"{gb_per_s(one.unpaced.mb_per_s)} GB/s"
        text = f"of its rate is what the {one.kernel} kernel loses beside {one.traffic} at {rate}, the costliest pair."
        value, half = _value_and_half(one.unpaced.loss, one.unpaced.ci95)
        found.append(Answer(value, text, half, "receive"))
    slowed = [one for one in fit.pairs if one.traffic_ci95[0] > 0.0]
    if slowed:
        one = max(slowed, key=lambda pair: pair.traffic_loss)
        text = f"of its {gb_per_s(one.alone_mb_per_s)} GB/s is what {one.traffic} loses beside {one.kernel}."
        value, half = _value_and_half(one.traffic_loss, one.traffic_ci95)
        found.append(Answer(value, text, half, "send"))
    return found or [Answer("Nothing", "is lost that is distinguishable from 0, by no kernel and no traffic.")]


def _value_and_half(value: float, ci95: tuple[float, float]) -> tuple[str, str]:
    """Return a share in per cent, and half of its interval."""
    shown, _, half = per_cent(value, ci95).removesuffix(" %").partition(" ± ")
    return f"{shown} %", half


def _groups(fit: GpuFit) -> list[tuple[str, list[PairFit]]]:
    """Return the pairs by what their traffic shares an axis with, no more kinds in each than there are colours."""
    path = {one["traffic"]: one.get("path", "") for one in fit.measurement.header["pairs"]}
    found = []
    for name, inside in (("between host and device", False), ("within the device", True)):
        kinds = [kind for kind in path if (path[kind] == "device-to-device") == inside]
        for first in range(0, len(kinds), len(COLOURS)):
            part = kinds[first : first + len(COLOURS)]
            pairs = [one for one in fit.pairs if one.traffic in part]
            more = f", part {first // len(COLOURS) + 1}" if len(kinds) > len(COLOURS) else ""
            if pairs:
                found.append((name + more, pairs))
    return found


def _losses(kernel: str, name: str, pairs: list[PairFit], prefix: str) -> Figure:
    """Return a kernel's loss against the rate of each kind of traffic of a group."""
    nothing = Loss(0.0, 0.0, (0.0, 0.0))
    rows = [
        {
            "x": loss.mb_per_s / 1e3,
            "series": pair.traffic,
            "mean": 100 * loss.loss,
            "low": 100 * loss.ci95[0],
            "high": 100 * loss.ci95[1],
        }
        for pair in pairs
        for loss in (nothing, *pair.losses, pair.unpaced)
    ]
    title = f"{kernel} beside copies {name}"
    most = max(pairs, key=lambda pair: pair.unpaced.loss)
    alt = (
        f"{title}: the loss at each rate; {most.traffic} costs most, {per_cent(most.unpaced.loss, most.unpaced.ci95)}."
    )
    return Figure(identifier(prefix, kernel, name), title, alt, curves(rows, "traffic, GB/s", "kernel loses, %"))


def _slowed(name: str, pairs: list[PairFit], prefix: str) -> Figure:
    """Return what each kernel costs each kind of traffic of a group."""
    rows = [
        {
            "x": pair.kernel,
            "series": pair.traffic,
            "mean": 100 * pair.traffic_loss,
            "low": 100 * pair.traffic_ci95[0],
            "high": 100 * pair.traffic_ci95[1],
        }
        for pair in pairs
        if math.isfinite(pair.traffic_loss)
    ]
    title = f"What each kernel costs copies {name}"
    alt = f"{title}: the part of their own rate that {len({pair.traffic for pair in pairs})} kinds of traffic lose."
    return Figure(identifier(prefix, "traffic", name), title, alt, curves(rows, "kernel", "traffic loses, %"))


def _additive(fit: GpuFit) -> Table | None:
    if not fit.additive:
        return None
    columns = [
        Column("kernel", numeric=False),
        Column("both at", "GB/s"),
        Column("kernel loses", term="gpu-kernel-loss"),
        Column("h2d and d2h alone, added"),
    ]
    rows = [
        [one.kernel, number(one.mb_per_s / 1e3), per_cent(one.measured, one.ci95), f"{100 * one.added:.2f} %"]
        for one in fit.additive
    ]
    return Table("Both directions at once, against the sum of each", columns, rows)


def _load(path: Path) -> GpuFit:
    try:
        return fit_gpu(path)
    except DescriptionError as error:
        if str(path) in str(error):
            raise
        raise DescriptionError(f"{path}: {error}", error.code, error.hint) from error


GPUS = Kind(
    "measurement of a GPU",
    "measurements of GPUs",
    "gpu.html.j2",
    of_type(GpuMeasurement, GpuFit),
    each(gpu_section),
    {"gpu-measurement": _load},
    made=lambda item: fit_gpu(item) if isinstance(item, GpuMeasurement) else item,
)
