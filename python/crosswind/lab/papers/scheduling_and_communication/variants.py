"""What the paper names and did not build (D2-6), beside what it is to improve: one table for all five programs.

| named | section | what is run |
|---|---|---|
| windows that follow the destination | 6, 7 | 1 packet to a rank that runs, 512 to one that is away; against 1 always |
| discarding instead of buffering | 1 | thrown away while the receiver is away, sent again; against buffering |
| daemons coscheduled across processors | 6 | the same times on all ranks; against each by itself |
| a serial job coscheduled | 7 | all ranks give way at the same times; against the busy node alone |
| migration away from a busy node | 7 | the rank is moved once; against staying |
| slowing different processes | 7, footnote 1 | the busy node is another; the spread over nodes |

The paper claims nothing of them, so nothing is graded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosswind.documents import Document
from crosswind.lab.papers.scheduling_and_communication.calibration import PROGRAMS, Calibration
from crosswind.lab.papers.scheduling_and_communication.figures import (
    Figure,
    Setting,
    described,
    local_job,
    serial_job,
)

NAME = "not-built"
AS_IT_IS = "as in the paper"
ALIGNED = "daemons aligned"
FOLLOWING = "window follows"
FIXED = "window of 1"
DISCARDING = "discarded, sent again"
COSCHEDULED = "job on all nodes"
MIGRATED = "rank moved away"
ELSEWHERE = "another node"
DAEMONS, LOCAL, SERIAL = "daemons", "local", "serial job"


def not_built(calibration: Calibration, best: Mapping[str, int]) -> Figure:
    """Every program under the hardest daemons, local scheduling and the greediest serial job, with and without each."""
    daemon = {"interval_s": min(calibration.daemon_intervals_s), "duration_s": max(calibration.daemon_durations_s)}
    quantum_s, share = min(calibration.local_quanta_s), min(calibration.shares)
    daemons = described("daemon", **daemon)
    other = local_job(calibration, calibration.readings[0], quantum_s)
    job = serial_job(calibration, share)
    moved = {"migrate_after_s": calibration.migrate_after_s, "migrate_cost_s": calibration.migrate_cost_s}
    narrow = calibration.narrow_window
    following = {"window": "follow", "away_packets": calibration.large_window}
    discarding = {"away": "discard", "resend_s": calibration.resend_s}
    settings: list[Setting] = []

    def add(under: str, variant: str, disturbance: Document | None, **params: Any) -> None:
        for program in PROGRAMS:
            whole = {"program": program, "under": under, "variant": variant, "window": best[program], **params}
            settings.append((whole, disturbance))

    shared: list[tuple[str, Document | None, Document]] = [
        (DAEMONS, daemons, {}),
        (SERIAL, job, {}),
        (LOCAL, other, {"quantum_s": quantum_s}),
    ]
    for under, disturbance, more in shared:
        add(under, AS_IT_IS, disturbance, **more)
        add(under, FIXED, disturbance, window=narrow, **more)
        add(under, FOLLOWING, disturbance, window=narrow, policy=following, **more)
    # Not under local scheduling: ranks whose quanta hardly overlap never get a packet through, and that ends the run.
    add(DAEMONS, DISCARDING, daemons, policy=discarding)
    add(DAEMONS, ALIGNED, described("daemon", aligned=True, **daemon))
    add(SERIAL, COSCHEDULED, serial_job(calibration, share, everywhere=True))
    add(SERIAL, MIGRATED, serial_job(calibration, share, **moved))
    for rank in calibration.slowed_ranks:
        add(SERIAL, ELSEWHERE, serial_job(calibration, share, ranks=[rank]), rank=rank)
    return Figure(NAME, "what the paper names and did not build", settings)
