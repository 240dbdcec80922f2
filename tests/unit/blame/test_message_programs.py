"""Ranks whose clocks are seconds apart and that never all meet: their costs against the program without a late rank."""

import pytest
from message_programs import run, written

from crosswind.blame.recorded import blame_recorded
from crosswind.cli.blame_recorded import answer_of

STEPS, LATE = 40, 5


def of_rows_and_columns(rank, across=4, down=2):
    """No group has all ranks: rows and columns of a grid."""
    row, column = divmod(rank, across)
    for _ in range(STEPS):
        yield "compute", 0.006
        yield "meet", f"row {row}", [row * across + one for one in range(across)]
        yield "compute", 0.003
        yield "meet", f"column {column}", [one * across + column for one in range(down)]
        yield ("step",)


def of_a_master(rank, ranks=8):
    """Rank 0 hands out work and waits for it: only messages, and most of them have come when it looks."""
    for _ in range(STEPS):
        if rank == 0:
            yield from (("send", worker, 1) for worker in range(1, ranks))
            yield from (("receive", worker, 2) for worker in range(1, ranks))
        else:
            yield "receive", 0, 1
            yield "compute", 0.01
            yield "send", 0, 2
        yield ("step",)


def of_a_pipeline(rank, ranks=8):
    """Stages hand on four batches, there and back; then all meet."""
    for _ in range(STEPS):
        for work_s, before, after in ((0.003, rank - 1, rank + 1), (0.005, rank + 1, rank - 1)):
            for _ in range(4):
                if 0 <= before < ranks:
                    yield "receive", before, 1
                yield "compute", work_s
                if 0 <= after < ranks:
                    yield "send", after, 1
        yield "meet", "world", range(ranks)
        yield ("step",)


def of_a_sweep(rank, across=4, down=2):
    """A wave goes over the grid and back."""
    row, column = divmod(rank, across)
    for _ in range(STEPS):
        for way in (1, -1):
            before = [(column - way, row), (column, row - way)]
            after = [(column + way, row), (column, row + way)]
            inside = [
                [x + y * across for x, y in near if 0 <= x < across and 0 <= y < down] for near in (before, after)
            ]
            yield from (("receive", other, 1) for other in inside[0])
            yield "compute", 0.004
            yield from (("send", other, 1) for other in inside[1])
        yield "meet", "world", range(across * down)
        yield ("step",)


def of_turns(rank, ranks=6, steps=20):
    """Each rank has twice the work in its turn; the first two have one turn more."""
    for step in range(steps):
        yield "compute", 0.02 if step % ranks == rank else 0.01
        yield "meet", "world", range(ranks)
        yield ("step",)


PROGRAMS = [of_rows_and_columns, of_a_master, of_a_pipeline, of_a_sweep]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_late_rank_is_named_and_its_cost_is_within_the_interval(tmp_path, program, seed):
    late_s = lambda rank, step, place: 0.003 if rank == LATE and place == 0 else 0.0  # noqa: E731
    took, lines = run(8, program, seed, late_s)
    cost = took - run(8, program, seed)[0]
    (culprit,) = blame_recorded(written(tmp_path, lines)).data["culprits"]
    assert culprit["ranks"] == [LATE]
    missed = 0.001 * cost  # microseconds of calls that would no longer wait
    assert culprit["ci95"][0] - missed <= cost <= culprit["ci95"][1] + missed
    assert culprit["seconds"] == pytest.approx(cost, rel=0.03)


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_rank_is_named_where_none_is_late(tmp_path, program):
    found = blame_recorded(written(tmp_path, run(8, program, 3)[1])).data
    assert (found["culprits"], found["verdict"]) == ([], "none")


@pytest.mark.parametrize("seed", range(3))
def test_no_rank_is_named_where_all_are_slow_in_turn(tmp_path, seed):
    found = blame_recorded(written(tmp_path, run(6, of_turns, seed)[1])).data
    assert (found["culprits"], found["verdict"]) == ([], "none")
    assert found["reason"].startswith("no rank stands out: unevenness costs")


def test_uneven_ranks_of_a_program_with_few_steps_are_not_said_to_be_even(tmp_path):
    """Two ranks are slow, each in one of three steps: nothing says whether their work was meant to differ."""
    three = lambda rank: of_turns(rank, steps=3)  # noqa: E731
    found = blame_recorded(written(tmp_path, run(6, three, 1)[1])).data
    assert (found["culprits"], found["verdict"]) == ([], "unidentifiable")
    assert found["reason"].startswith("unevenness costs")
    assert "3 steps are too few" in found["reason"]


def test_how_long_unnamed_ranks_wait_is_one_line_however_many_are_named(tmp_path):
    late_s = lambda rank, step, place: 0.003 if rank == step % 2 else 0.0  # noqa: E731
    step = (("compute", 0.01), ("meet", "world", range(6)), ("step",))
    even = lambda rank: iter(step * STEPS)  # noqa: E731
    found = blame_recorded(written(tmp_path, run(6, even, 1, late_s)[1])).data
    assert sorted(rank for culprit in found["culprits"] for rank in culprit["ranks"]) == [0, 1]
    waiting = [note for note in answer_of(found).notes if note.startswith("Waiting: ")]
    assert len(waiting) == 1
    assert "rank 0" not in waiting[0]
    assert "rank 1" not in waiting[0]
