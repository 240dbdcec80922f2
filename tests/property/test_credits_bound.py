"""Receiver credits never slow a local stream beyond the bound that docs/concepts/interfaces.md states."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from crosswind import Experiment, run

WINDOW_FRAMES = 64
"""Frames of 1 KiB that a connection has under way without credits: its window of 64 KB."""
ALIKE = 1.05  # the order of two classes at one server, in runs of 30 messages


def experiment(server: dict[str, Any], policy: dict[str, Any], local: dict[str, Any], tested: int) -> dict[str, Any]:
    """One-to-all and back from host 0, beside a local stream each way between hosts 0 and 1."""
    parallel = {"name": "p", "class": "parallel", "from": 0, "to": [1, 2, 3], "arrivals": "backlogged", "messages": 30}
    ways = [{"name": f"from {a}", "from": a, "to": b, "class": "local", "messages": 30} for a, b in ((0, 1), (1, 0))]
    streams = [parallel | {"message_bytes": tested, "answer_bytes": tested}, *(way | local for way in ways)]
    network = {"link_mb_per_s": 19.375, "latency_s": 1e-5, "frame_bytes": 1024, "pad": True, "buffer_frames": 100_000}
    network |= {"window_bytes": 1024 * WINDOW_FRAMES, "processor": server}
    workload = {"kind": "streams", "hosts": 4, "stream": streams}
    return {"schema_version": 1, "name": "both ways", "network": network, "workload": workload, "policy": policy}


@settings(max_examples=25, deadline=None)
@given(
    receiving=st.sampled_from([0.5, 1.0, 1.5, 3.0]),
    batch=st.sampled_from([1, 4, 16]),
    threshold=st.sampled_from([1, 4, 16]),
    places=st.sampled_from([1, 4, 16, 64]),
    receive_threshold=st.sampled_from([1, 2, 8]),
    kib=st.sampled_from([1, 4, 16]),
    load=st.sampled_from([0.5, 0.9, 1.2]),
    tested=st.sampled_from([64, 2048]),
)
def test_no_local_stream_is_slowed_by_credits_beyond_its_windows_share_of_the_places(
    receiving: float,
    batch: int,
    threshold: int,
    places: int,
    receive_threshold: int,
    kib: int,
    load: float,
    tested: int,
) -> None:
    sent_s = 1e-4
    server = {"send_s": sent_s, "receive_s": sent_s * receiving, "order": "queues"}
    gap = {"distribution": "exponential", "mean": kib * sent_s * max(1.0, receiving) / load}
    local = {"message_bytes": 1024 * kib, "arrivals": "open", "gap_s": gap}
    queues = {"queue": "threshold", "threshold": threshold, "batch": batch}
    credits = {"credits": "receiver", "receive_frames": places, "receive_threshold": min(receive_threshold, places)}
    without, limited = (
        run(Experiment.from_dict(experiment(server, policy, local, tested)))[0].data["streams"]
        for policy in (queues, queues | credits)
    )
    bound = max(1.0, WINDOW_FRAMES / places)
    for free, held in zip(without[1:], limited[1:], strict=True):
        assert held["slowdown_queued"] <= free["slowdown_queued"] * bound * ALIKE, (free["name"], bound)
