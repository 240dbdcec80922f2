"""Every path of the planner against a linear program solved by HiGHS: 2,000 random trees daily, 10,000 nightly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tree_program import Columns, Ports, gains_between_differences, optimum, program, quiet_highs, random_columns

from crosswind import _core

KINDS = ["measured", "starved", "degenerate", "wide-ranging"]
TREES = {"some": 2_000, "many": 10_000}
GAINS = {"some": 60, "many": 250}


def largest_level(parent: np.ndarray) -> int:
    level = np.zeros(len(parent), dtype=np.int64)
    for node in range(1, len(parent)):
        level[node] = level[parent[node]] + 1
    return int(level.max()) + 1


@pytest.mark.parametrize("ports", ["single", "multi"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trees", TREES)
def test_the_exact_plan_is_the_optimum_and_holds_every_constraint_at_every_node(
    trees: str, kind: str, ports: Ports
) -> None:
    cases = TREES[trees] // (2 * len(KINDS))
    random = np.random.default_rng([KINDS.index(kind), ports == "multi"])
    highs = quiet_highs()
    binding = improved = 0
    deepest = 0
    for case in range(cases):
        columns = random_columns(random, 12, int(2 ** random.uniform(0, 7)), kind)
        deepest = max(deepest, largest_level(columns.parent))
        rows = program(columns, ports)
        best = optimum(highs, columns, ports)
        exact, greedy = columns.plan(ports), columns.plan(ports, "greedy")
        reached = exact["throughput_tasks_per_s"]
        assert reached == pytest.approx(best, rel=1e-7, abs=1e-12), f"case {case}"
        assert exact["bound_tasks_per_s"] >= reached
        assert exact["gap_to_exact"] == 0.0, f"case {case}: the dual does not prove the optimum"
        for plan in (exact, greedy):
            flows = plan["received_tasks_per_s"]
            assert flows[0] == plan["throughput_tasks_per_s"]
            assert flows.min() >= 0.0
            assert plan["computed_tasks_per_s"].min() >= 0.0
            assert rows.excess(flows) <= 1e-11, f"case {case}: a constraint is broken"
            assert plan["computed_tasks_per_s"].sum() == pytest.approx(flows[0], rel=1e-9)
        assert greedy["throughput_tasks_per_s"] <= reached * (1 + 1e-12)
        assert greedy["bound_tasks_per_s"] == pytest.approx(exact["bound_tasks_per_s"], rel=1e-12)
        if ports == "multi":  # E0-5: the rule is optimal there
            assert greedy["throughput_tasks_per_s"] == reached
        gap = 1 - greedy["throughput_tasks_per_s"] / reached if reached > 0 else 0.0
        assert greedy["gap_to_exact"] == pytest.approx(gap, abs=1e-9)
        improved += gap > 1e-6
        binding += np.any((exact["computed_tasks_per_s"] <= 1e-9 * reached) & (flows > 0))
    assert deepest == 12
    assert binding > cases // 50, "the cases must often leave a node nothing to compute"
    if ports == "single" and kind != "measured":
        assert improved > cases // 50, "the cases must often defeat the paper's rule (E0-4)"


@pytest.mark.parametrize("ports", ["single", "multi"])
@pytest.mark.parametrize("kind", ["measured", "starved", "wide-ranging"])
@pytest.mark.parametrize("trees", GAINS)
def test_each_gain_lies_between_what_a_little_more_and_a_little_less_would_change(
    trees: str, kind: str, ports: Ports
) -> None:
    random = np.random.default_rng([7, KINDS.index(kind), ports == "multi"])
    highs = quiet_highs()
    fields = {
        "compute_per_s": "gain_per_work_per_s",
        "receive_limit_mb_per_s": "gain_per_receive_mb_per_s",
        "send_limit_mb_per_s": "gain_per_send_mb_per_s",
    }
    seen = dict.fromkeys(fields.values(), 0)
    for case in range(GAINS[trees]):
        columns = random_columns(random, 6, int(random.integers(2, 9)), kind)
        for gain, count in gains_between_differences(highs, columns, ports, fields, f"case {case}").items():
            seen[gain] += count
    usual = 3 if kind == "starved" else 20  # where computation runs out, links seldom matter
    least = usual * GAINS[trees] / GAINS["many"]
    assert seen["gain_per_work_per_s"] >= least
    assert seen["gain_per_receive_mb_per_s"] >= least
    assert (seen["gain_per_send_mb_per_s"] >= least) == (ports == "multi")


def fork(compute: list[float], receive: list[float], ir_send: list[float], **other: float) -> Columns:
    count = len(compute)
    return Columns(
        np.array([-1] + [0] * (count - 1), dtype=np.int32),
        np.array(compute),
        np.full(count, other.get("send", np.inf)),
        np.array(receive),
        np.zeros(count),
        np.zeros(count),
        np.array(ir_send),
        1.0,
        1.0,
    )


def test_the_papers_single_port_rule_reaches_2_where_5_161_are_possible() -> None:
    columns = fork([1.0, 100.0, 100.0], [1.0, 10.0, 4.0], [0.0, 0.5, 0.01])  # E0-4
    exact, greedy = columns.plan("single"), columns.plan("single", "greedy")
    assert exact["throughput_tasks_per_s"] == pytest.approx(5.161, abs=5e-4)
    assert optimum(quiet_highs(), columns, "single") == pytest.approx(exact["throughput_tasks_per_s"], rel=1e-12)
    assert greedy["throughput_tasks_per_s"] == pytest.approx(2.0, rel=1e-12)
    assert greedy["gap_to_exact"] == pytest.approx(1 - 2 / 5.161290322580645, rel=1e-9)
    assert [exact["limits"][code] for code in exact["limited_by"]] == ["local-compute", "parent", "parent"]


def test_a_node_that_computes_more_than_it_can_receive_uses_no_child() -> None:
    columns = Columns(  # E0-5: C / (1 + IR_r Z C) exceeds the receive limit at node 1
        np.array([-1, 0, 1], dtype=np.int32),
        np.array([1.0, 50.0, 50.0]),
        np.full(3, np.inf),
        np.array([1.0, 10.0, 10.0]),
        np.array([0.0, 0.5, 0.0]),
        np.zeros(3),
        np.zeros(3),
        1.0,
        1.0,
    )
    for ports in ("single", "multi"):
        plan = columns.plan(ports)
        assert plan["received_tasks_per_s"].tolist() == [11.0, 10.0, 0.0]
        assert plan["limits"][plan["limited_by"][1]] == "receive-limit"


def test_where_sending_slows_receiving_the_optimum_is_the_crossing_of_both() -> None:
    columns = Columns(  # E0-5: f(s) = 2 + s crosses 10 - s at s = 4; filling until the bare limit would give 8
        np.array([-1, 0, 1], dtype=np.int32),
        np.array([0.0, 2.0, 50.0]),
        np.full(3, np.inf),
        np.array([1.0, 10.0, 100.0]),
        np.array([0.0, 1.0, 0.0]),
        np.zeros(3),
        np.zeros(3),
        1.0,
        1.0,
    )
    for ports in ("single", "multi"):
        plan = columns.plan(ports)
        assert plan["received_tasks_per_s"] == pytest.approx([6.0, 6.0, 4.0])
        assert optimum(quiet_highs(), columns, ports) == pytest.approx(6.0, rel=1e-12)


def test_only_the_ratios_of_a_task_to_the_platform_count() -> None:
    random = np.random.default_rng(3)
    for _ in range(200):
        columns = random_columns(random, 5, 12, "measured")
        two = Columns(**{**vars(columns), "task_size_mb": 2.0, "task_work": 1.0})
        ten = Columns(**{**vars(columns), "task_size_mb": 10.0, "task_work": 5.0})
        for ports in ("single", "multi"):
            # Five times the size and the work: a fifth of the tasks, the same time relative to the root alone.
            small, large = two.plan(ports), ten.plan(ports)
            assert small["throughput_tasks_per_s"] == pytest.approx(5 * large["throughput_tasks_per_s"], rel=1e-9)
            relative = [plan["throughput_tasks_per_s"] / plan["root_only_tasks_per_s"] for plan in (small, large)]
            assert relative[0] == pytest.approx(relative[1], rel=1e-9)


def test_wrong_columns_are_refused_by_name_value_and_range() -> None:
    columns = fork([1.0, 1.0], [1.0, 1.0], [0.0, 0.0])
    with pytest.raises(
        ValueError, match=r"receive_limit_mb_per_s\[1\] is -1 MB/s; it must be finite and greater than 0 MB/s"
    ):
        columns.changed("receive_limit_mb_per_s", 1, -1.0).plan("single")
    with pytest.raises(ValueError, match="task_work is NaN work units"):
        Columns(**{**vars(columns), "task_work": float("nan")}).plan("single")
    with pytest.raises(ValueError, match="exactly one node must be the root"):
        Columns(**{**vars(columns), "parent": np.array([-1, -1], dtype=np.int32)}).plan("single")
    with pytest.raises(ValueError, match=r"parent\[1\] is 7; it must be -1 \(the root\) or within 0 to 1"):
        Columns(**{**vars(columns), "parent": np.array([-1, 7], dtype=np.int32)}).plan("single")
    with pytest.raises(ValueError, match="cycle of 2 nodes"):
        _core.plan_rates([-1, 2, 1], [1.0] * 3, [1.0] * 3, [1.0] * 3, [0.0] * 3, [0.0] * 3, [0.0] * 3, 1.0, 1.0)
    with pytest.raises(ValueError, match="it must be 0 or within 1e-100 to 1e100"):
        Columns(**{**vars(columns), "task_size_mb": 1e-300}).plan("single")


def derivative(highs: object, columns: Columns, ports: Ports, field: str, node: int, best: float) -> float:
    """The optimum's derivative for more of a field; -inf where any more makes it jump down."""
    value = getattr(columns, field)[node]

    def more(step: float) -> float:
        array = getattr(columns, field).copy()
        array[node] = value + step
        return optimum(highs, replace(columns, **{field: array}), ports) - best

    step = 1e-3
    whole, half = more(step), more(step / 2)
    if whole < -0.05 * step**0.5 and half < 0.75 * whole:  # half the step, as much lost
        return -np.inf
    return (4 * half - whole) / step  # of a smooth function the error of two such steps falls with their square


