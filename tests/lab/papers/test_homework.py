"""The homework sheet: every answer comes from the model, and is the one that the paper gives."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.errors import DescriptionError
from crosswind.lab.papers import homework, table_4
from crosswind.platform import Platform

FORK = Platform.from_dict(table_4.platform(ir_row=7))


def chain_with_a_hopeless_child():
    """A root; `a` worth sending to with a child of its own; `b`, with a child, that costs more than it brings."""
    node = {"compute_per_s": 10.0, "receive_limit_mb_per_s": 5.0}
    nodes = [
        {"name": "root", "compute_per_s": 10.0},
        {**node, "name": "a", "parent": "root", "ir_send_s_per_mb": 0.01, "ir_receive_s_per_mb": 0.15},
        {**node, "name": "below a", "parent": "a", "ir_send_s_per_mb": 0.02},
        {**node, "name": "b", "parent": "root", "ir_send_s_per_mb": 0.11},
        {**node, "name": "below b", "parent": "b"},
    ]
    return Platform.from_dict({"schema_version": 1, "name": "chain", "node": nodes})


@given(st.lists(st.integers(1, 30), min_size=1, max_size=10), st.integers(1, 4))
def test_longest_first_never_exceeds_four_thirds_minus_one_over_three_p(times, machines):
    found = homework.approximation([float(t) for t in times], machines)
    assert 1.0 <= found.ratio <= found.bound * (1 + 1e-12)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 3))
def test_the_optimum_is_that_of_all_assignments_tried_one_by_one(times, machines):
    def makespan(assignment):
        return max(
            sum(t for t, m in zip(times, assignment, strict=True) if m == machine) for machine in range(machines)
        )

    best = min(makespan(a) for a in itertools.product(range(machines), repeat=len(times)))
    assert homework.approximation([float(t) for t in times], machines).optimum == best


@pytest.mark.parametrize("machines", [2, 3, 4, 5, 8])
def test_the_bound_is_reached_by_the_tight_family(machines):
    found = homework.approximation(homework.tight_family(machines), machines)
    assert (found.longest_first, found.optimum) == (4 * machines - 1, 3 * machines)
    assert found.ratio == pytest.approx(found.bound, rel=1e-12)


def test_free_overlap_promises_more_than_it_keeps_and_less_would_have_been_better():
    overlap = homework.free_overlap(FORK, 10.0, 1.0)
    assert overlap.promised > overlap.possible == pytest.approx(table_4.ROOT_COMPUTE_PER_S)  # best: the root alone
    assert overlap.kept < overlap.possible


def test_two_children_measured_alone_predict_what_both_leave():
    assert homework.compute_share({"B": 0.03, "C": 0.02}, {"B": 6.0, "C": 4.0}) == pytest.approx(1 - 0.18 - 0.08)
    with pytest.raises(DescriptionError, match="lacks 'D'"):
        homework.compute_share({"B": 0.03}, {"D": 1.0})


def test_without_interference_the_order_of_service_is_by_bandwidth_not_by_speed():
    order = homework.bandwidth_centric_order(FORK, "Lab0", 2.0, 5.0)
    links = {n["name"]: n["receive_limit_mb_per_s"] for n in FORK.to_dict()["node"][1:]}
    speeds = {n["name"]: n["compute_per_s"] for n in FORK.to_dict()["node"][1:]}
    assert order == sorted(links, key=lambda n: -links[n])
    assert order != sorted(speeds, key=lambda n: -speeds[n])


def test_the_rate_of_a_subtree_is_what_its_root_receives():
    rates = homework.subtree_rates(chain_with_a_hopeless_child(), 1.0, 1.0)
    assert rates["root"] >= rates["a"] >= rates["below a"] > 0.0
    assert rates["b"] == rates["below b"] == 0.0


def test_a_node_with_k_children_is_measured_in_k_plus_2_situations_and_the_root_in_k_plus_1():
    tree = chain_with_a_hopeless_child()
    assert homework.situations(tree, "a") == [
        "alone",
        "receiving from root",
        "receiving from root and sending to below a",
    ]
    assert len(homework.situations(tree, "root")) == 2 + 1
    with pytest.raises(DescriptionError, match="no node of this platform"):
        homework.situations(tree, "c")


def test_those_without_a_part_are_the_hopeless_those_whose_turn_never_comes_and_those_below():
    idle = homework.without_a_part(chain_with_a_hopeless_child(), 1.0, 1.0)
    assert idle == {"b": "costs its parent more than it brings", "below b": "below such a node"}
    assert set(homework.without_a_part(FORK, 10.0, 1.0)) == {"Lab3", "Lab4", "Lab5", "Lab6", "SB0", "Tenn"}
    last = homework.without_a_part(FORK, 2.0, 5.0)
    assert set(last.values()) == {"its parent's limits are used up before its turn"}


def test_the_experiments_queue_is_not_the_derived_one_and_can_be_two_and_a_half_times_slower():
    queues = homework.priority_queues(Platform.from_dict(table_4.platform(ir_row=8)), 2.0, 11.0)
    assert queues["interference-rate"].order != queues["interference"].order
    assert 1 / queues["interference-rate"].share_of_optimum == pytest.approx(2.5, abs=0.05)
    assert queues["interference"].share_of_optimum == pytest.approx(1.0, rel=1e-9)
    assert all(queue.share_of_optimum <= 1 + 1e-12 for queue in queues.values())
    with pytest.raises(DescriptionError, match="children have children"):
        homework.priority_queues(chain_with_a_hopeless_child(), 1.0, 1.0)
