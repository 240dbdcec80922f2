"""Real training jobs on gloo, recorded by PyTorch's profiler, one rank of which is late by a known time."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crosswind.blame.recorded import blame_recorded

ROOT = Path(__file__).parents[3]
TRUE_S = 0.3389
"""By the stamps of the ranks, what the late one cost in the ten steps that were kept of the recording."""
FSDP_S = 0.4758
"""The same of the job with FSDP, in all of its eight steps."""
PYTHON = os.environ.get("CROSSWIND_TORCH_PYTHON", sys.executable)
"""A Python that has PyTorch, which need not be the one that runs the tests."""


def test_the_late_rank_of_a_job_with_ddp_is_named_with_its_cost():
    """Made by `benchmarks/recorded_jobs/torch_job.py` with torch 2.15, on a host on which much else ran."""
    found = blame_recorded(sorted((ROOT / "tests" / "recordings" / "ddp").glob("*.json.gz"))).data
    assert (found["ranks"], found["steps"]) == (3, 10)
    [culprit] = found["culprits"]
    assert culprit["ranks"] == [1]
    assert culprit["where"][0]["place"] == "before all_reduce 2 of 2"
    assert culprit["ci95"][0] <= TRUE_S <= culprit["ci95"][1]


def test_the_late_rank_of_a_job_with_fsdp_is_named_with_its_cost():
    """Made by `benchmarks/recorded_jobs/torch_jobs.py PYTHON fsdp 1:backward:0.06 8 OUT` with torch 2.15."""
    found = blame_recorded(sorted((ROOT / "tests" / "recordings" / "fsdp").glob("*.json.gz"))).data
    assert (found["ranks"], found["steps"]) == (3, 8)
    [culprit] = found["culprits"]
    assert culprit["ranks"] == [1]
    assert culprit["ci95"][0] <= FSDP_S <= culprit["ci95"][1]


def test_no_rank_of_an_even_job_with_fsdp_is_named():
    found = blame_recorded(sorted((ROOT / "tests" / "recordings" / "fsdp-even").glob("*.json.gz"))).data
    assert (found["ranks"], found["steps"], found["culprits"]) == (3, 8, [])


def with_operators(file: Path, out: Path, keep: Callable[[dict[str, Any]], bool]) -> Path:
    """Write a trace with some of its operators only, as a profiler does that notes less."""
    trace = json.loads(gzip.decompress(file.read_bytes()))
    trace["traceEvents"] = [event for event in trace["traceEvents"] if event.get("cat") != "cpu_op" or keep(event)]
    (out / file.name).write_bytes(gzip.compress(json.dumps(trace).encode()))
    return out / file.name


def of_late_rank(tmp_path: Path, keep: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    files = sorted((ROOT / "tests" / "recordings" / "fsdp").glob("*.json.gz"))
    return blame_recorded([with_operators(file, tmp_path, keep) for file in files]).data


@pytest.mark.parametrize("keep", [lambda one: one["dur"] >= 1_000, lambda one: one["name"].startswith("aten::")])
def test_a_late_rank_is_named_by_fewer_operators_too(tmp_path, keep):
    (culprit,) = of_late_rank(tmp_path, keep)["culprits"]
    assert culprit["ranks"] == [1]
    assert culprit["ci95"][0] <= 0.476 <= culprit["ci95"][1]


def test_a_late_rank_whose_waits_are_not_in_the_trace_is_not_overlooked(tmp_path):
    found = of_late_rank(tmp_path, lambda one: "Work" in one["name"])
    assert (found["verdict"], found["culprits"]) == ("unidentifiable", [])
    assert "where the program waits for them is not seen" in found["reason"]


@pytest.fixture(scope="module")
def jobs():
    sys.path.insert(0, str(ROOT / "benchmarks" / "recorded_jobs"))
    import torch_jobs

    if not torch_jobs.has_torch(PYTHON):
        pytest.skip("no PyTorch: CROSSWIND_TORCH_PYTHON names a Python that has it")
    return torch_jobs


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_a_job_of_now_is_read_and_its_late_rank_is_named(jobs, tmp_path, kind):
    found = blame_recorded(jobs.trained(PYTHON, tmp_path, kind, 3, 20, "1:backward:0.06")).data
    assert [culprit["ranks"] for culprit in found["culprits"]] == [[1]], found["reason"]
    low, high = found["culprits"][0]["ci95"]
    assert low <= jobs.cost_s(tmp_path, 3, 1) <= high
