"""The fit finds the law that a synthetic measurement was made from, and says when it can't."""

import contextlib
import json

import numpy as np
import pyarrow as pa
import pytest
import synthetic
from hypothesis import given, settings
from hypothesis import strategies as st

from crosswind.cli.fit import answer_of
from crosswind.errors import DescriptionError
from crosswind.measurement import Measurement
from crosswind.model.cost import attribute
from crosswind.model.fit import fit

QUIET = {"noise": 0.0, "drift": 0.0}


def codes(found):
    return {w["code"] for w in found.warnings}


def test_the_law_is_found_within_its_interval():
    found = fit(synthetic.measurement(0.00016, 0.0001, seed=3, cycles=40))
    receive, send = found.channels
    assert (receive.direction, send.direction) == ("receive", "send")
    assert receive.estimator == "available"
    for channel, ir in ((receive, 0.00016), (send, 0.0001)):
        assert channel.ir_s_per_mb == pytest.approx(ir, rel=0.05)
        assert channel.ir_ci95[0] <= ir <= channel.ir_ci95[1]
        assert channel.theil_sen == pytest.approx(ir, rel=0.05)
        assert channel.chord == pytest.approx(ir, rel=0.05)
        assert channel.loss_at_top == pytest.approx(2500 * ir, abs=0.02)
        assert channel.loss_ci95[0] <= channel.loss_at_top <= channel.loss_ci95[1]
        assert channel.upper_bound is None
        assert channel.ir_s_per_gb == 1000 * channel.ir_s_per_mb
        assert set(channel.lines) == {"available", "wall"}
    assert receive.ir_s_per_mb > send.ir_s_per_mb  # K-2


def test_earlier_measurements_of_the_host_widen_the_interval_for_the_next_one():
    today = synthetic.measurement(0.0002, 0.0001, seed=9)
    others = [synthetic.measurement(ir, 0.0001, seed=seed) for seed, ir in enumerate((0.00016, 0.00018, 0.00023))]
    alone, known = fit(today), fit(today, earlier=others)
    for one, other in zip(alone.channels, known.channels, strict=True):
        assert (other.headline.loss, other.headline.ci95) == (one.headline.loss, one.headline.ci95)
        assert (one.headline.earlier, other.headline.earlier) == (0, 3)
        assert other.headline.next95[0] <= one.headline.next95[0]
        assert other.headline.next95[1] >= one.headline.next95[1]
    low, high = known.channels[0].headline.next95
    assert low < 2000 * 0.00016
    assert high > 2000 * 0.00023
    assert json.loads(json.dumps(known.to_dict()))["peers"][0]["losses"][-1]["earlier"] == 3


def test_an_earlier_measurement_of_another_host_is_refused():
    with pytest.raises(DescriptionError, match='is of host "other", this one of "synthetic"'):
        fit(synthetic.measurement(), earlier=[synthetic.measurement(host="other")])


def test_without_noise_every_estimate_is_exact():
    found = fit(synthetic.measurement(0.00016, 0.0001, cycles=10, **QUIET))
    for channel, ir in zip(found.channels, (0.00016, 0.0001), strict=True):
        assert channel.ir_s_per_mb == pytest.approx(ir, rel=1e-9)
        assert channel.theil_sen == pytest.approx(ir, rel=1e-9)
        assert channel.intercept == pytest.approx(1.0)
        assert channel.line.ir_fixed_s_per_mb == pytest.approx(ir, rel=1e-9)
        assert channel.max_error < 1e-12
        assert all(abs(lack.gap) < 1e-9 for lack in channel.lack_of_fit)
    assert found.plane.constant == pytest.approx(1.0)
    assert found.plane.ir_receive_s_per_mb == pytest.approx(0.00016)
    assert found.three_point.ir_send_s_per_mb == pytest.approx(0.0001)
    assert found.predict(1000.0, 500.0).rate == pytest.approx(1 - 0.16 - 0.05)


def test_costs_per_call_gb_and_wakeup_are_found():
    found = fit(synthetic.measurement(call_us=1.4, gb_s=0.05, wakeup_us=9.0))
    for channel in found.channels:
        assert channel.cost_per_call_us == pytest.approx(1.4, rel=1e-3)
        assert channel.cost_per_gb_s == pytest.approx(0.05, rel=1e-3)
        assert channel.cost_per_wakeup_us == pytest.approx(9.0, rel=1e-3)


