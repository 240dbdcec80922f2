"""The runs that the lesson shows: two orders on a tree, again with each link at each of several rates."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from crosswind import DescriptionError, Experiment, Plan, Platform, Run, plan, run
from crosswind.lab.papers import table_4

Progress = Callable[[float, str], None]
ORDERS = ("arrival", "bandwidth")
TASKS = 200
BUFFER_TASKS = 2
_MOST_NODES, _MOST_LEVELS = 12, 3
_BEYOND = 1.05  # latest end of the timelines, as a multiple of the makespan of the order that ends first


@dataclass(frozen=True)
class Scene:
    """One simulated run, as the page plays it.

    Attributes
    ----------
    order : str
        Order of service.
    tasks_per_s, makespan_s : float
        The run's result.
    sends, computes : list of int
        Activities one after the other, three numbers each: the child, or the node, as its place in the platform; start
        and duration, ms. Those that begin after the window are left out.
    tasks : list of int
        Tasks computed on each node.
    busy, port : list of float
        Share of the whole run in which each node computes, and in which its parent sends to it; 0 to 1.
    """

    order: str
    tasks_per_s: float
    makespan_s: float
    sends: list[int]
    computes: list[int]
    tasks: list[int]
    busy: list[float]
    port: list[float]


@dataclass(frozen=True)
class Setting:
    """A tree with one link at some rate: the runs of both orders, and the bound.

    Attributes
    ----------
    link : str
        The child whose link it is.
    rate_mb_per_s : float
        Its rate.
    platform : Platform
        The tree with that rate.
    bound_tasks_per_s : float
        Tasks per second that no schedule with one send at a time exceeds.
    scenes : list of Scene
        One for each of `ORDERS`.
    """

    link: str
    rate_mb_per_s: float
    platform: Platform
    bound_tasks_per_s: float
    scenes: list[Scene]


@dataclass(frozen=True)
class Scenes:
    """All that the page shows.

    Attributes
    ----------
    platform : Platform
        The tree; each node comes after its parent, and before its parent's later children.
    task_size_mb, task_work : float
        Of a task.
    window_s : float
        Length of every timeline.
    plan : Plan
        The best rates, one send at a time.
    as_given : list of Scene
        The tree as it is, one run for each of `ORDERS`.
    settings : list of Setting
        Each link at each rate.
    light : list of Scene
        Runs of tasks so large for their work that no child should get one; the orders of `LIGHT_ORDERS`.
    light_task : tuple of float
        Size, MB, and work of those.
    """

    platform: Platform
    task_size_mb: float
    task_work: float
    window_s: float
    plan: Plan
    as_given: list[Scene]
    settings: list[Setting]
    light: list[Scene]
    light_task: tuple[float, float]


LIGHT_ORDERS = ("bandwidth", "interference", "root-only")
"""The last one only where the root computes."""
_LIGHT = 25.0  # times as many MB per work unit


def scenes_of(
    platform: Platform | str | Path | None, task_size_mb: float, task_work: float, progress: Progress | None = None
) -> Scenes:
    """Simulate everything that the page shows; parameters and errors as for `crosswind.lesson`."""
    if platform is None:
        platform = Platform.from_dict(table_4.platform())
    elif not isinstance(platform, Platform):
        platform = Platform.load(platform)
    platform = _in_order(platform)
    _check_tree(platform)
    best = plan(platform, task_size_mb=task_size_mb, task_work=task_work, ports="single")
    given = [_simulated(platform, order, task_size_mb, task_work) for order in ORDERS]
    makespans = [one.makespan_s for one in given]
    window_s = min(max(makespans), _BEYOND * min(makespans))
    changes = list(_changes(platform))
    settings = []
    for number, (link, rate) in enumerate(changes):
        settings.append(_setting(_with_rate(platform, link, rate), link, rate, task_size_mb, task_work, window_s))
        if progress is not None:
            progress((number + 1) / len(changes), f"{number + 1} of {len(changes)} rates of links")
    light_task = (5.0 * task_size_mb, task_work * 5.0 / _LIGHT)
    computes = float(platform.nodes[0]["compute_per_s"]) > 0.0
    orders = [order for order in LIGHT_ORDERS if computes or order != "root-only"]
    light = [_simulated(platform, order, *light_task) for order in orders]
    return Scenes(
        platform,
        task_size_mb,
        task_work,
        window_s,
        best,
        [_scene(one, window_s) for one in given],
        settings,
        [_scene(one, 0.0) for one in light],
        light_task,
    )


def _in_order(platform: Platform) -> Platform:
    """Return the platform with each node before those below it, and each subtree in one piece."""
    below = children_of(platform)
    names: list[str] = []
    open_nodes = [str(node["name"]) for node in platform.nodes if node.get("parent") is None]
    while open_nodes:
        names.append(open_nodes.pop())
        open_nodes += reversed(below[names[-1]])
    description = copy.deepcopy(platform.to_dict())
    place = {name: at for at, name in enumerate(names)}
    description["node"].sort(key=lambda node: place[node["name"]])
    return Platform.from_dict(description)


def children_of(platform: Platform) -> dict[str, list[str]]:
    """Return the children of each node, in the order of the platform."""
    below: dict[str, list[str]] = {str(node["name"]): [] for node in platform.nodes}
    for node in platform.nodes:
        if node.get("parent") is not None:
            below[parent_of(node)].append(str(node["name"]))
    return below


def _check_tree(platform: Platform) -> None:
    hint = "the lesson shows a root with a few nodes below it, such as examples/fork_of_table_4.toml"
    count = len(platform.nodes) - 1
    if not 2 <= count <= _MOST_NODES:
        message = f"{platform.name} has {count} nodes below its root; it must have 2 to {_MOST_NODES}"
        raise DescriptionError(message, "argument", hint)
    levels: dict[str, int] = {}
    for node in platform.nodes:
        levels[node["name"]] = 0 if node.get("parent") is None else levels[parent_of(node)] + 1
        if levels[node["name"]] > _MOST_LEVELS:
            message = f"node {node['name']!r} is {_MOST_LEVELS + 1} levels below the root; it must be at most"
            raise DescriptionError(f"{message} {_MOST_LEVELS}", "argument", hint)
    if max(map(len, children_of(platform).values())) < 2:
        message = f"no node of {platform.name} has two children, so there is no order of service"
        raise DescriptionError(message, "argument", hint)


def parent_of(node: Mapping[str, Any]) -> str:
    """Return the parent of a node below the root."""
    return str(node["parent"])


def rate_of(node: Mapping[str, Any]) -> float:
    """Return the rate of the link to a child, MB/s: what one sender reaches of its receive limit."""
    return float(node["receive_limit_mb_per_s"]) * float(node.get("one_sender_share", 1.0))


def _changes(platform: Platform) -> Iterator[tuple[str, float]]:
    """Yield each link with each rate: steps of 1, 2, 5 over the range of the tree's links, its own left out."""
    links = {node["name"]: rate_of(node) for node in platform.nodes[1:]}
    lowest, highest = min(links.values()), max(links.values())
    steps = [
        round(digit * 10.0**power, 6)
        for power in range(math.floor(math.log10(lowest)), math.ceil(math.log10(highest)) + 1)
        for digit in (1, 2, 5)
    ]
    rates = [rate for rate in steps if lowest / 2 <= rate <= 2.5 * highest]
    for name, own in links.items():
        yield from ((name, rate) for rate in rates if rate != own)


