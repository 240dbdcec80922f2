"""Losses at fixed rates: the same whatever the top, known as well as they say, and what a plan takes of a bent loss."""

from types import SimpleNamespace

import numpy as np
import pytest
import synthetic

from crosswind.model.curve import LossAt, loss_at, losses, reported_rates, table, with_earlier
from crosswind.model.fit import fit
from crosswind.plan import plan
from crosswind.platform import Platform

IR, BEND, TOP = 0.0003, 5e-8, 2000.0


def lost(rate):
    return IR * rate - BEND * rate**2


def measured(rng, top, cycles=30, noise=0.01, correlation=0.5, law=lost, grows=0.0):
    """Points of a bent loss: cycles of (0, 0, 1/4, 1/2, 3/4, 1, 1), noise correlated from block to block."""
    level = np.concatenate([rng.permutation([0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0]) for _ in range(cycles)])
    wobble, value = np.empty(level.size), rng.normal()
    for i in range(level.size):
        value = correlation * value + np.sqrt(1 - correlation**2) * rng.normal()
        wobble[i] = value
    return SimpleNamespace(
        level=level,
        x_mb_per_s=level * top,
        y_work_per_s=9.0 * (1 - law(level * top) + noise * (1 + grows * level) * wobble),
        cycle=np.repeat(np.arange(cycles), 7),
        block=np.arange(level.size),
    )


def test_measurements_with_other_tops_tell_the_same_loss_at_the_same_rate():
    found = {
        top: {one.mb_per_s: one for one in losses(measured(np.random.default_rng(1), top))} for top in (1195, 1702)
    }
    assert set(found[1195]) == set(found[1702]) == {500.0, 1000.0}  # 200 lies below the lowest level of both
    for rate in (500.0, 1000.0):
        low, high = (found[top][rate] for top in found)
        assert low.next95[0] <= high.loss <= low.next95[1]
        assert low.loss == pytest.approx(lost(rate), abs=0.01)


@pytest.mark.parametrize("correlation", [0.0, 0.7, 0.9])
def test_intervals_hold_the_truth_and_the_next_measurement_as_often_as_they_say(correlation):
    runs, truth, following = 200, 0, 0
    before = None
    for run in range(runs + 1):
        (*_, one) = losses(measured(np.random.default_rng(run), TOP, 24, correlation=correlation), seed=run)
        assert one.mb_per_s == TOP
        truth += one.ci95[0] <= lost(TOP) <= one.ci95[1]
        following += before is not None and before.next95[0] <= one.loss <= before.next95[1]
        before = one
    assert 0.90 <= truth / (runs + 1) <= 0.999
    assert 0.90 <= following / runs <= 0.999


def test_earlier_measurements_tell_how_far_a_host_that_changes_may_be_next_time():
    """Each measurement is right about its own minute; between minutes the host changes by more than that."""
    draw = np.random.default_rng(1)
    alone = known = count = 0
    for _ in range(200):
        found = draw.normal(0.3, 0.03, size=8)
        for at in range(3, 7):
            loss = found[at]
            one = LossAt(500.0, loss, (loss - 0.01, loss + 0.01), (loss - 0.014, loss + 0.014))
            following = with_earlier(one, found[:at]).next95
            count += 1
            alone += one.next95[0] <= found[at + 1] <= one.next95[1]
            known += following[0] <= found[at + 1] <= following[1]
    assert alone / count < 0.5
    assert 0.93 <= known / count <= 0.99
    assert with_earlier(one, []) == one


def test_one_cycle_leaves_the_intervals_open():
    (*_, one) = losses(measured(np.random.default_rng(1), TOP, cycles=1))
    assert one.ci95 == (-np.inf, np.inf)


def test_without_idle_blocks_nothing_is_known():
    without = measured(np.random.default_rng(1), TOP)
    for name, values in vars(without).items():
        setattr(without, name, values[without.level > 0] if name != "level" else values)
    without.level = without.level[without.level > 0]
    assert losses(without) == ()
    assert np.isnan(loss_at(without, 500.0))


