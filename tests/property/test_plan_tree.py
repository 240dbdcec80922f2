"""The bound on overlay trees against HiGHS: never below the linear program's optimum, and near to it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from crosswind.links import Links
from crosswind.plan import Ports, plan
from crosswind.plan.tree import plan_tree

SIZE_MB, WORK = 2.0, 5.0


def random_links(random: np.random.Generator, hosts: int, kind: str) -> Links:
    """Cluster of a kind: one switch (all links alike), sites (slow between, fast within), or any rates."""
    rate = 10.0 ** random.uniform(0, 2, (hosts, hosts))
    if kind == "switch":
        rate = np.full((hosts, hosts), 100.0) * random.uniform(0.9, 1.0, (hosts, hosts))
    if kind == "sites":
        site = np.arange(hosts) % 3
        rate = np.where(site[:, None] == site[None, :], 100.0, 5.0) * random.uniform(0.8, 1.2, (hosts, hosts))
    compute = random.uniform(0, 60, hosts) * (random.random(hosts) > 0.1)
    link = [
        {
            "from": f"h{a}",
            "to": f"h{b}",
            "receive_limit_mb_per_s": float(rate[a, b]),
            "ir_receive_s_per_mb": float(random.uniform(0, 0.01)),
            "ir_send_s_per_mb": float(random.uniform(0, 0.01)),
        }
        for a in range(hosts)
        for b in range(hosts)
        if a != b and random.random() < 0.9
    ]
    host = [
        {"name": f"h{at}", "compute_per_s": float(compute[at]), "send_limit_mb_per_s": float(random.uniform(20, 150))}
        for at in range(hosts)
    ]
    return Links.from_dict({"schema_version": 1, "name": kind, "host": host, "link": link})


def program_optimum(links: Links, root: str, ports: Ports) -> float:
    """Most tasks per second when tasks may take any links at once: docs/concepts/overlay.md."""
    hosts = {host["name"]: at for at, host in enumerate(links.hosts)}
    compute = [host["compute_per_s"] / WORK for host in links.hosts]
    legs = [leg for leg in links.links if leg["to"] != root]
    count = len(hosts)
    flow, law, arriving, port = (np.zeros((count, len(legs) + count)) for _ in range(4))
    for at, leg in enumerate(legs):
        a, b, rate = hosts[leg["from"]], hosts[leg["to"]], leg["receive_limit_mb_per_s"] / SIZE_MB
        flow[a, at], flow[b, at] = 1.0, -1.0
        law[a, at] += leg["ir_send_s_per_mb"] * SIZE_MB * compute[a]
        law[b, at] += leg["ir_receive_s_per_mb"] * SIZE_MB * compute[b]
        arriving[b, at] = 1.0 / rate
        port[a, at] = 1.0 / rate if ports == "single" else 1.0
    own = np.arange(count)
    flow[own, len(legs) + own] = 1.0
    law[own, len(legs) + own] = 1.0
    flow[hosts[root]] = 0.0  # the root holds all the tasks there are
    room = [1.0 if ports == "single" else host["send_limit_mb_per_s"] / SIZE_MB for host in links.hosts]
    objective = np.concatenate([np.zeros(len(legs)), -np.ones(count)])
    limits = np.concatenate([np.zeros(count), compute, np.ones(count), room])
    found: Any = linprog(objective, A_ub=np.vstack([flow, law, arriving, port]), b_ub=limits, method="highs")
    assert found.success
    return float(-found.fun)


@pytest.mark.parametrize("ports", ["single", "multi"])
@pytest.mark.parametrize("kind", ["any", "switch", "sites"])
def test_the_bound_is_one_and_near_to_the_programs_optimum(kind: str, ports: Ports) -> None:
    random = np.random.default_rng([11, len(kind), ports == "multi"])
    above = []
    for case in range(8):
        links = random_links(random, int(random.integers(11, 25)), kind)
        built = plan_tree(links, task_size_mb=SIZE_MB, task_work=WORK, ports=ports, root="h0", steps=8_000)
        optimum = program_optimum(links, "h0", ports)
        assert built.data["method"] == "search"
        assert built.throughput_tasks_per_s <= optimum * (1 + 1e-9), case
        assert built.bound_tasks_per_s >= optimum * (1 - 1e-9), case
        above.append(built.bound_tasks_per_s / optimum - 1)
        planned = plan(built.platform, task_size_mb=SIZE_MB, task_work=WORK, ports=ports)
        assert planned.throughput_tasks_per_s == built.throughput_tasks_per_s
    assert np.median(above) < 0.01, above
    assert max(above) < 0.15, above


def test_a_free_root_is_bounded_by_the_worst_of_all_roots() -> None:
    random = np.random.default_rng(5)
    links = random_links(random, 11, "any")
    built = plan_tree(links, task_size_mb=SIZE_MB, task_work=WORK, ports="single", steps=20_000)
    most = max(program_optimum(links, host["name"], "single") for host in links.hosts)
    assert built.throughput_tasks_per_s <= most * (1 + 1e-9)
    assert most * (1 - 1e-9) <= built.bound_tasks_per_s <= most * 1.1
    assert json.loads(json.dumps(built.to_dict()))["root"] in {host["name"] for host in links.hosts}