def test_costs_that_cannot_be_told_apart_have_wide_intervals():
    m = synthetic.measurement(cycles=20)
    columns = {name: m.samples.column(name).to_numpy() for name in m.samples.column_names}
    moved = columns["channel0_mb"] + columns["channel1_mb"]
    rng = np.random.default_rng(1)
    table = m.samples
    for name, values in (
        ("calls", 10 * moved),
        ("traffic_switches", 2 * moved),
        ("traffic_cpu_s", 1e-4 * moved * (1 + 0.05 * rng.normal(size=moved.size))),
    ):
        table = table.set_column(table.column_names.index(name), name, [values])
    found = fit(Measurement(table, m.header))
    assert "costs-not-separable" in codes(found)
    assert "costs-not-separable" not in codes(fit(m))
    cost = found.channels[0].cost
    assert cost.all_in_per_gb_s == pytest.approx(0.1, rel=0.02)
    together = 1e-6 * (10_000 * cost.per_call_us + 2_000 * cost.per_wakeup_us) + cost.per_gb_s
    assert together == pytest.approx(0.1, rel=0.02)
    assert min(cost.per_call_us, cost.per_gb_s, cost.per_wakeup_us) >= 0


def test_displacement_and_slow_down_add_up_to_the_loss():
    found = fit(synthetic.measurement(cycles=10, **QUIET))
    receive = found.channels[0]
    assert receive.displacement + receive.slow_down == pytest.approx(receive.loss_at_top, abs=2e-3)
    assert receive.displacement > 0.1
    assert receive.slow_down > 0.1
    other = fit(synthetic.measurement(cycles=10, placement="other-core", **QUIET)).channels[0]
    assert other.displacement == pytest.approx(0.0, abs=1e-9)
    assert other.slow_down == pytest.approx(other.loss_at_top, abs=2e-3)


@given(c=st.floats(0.05, 1.0), s=st.floats(0.05, 1.5), work=st.floats(1e-3, 1e3), cpu=st.floats(1e-3, 1e3))
def test_the_parts_of_a_loss_add_up_and_are_zero_where_nothing_changed(c, s, work, cpu):
    parts = attribute((cpu, cpu * c), (work, work * c * s), (cpu, cpu))
    assert parts.displacement + parts.slow_down == pytest.approx(1 - c * s, abs=1e-9)
    assert attribute((cpu, cpu), (work, work * s), (cpu, cpu)).displacement == pytest.approx(0.0, abs=1e-9)
    assert attribute((cpu, cpu * c), (work, work * c), (cpu, cpu)).slow_down == pytest.approx(0.0, abs=1e-9)


def test_about_zero_gives_an_upper_bound_instead_of_a_rate():
    found = fit(synthetic.measurement(0.0, 0.0, cycles=30, noise=0.02))
    for channel in found.channels:
        assert channel.ir_ci95[0] <= 0 <= channel.ir_ci95[1]
        assert channel.upper_bound == channel.ir_ci95[1]
    assert "about-zero" in codes(found)


def test_a_loss_that_bends_is_told_by_check_points():
    bent = fit(synthetic.measurement(0.0003, None, cycles=60, curvature=5e-8, noise=0.005, drift=0.005))
    assert "not-linear" in codes(bent)
    assert bent.channels[0].quadratic.square == pytest.approx(5e-8, rel=0.1)
    assert bent.channels[0].quadratic.t_square > 5
    straight = fit(synthetic.measurement(0.00016, None, cycles=60, noise=0.005, drift=0.005))
    assert "not-linear" not in codes(straight)


def test_a_spinning_receiver_shows_against_the_bare_baseline():
    found = fit(synthetic.measurement(0.0, 0.0, bare_factor=2.0, cycles=20))
    assert found.baseline.intercept_against_bare == pytest.approx(0.5, abs=0.03)
    assert "idle-cost" in codes(found)
    assert "idle-cost" not in codes(fit(synthetic.measurement(cycles=20, **QUIET)))


