"""No two numbers of the report contradict each other."""

import dataclasses
import re

import numpy as np
import reported

from crosswind.cli.answer import Answer, show
from crosswind.cli.run_answers import answer_of
from crosswind.cli.run_tables import tables_of
from crosswind.model.fit import fit
from crosswind.plan import Plan
from crosswind.report import report
from crosswind.report.comparisons import groups_of
from crosswind.report.findings import finding
from crosswind.run.results import Run, Runs


def text_of(tmp_path, *items):
    page = re.sub(
        '(?s)<details class="explained">.*?</details>', "", report(items, tmp_path / "report.html").read_text()
    )
    body = page[page.index("<main") : page.index("<footer")]
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", body))


def test_a_link_faster_than_the_top_level_is_told_beside_it():
    channel = fit(reported.measured()).channels[0]
    faster = dataclasses.replace(channel, top_mb_per_s=1000.0, transfer_max_mb_per_s=3957.0)
    assert "At 1 GB/s, the top level of the measurement" in finding(faster, False).at_most
    assert "reached 3.96 GB/s at most: the loss at that rate was not measured" in finding(faster, False).at_most
    same = dataclasses.replace(channel, top_mb_per_s=1000.0, transfer_max_mb_per_s=1010.0)
    assert "not measured" not in finding(same, False).at_most


def test_the_count_of_nodes_without_tasks_holds_all_that_the_tree_says_get_nothing(tmp_path):
    data = reported.planned().to_dict()
    for node in data["nodes"]:
        if node["name"] in ("Lab3", "Tenn"):
            node |= {"computed_tasks_per_s": 0.0, "received_tasks_per_s": 0.0, "rank": 0}
            node |= {"never_send": node["name"] == "Tenn", "limited_by": "parent"}
    text = text_of(tmp_path, Plan(data))
    assert re.search(r"nodes without tasks 2 of them never sent to: 1", text)


def runs_of(spread=0.0, slower=0.0, seeds=1):
    orders = ("interference", "bandwidth", "planned")
    return Runs(
        "tie",
        "local",
        [
            Run(
                reported.one_run(
                    order=order,
                    seed=seed,
                    params={"policy.order": order, "seed": seed},
                    slower=1 + k * slower + (seed - (seeds - 1) / 2) * spread,
                )
            )
            for k, order in enumerate(orders)
            for seed in range(seeds)
        ],
    )


def test_orders_that_all_tie_are_not_called_fastest(tmp_path):
    once = text_of(tmp_path, runs_of())
    assert "all 3 orders ran once, so any difference may be chance" in once
    assert "tied" not in once
    text = text_of(tmp_path, runs_of(seeds=3))
    assert "No single order is fastest. On this machine: all 3 orders tied for the fastest" in text


def test_orders_tie_unless_their_paired_differences_settle_it(tmp_path):
    paired = text_of(tmp_path, runs_of(spread=0.04, slower=0.01, seeds=3))
    assert "interference On this machine: was fastest" in paired
    rng = np.random.default_rng(3)
    apart = [Run(run.data | {"makespan_s": 160 * rng.uniform(0.9, 1.1)}) for run in runs_of(seeds=5)]
    assert "all 3 orders tied for the fastest" in text_of(tmp_path, Runs("tie", "local", apart))


def makespans(**of_order):
    """Return runs of some orders at one point or, of lists of lists, at several; a value for each seed."""
    runs = []
    for order, points in of_order.items():
        for point, seconds in enumerate(points if isinstance(points[0], list) else [points]):
            for seed, makespan in enumerate(seconds):
                params = {"policy.order": order, "workload.task_work": point}
                bound = {"bound_tasks_per_s": 10.0 + seed, "throughput_tasks_per_s": 1000.0 / makespan}
                runs.append(
                    Run(reported.one_run(order=order, seed=seed, params=params, **bound) | {"makespan_s": makespan})
                )
    return Runs("study", "sim", runs)


def test_more_repetitions_do_not_make_everything_a_tie(tmp_path):
    """Ranges of 20 seeds overlap at every point; the differences by seed do not."""
    rng = np.random.default_rng(1)
    luck = rng.uniform(0.8, 1.2, 20)
    interference = [[float(100 * one) for one in luck]] * 2
    arrival = [[float(99 * one + rng.uniform(-0.1, 0.1)) for one in luck], [float(101 * one) for one in luck]]
    text = text_of(tmp_path, makespans(interference=interference, arrival=arrival))
    assert "arrival Simulated: was fastest at 1 of 2 points, interference at 1" in text


def test_a_single_simulated_run_is_faster_by_whatever_it_is_faster(tmp_path):
    text = text_of(tmp_path, makespans(planned=[[100.0], [100.0]], arrival=[[100.01], [100.0]]))
    assert "planned Simulated: was fastest at 1 of 2 points; tied: all 2 orders at 1" in text


def test_the_share_of_the_bound_is_one_number_on_the_terminal_in_the_table_and_in_the_report(tmp_path, capsys):
    found = makespans(planned=[80.0, 120.0, 100.0], arrival=[100.0, 150.0, 125.0])
    share = found.to_pandas().groupby("order", sort=False)["of_bound"].mean()["planned"]
    assert f"planned reaches {100 * share:.0f} % of the bound on average" in text_of(tmp_path, found)
    show(answer_of(found, 40))
    assert f"  {100 * share:.1f}" in capsys.readouterr().out


def test_error_bars_of_repetitions_are_the_interval_of_the_terminal(tmp_path, capsys):
    found = makespans(planned=[80.0, 120.0, 100.0], arrival=[100.0, 150.0, 125.0])
    show(Answer([], tables_of(found, 40)))
    (group,) = groups_of(found)
    row = group.rows[0]
    half = 0.5 * (row["high"] - row["low"]) / row["middle"] * 100.0
    assert f"100 ± {half:.2g}" in capsys.readouterr().out
    text_of(tmp_path, found)
    assert "Bars are 95 % confidence intervals" in (tmp_path / "report.html").read_text()


def test_a_caption_speaks_of_intervals_only_where_runs_were_repeated(tmp_path):
    bars = "Bars are 95 % confidence intervals of the mean over the repetitions."
    assert bars in text_of(tmp_path, runs_of(spread=0.1, slower=0.05, seeds=5))
    once = text_of(tmp_path, runs_of(slower=0.05))
    assert "No schedule ends before the tick" in once
    assert bars not in once
