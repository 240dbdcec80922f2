"""Which blocks a session of a GPU times, against a scripted device."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from scripted_gpu import ScriptedGpu

from crosswind.errors import CrosswindError, DescriptionError
from crosswind.gpu import measure_gpu
from crosswind.gpu.device import KERNELS, TRAFFICS
from crosswind.gpu.session import LEVELS, Session


def session(gpu: ScriptedGpu, kernels=("triad",), traffics=("h2d",), seconds=20.0) -> Session:
    found = Session(gpu, kernels, traffics, seconds, clock=gpu.clock)
    found.run()
    return found


def test_a_cycle_has_every_level_the_traffic_without_a_limit_and_without_the_kernel():
    gpu = ScriptedGpu()
    rows = [row for row in session(gpu).rows if row["cycle"] == 2]
    assert Counter(row["phase"] for row in rows) == {"level": len(LEVELS), "unpaced": 1, "alone": 1, "step": 1}
    assert sorted(row["level"] for row in rows if row["phase"] == "level") == sorted(LEVELS)


def test_the_order_of_blocks_differs_from_cycle_to_cycle_and_is_the_same_for_a_seed():
    def order(run: Session) -> list[tuple[float, ...]]:
        cycles = range(run.pairs[0].cycles)
        return [
            tuple(r["asked_mb_per_s"] for r in run.rows if r["cycle"] == c and r["phase"] == "level") for c in cycles
        ]

    first = order(session(ScriptedGpu()))
    assert len(set(first)) > len(first) / 2
    assert first == order(session(ScriptedGpu()))


def test_a_block_does_the_same_work_whatever_moves_and_none_without_its_kernel():
    gpu = ScriptedGpu()
    rows = session(gpu).rows
    assert len({row["work"] for row in rows if row["phase"] != "alone" and row["cycle"] >= 0}) == 1
    assert {row["work"] for row in rows if row["phase"] == "alone"} == {0.0}


def test_the_top_is_a_rate_that_the_traffic_keeps_beside_the_kernel():
    (pair,) = session(ScriptedGpu(slowed=0.4)).pairs
    assert pair.alone_mb_per_s == pytest.approx(48_000)
    assert pair.beside_mb_per_s == pytest.approx(28_800)
    assert pair.top_mb_per_s == pytest.approx(26_000)


def test_pairs_take_turns_so_that_all_of_them_see_the_same_drift():
    run = session(ScriptedGpu(), ("triad", "chase"), ("h2d", "both"), 40.0)
    counts = [pair.cycles for pair in run.pairs]
    assert max(counts) - min(counts) <= 4
    assert min(counts) >= 8


def test_ctrl_c_keeps_what_was_measured():
    gpu = ScriptedGpu()
    gpu.interrupt_after = 200
    run = session(gpu)
    assert run.ended == "interrupted"
    assert 0 < len(run.rows) <= 200


def test_a_kernel_beside_which_nothing_moves_gets_no_levels():
    (pair,) = session(ScriptedGpu(slowed=1.0)).pairs
    assert math.isnan(pair.top_mb_per_s)
    assert pair.cycles > 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kernels": ["gemm"]}, 'kernel is "gemm"; it must be one of tensor'),
        ({"traffics": ["nvlink"]}, 'traffic is "nvlink"; it must be one of h2d'),
        ({"traffics": ["h2d:4"]}, 'traffic is "h2d:4"; it must be one of h2d'),
        ({"traffics": ["d2h-sm:0"]}, 'traffic is "d2h-sm:0"; the number of blocks must be 1 to 132'),
        ({"traffics": ["h2d-sm:133"]}, 'traffic is "h2d-sm:133"; the number of blocks must be 1 to 132'),
        ({"traffics": ["loader:9"]}, 'traffic is "loader:9"; the number of threads must be 1 to 8'),
        ({"traffics": ["loader:"]}, 'traffic is "loader:"; it must be one of h2d'),
        ({"traffics": ["d2h-sm", "d2h-sm:16"]}, "each once"),
        ({"traffics": []}, "it must name at least one"),
        ({"kernels": ["fma", "fma"]}, "each once"),
        ({"max_seconds": 1.0}, "max_seconds is 1; it must be 5 to 86400 s"),
        ({"max_seconds": math.nan}, "max_seconds is nan"),
    ],
)
def test_what_is_asked_is_checked_before_anything_runs(given, message):
    gpu = ScriptedGpu()
    with pytest.raises(DescriptionError) as caught:
        measure_gpu(**({"max_seconds": 5.0} | given), device=gpu)
    assert message in str(caught.value)
    assert gpu.blocks == []


def test_names_are_those_of_the_probe():
    from crosswind import _core

    for kernel in KERNELS:
        assert _core.Gpu.unit(kernel)
    assert all(name == traffic.name for name, traffic in TRAFFICS.items())


def test_a_machine_without_a_gpu_gets_a_sentence_with_a_hint():
    from crosswind.gpu.device import CudaDevice

    try:
        CudaDevice(0)
    except CrosswindError as error:
        found = error
    else:
        pytest.skip("this machine has a GPU")
    assert found.code in ("no-gpu", "gpu-too-old", "gpu-failed")
    assert found.hint
