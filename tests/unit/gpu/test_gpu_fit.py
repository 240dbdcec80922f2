"""What follows from blocks of a GPU, against the law that a scripted device keeps to."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scripted_gpu import ScriptedGpu, straight

from crosswind.errors import DescriptionError
from crosswind.gpu.fit import fit_gpu
from crosswind.gpu.measurement import GpuMeasurement, is_gpu
from crosswind.gpu.session import Session
from crosswind.gpu.words import sentences


def measured(gpu: ScriptedGpu, kernels=("triad",), traffics=("h2d",), seconds=12.0) -> GpuMeasurement:
    run = Session(gpu, kernels, traffics, seconds, clock=gpu.clock)
    run.run()
    pairs = [
        {"kernel": pair.kernel, "traffic": pair.traffic.name, "unit": "B", "cycles": pair.cycles} for pair in run.pairs
    ]
    header = {"schema_version": 1, "version": "0", "started": "", "device": gpu.about(), "pairs": pairs, "seed": 0}
    return GpuMeasurement.of(run.rows, header | {"ended": run.ended, "elapsed_s": run.elapsed_s})


def test_intervals_of_rate_loss_and_slowdown_hold_the_law_that_made_the_blocks():
    """95 % of 60 intervals each are 57; fewer than 51 have a probability below 1 in 1,000."""
    held = np.zeros(3)
    for seed in range(60):
        (pair,) = fit_gpu(measured(ScriptedGpu(noise=0.004, seed=seed), seconds=7.0)).pairs
        truth = straight("triad", pair.unpaced.mb_per_s)
        held += [
            pair.ir_ci95[0] <= 4e-4 <= pair.ir_ci95[1],
            pair.unpaced.ci95[0] <= truth <= pair.unpaced.ci95[1],
            pair.traffic_ci95[0] <= 0.3 + 1e-9 and pair.traffic_ci95[1] >= 0.3 - 1e-9,
        ]
    assert (held >= 51).all(), held


def test_a_bent_loss_is_said_to_be_bent_and_a_straight_one_is_not():
    def bent(_kernel: str, mb_per_s: float) -> float:
        return 0.3 * (mb_per_s / 33_600.0) ** 0.5

    assert fit_gpu(measured(ScriptedGpu(bent))).pairs[0].bent
    assert not fit_gpu(measured(ScriptedGpu())).pairs[0].bent


def test_a_kernel_that_loses_nothing_is_not_said_to_lose():
    fit = fit_gpu(measured(ScriptedGpu(), ("tensor", "chase")))
    assert fit.pair("tensor", "h2d").costs is None
    assert fit.pair("chase", "h2d").costs is True
    assert any("not distinguishable from 0" in sentence for sentence in sentences(fit))
    assert "the chase kernel loses" in sentences(fit)[0]


def test_both_directions_are_held_against_the_sum_of_each():
    fit = fit_gpu(measured(ScriptedGpu(noise=1e-5), ("triad",), ("h2d", "d2h", "both"), 40.0))
    assert len(fit.additive) >= 4
    for one in fit.additive:
        assert one.added == pytest.approx(one.measured, abs=1e-4)


def test_no_loss_is_told_beyond_the_highest_measured_rate():
    (pair,) = fit_gpu(measured(ScriptedGpu())).pairs
    assert pair.loss_at(pair.hull_mb_per_s) == pytest.approx(pair.unpaced.loss)
    assert np.isnan(pair.loss_at(pair.hull_mb_per_s * 1.001))


def test_a_cycle_that_was_cut_off_is_left_out():
    measurement = measured(ScriptedGpu())
    cut = GpuMeasurement(measurement.blocks.slice(0, measurement.blocks.num_rows - 3), measurement.header)
    assert fit_gpu(cut).pairs[0].cycles == fit_gpu(measurement).pairs[0].cycles - 1


def test_clocks_that_were_held_down_are_a_warning_and_make_the_figures_untrustworthy():
    gpu = ScriptedGpu()
    gpu.throttle = 0x4
    fit = fit_gpu(measured(gpu))
    assert [one["code"] for one in fit.warnings] == ["gpu-throttled"]
    assert not fit.trustworthy
    assert fit_gpu(measured(ScriptedGpu())).trustworthy


def test_too_few_cycles_give_no_figures():
    gpu = ScriptedGpu()
    with pytest.raises(DescriptionError, match="no pair has 8 cycles"):
        fit_gpu(measured(gpu, seconds=1.0))


def test_a_file_is_read_as_it_was_written(tmp_path):
    measurement = measured(ScriptedGpu())
    measurement.save(tmp_path / "gpu.parquet")
    again = GpuMeasurement.load(tmp_path / "gpu.parquet")
    assert is_gpu(tmp_path / "gpu.parquet")
    assert again.header == measurement.header
    assert json.dumps(fit_gpu(again).to_dict(), allow_nan=False) == json.dumps(fit_gpu(measurement).to_dict())


@pytest.mark.parametrize(
    "wrong", ["missing", "type", "amount", "zero", "header", "no-field", "not-json", "pairs", "task"]
)
def test_a_file_with_wrong_columns_is_refused_by_name(tmp_path, wrong):
    path = tmp_path / "gpu.parquet"
    measurement = measured(ScriptedGpu(), seconds=3.0)
    table = measurement.blocks.replace_schema_metadata({b"crosswind.gpu": json.dumps(measurement.header).encode()})
    count = table.num_rows
    place = table.column_names.index("dt_s")
    if wrong == "missing":
        table = table.drop_columns(["work"])
    elif wrong == "type":
        table = table.set_column(place, "dt_s", pa.array(["x"] * count))
    elif wrong == "amount":
        table = table.set_column(place, "dt_s", pa.array([1e300] * count))
    elif wrong == "zero":
        table = table.set_column(place, "dt_s", pa.array([0.0] * count))
    else:
        header = measurement.header
        text = {
            "header": b"[]",
            "no-field": b"{}",
            "not-json": b"{" * 4000,
            "pairs": json.dumps(header | {"pairs": [{"kernel": 1}]}).encode(),
            "task": json.dumps(header | {"task": {"name": "step", "host_s": "1"}}).encode(),
        }[wrong]
        table = table.replace_schema_metadata({b"crosswind.gpu": text})
    pq.write_table(table, path)
    with pytest.raises(DescriptionError, match=str(path)):
        GpuMeasurement.load(path)


def test_the_compiled_kernels_are_those_of_the_source_beside_them():
    import hashlib
    from pathlib import Path

    kernels = Path(__file__).parents[3] / "crates/gpu/src/kernels"
    digest = hashlib.sha256((kernels / "kernels.cu").read_bytes()).hexdigest()
    assert (kernels / "kernels.ptx").read_text().startswith(f"// kernels.cu {digest}\n"), "run make.py beside it"
