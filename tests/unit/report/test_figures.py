"""Figures: what is drawn is what was fitted and planned, the same every time, and small however long the run."""

import json

import numpy as np
import pytest
import reported
import vl_convert

from crosswind.model.fit import fit
from crosswind.report.comparisons import groups_of, pairs_of
from crosswind.report.figures.band import line_band
from crosswind.report.figures.both_directions import both_directions
from crosswind.report.figures.figure import identifier, script_json
from crosswind.report.figures.lanes import MOST_MARKS, lane_rows, lanes
from crosswind.report.figures.look import dressed
from crosswind.report.figures.nodes import node_bars
from crosswind.report.figures.orders import makespans, predicted_and_run
from crosswind.report.figures.residuals import residuals
from crosswind.report.figures.scatter import LINE, MOST_POINTS, scatter
from crosswind.report.figures.sweep import sweep_interference, sweep_reached
from crosswind.report.figures.timeline import MOST_BINS, compute_timeline, cpu_timeline, transfer_timeline
from crosswind.report.figures.tree import MOST_NODES, THINNEST_PX, WIDEST_PX, platform_tree, rows_of
from crosswind.report.page.document import VEGA_LITE


@pytest.fixture(scope="module")
def fitted():
    return fit(reported.measured())


def data_of(chart) -> list[list[dict]]:
    """Rows of each layer's data."""
    spec = chart.to_dict()
    datasets = spec.get("datasets", {})
    layers = spec.get("layer", [spec])
    sources = [layer.get("data") or spec.get("data") for layer in layers]
    return [source.get("values") or datasets[source["name"]] for source in sources]


def drawings(fitted, tmp_path):
    channel, nodes = fitted.channels[0], reported.planned().nodes
    sweep = reported.swept(tmp_path / "sweep")
    return {
        "scatter": lambda: scatter(channel),
        "residuals": lambda: residuals(channel),
        "compute": lambda: compute_timeline(fitted.measurement),
        "transfer": lambda: transfer_timeline(fitted.measurement),
        "cpu": lambda: cpu_timeline(fitted.measurement),
        "together": lambda: both_directions(fitted),
        "tree": lambda: platform_tree(nodes),
        "bars": lambda: node_bars(nodes),
        "sweep": lambda: sweep_interference(sweep),
        "reached": lambda: sweep_reached(sweep),
        "orders": lambda: makespans(groups_of(reported.ran())[0].rows, "work", True),
        "pairs": lambda: predicted_and_run([{"name": "a", "planned": 0.9, "predicted": 1.0, "run": 1.1}]),
        "lanes": lambda: lanes(reported.traced()),
        "long lanes": lambda: lanes(reported.traced(9000)),
    }


def test_the_same_input_gives_the_same_specification_and_vega_lite_takes_it(fitted, tmp_path):
    for name, draw in drawings(fitted, tmp_path).items():
        first, second = (draw().to_dict() for _ in range(2))
        assert json.dumps(first) == json.dumps(second), name
        assert first["width"] == "container", name
        assert vl_convert.vegalite_to_vega(dressed(draw()), vl_version=VEGA_LITE)["marks"], name


def test_the_drawn_line_has_the_slope_and_the_constant_of_the_fit(fitted):
    channel = fitted.channels[0]
    (drawn,) = (rows for rows in data_of(scatter(channel)) if "fit" in rows[0])
    line = [row for row in drawn if row["fit"] == LINE]
    run = line[-1]["x"] - line[0]["x"]
    assert (line[0]["y"] - line[-1]["y"]) / run == pytest.approx(channel.ir_s_per_mb, rel=1e-3)
    assert line[0]["y"] == pytest.approx(channel.intercept, rel=1e-5)


def test_the_scatter_holds_every_point_of_a_short_run_and_few_of_a_long_one(fitted):
    channel = fitted.channels[0]
    assert len(next(rows for rows in data_of(scatter(channel)) if "kind" in rows[0])) == len(
        channel.points["available"]
    )
    long = fit(reported.hour_of(reported.measured(together_cycles=0))).channels[0]
    assert len(long.points["available"]) > MOST_POINTS
    assert len(next(rows for rows in data_of(scatter(long)) if "kind" in rows[0])) <= MOST_POINTS


def test_residuals_of_the_ladder_add_up_to_nothing(fitted):
    (dots,) = (rows for rows in data_of(residuals(fitted.channels[0])) if "kind" in rows[0])
    ladder = [row["y"] for row in dots if row["kind"] != "check for lack of fit"]
    assert np.mean(ladder) == pytest.approx(0.0, abs=2e-3)
    assert max(abs(value) for value in ladder) == pytest.approx(fitted.channels[0].max_error, rel=0.05)


def test_the_band_holds_the_true_line_about_as_often_as_it_says():
    grid = np.array([0.0, 500.0, 1000.0])
    held, turns = 0, 150
    for seed in range(turns):
        rng = np.random.default_rng(seed)
        x = np.tile([0.0, 0.0, 500.0, 1000.0, 1000.0], 20)
        cycle = np.repeat(np.arange(20), 5)
        y = 9.0 * (1.0 - 0.0004 * x) * (1 + 0.02 * rng.normal(size=x.size)) * (1 + 0.05 * rng.normal(size=20))[cycle]
        low, high = line_band(x, y, x == 0, cycle, grid)
        slope, intercept = np.polyfit(x, y / y[x == 0].mean(), 1)
        drawn = intercept + slope * grid
        truth = 1.0 - 0.0004 * grid
        held += bool(drawn[2] + low[2] <= truth[2] <= drawn[2] + high[2])
    # 95 % of 150 is 142.5, with a standard deviation of 2.7.
    assert 132 <= held <= 150