LAWS = {
    "line": lambda rate: 0.16 * rate / 1000,
    "concave": lambda rate: 0.32 * np.sqrt(rate / 2000),
    "saturating": lambda rate: 0.3 * (1 - np.exp(-rate / 300)),
    "convex": lambda rate: 0.3 * (rate / 1500) ** 2,
    "knee below a level": lambda rate: np.where(rate < 400, 0.2 * rate / 400, 0.2 + 0.05 * (rate - 400) / 1100),
    "knee between levels": lambda rate: np.where(rate < 640, 0.05 * rate / 640, 0.05 + 0.3 * (rate - 640) / 800),
    "free up to a knee": lambda rate: np.where(rate < 450, 0.0, 0.4 * (rate - 450) / 1050),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("top", [1500.0, 830.0])
def test_the_interval_at_each_reported_rate_holds_what_the_law_says(law, top):
    runs, held, rates = 15, 0, 0
    for run in range(runs):
        for one in losses(measured(np.random.default_rng(run), top, 24, law=law, grows=run % 2), seed=run):
            assert 0.999 * top / 4 <= one.mb_per_s <= 1.001 * top
            rates += 1
            held += one.ci95[0] <= law(one.mb_per_s) <= one.ci95[1]
    assert rates >= runs
    assert held >= 0.9 * rates


def test_levels_on_a_line_are_no_less_well_known_between_levels_than_at_them():
    at = {one.mb_per_s: one for one in losses(measured(np.random.default_rng(3), TOP, law=LAWS["line"]))}
    between = losses(measured(np.random.default_rng(3), 1500.0, law=LAWS["line"]))
    (low, high), (other_low, other_high) = at[1000.0].ci95, between[-1].ci95
    assert other_high - other_low < 1.6 * (high - low)


def test_reported_rates_lie_between_the_measured_levels():
    for low, top in (
        (0.075, 0.3),
        (0.25, 1.0),
        (2.0, 7.0),
        (250.0, 999.0),
        (500.0, 1000.0),
        (470.0, 480.0),
        (9.0, 9.0),
    ):
        rates = reported_rates(low, top)
        assert 1 <= len(rates) <= 3
        assert 0.999 * low <= rates[0] <= rates[-1] <= 1.001 * top


@pytest.mark.parametrize("left", [0.0, 30.0, 49.0, 60.0, 240.0, 260.0])
def test_nothing_is_reported_below_what_idle_blocks_carried(left):
    found = measured(np.random.default_rng(1), 480.0)
    found.x_mb_per_s[found.level == 0] = left
    rates = [one.mb_per_s for one in losses(found)]
    assert rates
    assert min(rates) >= max(left, 0.999 * 120.0)


def test_a_platform_gets_the_curve_of_the_measured_levels_only():
    rates = [rate for rate, _ in table(measured(np.random.default_rng(1), TOP))]
    assert (rates[0], rates[-1]) == (TOP / 4, TOP)


def bent():
    return fit(synthetic.measurement(0.0003, None, cycles=60, curvature=BEND, noise=0.005, drift=0.005))


def test_levels_left_out_are_predicted_by_the_curve_and_missed_by_the_line():
    (channel,) = bent().channels
    assert len(channel.left_out) == 3
    for level in channel.left_out:
        assert abs(level.by_curve - level.measured) < 0.01 < abs(level.by_line - level.measured)


def test_a_plan_takes_the_loss_at_the_rate_that_it_plans():
    found = bent()
    root = {"name": "root", "compute_per_s": 100.0, "send_limit_mb_per_s": 700.0}
    leaf = found.platform().to_dict()["node"][1] | {"name": "leaf", "parent": "root", "compute_per_s": 9.0}
    assert len(leaf["receive_losses"]) == 12
    pair = Platform.from_dict({"schema_version": 1, "name": "pair", "node": [root, leaf]})
    task = {"task_size_mb": 100.0, "task_work": 1.0, "ports": "multi"}
    planned = plan(pair, **task)
    node = planned.nodes[1]
    rate = 100.0 * node["received_tasks_per_s"]
    assert 400 < rate < 800  # between the levels that were measured
    assert node["ir_receive_s_per_mb"] * rate == pytest.approx(lost(rate), abs=0.005)
    assert planned.gap_to_exact < 0.1
    # The line through all levels alone would be wrong by more.
    assert abs(leaf["ir_receive_s_per_mb"] * rate - lost(rate)) > 0.02


def test_a_straight_loss_leaves_no_curve_in_the_platform():
    straight = fit(synthetic.measurement(0.00016, None, cycles=60, noise=0.005, drift=0.005))
    assert "receive_losses" not in straight.platform().to_dict()["node"][1]
    assert straight.channels[0].headline.loss == pytest.approx(0.00016 * 2000, abs=0.01)
