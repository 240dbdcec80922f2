"""What `crosswind measure --gpu` asks, does and prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli.answer import Answer, section, show
from crosswind.cli.console import tell
from crosswind.cli.outputs import writable, written
from crosswind.errors import DescriptionError, warning
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.gpu.fit import GpuFit

USUAL_S = 240.0
USUAL_FILE = Path("gpu.parquet")
UNTRUSTED, INTERRUPTED = 3, 130
MOST_PAIRS, NARROW = 8, 5
"""Pairs and columns on a terminal."""
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
            help="tensor, fma, triad, mixed16, mixed64, chase or step. Repeat for more. [default: all, or none beside "
            "--task]",
            rich_help_panel=_GPU,
        ),
    ] = None
    gpu_traffic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="h2d, d2h, both, d2d, h2d-sm, d2h-sm, d2d-sm, h2d-pageable, d2h-pageable or loader; d2h-sm:4 has 4 "
            "blocks, loader:2 has 2 threads. Repeat for more. [default: all]",
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
    wrote = written(out, f"{measurement.header['elapsed_s']:.0f} s")
    try:
        fit = fit_gpu(measurement)
    except DescriptionError as error:
        nothing = Answer(["Too little was measured for a fit."])
        show(None if json else nothing, warnings=[warning(error.code, str(error), error.hint or "")], wrote=wrote)
        return INTERRUPTED if interrupted else UNTRUSTED
    show_gpu(fit, json=json, wrote=wrote)
    return INTERRUPTED if interrupted else 0 if fit.trustworthy else UNTRUSTED


def show_gpu(fit: GpuFit, *, json: bool, wrote: Sequence[str] = ()) -> None:
    """Print what costs most, and one row per pair."""
    answer = None if json else _answer(fit)
    show(answer, warnings=fit.warnings, wrote=wrote, document=fit.to_dict() if json else None)


def _answer(fit: GpuFit) -> Answer:
    from crosswind.gpu.words import sentences

    [pairs] = fit.tables()
    costly = sorted(range(len(pairs.rows)), key=lambda k: -fit.pairs[k].unpaced.loss)[:MOST_PAIRS]
    narrow = section(replace(pairs.part(range(NARROW)), rows=[pairs.rows[k][:NARROW] for k in costly]))
    device = fit.measurement.header["device"]["name"]
    notes = [f"{device}: traffic without a limit beside each kernel. ±: 95 % confidence interval"]
    if len(pairs.rows) > len(costly):
        notes.append(f"The {len(costly)} costliest of {len(pairs.rows)} pairs")
    return Answer(sentences(fit), [narrow], notes, wide=[section(pairs)], rest="All pairs, interference rates")