def test_synergy_is_found_and_separate_rates_err_more_than_the_plane():
    found = fit(synthetic.measurement(cycles=20, together_cycles=12, interaction=3e-8, noise=0.01, drift=0.005))
    plane = found.plane
    assert plane.synergy_ci95[0] > 0
    assert plane.interaction == pytest.approx(3e-8, rel=0.25)
    assert plane.t_interaction > 3
    assert plane.ir_receive_s_per_mb < plane.alone_receive_s_per_mb  # K-5
    assert plane.errors_separate.mean_error > plane.errors.mean_error
    three = found.three_point
    assert 0 < three.inside < three.points
    assert three.errors_inside.mean_error <= three.errors.mean_error  # K-6's direction
    assert "no-synergy" not in codes(found)
    worse = fit(synthetic.measurement(cycles=20, together_cycles=12, interaction=-2e-8, noise=0.01, drift=0.005))
    assert "no-synergy" in codes(worse)


def test_the_three_point_law_is_exact_at_its_points():
    three = fit(synthetic.measurement(cycles=20)).three_point
    for received, sent, rate in three.corners:
        law = 1 - three.ir_receive_s_per_mb * received - three.ir_send_s_per_mb * sent
        assert law == pytest.approx(rate, abs=1e-12)


def test_peers_add_up_where_the_law_is_additive():
    found = fit(synthetic.measurement((0.0001, 0.00014), None, cycles=20, together_cycles=12, noise=0.01))
    (receive,) = found.additive
    assert receive.direction == "receive"
    assert receive.errors.mean_error < 0.03  # K-4
    assert receive.bias_ci95[0] <= 0.01
    assert receive.bias_ci95[1] >= -0.01
    assert found.plane is None
    assert found.three_point is None
    bent = fit(
        synthetic.measurement((0.0001, 0.0001), None, cycles=20, together_cycles=12, noise=0.01, interaction=4e-8)
    )
    assert "not-additive" in codes(bent)


def test_peers_that_do_both_at_once_are_compared_with_the_sum_too():
    found = fit(synthetic.measurement((0.0001, 0.00014), (0.00005, 0.00006), cycles=12, together_cycles=10, **QUIET))
    (both,) = found.additive
    assert both.direction == "both"
    assert both.errors.max_error < 1e-9
    assert both.matched_points == 0
    json.dumps(found.to_dict(), allow_nan=False)


def test_predictions_are_marked_inside_or_outside_of_what_was_measured():
    found = fit(synthetic.measurement(cycles=6))
    assert found.predict(1000.0, 1000.0).inside
    assert not found.predict(4000.0, 0.0).inside
    assert found.predict(50_000.0, 0.0).rate == 0.0
    receive_only = fit(synthetic.measurement(0.00016, None, cycles=6))
    assert receive_only.predict(1000.0).inside
    assert receive_only.predict(1000.0).rate == pytest.approx(1 - 0.16, abs=0.02)
    with pytest.raises(DescriptionError, match="send was not measured"):
        receive_only.predict(0.0, 10.0)


def test_normalising_by_the_maximum_lowers_intercept_and_rate_alike():
    m = synthetic.measurement(cycles=20)
    idle, highest = fit(m).channels[0], fit(m, normalise="max").channels[0]
    assert highest.intercept < 0.98 < idle.intercept
    factor = highest.ir_s_per_mb / idle.ir_s_per_mb
    assert highest.ir_ci95[0] / idle.ir_ci95[0] == pytest.approx(factor)
    assert highest.intercept / idle.intercept == pytest.approx(factor)


def test_a_host_that_is_not_quiet_is_not_trusted():
    assert fit(synthetic.measurement(cycles=20, noise=0.01)).trustworthy
    busy = synthetic.measurement(cycles=20, noise=0.01, foreign=0.3)
    assert fit(busy).trustworthy  # what other processes took is out of `available`
    only_wall = fit(synthetic.measurement(cycles=20, noise=0.01, foreign=0.3, settings={"cpu_quota": "1 CPUs"}))
    assert "not-quiet" in codes(only_wall)
    assert not only_wall.trustworthy


