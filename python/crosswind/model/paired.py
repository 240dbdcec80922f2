"""Two that were measured in turns: how many times more the same traffic costs the one than the other."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from crosswind.errors import DescriptionError
from crosswind.measurement import Measurement
from crosswind.model.interval import slope_ratio
from crosswind.model.normalise import reference_rate
from crosswind.model.points import Estimator, Points, available_is_valid, has_forks, points, samples


@dataclass(frozen=True)
class Beside:
    """One channel of two measurements made in turns.

    Attributes
    ----------
    peer, direction : str
        The channel's.
    ratio, low, high : float
        Interference rate of the first over that of the second, with its 95 % interval; NaN where one is not above 0.
    compute_ratio : float
        Compute rate without traffic of the first over that of the second, work units per second.
    top_mb_per_s : tuple of float
        Highest paced rate that each reached, MB/s.
    estimator : str
        The time base of both.
    """

    peer: str
    direction: str
    ratio: float
    low: float
    high: float
    compute_ratio: float
    top_mb_per_s: tuple[float, float]
    estimator: Estimator

    def to_dict(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return asdict(self)


def compare(first: Measurement, second: Measurement, *, seed: int = 0) -> list[Beside]:
    """Return how two measurements that were made in turns compare, channel by channel.

    What slows the host for a while hits both, so their ratio is known better than either. Each resample draws the
    same cycles of both, or the same forks where the first is a runtime with several.

    Parameters
    ----------
    first, second : Measurement
        As `measure(runtime=..., beside="native")` makes them.
    seed : int
        Of the bootstrap.

    Raises
    ------
    DescriptionError
        When they were not made in turns.
    """
    channels = [
        [(c["peer"], c["direction"], c["top_mb_per_s"]) for c in one.header["channels"]] for one in (first, second)
    ]
    if first.header["started"] != second.header["started"] or channels[0] != channels[1]:
        hint = "`crosswind measure --runtime java --beside native` makes two that were"
        raise DescriptionError("these measurements were not made in turns", "not-in-turns", hint)
    valid = not (available_is_valid(first) or available_is_valid(second))
    estimator: Estimator = "available" if valid else "wall"
    found = []
    for index, channel in enumerate(first.header["channels"]):
        ladders = [_ladder(points(one, index, estimator)) for one in (first, second)]
        try:
            ratio, low, high = slope_ratio(
                *[(p.x_mb_per_s, p.y_work_per_s, p.cycle) for p in ladders],
                independent=has_forks(samples(first)),
                seed=seed,
            )
        except DescriptionError:
            continue  # one of them moved nothing: there is no ratio
        rates = [reference_rate(ladder, "idle") for ladder in ladders]
        tops = tuple(float(ladder.x_mb_per_s.max()) for ladder in ladders)
        found.append(
            Beside(
                peer=first.header["peers"][channel["peer"]]["address"],
                direction=channel["direction"],
                ratio=ratio,
                low=low,
                high=high,
                compute_ratio=rates[0] / rates[1],
                top_mb_per_s=(tops[0], tops[1]),
                estimator=estimator,
            )
        )
    return found


def _ladder(every: Points) -> Points:
    return every.where(~every.check)
