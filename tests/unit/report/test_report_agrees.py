"""No two numbers of the report contradict each other."""

import dataclasses
import re

import reported

from crosswind.model.fit import fit
from crosswind.plan import Plan
from crosswind.report import report
from crosswind.report.findings import finding
from crosswind.run.results import Run, Runs


def text_of(tmp_path, *items):
    page = report(items, tmp_path / "report.html").read_text()
    body = page[page.index("<main") : page.index('id="terms"')]
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
    text = text_of(tmp_path, runs_of())
    assert "No order is fastest local: all 3 take equally long in this application" in text
    assert "Fastest" not in text


def test_orders_whose_repetitions_overlap_tie_and_others_do_not(tmp_path):
    assert "No order is fastest" in text_of(tmp_path, runs_of(spread=0.04, slower=0.01, seeds=3))
    assert "Fastest local: interference, in this application" in text_of(tmp_path, runs_of(0.002, 0.1, seeds=3))
