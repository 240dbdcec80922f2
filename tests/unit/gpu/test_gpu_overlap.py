"""A step of a kernel and a transfer: predictions against the law, against recorded steps of a device, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_gpu import ScriptedGpu
from typer.testing import CliRunner

from crosswind.errors import DescriptionError
from crosswind.gpu import measure_gpu
from crosswind.gpu.fit import fit_gpu
from crosswind.gpu.overlap import OVERLAP, SERIAL, overlapped_s, plan_overlap, recorded_steps

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples/gpu/h100.parquet"
STEPS = ROOT / "benchmarks/gpu/h100_steps.parquet"


@pytest.fixture(scope="module")
def h100():
    return fit_gpu(EXAMPLE)


@given(st.floats(1e-3, 10.0), st.floats(1.0, 1e6), st.floats(0.0, 0.9), st.floats(1.0, 1e6), st.floats(1.0, 1e6))
def test_a_step_takes_as_long_as_the_longer_part_and_no_longer_than_both_slowed(kernel_s, mb, loss, beside, alone):
    found = overlapped_s(kernel_s, mb, loss, beside, alone)
    assert found >= kernel_s * (1.0 - 1e-9)
    assert found >= mb / max(beside, alone) * (1.0 - 1e-9)
    assert found <= (kernel_s / (1.0 - loss) + mb / min(beside, alone)) * (1.0 + 1e-9)


def test_traffic_that_costs_nothing_and_loses_nothing_is_free_while_the_kernel_runs():
    assert overlapped_s(2.0, 100.0, 0.0, 100.0, 100.0) == 2.0


def test_steps_of_a_real_device_take_what_is_predicted():
    """Steps are in no fit. Of 54 means 53 agreed within their intervals when the file was recorded."""
    steps = recorded_steps(fit_gpu(STEPS))
    assert len(steps) == 54
    assert sum(step.agrees for step in steps) >= 0.9 * len(steps)


def test_what_slows_the_transfer_more_than_it_gains_is_serialised(h100):
    assert plan_overlap(h100, "fma", "d2d", 0.02, 2000.0).best.way == SERIAL
    assert plan_overlap(h100, "tensor", "h2d", 0.02, 600.0).best.way == OVERLAP


def test_a_limit_that_gains_nothing_that_is_known_is_not_advised(h100):
    assert plan_overlap(h100, "triad", "h2d", 0.02, 600.0).best.way == OVERLAP


@pytest.mark.parametrize(
    ("traffics", "others"),
    [
        (("d2h-sm", "d2h-sm:4", "d2h-sm:8", "h2d-sm", "h2d"), ["d2h-sm:4", "d2h-sm:8"]),
        (("loader:2", "loader:1", "h2d"), ["loader:1"]),
        (("h2d", "d2h-sm"), []),
    ],
)
def test_each_measured_number_of_blocks_or_threads_is_a_choice(traffics, others):
    gpu = ScriptedGpu()
    fit = fit_gpu(measure_gpu(kernels=["chase"], traffics=traffics, max_seconds=12.0, device=gpu, clock=gpu.clock))
    step = plan_overlap(fit, "chase", traffics[0], 0.02, 200.0)
    resized = [one for one in step.choices if one.by != traffics[0]]
    assert sorted(one.by for one in resized) == others
    for one in resized:
        assert one.way == OVERLAP
        pair = fit.pair("chase", one.by)
        rates = (pair.unpaced.mb_per_s, pair.alone_mb_per_s)
        assert one.seconds == pytest.approx(overlapped_s(0.02, 200.0, pair.unpaced.loss, *rates))
        assert one.ci95[0] <= one.seconds <= one.ci95[1]
    assert step.unlimited.by == traffics[0]


def test_fewer_blocks_are_advised_where_they_cost_less_than_they_take_longer():
    """Of 16 blocks the kernel loses half; of 2 blocks nothing, and they are done before it is."""

    def law(_kernel: str, mb_per_s: float) -> float:
        return 0.5 * max(0.0, mb_per_s - 6000.0) / 30_000.0

    gpu = ScriptedGpu(law, slowed=0.0)
    kinds = ("d2h-sm", "d2h-sm:2")
    fit = fit_gpu(measure_gpu(kernels=["triad"], traffics=kinds, max_seconds=6.0, device=gpu, clock=gpu.clock))
    best = plan_overlap(fit, "triad", "d2h-sm", 0.02, 90.0).best
    assert (best.way, best.by) == (OVERLAP, "d2h-sm:2")
    assert best.seconds == pytest.approx(0.02, rel=0.01)
    # 16 is the number that needs no saying.
    assert plan_overlap(fit, "triad", "d2h-sm:16", 0.02, 90.0).best == best


def test_a_pair_that_was_not_measured_and_amounts_of_nothing_are_refused(h100):
    with pytest.raises(DescriptionError, match="h2d beside gemm was not measured"):
        plan_overlap(h100, "gemm", "h2d", 0.02, 1.0)
    for kernel_s, amount in ((0.0, 1.0), (1.0, -1.0), (float("nan"), 1.0), (1.0, float("inf"))):
        with pytest.raises(DescriptionError, match="must be above 0"):
            plan_overlap(h100, "triad", "h2d", kernel_s, amount)


def test_directions_of_a_real_device_add_up(h100):
    """H2D and D2H at once cost the triad what they cost one by one, within 0.4 % of its rate."""
    found = [one for one in h100.additive if one.kernel == "triad"]
    assert len(found) >= 4
    assert max(abs(one.measured - one.added) for one in found) < 0.004


def test_the_command_line_prints_the_answer_first():
    from crosswind.cli import app

    asked = [
        "plan",
        "overlap",
        str(EXAMPLE),
        "--kernel",
        "fma",
        "--kernel-ms",
        "20",
        "--traffic",
        "d2d",
        "--mb",
        "2000",
    ]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0
    assert done.stdout.startswith("Fastest: serialise, 21.")
