"""One point of an experiment of kind streams for real: hosts of this machine, each behind a message filter.

The filters emulate the links (rate, frames, padding); latency is this machine's own. T1, T2 and T3 go through the same
filters, so that what they cost is in all three (`crates/live/src/streams`). With `policy.filter = "kernel"` the hosts
are network namespaces, and the kernel has the queues.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from crosswind import _core

if TYPE_CHECKING:
    from crosswind.documents.streams_runs import StreamsRun


def run_streams_here(point: str) -> StreamsRun:
    """Run one point on this machine; ctrl-C ends it.

    Parameters
    ----------
    point : str
        An experiment of kind streams as JSON, without a sweep.

    Returns
    -------
    dict
        Its entry in `runs.json`; `params` is left empty, and so are the closed forms.

    Raises
    ------
    DescriptionError
        When the description is wrong, has jobs (they run on sim), or more than 16 hosts; with `policy.filter =
        "kernel"` also when this is not root.
    InfeasibleError
        When no message arrives any more, as with the credits that the paper prints.

    Examples
    --------
    >>> point = {
    ...     "schema_version": 1,
    ...     "name": "alone",
    ...     "workload": {
    ...         "kind": "streams",
    ...         "hosts": 2,
    ...         "stream": [
    ...             {"name": "A", "class": "parallel", "from": 0, "to": 1, "message_bytes": 64, "messages": 5}
    ...         ],
    ...     },
    ... }
    >>> run_streams_here(json.dumps(point))["streams"][0]["bytes"]
    320
    """
    told = json.loads(point)
    if told.get("policy", {}).get("filter") != "kernel":
        alone: StreamsRun = json.loads(_core.run_streams(point))
        return alone
    from crosswind.run.namespaces import hosts_of

    with hosts_of(told) as hosts:
        found: StreamsRun = json.loads(_core.run_streams(point, hosts))
        return found
