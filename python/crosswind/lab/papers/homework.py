"""The homework sheet that comes with interference-aware-scheduling, answered by the program (docs/papers/homework.md).

One function per question, each of which computes its answer from the model rather than stating it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from crosswind import DescriptionError, Platform, plan
from crosswind.documents import Document
from crosswind.lab import engine


@dataclass(frozen=True)
class Ratio:
    """How good "longest task first" is on one instance of `Indep(p)`; times in the unit of the jobs.

    Attributes
    ----------
    longest_first, optimum : float
        Makespans, at least 0.
    bound : float
        4/3 - 1/(3p), the most that `ratio` can be.
    """

    longest_first: float
    optimum: float
    bound: float

    @property
    def ratio(self) -> float:
        """Longest-first over optimum, at least 1; 1 where nothing is to be done."""
        return self.longest_first / self.optimum if self.optimum else 1.0


def approximation(times: Sequence[float], machines: int) -> Ratio:
    """Course question: hold longest-first against the optimum and its bound 4/3 - 1/(3p).

    Parameters
    ----------
    times : sequence of float
        Jobs, at least 0, any unit; up to about 25, since the optimum is searched for.
    machines : int
        p, at least 1.

    Raises
    ------
    DescriptionError
        When an argument is out of range.
    InfeasibleError
        When the optimum is not proven within the search's budget.

    Notes
    -----
    Why the bound holds: let the job that ends last under longest-first, of length t, be the shortest (leave out what
    comes after it). If t is more than a third of the optimum, no machine has more than two jobs in the optimum, and
    longest-first is optimal. Otherwise it starts while all machines are busy, so no later than the mean of the others:
    makespan <= sum / p + t (1 - 1/p) <= OPT + OPT/3 (1 - 1/p).

    Examples
    --------
    >>> worst = approximation(tight_family(3), 3)
    >>> worst.longest_first, worst.optimum
    (11.0, 9.0)
    >>> round(worst.ratio - worst.bound, 12)
    0.0
    """
    greedy, _ = engine.makespan(list(times), machines)
    optimum, _ = engine.makespan(list(times), machines, engine.EXACT_BUDGET)
    return Ratio(greedy, optimum, engine.lpt_ratio_bound(machines))


def tight_family(machines: int) -> list[float]:
    """Return 2p + 1 jobs on which longest-first needs 4p - 1 and the optimum 3p.

    Examples
    --------
    >>> tight_family(3)
    [5.0, 5.0, 4.0, 4.0, 3.0, 3.0, 3.0]
    """
    return engine.tight_family(machines)


@dataclass(frozen=True)
class Overlap:
    """What a model without interference promises for a plan, and what the same flows leave in truth; tasks/s."""

    promised: float
    kept: float
    possible: float


def free_overlap(platform: Platform, task_size_mb: float, task_work: float) -> Overlap:
    """Question 1: what goes wrong when communication is taken to overlap with computation for free.

    Plans the platform with every interference rate set to 0, multi-port, and then asks what each node could still
    compute under those flows: the law of the paper, `C (1 - IR_r TR - sum IR_i TR_i)`, and never less than 0.

    Parameters
    ----------
    platform : Platform
        The tree with its interference rates.
    task_size_mb, task_work : float
        Task: MB and work units, greater than 0.

    Returns
    -------
    Overlap
        `kept` counts the tasks that arrive and are computed; `possible` is the exact plan with interference.

    Examples
    --------
    >>> from crosswind.lab.papers import table_4
    >>> overlap = free_overlap(Platform.from_dict(table_4.platform(7)), 2.0, 1.0)
    >>> overlap.kept < overlap.possible < overlap.promised
    True
    """
    description = platform.to_dict()
    freed = [{**n, "ir_receive_s_per_mb": 0.0, "ir_send_s_per_mb": 0.0} for n in description["node"]]
    free = plan(
        Platform.from_dict({**description, "node": freed}),
        task_size_mb=task_size_mb,
        task_work=task_work,
    )
    flows = {n["name"]: (n["received_tasks_per_s"], n["computed_tasks_per_s"]) for n in free.nodes}
    kept = kept_tasks_per_s(platform, flows, task_size_mb, task_work)
    possible = plan(platform, task_size_mb=task_size_mb, task_work=task_work)
    return Overlap(free.throughput_tasks_per_s, kept, possible.throughput_tasks_per_s)


def kept_tasks_per_s(
    platform: Platform, flows: Mapping[str, tuple[float, float]], task_size_mb: float, task_work: float
) -> float:
    """Return how many tasks/s are computed where flows were planned without interference.

    Parameters
    ----------
    platform : Platform
        The tree with its interference rates.
    flows : mapping
        Node -> tasks/s that it receives (0 at the root) and computes in that plan.
    task_size_mb, task_work : float
        Task: MB and work units, greater than 0.
    """
    nodes = platform.to_dict()["node"]
    mb_per_s = {node["name"]: flows[node["name"]][0] * task_size_mb if node.get("parent") else 0.0 for node in nodes}
    kept = 0.0
    for node in nodes:
        children = [child for child in nodes if child.get("parent") == node["name"]]
        sent = sum(child.get("ir_send_s_per_mb", 0.0) * mb_per_s[child["name"]] for child in children)
        left = 1.0 - node.get("ir_receive_s_per_mb", 0.0) * mb_per_s[node["name"]] - sent
        kept += min(flows[node["name"]][1], max(0.0, left) * node["compute_per_s"] / task_work)
    return kept


def compute_share(ir_send_s_per_mb: Mapping[str, float], rates_mb_per_s: Mapping[str, float]) -> float:
    """Question 2: the share of its compute rate that a node keeps while it sends to several nodes at once.

    Each interference rate is measured with that node alone; together they add up: `1 - sum IR_i TR_i`.

    Parameters
    ----------
    ir_send_s_per_mb : mapping
        Node -> interference rate of sending to it alone, s/MB, at least 0.
    rates_mb_per_s : mapping
        Node -> MB/s now sent to it, at least 0.

    Raises
    ------
    DescriptionError
        When a node's interference rate is not known.

    Examples
    --------
    >>> round(compute_share({"B": 0.0299, "C": 0.0199}, {"B": 5.0, "C": 4.0}), 4)
    0.7709
    """
    unknown = sorted(set(rates_mb_per_s) - set(ir_send_s_per_mb))
    if unknown:
        raise DescriptionError(f"ir_send_s_per_mb lacks {unknown[0]!r}", "argument", "measure it alone first")
    return 1.0 - sum(ir_send_s_per_mb[node] * rate for node, rate in rates_mb_per_s.items())


def bandwidth_centric_order(platform: Platform, parent: str, task_size_mb: float, task_work: float) -> list[str]:
    """Question 3: the child that a parent serves first when nothing interferes: the child with the shortest transfer.

    The planner's own order for a single port, with all interference rates 0. It is that of the steady state of stars
    and trees: by communication time, however fast or slow the children compute.

    Examples
    --------
    >>> from crosswind.lab.papers import table_4
    >>> bandwidth_centric_order(Platform.from_dict(table_4.platform(7)), "Lab0", 2.0, 1.0)
    ['Lab4', 'Lab3', 'Lab5', 'Lab6', 'SB0', 'Tenn']
    """
    description = platform.to_dict()
    freed = [{**n, "ir_receive_s_per_mb": 0.0, "ir_send_s_per_mb": 0.0} for n in description["node"]]
    free = Platform.from_dict({**description, "node": freed})
    return _service(free, parent, task_size_mb, task_work, "single", "greedy")


def _service(
    platform: Platform,
    parent: str,
    task_size_mb: float,
    task_work: float,
    ports: Literal["single", "multi"],
    method: Literal["exact", "greedy"],
) -> list[str]:
    planned = plan(platform, task_size_mb=task_size_mb, task_work=task_work, ports=ports, method=method)
    served = [n for n in planned.nodes if n["parent"] == parent and n["rank"] > 0]
    return [n["name"] for n in sorted(served, key=lambda n: n["rank"])]


def subtree_rates(platform: Platform, task_size_mb: float, task_work: float) -> dict[str, float]:
    """Question 4: T(n), the tasks per second computed in the subtree of each node n. The objective is T(root).

    All tasks of a subtree pass through its root, so T(n) is also what n receives, and `T(n) = S(n) + sum T(i)`.

    Examples
    --------
    >>> from crosswind.lab.papers import table_4
    >>> rates = subtree_rates(Platform.from_dict(table_4.platform(7)), 2.0, 5.0)
    >>> rates["Lab0"] > sum(rate for node, rate in rates.items() if node != "Lab0")
    True
    """
    planned = plan(platform, task_size_mb=task_size_mb, task_work=task_work)
    return {n["name"]: n["received_tasks_per_s"] for n in planned.nodes}


def situations(platform: Platform, node: str) -> list[str]:
    """Question 5: the k + 2 situations in which a node with k children must be measured, and no more.

    Alone (C^n), receiving (MR^n, C_r^n), and receiving while sending to each child (C_sr^n(i)): the link from the
    parent is idle at first, and in a steady state a node that sends also receives. The root receives nothing:
    k + 1.

    Raises
    ------
    DescriptionError
        When there is no such node.

    Examples
    --------
    >>> from crosswind.lab.papers import table_4
    >>> fork = Platform.from_dict(table_4.platform())
    >>> len(situations(fork, "Lab0")), situations(fork, "SB0")
    (7, ['alone', 'receiving from Lab0'])
    """
    nodes = {n["name"]: n for n in platform.to_dict()["node"]}
    if node not in nodes:
        raise DescriptionError(f"node is {node!r}, which is no node of this platform", "argument")
    parent = nodes[node].get("parent")
    receiving = [f"receiving from {parent}"] if parent else []
    children = [name for name, n in nodes.items() if n.get("parent") == node]
    return ["alone", *receiving, *(" and ".join([*receiving, f"sending to {child}"]) for child in children)]


Reason = Literal[
    "costs its parent more than it brings", "its parent's limits are used up before its turn", "below such a node"
]


def without_a_part(platform: Platform, task_size_mb: float, task_work: float) -> dict[str, Reason]:
    """Question 6: the nodes that take no part in a multi-port plan, each with the reason.

    Those with IR_s Z C >= 1; those ranked after the child that gets what is left; and all that are below them.

    Examples
    --------
    >>> from crosswind.lab.papers import table_4
    >>> fork = Platform.from_dict(table_4.platform(7))
    >>> without_a_part(fork, 2.0, 5.0)["Tenn"]
    "its parent's limits are used up before its turn"
    >>> len(without_a_part(fork, 10.0, 1.0))
    6
    """
    planned = {n["name"]: n for n in plan(platform, task_size_mb=task_size_mb, task_work=task_work).nodes}
    idle: dict[str, Reason] = {}
    for name, node in planned.items():
        if node["received_tasks_per_s"] > 0.0:
            continue
        above = node["parent"]
        if node["never_send"]:
            idle[name] = "costs its parent more than it brings"
        elif above is None or planned[above]["received_tasks_per_s"] > 0.0:
            idle[name] = "its parent's limits are used up before its turn"
        else:
            idle[name] = "below such a node"
    return idle


@dataclass(frozen=True)
class Queue:
    """A priority queue at a parent: which child is served first, and what a fork graph reaches with it.

    Attributes
    ----------
    order : list of str
        Children, first served first.
    throughput_tasks_per_s : float
        In closed form, single port.
    share_of_optimum : float
        Of the exact single-port plan, at most 1.
    """

    order: list[str]
    throughput_tasks_per_s: float
    share_of_optimum: float


def priority_queues(fork: Platform, task_size_mb: float, task_work: float) -> dict[str, Queue]:
    """Question 7: the rules of section 3 as queues at the parent, and how far the experiments' queue is from the best.

    The experiments of section 4 ranked by interference rate alone, also for a single port, where section 3 derives
    `B_i (1 - IR_i Z C)` (footnote 5); and they did not leave out children with IR_i Z C >= 1.

    Parameters
    ----------
    fork : Platform
        A root with leaves only: deeper trees have no closed form under these orders.
    task_size_mb, task_work : float
        Task: MB and work units, greater than 0.

    Returns
    -------
    dict
        "interference" (derived), "interference-rate" (of the experiments), "bandwidth" and "compute", as in an
        experiment's `policy.order`.

    Raises
    ------
    DescriptionError
        When children have children, or an argument is out of range.

    Examples
    --------
    >>> from crosswind.lab.papers import table_4
    >>> queues = priority_queues(Platform.from_dict(table_4.platform(8)), 2.0, 11.0)
    >>> round(1 / queues["interference-rate"].share_of_optimum, 1)  # E0-10: 2.5 times slower
    2.5
    """
    nodes = fork.to_dict()["node"]
    root = next(n["name"] for n in nodes if not n.get("parent"))
    children = [n for n in nodes if n.get("parent") == root]
    links = fork.links_mb_per_s
    keys = {
        "interference-rate": lambda n: n.get("ir_send_s_per_mb", 0.0),
        "bandwidth": lambda n: -links[n["name"]],
        "compute": lambda n: -n["compute_per_s"],
    }
    orders: dict[str, list[str]] = {name: _names(children, key) for name, key in keys.items()}
    orders["interference"] = _service(fork, root, task_size_mb, task_work, "single", "greedy")
    best = plan(fork, task_size_mb=task_size_mb, task_work=task_work, ports="single").throughput_tasks_per_s
    queues = {}
    for name, order in orders.items():
        reached = engine.fork_throughput(fork, task_size_mb, task_work, name)
        queues[name] = Queue(order, reached, reached / best)
    return queues


def _names(children: list[Document], key: Any) -> list[str]:
    return [child["name"] for child in sorted(children, key=key)]
