"""Least squares against certified values: NIST Statistical Reference Datasets (Norris, Pontius, NoInt1)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.errors import DescriptionError
from crosswind.model.line import errors, fit_line, fit_quadratic, least_squares
from crosswind.model.robust import theil_sen

NORRIS = """
0.1 0.2 338.8 337.4 118.1 118.2 888.0 884.6 9.2 10.1 228.1 226.5 668.5 666.3 998.5 996.3 449.1 448.6 778.9 777.0
559.2 558.2 0.3 0.4 0.1 0.6 778.1 775.5 668.8 666.9 339.3 338.0 448.9 447.5 10.8 11.6 557.7 556.0 228.3 228.1
998.0 995.8 888.8 887.6 119.6 120.2 0.3 0.3 0.6 0.3 557.6 556.8 339.3 339.1 888.0 887.2 998.5 999.0 778.9 779.0
10.2 11.1 117.6 118.3 228.9 229.2 668.4 669.1 449.2 448.9 0.2 0.5
"""
PONTIUS = """
.11019 .21956 .32949 .43899 .54803 .65694 .76562 .87487 .98292 1.09146 1.20001 1.30822 1.41599 1.52399 1.63194 1.73947
1.84646 1.95392 2.06128 2.16844 .11052 .22018 .32939 .43886 .54798 .65739 .76596 .87474 .98300 1.09150 1.20004 1.30818
1.41613 1.52408 1.63159 1.73965 1.84696 1.95445 2.06177 2.16829
"""


def test_norris_certified_values():
    y, x = np.array(NORRIS.split(), float).reshape(-1, 2).T
    assert x.size == 36
    line = fit_line(x, y)
    assert line.intercept == pytest.approx(-0.262323073774029, rel=1e-11)
    assert -line.ir_s_per_mb == pytest.approx(1.00211681802045, rel=1e-12)
    assert line.intercept_standard_error == pytest.approx(0.232818234301152, rel=1e-11)
    assert line.ir_standard_error == pytest.approx(0.429796848199937e-03, rel=1e-11)
    assert line.std_dev == pytest.approx(0.884796396144373, rel=1e-12)
    assert line.r_squared == pytest.approx(0.999993745883712, rel=1e-12)


def test_pontius_certified_values():
    y = np.array(PONTIUS.split(), float)
    x = np.tile(np.arange(1, 21) * 150_000.0, 2)
    bent = fit_quadratic(x, y)
    assert bent.constant == pytest.approx(0.673565789473684e-03, rel=1e-9)
    assert bent.linear == pytest.approx(0.732059160401003e-06, rel=1e-11)
    assert bent.square == pytest.approx(-0.316081871345029e-14, rel=1e-9)
    assert bent.square / bent.t_square == pytest.approx(0.486652849992036e-16, rel=1e-9)
    assert bent.std_dev == pytest.approx(0.205177424076185e-03, rel=1e-10)
    assert bent.r_squared == pytest.approx(0.999999900178537, rel=1e-12)


def test_noint1_certified_values():
    x, y = np.arange(60.0, 71.0), np.arange(130.0, 141.0)
    (slope,), (error,) = least_squares(x[:, None], y)
    assert slope == pytest.approx(2.07438016528926, rel=1e-13)
    assert error == pytest.approx(0.0165289256198347, rel=1e-12)
    assert errors(y, slope * x, 1).std_dev == pytest.approx(3.56753034006338, rel=1e-13)
    # The line held at (0, 1) is the same regression of 1 - y.
    assert fit_line(x, 1.0 - y).ir_fixed_s_per_mb == pytest.approx(2.07438016528926, rel=1e-13)


def test_errors_are_named_absolute_and_relative():
    found = errors([1.0, 0.5, 0.4], [0.9, 0.5, 0.5])
    assert found.max_error == pytest.approx(0.1)
    assert found.max_error_relative == pytest.approx(0.25)
    assert found.mean_error == pytest.approx(0.2 / 3)
    assert found.mean_error_relative == pytest.approx((0.1 + 0.25) / 3)


def test_a_rate_that_was_never_varied_is_refused():
    with pytest.raises(DescriptionError):
        fit_line([5.0, 5.0, 5.0], [0.5, 0.5, 0.6])
    with pytest.raises(DescriptionError):
        fit_quadratic([0.0, 1.0, 0.0, 1.0], [1.0, 0.5, 1.0, 0.5])


@given(seed=st.integers(0, 10_000), scale=st.floats(1e-6, 1e6))
def test_the_unit_of_transfer_only_scales_the_slope(seed, scale):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, 12)
    y = 1 - 0.05 * x + 0.02 * rng.normal(size=12)
    plain, scaled = fit_line(x, y), fit_line(x * scale, y)
    assert scaled.ir_s_per_mb * scale == pytest.approx(plain.ir_s_per_mb, rel=1e-6, abs=1e-9)
    assert scaled.std_dev == pytest.approx(plain.std_dev, rel=1e-6)
    assert fit_quadratic(x * scale, y).t_square == pytest.approx(fit_quadratic(x, y).t_square, rel=1e-5, abs=1e-6)


def test_a_quarter_of_ruined_points_moves_least_squares_and_not_theil_sen():
    rng = np.random.default_rng(1)
    cycle = np.repeat(np.arange(20), 5)
    x = np.tile([0.0, 0.0, 5.0, 10.0, 10.0], 20)
    y = 1 - 0.05 * x + 0.005 * rng.normal(size=100)
    y[rng.choice(np.flatnonzero(x == 10), 12, replace=False)] -= 0.3
    assert abs(fit_line(x, y).ir_s_per_mb - 0.05) > 0.005
    assert -theil_sen(x, y, cycle) == pytest.approx(0.05, rel=0.04)


def test_theil_sen_of_one_cycle_is_that_of_scipy():
    from scipy.stats import theilslopes

    rng = np.random.default_rng(2)
    x, y = rng.uniform(0, 10, 30), rng.normal(size=30)
    assert theil_sen(x, y, np.zeros(30, int)) == pytest.approx(theilslopes(y, x).slope, rel=1e-12)


def test_theil_sen_pairs_only_within_cycles():
    x = np.tile([0.0, 10.0], 3)
    y = np.array([1.0, 0.5, 11.0, 10.5, 101.0, 100.5])  # each cycle from another level
    assert theil_sen(x, y, [0, 0, 1, 1, 2, 2]) == pytest.approx(-0.05)
    assert np.isnan(theil_sen([1.0, 1.0], [0.0, 1.0], [0, 0]))
