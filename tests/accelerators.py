"""Part of the recorded measurement of an H100, as tests of the report need it."""

from __future__ import annotations

from pathlib import Path

from crosswind.gpu.measurement import GpuMeasurement

EXAMPLE = Path(__file__).parents[1] / "examples/gpu/h100.parquet"


def h100(kernels=("triad", "chase"), traffics=("h2d", "d2h", "both", "d2h-sm", "d2d")) -> GpuMeasurement:
    """Return the recorded pairs of these kernels and traffics."""
    whole = GpuMeasurement.load(EXAMPLE)
    kept = [one for one in whole.header["pairs"] if one["kernel"] in kernels and one["traffic"] in traffics]
    return GpuMeasurement(whole.blocks, whole.header | {"pairs": kept})