def test_a_band_needs_cycles():
    x = np.array([0.0, 1.0, 0.0, 1.0])
    assert line_band(x, 1 - 0.1 * x, x == 0, np.array([0, 0, 1, 1]), x) is None


def test_time_lines_keep_the_sums_and_stay_short():
    measurement = reported.hour_of(reported.measured(together_cycles=0))
    stack, *_ = data_of(cpu_timeline(measurement))
    user = [row["share"] for row in stack if row["counter"] == "user"]
    assert len(user) <= MOST_BINS
    whole = measurement.samples.column("user_s").to_numpy().sum() / measurement.samples.column("dt_s").to_numpy().sum()
    assert np.mean(user) == pytest.approx(whole, abs=0.005)
    for chart in (compute_timeline(measurement), transfer_timeline(measurement)):
        assert len(data_of(chart)[0]) <= 6 * MOST_BINS
        assert len(json.dumps(chart.to_dict())) < 400_000


def test_idle_dots_lie_at_one_and_traffic_below(fitted):
    (dots,) = data_of(compute_timeline(fitted.measurement))
    by_kind = {
        kind: np.mean([row["rate"] for row in dots if row["kind"] == kind]) for kind in {d["kind"] for d in dots}
    }
    assert by_kind["no traffic"] == pytest.approx(1.0, abs=0.02)
    assert by_kind["receive"] < by_kind["send"] < 0.95


def test_a_small_tree_shows_every_node_in_its_order_of_service():
    nodes = reported.planned().nodes
    rows = rows_of(nodes)
    assert rows[0].name == "Lab0"
    assert {row.name for row in rows} == {node["name"] for node in nodes}
    ranks = [row.node["rank"] for row in rows[1:] if row.node["rank"]]
    assert ranks == sorted(ranks)
    assert rows[-1].name == "Tenn"
    assert rows[-1].detail == "never sent to"


def test_a_large_tree_accounts_for_every_node_and_every_task():
    nodes = reported.tree_of(1500)
    rows = rows_of(nodes)
    assert sum(row.node is not None for row in rows) == MOST_NODES
    assert rows[0].received == pytest.approx(sum(node["computed_tasks_per_s"] for node in nodes))
    for row in rows:
        if row.children:
            passed = row.received - row.node["computed_tasks_per_s"]
            assert sum(child.received for child in row.children) == pytest.approx(passed)
    said = sum(int(row.name.split()[1].replace(",", "")) for row in rows if row.node is None)
    said += sum(int(row.detail.split("· ")[1].split()[0].replace(",", "")) for row in rows if "·" in row.detail)
    assert said + MOST_NODES == 1500
    assert len(json.dumps(platform_tree(nodes).to_dict())) < 60_000


def test_a_chain_deeper_than_pythons_stack_is_drawn():
    assert len(rows_of(reported.tree_of(5000, children=1))) == MOST_NODES


def test_a_stream_is_as_wide_as_its_share():
    nodes = reported.tree_of(7)
    flowing = [row for row in data_of(platform_tree(nodes))[0] if row["flows"]]
    into = sorted(round(row["y2"] - row["y"], 3) for row in flowing if row["x2"] - row["x"] > 20)
    received = np.array(sorted(node["received_tasks_per_s"] for node in nodes[1:] if node["received_tasks_per_s"]))
    assert np.allclose(into, np.maximum(WIDEST_PX * received / received.sum(), THINNEST_PX), atol=0.01)


def test_names_cannot_end_a_script_element():
    text = script_json({"name": "</script><!--&", "line": "\u2028"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"name": "</script><!--&", "line": "\u2028"}


def test_identifiers_are_safe_as_file_names():
    assert identifier("../../etc", "A b</x>", "") == "etc-a-b-x"


@pytest.mark.parametrize("tasks", [30, 3000, 30_000])
def test_lanes_stay_small_however_long_the_trace_and_say_how_busy_each_was(tasks):
    trace = reported.traced(tasks)
    rows, exact = lane_rows(trace)
    assert len(rows) <= MOST_MARKS
    assert exact is (tasks == 30)
    busy = sum(
        (row["to"] - row["from"]) * row["busy"] for row in rows if row["lane"] == "Lab3" and row["what"] == "computes"
    )
    assert busy == pytest.approx(1.1 * tasks / 3, rel=0.01)


def test_runs_are_grouped_by_what_is_not_an_application():
    (group,) = groups_of(reported.ran())
    assert group.applications == ["1", "3", "5", "11"]
    assert group.series == list(reported.ORDERS)
    assert group.title == "work"
    assert all(row["low"] <= row["middle"] <= row["high"] for row in group.rows)


def test_only_points_that_were_both_predicted_and_run_are_paired():
    pairs = pairs_of([reported.ran(), reported.ran("local", slower=1.1, works=(5, 7))])
    assert len(pairs) == len(reported.ORDERS)
    assert all(pair.difference == pytest.approx(0.1) for pair in pairs)
    assert pairs[0].name == "5 work, interference"
    bound = reported.ran(works=(5,))[0]
    assert pairs[0].planned_s == bound.data["tasks"] / bound.bound_tasks_per_s
    assert pairs[0].planned_s <= 1.001 * pairs[0].predicted_s
