"""What the queues of a plan promise class local, by the closed form of `crosswind plan queues`.

The kernel's frame is the largest segment. Beyond this a packet waits for what the device and the switches have taken
already.
"""

from __future__ import annotations

import json

from crosswind import _core
from crosswind.filter.kernel.plan import FRAME_OVERHEAD, Plan


def promise(plan: Plan, *, arriving: bool = False) -> dict[str, float]:
    """Return what class local has whatever class parallel sends.

    Parameters
    ----------
    plan : Plan
        What is set.
    arriving : bool
        Of what arrives, instead of what leaves.

    Returns
    -------
    dict
        `longest_wait_s`: the most that the first local packet waits for parallel ones, s; `least_share`: the least part
        of the rate while local packets wait. Strict: infinity (as JSON: null) and 0.
    """
    rate, segment = plan.rate_mb_per_s, plan.segment_bytes
    if arriving:
        rate, segment = plan.rate_in_mb_per_s, plan.segment_in_bytes
    assert rate is not None, "this side is shaped"
    point = {
        "schema_version": 1,
        "name": "kernel",
        "network": {"link_mb_per_s": rate, "frame_bytes": segment + FRAME_OVERHEAD, "pad": False},
        "policy": {"queue": plan.queue, "threshold": plan.threshold},
        "workload": {
            "kind": "streams",
            "hosts": 2,
            "stream": [{"name": "local", "class": "local", "from": 0, "to": 1, "message_bytes": segment}],
        },
    }
    told = json.loads(_core.streams_promise(json.dumps(point), 1.0))
    return {"longest_wait_s": told["longest_wait_s"], "least_share": told["least_share"]}
