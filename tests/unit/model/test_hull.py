"""Inside what was measured, or outside: full hulls and degenerate ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.model.hull import Hull


def test_every_measured_point_and_every_mixture_of_them_is_inside():
    rng = np.random.default_rng(1)
    at = rng.uniform(0, 3000, (40, 2))
    hull = Hull(*at.T)
    assert hull.contains(*at.T).all()
    weights = rng.dirichlet(np.ones(40), 200)
    assert hull.contains(*(weights @ at).T).all()
    assert not hull.contains([-1.0, 3001.0, 0.0], [0.0, 0.0, 3001.0]).any()


@given(corner=st.tuples(st.floats(0.1, 1e4), st.floats(0.1, 1e4)), part=st.floats(0.0, 1.0), off=st.floats(0.001, 1.0))
def test_a_segment_holds_its_points_and_nothing_beside_it(corner, part, off):
    hull = Hull([0.0, corner[0]], [0.0, corner[1]])
    assert len(hull.vertices) == 2
    assert hull.contains(part * corner[0], part * corner[1])
    assert not hull.contains(part * corner[0] + off * corner[0], part * corner[1])
    assert not hull.contains((1 + off) * corner[0], (1 + off) * corner[1])


def test_one_direction_only_is_a_range():
    hull = Hull([0.0, 1250.0, 2500.0], [0.0, 0.0, 0.0])
    assert hull.contains([0.0, 800.0, 2500.0], 0.0).all()
    assert not hull.contains([800.0, 2600.0], [1.0, 0.0]).any()


def test_a_single_point_holds_itself():
    hull = Hull([3.0, 3.0], [4.0, 4.0])
    assert len(hull.vertices) == 1
    assert hull.contains(3.0, 4.0)
    assert not hull.contains(3.0, 4.1)
    assert Hull([0.0], [0.0]).contains(0.0, 0.0)


@given(scale=st.floats(1e-3, 1e6), seed=st.integers(0, 1000))
def test_the_unit_does_not_matter(scale, seed):
    rng = np.random.default_rng(seed)
    at, asked = rng.uniform(0, 10, (8, 2)), rng.uniform(0, 12, (20, 2))
    assert (Hull(*at.T).contains(*asked.T) == Hull(*(at * scale).T).contains(*(asked * scale).T)).all()


@pytest.mark.parametrize("bad", [[], [np.nan]])
def test_no_point_at_all_is_refused(bad):
    with pytest.raises(ValueError, match="at least one point"):
        Hull(bad, bad)
