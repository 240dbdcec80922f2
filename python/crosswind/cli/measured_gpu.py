"""What `crosswind measure --gpu` asks, does and prints."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli.console import print_json, print_table, print_text, tell, tell_warnings
from crosswind.cli.outputs import writable
from crosswind.errors import DescriptionError
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.gpu.fit import GpuFit

USUAL_S = 240.0
USUAL_FILE = Path("gpu.parquet")
UNTRUSTED, INTERRUPTED = 3, 130
_GPU = "With --gpu"


@dataclass(frozen=True)
class GpuOptions:
    """Which GPU is measured, and what on it."""

    gpu: Annotated[
        int | None,
        typer.Option(
            metavar="INDEX",
            min=0,
            help="Measure this GPU instead; the first one is 0, as nvidia-smi counts.",
            rich_help_panel=_GPU,
        ),
    ] = None
    gpu_kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="tensor, fma, triad, mixed16, mixed64 or chase; again for more. [default: all]",
            rich_help_panel=_GPU,
        ),
    ] = None
    gpu_traffic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="h2d, d2h, both, d2d, h2d-sm, d2h-sm, d2d-sm, h2d-pageable or d2h-pageable; again. [default: all]",
            rich_help_panel=_GPU,
        ),
    ] = None


def measure_on_gpu(
    options: GpuOptions, max_seconds: float | None, seed: int, out: Path, *, force: bool, json: bool
) -> int:
    """Measure a GPU, write the file and print what follows; return the exit code."""
    from crosswind.gpu import KERNELS, TRAFFICS, measure_gpu
    from crosswind.gpu.fit import fit_gpu

    writable(out, "gpu-measurement", force=force)
    with progress_bar() as advance:
        measurement = measure_gpu(
            options.gpu or 0,
            kernels=options.gpu_kernel or KERNELS,
            traffics=options.gpu_traffic or tuple(TRAFFICS),
            max_seconds=max_seconds or USUAL_S,
            seed=seed,
            progress=advance,
        )
    interrupted = measurement.header["ended"] == "interrupted"
    if not measurement.blocks.num_rows:
        tell(f"interrupted before anything was measured; {out} was not written")
        return INTERRUPTED
    measurement.save(out)
    tell(f"wrote {out} ({measurement.header['ended']}, {measurement.header['elapsed_s']:.1f} s)")
    try:
        fit = fit_gpu(measurement)
    except DescriptionError as error:
        tell_warnings([{"message": str(error), "hint": error.hint or ""}])
        return INTERRUPTED if interrupted else UNTRUSTED
    print_gpu(fit, json=json)
    return INTERRUPTED if interrupted else 0 if fit.trustworthy else UNTRUSTED


def print_gpu(fit: GpuFit, *, json: bool) -> None:
    """Print a sentence with what costs most, and one row per pair."""
    tell_warnings(fit.warnings)
    if json:
        print_json(fit.to_dict())
        return
    for sentence in sentences(fit):
        print_text(sentence)
    columns = [("kernel", "left"), ("traffic", "left"), ("at GB/s", "right"), ("kernel loses", "right")]
    columns += [("traffic loses", "right"), ("IR s/GB", "right"), ("line", "left")]
    rows = [
        [
            one.kernel,
            one.traffic,
            f"{one.unpaced.mb_per_s / 1e3:.3g}",
            _per_cent(one.unpaced.loss, one.unpaced.ci95),
            _per_cent(one.traffic_loss, one.traffic_ci95),
            _value(one.ir_s_per_gb, one.ir_ci95),
            "bent" if one.bent else "straight" if math.isfinite(one.ir_s_per_gb) else "-",
        ]
        for one in fit.pairs
    ]
    device = fit.measurement.header["device"]["name"]
    print_table(columns, rows, title=f"{device}: traffic without a limit beside each kernel; ± 95 % CI")


def sentences(fit: GpuFit) -> list[str]:
    """Return the answer in words: what costs a kernel most, and what costs nothing that can be told."""
    known = [one for one in fit.pairs if one.costs]
    found = []
    for one in sorted(known, key=lambda pair: -pair.unpaced.loss)[:1]:
        found.append(
            f"{one.traffic} costs most: at {one.unpaced.mb_per_s / 1e3:.3g} GB/s the {one.kernel} kernel loses "
            f"{_per_cent(one.unpaced.loss, one.unpaced.ci95)} of its rate."
        )
    slowed = [one for one in fit.pairs if one.traffic_ci95[0] > 0.0]
    for one in sorted(slowed, key=lambda pair: -pair.traffic_loss)[:1]:
        found.append(
            f"The other way, {one.kernel} slows {one.traffic} most: by {_per_cent(one.traffic_loss, one.traffic_ci95)} "
            f"of its {one.alone_mb_per_s / 1e3:.3g} GB/s."
        )
    free = sum(one.costs is None for one in fit.pairs)
    if free:
        found.append(f"In {free} of {len(fit.pairs)} pairs the kernel's loss is not distinguishable from 0.")
    return found


def _per_cent(value: float, ci95: tuple[float, float]) -> str:
    half = max(value - ci95[0], ci95[1] - value)
    digits = 1 if half >= 0.001 else 2
    return f"{100 * value:.{digits}f} ± {100 * half:.{digits}f} %"


def _value(value: float, ci95: tuple[float, float]) -> str:
    if not math.isfinite(value):
        return "-"
    half = max(value - ci95[0], ci95[1] - value)
    digits = max(0, 1 - math.floor(math.log10(half))) if 0 < half < 1 else 2
    return f"{value:.{digits}f} ± {half:.{digits}f}"
