"""Whether a job waits for what is stopped, or only stands still now and then."""

from crosswind.cost.blocks import Quads


def quads(*work: tuple[float, float]) -> Quads:
    each = [1.0, 1.0]
    return Quads.of([{"work": one, "wall_s": each, "job_cpu_s": each, "x_cpu_s": each} for one in work])


def test_a_job_that_moves_only_beside_the_target_waits_for_it():
    assert quads(*[(0.0, 10.0)] * 5).stand_still_without()
    assert quads(*[(0.0, 10.0)] * 9, (10.0, 10.0)).stand_still_without()


def test_a_job_that_a_disk_holds_up_does_not():
    assert not quads(*[(0.0, 0.0)] * 12, (0.0, 10.0), (0.0, 10.0)).stand_still_without()
    assert not quads(*[(0.0, 10.0), (10.0, 0.0)] * 5, (0.0, 10.0)).stand_still_without()


def test_four_quads_say_nothing():
    assert not quads(*[(0.0, 10.0)] * 4).stand_still_without()
