"""The recorder shares the processors with the ranks, and takes only what they leave."""

import os
import threading

from crosswind.recorder.program import _Preemptions


def test_ranks_are_followed_by_a_thread_that_takes_what_they_leave(tmp_path):
    seen, policies = threading.Event(), []

    class Followed(_Preemptions):
        def follow(self, parts):
            policies.append(os.sched_getscheduler(0))
            seen.set()

    usual = os.sched_getscheduler(0)
    with Followed(None, "").following(tmp_path):
        assert seen.wait(120)
    assert policies[0] == os.SCHED_IDLE
    assert policies[-1] == usual, "what comes last is done at once"
