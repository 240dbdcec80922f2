"""Which rank of a GOAL schedule is slow: its times are known, so the answer is, too."""

from __future__ import annotations

import pytest

from crosswind.blame.recorded import blame_recorded
from crosswind.cli.blame_recorded import SCHEDULED, answer_of
from crosswind.errors import DescriptionError
from crosswind.files.recorded import is_recorded

RANKS, STEPS, WORK_NS, EXTRA_NS = 5, 20, 1_000_000, 400_000


def ring(extra_ns, late=2):
    """Return a schedule in which each rank computes, then passes a message to both neighbours and waits for theirs."""
    lines = [f"num_ranks {RANKS}"]
    for rank in range(RANKS):
        left, right = (rank - 1) % RANKS, (rank + 1) % RANKS
        lines.append(f"rank {rank} {{")
        for step in range(STEPS):
            ns = WORK_NS + 1_000 * ((3 * rank + step) % 4) + extra_ns * (rank == late)
            lines.append(f"c{step}: calc {ns}")
            if step:
                lines += [f"c{step} requires l{step - 1}", f"c{step} requires r{step - 1}"]
            for name, other in (("l", left), ("r", right)):
                lines += [f"s{name}{step}: send 8b to {other} tag {step}", f"s{name}{step} requires c{step}"]
            for name, other in (("l", left), ("r", right)):
                lines += [f"{name}{step}: recv 8b from {other} tag {step}", f"{name}{step} requires c{step}"]
        lines.append("}")
    return "\n".join(lines) + "\n"


def judged(tmp_path, text):
    file = tmp_path / "schedule.goal"
    file.write_text(text)
    assert is_recorded(file)
    return blame_recorded([file]).data


@pytest.mark.parametrize("late", [0, 2])
def test_the_rank_that_computes_for_longer_is_named_with_what_that_costs(tmp_path, late):
    found, even = (judged(tmp_path, ring(extra, late)) for extra in (EXTRA_NS, 0))
    assert found["recorded_s"] == pytest.approx(STEPS * (WORK_NS + EXTRA_NS) * 1e-9, rel=0.01)
    assert found["replayed_s"] == pytest.approx(found["recorded_s"], rel=1e-6)
    [culprit] = found["culprits"]
    assert (found["verdict"], culprit["ranks"]) == ("straggler", [late])
    assert culprit["seconds"] == pytest.approx(found["recorded_s"] - even["recorded_s"], rel=0.02)
    assert SCHEDULED in found["notes"]
    assert not any(line.startswith("Next") for line in answer_of(found).lines)
    assert (even["verdict"], even["culprits"]) == ("none", [])


def test_a_schedule_that_waits_for_ever_is_refused(tmp_path):
    text = "num_ranks 2\nrank 0 {\nrecv 8b from 1 tag 3\n}\nrank 1 {\ncalc 5\n}\n"
    with pytest.raises(DescriptionError, match="rank 0 waits for ever: receive from 1 with tag 3"):
        judged(tmp_path, text)


def test_a_message_that_nobody_receives_is_refused(tmp_path):
    text = "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 3\n}\nrank 1 {\ncalc 5\n}\n"
    with pytest.raises(DescriptionError, match="rank 1: 1 messages came that no recv asked for"):
        judged(tmp_path, text)


def test_what_is_no_schedule_is_refused_with_its_line(tmp_path):
    with pytest.raises(DescriptionError, match=r"line 3: cpu is 256; it must be at most 255"):
        judged(tmp_path, "num_ranks 2\nrank 0 {\ncalc 5 cpu 256\n}\n")