def _with_rate(platform: Platform, link: str, rate: float) -> Platform:
    description = copy.deepcopy(platform.to_dict())
    for node in description["node"]:
        if node["name"] == link:
            node["receive_limit_mb_per_s"] = rate
            node.pop("one_sender_share", None)  # the rate is the link's
    return Platform.from_dict(description)


def _setting(platform: Platform, link: str, rate: float, size_mb: float, work: float, window_s: float) -> Setting:
    bound = plan(platform, task_size_mb=size_mb, task_work=work, ports="single").bound_tasks_per_s
    scenes = [_scene(_simulated(platform, order, size_mb, work), window_s) for order in ORDERS]
    return Setting(link, rate, platform, bound, scenes)


def _simulated(platform: Platform, order: str, size_mb: float, work: float) -> Run:
    description: Mapping[str, Any] = {
        "schema_version": 1,
        "name": "lesson",
        "platform": platform.to_dict(),
        "workload": {"kind": "farm", "tasks": TASKS, "task_size_mb": size_mb, "task_work": work},
        "policy": {"order": order, "ports": "single", "buffer_tasks": BUFFER_TASKS, "level_end": False},
    }
    one: Run = run(Experiment.from_dict(description), trace=True, workers=1)[0]
    return one


def _scene(one: Run, window_s: float) -> Scene:
    assert one.trace is not None  # asked for
    nodes = [node["name"] for node in one.trace.nodes]
    held_s = dict.fromkeys(nodes, 0.0)
    sends = one.trace.of_kind("send")
    for child, start_s, end_s in zip(*(sends[name].to_pylist() for name in ("child", "start_s", "end_s")), strict=True):
        held_s[child] += end_s - start_s
    found = {node["name"]: node for node in one.data["nodes"]}
    return Scene(
        str(one.data["order"]),
        one.throughput_tasks_per_s,
        one.makespan_s,
        _activities(one, "send", "child", window_s),
        _activities(one, "compute", "node", window_s),
        [int(found[name]["tasks"]) for name in nodes],
        [float(found[name]["busy_s"]) / one.makespan_s for name in nodes],
        [held_s[name] / one.makespan_s for name in nodes],
    )


def _activities(one: Run, kind: str, whose: str, window_s: float) -> list[int]:
    assert one.trace is not None  # asked for
    places = {node["name"]: place for place, node in enumerate(one.trace.nodes)}
    table = one.trace.of_kind(kind).sort_by("start_s")
    table = table.filter(pc.less(table["start_s"], pa.scalar(window_s)))
    found = []
    for name, start, end in zip(*(table[column].to_pylist() for column in (whose, "start_s", "end_s")), strict=True):
        begun = round(1000 * start)
        found += [places[name], begun, round(1000 * end) - begun]
    return found
