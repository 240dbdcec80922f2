"""The equations of table 2: a line through (transfer rate, normalised compute rate), and a parabola beside it.

y = c - IR x, by ordinary least squares; IR is the negative slope (interference-in-java, section 1). The same with c
held at 1, which is what the law 1 - IR TR of interference-aware-scheduling, section 3.1, assumes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crosswind.errors import DescriptionError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Errors:
    """How far measured values lie from predicted ones.

    The papers state errors without saying of what; their two texts on one data set (5.2 % and 12.4 % at most) agree
    only if one means parts of the full rate and the other parts of the measured rate (E1-4). So both are here, by name.

    Attributes
    ----------
    std_dev : float
        Standard deviation of the residuals, parts of the full rate; divided by n - (fitted parameters).
    max_error, mean_error : float
        Largest and mean absolute residual, parts of the full rate.
    max_error_relative, mean_error_relative : float
        The same as parts of the measured rate; NaN when a measured rate is 0.
    """

    std_dev: float
    max_error: float
    mean_error: float
    max_error_relative: float
    mean_error_relative: float


@dataclass(frozen=True)
class LineFit(Errors):
    """y = intercept - ir x, and y = 1 - ir_fixed x.

    Attributes
    ----------
    ir_s_per_mb, intercept : float
        Negative slope and constant.
    ir_standard_error, intercept_standard_error : float
        As if points were independent, which those of one measurement are not: use the interval by bootstrap.
    r_squared : float
        Coefficient of determination.
    ir_fixed_s_per_mb, std_dev_fixed, max_error_fixed : float
        Negative slope of the line through (0, 1), and its errors.
    points : int
        Number of points.
    """

    ir_s_per_mb: float
    intercept: float
    ir_standard_error: float
    intercept_standard_error: float
    r_squared: float
    ir_fixed_s_per_mb: float
    std_dev_fixed: float
    max_error_fixed: float
    points: int


@dataclass(frozen=True)
class QuadraticFit(Errors):
    """y = constant + linear x + square x^2; a positive `square` is a cost per MB that falls with the rate.

    Attributes
    ----------
    constant, linear, square : float
        Coefficients; x in MB/s.
    t_square : float
        Coefficient of x^2 over its standard error, as if points were independent; beyond about 3 to 5 the line bends.
    r_squared : float
        Coefficient of determination.
    points : int
        Number of points.
    """

    constant: float
    linear: float
    square: float
    t_square: float
    r_squared: float
    points: int


def errors(measured: ArrayLike, predicted: ArrayLike, parameters: int = 0) -> Errors:
    """Return how far `measured` lies from `predicted`, both shape (n,), in parts of the full rate.

    Examples
    --------
    >>> found = errors([1.0, 0.5], [0.9, 0.5])
    >>> round(found.max_error, 3), round(found.mean_error_relative, 3)
    (0.1, 0.05)
    """
    y = np.asarray(measured, float)
    gap = np.abs(y - np.asarray(predicted, float))
    if not y.size:
        return Errors(np.nan, np.nan, np.nan, np.nan, np.nan)
    relative = gap / np.abs(y) if np.all(y != 0) else np.full_like(y, np.nan)
    spread = float(np.sqrt(gap @ gap / (y.size - parameters))) if y.size > parameters else float("nan")
    return Errors(spread, float(gap.max()), float(gap.mean()), float(relative.max()), float(relative.mean()))


def least_squares(design: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return coefficients and their standard errors (as if independent) of y = design @ coefficients.

    Columns are scaled to unit length first, so that x^2 in (MB/s)^2 loses no digits; by QR, not by normal equations.

    Raises
    ------
    DescriptionError
        When there are fewer points than columns, or the columns do not tell each other apart.
    """
    n, k = design.shape
    length = np.linalg.norm(design, axis=0)
    if n < k or not np.all(length > 0):
        raise DescriptionError(f"{n} points for {k} coefficients", "too-few-points", "measure longer, at more levels")
    q, r = np.linalg.qr(design / length)
    if np.min(np.abs(np.diag(r))) < 1e-12:
        raise DescriptionError("the transfer rate was never varied", "too-few-points", "measure at more than one level")
    inverse = np.linalg.inv(r)
    coefficients = inverse @ (q.T @ y)
    residual = y - design @ (coefficients / length)
    variance = residual @ residual / (n - k) if n > k else np.nan
    return coefficients / length, np.sqrt(variance * np.sum(inverse**2, axis=1)) / length


def r_squared(y: Floats, predicted: Floats) -> float:
    """Return the part of y's variance that the prediction explains; NaN where y does not vary."""
    total = float(np.sum((y - y.mean()) ** 2))
    return 1.0 - float(np.sum((y - predicted) ** 2)) / total if total > 0 else float("nan")


def fit_line(x: ArrayLike, y: ArrayLike) -> LineFit:
    """Fit y = c - IR x by least squares, with c free and with c = 1.

    Parameters
    ----------
    x : array_like, shape (n,)
        Transfer rates, MB/s; at least two different ones.
    y : array_like, shape (n,)
        Normalised compute rates.

    Returns
    -------
    LineFit

    Raises
    ------
    DescriptionError
        With fewer than two different rates.

    Examples
    --------
    >>> line = fit_line([0.0, 5.0, 10.0], [1.0, 0.8, 0.6])
    >>> round(line.ir_s_per_mb, 6), round(line.intercept, 6), round(line.ir_fixed_s_per_mb, 6)
    (0.04, 1.0, 0.04)
    """
    xs, ys = np.asarray(x, float), np.asarray(y, float)
    # About the mean of x, where slope and constant do not disturb each other's digits.
    centre = xs.mean() if xs.size else 0.0
    u = xs - centre
    (middle, slope), (middle_error, slope_error) = least_squares(np.column_stack([np.ones_like(u), u]), ys)
    intercept = float(middle - slope * centre)
    predicted = middle + slope * u
    fixed = float(xs @ (1.0 - ys) / (xs @ xs))
    through_one = errors(ys, 1.0 - fixed * xs, 1)
    return LineFit(
        **vars(errors(ys, predicted, 2)),
        ir_s_per_mb=float(-slope),
        intercept=intercept,
        ir_standard_error=float(slope_error),
        intercept_standard_error=float(np.hypot(middle_error, slope_error * centre)),
        r_squared=r_squared(ys, predicted),
        ir_fixed_s_per_mb=fixed,
        std_dev_fixed=through_one.std_dev,
        max_error_fixed=through_one.max_error,
        points=xs.size,
    )


def fit_quadratic(x: ArrayLike, y: ArrayLike) -> QuadraticFit:
    """Fit y = a + b x + c x^2 by least squares; parameters and raises as `fit_line`, with three different rates.

    Examples
    --------
    >>> bent = fit_quadratic([0.0, 1.0, 2.0, 3.0], [1.0, 0.6, 0.4, 0.4])
    >>> round(bent.linear, 6), round(bent.square, 6)
    (-0.5, 0.1)
    """
    xs, ys = np.asarray(x, float), np.asarray(y, float)
    centre = xs.mean() if xs.size else 0.0
    u = xs - centre
    (a, b, c), (_, _, c_error) = least_squares(np.column_stack([np.ones_like(u), u, u * u]), ys)
    predicted = a + b * u + c * u * u
    return QuadraticFit(
        **vars(errors(ys, predicted, 3)),
        constant=float(a - b * centre + c * centre**2),
        linear=float(b - 2 * c * centre),
        square=float(c),
        t_square=float(c / c_error) if c_error > 0 else float("nan"),
        r_squared=r_squared(ys, predicted),
        points=xs.size,
    )