def test_a_noisy_measurement_is_not_settled():
    found = fit(synthetic.measurement(cycles=5, noise=0.3, ended="time-limit"))
    assert not any(c.settled for c in found.channels)
    assert "not-settled" in codes(found)
    assert not found.trustworthy


def test_free_placement_is_fitted_on_wall_time_and_says_so():
    found = fit(synthetic.measurement(cycles=10, placement="free"))
    assert {c.estimator for c in found.channels} == {"wall"}
    assert set(found.channels[0].lines) == {"wall"}
    assert "wall-only" in codes(found)
    assert np.isnan(found.baseline.foreign_share)


def test_without_counts_of_waiting_and_switches_only_wall_time_is_used():
    """What a kernel without delay accounting answers: schedstat reads 0 0 0."""
    found = synthetic.measurement(0.00016, None)
    zeros = pa.array(np.zeros(found.samples.num_rows))
    samples = found.samples
    for name in ("compute_wait_s", "compute_switches", "traffic_wait_s", "traffic_switches"):
        samples = samples.set_column(samples.column_names.index(name), name, zeros)
    fitted = fit(Measurement(samples, found.header))
    assert [channel.estimator for channel in fitted.channels] == ["wall"]
    assert any(one["code"] == "wall-only" and "schedstat" in one["message"] for one in fitted.warnings)


def test_an_interrupted_measurement_is_fitted_as_far_as_it_goes():
    found = fit(synthetic.measurement(cycles=3, together_cycles=0, ended="interrupted"))
    assert {"partial"} <= codes(found)
    assert found.plane is None


def test_too_little_is_refused_and_not_guessed():
    with pytest.raises(DescriptionError) as refused:
        fit(synthetic.measurement(cycles=0, together_cycles=0))
    assert refused.value.code == "too-few-points"


def test_contention_is_fitted_as_the_papers_did():
    found = fit(synthetic.measurement(cycles=30, variation="contention", noise=0.01), normalise="max")
    assert found.channels[0].ir_s_per_mb == pytest.approx(0.00016, rel=0.15)


def test_the_document_is_json_with_the_fields_of_the_contract():
    found = fit(synthetic.measurement(cycles=4, placement="free"))
    text = json.dumps(found.to_dict(), allow_nan=False)
    document = json.loads(text)
    assert {"host", "kernel", "peers", "warnings"} <= set(document)
    contract = "peer direction ir_s_per_mb ir_ci95 intercept std_dev max_error r_squared points quadratic"
    contract += " transfer_max_mb_per_s"
    for peer in document["peers"]:
        assert set(contract.split()) <= set(peer)
    assert document["peers"][0]["points"] == found.channels[0].line.points


def test_the_same_measurement_and_seed_give_the_same_bytes():
    m = synthetic.measurement(cycles=6)
    assert json.dumps(fit(m, seed=5).to_dict()) == json.dumps(fit(m, seed=5).to_dict())


def test_a_fit_is_a_table_and_text():
    found = fit(synthetic.measurement(cycles=6))
    frame = found.to_pandas()
    assert list(frame["direction"]) == ["receive", "send"]
    assert found.to_polars().height == 2
    lines = found.table().splitlines()
    assert len(lines) == 3
    assert lines[1].split() == ["Node", *(["IR", "const", "StDev", "MaxE"] * 2)]
    assert "<table>" in found._repr_html_()


@settings(max_examples=10)
@given(unit=st.floats(1e-3, 1e3), seed=st.integers(0, 1000))
def test_the_unit_of_work_does_not_matter(unit, seed):
    m = synthetic.measurement(cycles=5, together_cycles=2, seed=seed)
    work = m.samples.column("work").to_numpy() * unit
    scaled = Measurement(m.samples.set_column(m.samples.column_names.index("work"), "work", [work]), m.header)
    for a, b in zip(fit(m).channels, fit(scaled).channels, strict=True):
        assert b.ir_s_per_mb == pytest.approx(a.ir_s_per_mb, rel=1e-9)
        assert b.ir_ci95 == pytest.approx(a.ir_ci95, rel=1e-9)
        assert b.compute_per_s == pytest.approx(a.compute_per_s * unit, rel=1e-9)


