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
            metavar="[INDEX]",
            min=0,
            help="Measure this GPU instead, as nvidia-smi counts them; the first one where INDEX is left out. "
            "--task is then MODULE:FUNCTION.",
            rich_help_panel=_GPU,
        ),
    ] = None
    gpu_kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="tensor, fma, triad, mixed16, mixed64, chase or step; again for more. [default: all, or none beside "
            "--task]",
            rich_help_panel=_GPU,
        ),
    ] = None
    gpu_traffic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="h2d, d2h, both, d2d, h2d-sm, d2h-sm, d2d-sm, h2d-pageable, d2h-pageable or loader; d2h-sm:4 has 4 "
            "blocks, loader:2 has 2 threads; again for more. [default: all]",
            rich_help_panel=_GPU,
        ),
    ] = None


def measure_on_gpu(
    options: GpuOptions,
    max_seconds: float | None,
    seed: int,
    out: Path,
    *,
    task: str | None = None,
    force: bool,
    json: bool,
) -> int:
    """Measure a GPU, write the file and print what follows; return the exit code."""
    from crosswind.gpu import TRAFFICS, asked_for, measure_gpu
    from crosswind.gpu.device import CudaDevice
    from crosswind.gpu.fit import fit_gpu

    traffics = options.gpu_traffic or tuple(TRAFFICS)
    of = {"asked": asked_for(options.gpu_kernel, traffics, task)}
    writable(out, "gpu-measurement", force=force, of=of)
    if out.exists() and not force:
        device = CudaDevice(options.gpu or 0).about()["uuid"]
        writable(out, "gpu-measurement", of={"device.uuid": device})
    with progress_bar() as advance:
        measurement = measure_gpu(
            options.gpu or 0,
            kernels=options.gpu_kernel,
            traffics=traffics,
            max_seconds=max_seconds or USUAL_S,
            seed=seed,
            progress=advance,
            task=task,
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
    from crosswind.gpu.words import gb_per_s, per_cent, sentences, with_half

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
            gb_per_s(one.unpaced.mb_per_s),
            per_cent(one.unpaced.loss, one.unpaced.ci95),
            per_cent(one.traffic_loss, one.traffic_ci95),
            with_half(one.ir_s_per_gb, one.ir_ci95),
            "bent" if one.bent else "straight" if math.isfinite(one.ir_s_per_gb) else "-",
        ]
        for one in fit.pairs
    ]
    device = fit.measurement.header["device"]["name"]
    print_table(columns, rows, title=f"{device}: traffic without a limit beside each kernel; ± 95 % CI")
