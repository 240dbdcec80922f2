"""Points of a sweep that share a task of Dask. (tests/live has a cluster.)"""

from crosswind.run.spread import fitting_size, perform_all


def test_runs_before_one_that_fails_are_kept_with_its_error():
    def perform(point):
        if point == 3:
            raise ValueError("three")
        return 10 * point

    found = perform_all(perform, [1, 2, 3, 4])
    assert (found.runs, str(found.error)) == ([10, 20], "three")
    assert perform_all(perform, [5]).runs == [50]
    assert perform_all(perform, [5]).error is None


def test_a_task_holds_as_many_points_as_take_a_quarter_of_a_second():
    assert fitting_size(1, 3600.0) == 1
    assert fitting_size(10, 0.1) == 25
    assert fitting_size(1, 1e-6) == 1000
