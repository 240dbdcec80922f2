"""From samples to points: settling and foreign load out, one time base for both rates."""

import numpy as np
import pyarrow as pa
import pytest
import synthetic

from crosswind.errors import DescriptionError
from crosswind.measurement import Measurement
from crosswind.model.normalise import reference_rate
from crosswind.model.points import available_is_valid, points


def changed(measurement: Measurement, **columns) -> Measurement:
    """Replace columns."""
    table = measurement.samples
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return Measurement(table, measurement.header)


def test_there_is_one_point_per_block_of_the_channels_own_cycles():
    found = points(synthetic.measurement(cycles=10), 0)
    assert len(found) == 10 * 5 + 3
    assert sorted(set(found.level)) == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert np.count_nonzero(found.check) == 3
    # Cycles of the other channel are another's: none of their idle blocks is used twice.
    other = points(synthetic.measurement(cycles=10), 1)
    assert not set(found.block) & set(other.block)


def test_settling_intervals_are_left_out():
    m = synthetic.measurement(cycles=4, noise=0.0, drift=0.0)
    settling = m.samples.column("settling").to_numpy()
    spoilt = changed(m, work=np.where(settling, 1e9, m.samples.column("work").to_numpy()))
    assert points(spoilt, 0).y_work_per_s == pytest.approx(points(m, 0).y_work_per_s)


def test_available_removes_what_other_processes_took_and_wall_drops_it():
    quiet = synthetic.measurement(cycles=30, noise=0.0, drift=0.0)
    busy = synthetic.measurement(cycles=30, noise=0.0, drift=0.0, foreign=0.3)
    for estimator in ("available", "wall"):
        idle = [reference_rate(points(m, 0, estimator)) for m in (quiet, busy)]
        assert idle[1] == pytest.approx(idle[0], rel=1e-6)
    assert points(busy, 0, "available").foreign_intervals == 0
    wall = points(busy, 0, "wall")
    assert 0 < wall.foreign_intervals < wall.intervals
    kept = points(busy, 0, "wall", drop_foreign=False)
    assert reference_rate(kept) < 0.95 * idle[0]


def test_x_and_y_have_the_same_time_base():
    m = synthetic.measurement(cycles=20, noise=0.0, drift=0.0, foreign=0.3)
    found = points(m, 0, "available")
    law = 1 - 0.00016 * found.x_mb_per_s
    assert found.y_work_per_s / reference_rate(found) == pytest.approx(law, abs=0.01)
    assert found.x_mb_per_s.max() > 1.3 * points(m, 0, "wall").x_mb_per_s.max()


def test_other_core_divides_by_the_computing_threads_own_time():
    m = synthetic.measurement(cycles=6, placement="other-core", noise=0.0, drift=0.0)
    assert available_is_valid(m) is None
    rows = m.samples.column("compute_cpu_s").to_numpy()
    assert points(m, 0).seconds.sum() < rows.sum()
    assert points(m, 0).y_work_per_s == pytest.approx(points(m, 0, "wall").y_work_per_s)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"placement": "free"}, "move"),
        ({"settings": {"cpu_quota": "1 CPUs"}}, "quota"),
    ],
)
def test_available_is_refused_where_it_would_mislead(arguments, words):
    assert words in str(available_is_valid(synthetic.measurement(cycles=2, **arguments)))


def test_a_quota_of_more_cpus_than_are_used_does_not_matter():
    assert available_is_valid(synthetic.measurement(cycles=2, settings={"cpu_quota": "2 CPUs"})) is None


def test_available_is_refused_where_the_computation_sleeps():
    m = synthetic.measurement(cycles=2)
    sleepy = changed(m, compute_cpu_s=0.1 * m.samples.column("compute_cpu_s").to_numpy())
    assert "sleeps" in str(available_is_valid(sleepy))
    unknown = changed(m, compute_cpu_s=np.full(m.samples.num_rows, np.nan))
    assert available_is_valid(unknown) is not None


def test_foreign_load_that_cannot_be_told_drops_nothing():
    m = synthetic.measurement(cycles=4, placement="free", foreign=0.3)
    assert points(m, 0, "wall").foreign_intervals == 0


def test_contention_measurements_have_points_without_a_ladder():
    found = points(synthetic.measurement(cycles=6, variation="contention"), 0, "wall")
    assert len(found) == 30
    assert np.isnan(found.asked_mb_per_s[~found.idle]).all()


def test_a_channel_that_does_not_exist_is_refused():
    with pytest.raises(DescriptionError, match="channel is 7; the measurement has 2"):
        points(synthetic.measurement(cycles=1), 7)


def test_normalising_by_the_maximum_biases_the_rest_below_one():
    found = points(synthetic.measurement(cycles=20), 0)
    idle, highest = reference_rate(found), reference_rate(found, "max")
    assert highest > 1.02 * idle
    with pytest.raises(DescriptionError):
        reference_rate(found, "median")
