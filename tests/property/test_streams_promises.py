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


OTHERS = {
    **CASES,
    "parallel": st.lists(st.tuples(st.integers(1, 6000), st.integers(1, 6)), min_size=1, max_size=2),
    "others": st.lists(
        st.tuples(st.integers(1, 12_000), st.integers(1, 3), st.integers(1, 2), st.booleans()), min_size=1, max_size=3
    ),
    "buffer": st.sampled_from([2, 4, 64, 100_000]),
}


def with_others(others: list[tuple[int, int, int, bool]], buffer: int, **case: Any) -> str:
    """As `point`, with more local streams of its host: length, messages under way, receivers, whether backlogged."""
    whole = json.loads(point(**case))
    streams, hosts = whole["workload"]["stream"], whole["workload"]["hosts"]
    for number, (size, outstanding, receivers, backlogged) in enumerate(others):
        to = list(range(hosts, hosts + receivers))
        hosts += receivers
        other = {
            "name": f"o{number}",
            "class": "local",
            "from": 0,
            "to": to if receivers > 1 else to[0],
            "messages": 20,
        }
        other |= {"message_bytes": size, "outstanding": outstanding}
        streams.insert(-1, other | ({"arrivals": "backlogged"} if backlogged else {"gap_s": 1e-4}))
    whole["workload"]["hosts"] = hosts
    whole["network"]["buffer_frames"] = buffer
    return next(Experiment.from_dict(whole).points()).json


@settings(deadline=None, max_examples=100)
@given(slowdown=st.floats(3.0, 60.0), **OTHERS)
def test_other_local_streams_of_the_host_are_counted_in_what_is_promised(slowdown, **case):
    at_one = promised(with_others(threshold=1, **case), slowdown)
    (stream,) = (one for one in at_one["streams"] if one["name"] == "local")
    assert stream["beside"] == [f"o{number}" for number in range(len(case["others"]))]
    assert local_slowdown(with_others(threshold=1, **case)) <= stream["slowdown"] * ROUNDING
    assume(stream["threshold"] >= 1)
    assert local_slowdown(with_others(threshold=stream["threshold"], **case)) <= slowdown * ROUNDING


def test_a_second_local_stream_lowers_the_threshold_that_holds_a_limit():
    """Five frames of each, backlogged: with a threshold of 5 the first took 11.7 times as long for a limit of 6.1."""
    case = {"queue": "threshold", "pad": False, "parallel": [(1000, 8)], "local_bytes": 5120, "gap_s": 0.0}
    both = {**case, "others": [(5120, 1, 1, True)], "buffer": 100_000}
    (alone,) = promised(point(threshold=1, **case), 6.1)["streams"]
    stream = promised(with_others(threshold=1, **both), 6.1)["streams"][-1]
    assert (alone["threshold"], alone["beside"]) == (5, [])
    assert (stream["threshold"], stream["beside"]) == (2, ["o0"])
    assert local_slowdown(with_others(threshold=3, **both)) > 6.1 >= local_slowdown(with_others(threshold=2, **both))


@pytest.mark.parametrize(
    "change",
    [
        {"arrivals": "open", "gap_s": 1.0, "outstanding": None},  # as much under way as it likes
        {"message_bytes": {"distribution": "exponential", "mean": 100.0}},  # of any length
        {"from": 3, "to": 2},  # meets the stream where it arrives
    ],
)
def test_nothing_is_promised_beside_local_streams_that_nothing_bounds(change):
    case = {"queue": "drr", "pad": False, "parallel": [(64, 1)], "local_bytes": 5000, "gap_s": 0.0, "threshold": 2}
    whole = json.loads(with_others(others=[(100, 1, 1, True)], buffer=64, **case))
    (other,) = (stream for stream in whole["workload"]["stream"] if stream["name"] == "o0")
    other |= change
    whole["workload"]["stream"][-2] = {key: value for key, value in other.items() if value is not None}
    found = promised(next(Experiment.from_dict(whole).points()).json)
    assert "local" not in [stream["name"] for stream in found["streams"]]


@pytest.mark.parametrize(
    "links", [{"window_bytes": 2048}, {"host_s_per_frame": 1e-5}, {"processor": {}}, {"buffer_frames": 1}]
)
def test_nothing_is_promised_where_more_than_the_link_takes_time(links):
    case = {"queue": "threshold", "pad": True, "parallel": [(64, 1)], "local_bytes": 5000, "gap_s": 0.0, "threshold": 2}
    whole = json.loads(point(**case))
    whole["network"] |= links
    assert promised(next(Experiment.from_dict(whole).points()).json)["streams"] == []


@pytest.mark.parametrize("queue", ["drr", "threshold"])
@pytest.mark.parametrize("pad", [True, False])
def test_the_longest_wait_and_the_least_share_count_what_hosts_take_for_each_frame(queue, pad):
    case = {"queue": queue, "pad": pad, "local_bytes": 16384, "gap_s": 0.0}

    def slow(parallel: tuple[int, int], threshold: int) -> str:
        whole = json.loads(point(threshold=threshold, parallel=[parallel], **case))
        whole["network"]["host_s_per_frame"] = 1e-4
        return next(Experiment.from_dict(whole).points()).json

    found = promised(slow((1, 200), 2))
    frame_s = 1024 / 19.375e6
    assert found["longest_wait_s"] >= 2 * (frame_s + 1e-4)
    # The local class alone would have the link: what it gets beside small frames is no less than its share.
    assert 1 / local_slowdown(slow((1, 200), 2)) >= 0.9 * found["least_share"]


def test_what_a_turn_by_bytes_keeps_is_lost_whenever_the_parallel_class_pauses():
    """One parallel message under way, frames of 1 and 100 bytes: 28.6 times as long, where 25.5 was promised."""
    case = {"queue": "drr", "pad": False, "parallel": [(1024, 1)], "local_bytes": 1, "gap_s": 0.0, "threshold": 2}
    text = with_others(others=[(100, 3, 1, True), (1, 2, 2, True), (100, 3, 2, True)], buffer=64, **case)
    assert 28.0 < local_slowdown(text) <= promised(text)["streams"][-1]["slowdown"]
