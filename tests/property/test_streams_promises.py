"""What two queues promise the local class in closed form, against simulated interfaces: no local stream is slower."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from crosswind import _core
from crosswind.experiment import Experiment

ROUNDING = 1.001  # times are whole nanoseconds


def point(
    queue: str, threshold: int, pad: bool, parallel: list[tuple[int, int]], local_bytes: int, gap_s: float
) -> str:
    """Parallel streams from host 0 to one host each, and a local one from there to another."""
    common: dict[str, Any] = {"from": 0, "messages": 20}
    streams = [
        {"name": f"p{to}", "class": "parallel", "to": to, "message_bytes": size, "outstanding": outstanding, **common}
        | {"arrivals": "backlogged"}
        for to, (size, outstanding) in enumerate(parallel, start=1)
    ]
    local = {"name": "local", "class": "local", "to": len(parallel) + 1, "message_bytes": local_bytes, "gap_s": gap_s}
    workload = {"kind": "streams", "hosts": len(parallel) + 2, "stream": [*streams, {**local, **common}]}
    links = {"link_mb_per_s": 19.375, "pad": pad}
    policy = {"queue": queue, "threshold": threshold}
    description = {"schema_version": 1, "name": "promised", "network": links, "workload": workload, "policy": policy}
    return next(Experiment.from_dict(description).points()).json


CASES = {
    "queue": st.sampled_from(["drr", "threshold"]),
    "pad": st.booleans(),
    "parallel": st.lists(st.tuples(st.integers(1, 6000), st.integers(1, 6)), min_size=1, max_size=4),
    "local_bytes": st.integers(1, 20_000),
    "gap_s": st.floats(0.0, 2e-4),
}


def promised(text: str, slowdown: float = 2.0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_core.streams_promise(text, slowdown))
    return found


def local_slowdown(text: str) -> float:
    slowdown: float = json.loads(_core.simulate_streams(text))["streams"][-1]["slowdown_queued"]
    return slowdown


@settings(deadline=None, max_examples=150)
@given(threshold=st.integers(1, 20), **CASES)
def test_no_local_stream_is_slower_than_the_closed_form_promises(threshold, **case):
    text = point(threshold=threshold, **case)
    (stream,) = promised(text)["streams"]
    assert local_slowdown(text) <= stream["slowdown"] * ROUNDING


@settings(deadline=None, max_examples=150)
@given(slowdown=st.floats(2.0, 20.0), **CASES)
def test_the_promised_threshold_holds_the_slowdown_that_was_asked_for(slowdown, **case):
    (stream,) = promised(point(threshold=1, **case), slowdown)["streams"]
    assume(stream["threshold"] >= 1)
    assert local_slowdown(point(threshold=stream["threshold"], **case)) <= slowdown * ROUNDING


@pytest.mark.parametrize("pad", [True, False])
def test_small_frames_get_no_more_than_their_share_whether_or_not_they_take_the_time_of_long_ones(pad):
    """64 bytes that take the time of 1024 count 1024: else four times as many bytes were 64 times as many frames."""
    case = {"queue": "drr", "threshold": 4, "parallel": [(64, 200)], "local_bytes": 16384, "gap_s": 0.0}
    assert promised(point(pad=pad, **case))["least_share"] == pytest.approx(1 / 5)
    assert 4.5 < local_slowdown(point(pad=pad, **case)) <= 5.2
