"""Results travel back: the plan against a linear program by HiGHS, on trees of up to 8 nodes and 4 levels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tree_program import Columns, Ports, gains_between_differences, optimum, program, quiet_highs, random_columns

KINDS = ["measured", "starved", "degenerate", "wide-ranging"]
TREES, GAINS = 400, 40


def with_results(random: np.random.Generator, kind: str, case: int) -> Columns:
    """A tree with results of a hundredth to ten times the size of inputs."""
    columns = random_columns(random, 4, 1 + case % 8, kind)
    share = float(random.choice([0.5, 1.0, 2.0, 4.0]) if kind == "degenerate" else 10.0 ** random.uniform(-2.0, 1.0))
    return replace(columns, result_size_mb=share * columns.task_size_mb)


@pytest.mark.parametrize("ports", ["single", "multi"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_plan_with_results_is_the_optimum_and_holds_every_constraint(kind: str, ports: Ports) -> None:
    random = np.random.default_rng([11, KINDS.index(kind), ports == "multi"])
    highs = quiet_highs()
    slower = returned = 0
    for case in range(TREES):
        columns = with_results(random, kind, case)
        rows = program(columns, ports)
        best = optimum(highs, columns, ports)
        exact, greedy = columns.plan(ports), columns.plan(ports, "greedy")
        reached = exact["throughput_tasks_per_s"]
        assert reached == pytest.approx(best, rel=1e-7, abs=1e-12), f"case {case}"
        assert exact["gap_to_exact"] == 0.0, f"case {case}: the dual does not prove the optimum"
        for plan in (exact, greedy):
            flows = plan["received_tasks_per_s"]
            assert rows.excess(flows) <= 1e-11, f"case {case}: a constraint is broken"
            assert plan["computed_tasks_per_s"].sum() == pytest.approx(flows[0], rel=1e-9)
        assert greedy["throughput_tasks_per_s"] <= reached * (1 + 1e-12)
        without = replace(columns, result_size_mb=0.0).plan(ports)["throughput_tasks_per_s"]
        assert reached <= without * (1 + 1e-12)
        slower += reached < without * (1 - 1e-9)
        flows, links = exact["received_tasks_per_s"][1:], columns.receive_limit_mb_per_s[1:]
        returned += bool(np.any(flows * columns.result_size_mb >= links * (1 - 1e-9)))
    assert slower > TREES // 10, "results must often cost something"
    assert returned >= 2, "the way back must sometimes be the limit"


@pytest.mark.parametrize("ports", ["single", "multi"])
@pytest.mark.parametrize("kind", ["measured", "wide-ranging"])
def test_each_gain_lies_between_what_a_little_more_and_a_little_less_would_change(kind: str, ports: Ports) -> None:
    random = np.random.default_rng([12, KINDS.index(kind), ports == "multi"])
    highs = quiet_highs()
    fields = {"compute_per_s": "gain_per_work_per_s", "receive_limit_mb_per_s": "gain_per_receive_mb_per_s"}
    seen = 0
    for case in range(GAINS):
        columns = with_results(random, kind, case)
        seen += sum(gains_between_differences(highs, columns, ports, fields, f"case {case}").values())
    assert seen > GAINS