def test_the_whole_fit_covers_the_law_as_often_as_it_says():
    covered, synergy, runs = 0, 0, 16
    for seed in range(runs):
        found = fit(synthetic.measurement(0.00016, 0.0001, seed=seed, cycles=12, together_cycles=6))
        for channel, ir in zip(found.channels, (0.00016, 0.0001), strict=True):
            covered += channel.ir_ci95[0] <= ir <= channel.ir_ci95[1]
        low, high = found.plane.synergy_ci95
        synergy += low <= 0.0 <= high
    # Of 32 intervals of 95 %, 27 or fewer cover with probability 0.02; of 16, 12 or fewer with 0.007.
    assert covered >= 28
    assert synergy >= 13


def test_a_processor_that_is_uneven_with_no_other_process_on_it_is_told():
    def codes(noise):
        return {w["code"] for w in fit(synthetic.measurement(cycles=40, noise=noise, drift=0.0)).warnings}

    assert "uneven-speed" in codes(0.08)
    assert "uneven-speed" not in codes(0.01)


def test_cycles_that_differ_by_their_memory_are_no_uneven_processor():
    m = synthetic.measurement(cycles=40, noise=0.01, drift=0.0)
    cycle = m.samples.column("cycle").to_numpy()
    work = m.samples.column("work").to_numpy() * (1.0 + 0.08 * np.where(cycle % 2, 1.0, -1.0))
    scaled = Measurement(m.samples.set_column(m.samples.column_names.index("work"), "work", [work]), m.header)
    found = fit(scaled)
    assert found.baseline.noise < 0.02
    assert "uneven-speed" not in {w["code"] for w in found.warnings}


def test_an_idle_block_in_which_no_cpu_time_was_counted_leaves_the_compute_rate_known():
    """A command that mostly waits has blocks without any CPU time of its own."""
    found = synthetic.measurement(cycles=10)
    names = found.samples.column_names
    idle = np.all([found.samples.column(f"channel{i}_asked_mb_per_s").to_numpy() == 0 for i in range(2)], axis=0)
    idle &= found.samples.column("phase").to_numpy() == "ladder"
    row = found.samples.column("block").to_numpy() == found.samples.column("block").to_numpy()[idle][-1]
    samples = found.samples
    for name in ("compute_cpu_s", "traffic_cpu_s", "work"):
        samples = samples.set_column(names.index(name), name, [np.where(row, 0.0, samples.column(name).to_numpy())])
    without = fit(Measurement(samples, found.header)).baseline
    assert without.idle_per_s == pytest.approx(fit(found).baseline.idle_per_s, rel=0.02)
    assert all(np.isfinite((*without.idle_ci95, without.noise, without.drift, without.correlation)))


def test_a_measurement_is_fitted_from_its_file_too(tmp_path):
    found = synthetic.measurement(cycles=4, together_cycles=0)
    found.save(tmp_path / "m.parquet")
    for path in (tmp_path / "m.parquet", str(tmp_path / "m.parquet")):
        assert fit(path).to_dict() == fit(found).to_dict()
    with pytest.raises(DescriptionError, match="no such file"):
        fit(tmp_path / "none.parquet")


def altered(found, name, change):
    """A measurement with one column changed."""
    place = found.samples.schema.get_field_index(name)
    kind = found.samples.schema.field(place)
    values = change(found.samples[name].to_numpy().astype(float), found.samples["block"].to_numpy())
    return Measurement(found.samples.set_column(place, kind, pa.array(values, kind.type)), found.header)


def constant(values, block):
    return np.ones_like(values)


def none_at_all(values, block):
    return np.zeros_like(values)


def unknown(values, block):
    return np.full_like(values, np.nan)


def none_in_some_blocks(values, block):
    return np.where(block % 3 == 0, 0.0, values)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("change", [constant, none_at_all, unknown, none_in_some_blocks])
def test_counters_that_say_nothing_leak_no_warning_of_numpy(change):
    base = synthetic.measurement(cycles=6, together_cycles=3)
    counted = [n for n in base.samples.column_names if n.endswith("_s") or "switches" in n or n in ("calls", "work")]
    for name in counted:
        if name not in ("t_s", "dt_s", "channel0_asked_mb_per_s", "channel1_asked_mb_per_s"):
            with contextlib.suppress(DescriptionError):  # too little for a fit is an answer
                fit(altered(base, name, change)).to_dict()