@pytest.mark.parametrize("ports", ["single", "multi"])
@pytest.mark.parametrize("trees", GAINS)
def test_each_gain_is_the_derivative_for_more_where_limits_tie_and_nodes_compute_nothing(
    trees: str, ports: Ports
) -> None:
    random = np.random.default_rng([9, ports == "multi"])
    highs = quiet_highs()
    fields = {
        "compute_per_s": "gain_per_work_per_s",
        "receive_limit_mb_per_s": "gain_per_receive_mb_per_s",
        "send_limit_mb_per_s": "gain_per_send_mb_per_s",
    }
    gained, idle, jumps = dict.fromkeys(fields.values(), 0), 0, 0
    for case in range(GAINS[trees]):
        columns = random_columns(random, 4, int(random.integers(2, 9)), "degenerate")
        plan = columns.plan(ports)
        best = optimum(highs, columns, ports)
        for field, gain in fields.items():
            if field == "send_limit_mb_per_s" and ports == "single":
                continue
            for node in range(len(columns.parent)):
                value = getattr(columns, field)[node]
                if not np.isfinite(value) or (field.startswith("receive") and columns.parent[node] < 0):
                    continue
                right = derivative(highs, columns, ports, field, node, best)
                found = plan[gain][node]
                where = f"case {case}: {gain} of {node}: {columns}"
                assert found == right or found == pytest.approx(right, abs=1e-4, rel=1e-4), where
                gained[gain] += found > 1e-3
                idle += field == "compute_per_s" and value == 0
                jumps += found == -np.inf
    few = GAINS[trees] / GAINS["many"]
    assert gained["gain_per_work_per_s"] > 100 * few
    assert gained["gain_per_receive_mb_per_s"] > 50 * few
    assert (gained["gain_per_send_mb_per_s"] > 20 * few) == (ports == "multi")
    assert idle > 100 * few
    assert jumps > 1 * few
