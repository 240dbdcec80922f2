"""Two measured in turns: the ratio of their rates, over cycles or over forks of a runtime."""

from dataclasses import replace

import numpy as np
import pytest
import synthetic
from of_runtimes import by_runtime, pair

from crosswind.errors import DescriptionError
from crosswind.measure.stopping import LEAST_FORKS, precision
from crosswind.model.paired import compare
from crosswind.model.points import points, time_base


def test_the_ratio_is_that_of_the_laws():
    receive, send = compare(*pair(send=0.0002))
    assert receive.direction == "receive"
    assert receive.low < 1.0 < receive.high
    assert send.low < 2.0 < send.high
    assert abs(send.ratio - 2.0) < 0.3
    assert send.estimator == "available"


def test_measurements_that_were_not_made_in_turns_are_refused():
    runtime, native = pair()
    other = replace(native, header={**native.header, "started": "2026-01-01T00:00:00Z"})
    with pytest.raises(DescriptionError, match="not made in turns"):
        compare(runtime, other)


def test_forks_are_what_intervals_draw_and_a_runtimes_own_threads_are_part_of_its_time():
    plain = synthetic.measurement()
    found = by_runtime(plain)
    assert set(points(found, 0).cycle) == {0, 1, 2, 3}
    assert np.allclose(time_base(found, "available"), time_base(plain, "available"))
    known = precision(found, 0, seed=1)
    assert (known.cycles, known.least) == (4, LEAST_FORKS)
    one = by_runtime(plain, forks=1)
    assert len(set(points(one, 0).cycle)) > 4, "one fork: cycles are drawn"