@pytest.mark.parametrize(("name", "value"), [("work", np.inf), ("calls", 1e300), ("dt_s", 0.0), ("dt_s", np.nan)])
def test_a_file_with_amounts_that_no_probe_writes_is_refused_with_the_row(tmp_path, name, value):
    def spoil(values, block):
        values[4] = value
        return values

    altered(synthetic.measurement(cycles=2), name, spoil).save(tmp_path / "m.parquet")
    with pytest.raises(DescriptionError, match=rf"{name} is .* in row 5; it must be"):
        fit(tmp_path / "m.parquet")


def test_a_measurement_that_ran_out_of_time_is_to_be_longer_and_one_of_both_directions_at_once_to_be_another():
    def hint(found):
        return next(w["hint"] for w in found.warnings if w["code"] == "too-few-points")

    short = fit(synthetic.measurement(cycles=0, together_cycles=5, ended="time-limit"))
    assert "--max-seconds" in hint(short)
    assert "--direction each" not in hint(short)
    settled = fit(synthetic.measurement(cycles=0, together_cycles=20, ended="settled"))
    assert "--direction each" in hint(settled)


def test_an_interval_without_ends_is_told_in_words():
    found = fit(synthetic.in_one_cycle(synthetic.measurement(1e-4, None, ended="time-limit")))
    told = [w["message"] for w in found.warnings if w["code"] == "not-settled"]
    assert "too few cycles" in told[0]
    assert not any("inf" in message for message in told)


def left_in_idle(found, part, top=2500.0):
    """Return a measurement whose blocks without traffic still carried some, in the mean `part` of the top."""
    samples, draw = found.samples, np.random.default_rng(1)
    for place in range(len(found.header["channels"])):
        asked = samples.column(f"channel{place}_asked_mb_per_s").to_numpy()
        moved = samples.column(f"channel{place}_mb").to_numpy().copy()
        moved[asked == 0] += part * top * synthetic.INTERVAL_S * (0.5 + draw.random(np.count_nonzero(asked == 0)))
        at = samples.column_names.index(f"channel{place}_mb")
        samples = samples.set_column(at, f"channel{place}_mb", pa.array(moved))
    return Measurement(samples, found.header)


def test_idle_blocks_that_carried_traffic_are_named_and_no_loss_is_reported_below_them():
    found = synthetic.measurement(0.00016, None)
    asked = found.samples.column("channel0_asked_mb_per_s").to_numpy()
    quiet = found.samples.column("block").to_numpy() % 2 == 0
    carried = left_in_idle(found, 0.3).samples.column("channel0_mb").to_numpy()
    moved = np.where((asked == 0) & ~quiet, carried, found.samples.column("channel0_mb").to_numpy())
    at = found.samples.column_names.index("channel0_mb")
    (channel,) = (
        fitted := fit(Measurement(found.samples.set_column(at, "channel0_mb", pa.array(moved)), found.header))
    ).channels
    assert "idle-carries-traffic" in {one["code"] for one in fitted.warnings}
    idle = channel.points[channel.estimator]
    assert min(one.mb_per_s for one in channel.losses) > idle.x_mb_per_s[idle.idle].mean()


def test_without_a_block_free_of_traffic_the_fit_says_what_was_carried():
    with pytest.raises(DescriptionError, match="each block carried traffic, also those that asked for none"):
        fit(left_in_idle(synthetic.measurement(0.00016, None), 0.3))


def test_the_table_puts_a_loss_beside_the_rate_at_which_it_was_measured():
    found = synthetic.measurement(0.00016, None)
    found.header["channels"][0]["unpaced_mb_per_s"] = 4000.0
    fitted = fit(found)
    (channel,) = fitted.channels
    (details,) = answer_of([fitted]).wide
    row = dict(zip([name for name, _ in details.columns], details.rows[0], strict=True))
    assert (row["at MB/s"], row["loss there"]) == (
        f"{channel.top_mb_per_s:.0f}",
        f"{100 * channel.loss_at_top:.1f} %",
    )
    assert channel.range_mb_per_s[1] > channel.top_mb_per_s + 1
