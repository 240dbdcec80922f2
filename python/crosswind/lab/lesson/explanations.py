"""Why a guess is wrong: the rates that come of common mistakes, and what ports and processors did instead.

Everything is computed from the model and the simulated runs before the page is written; the page only looks up the
mistake whose rate is nearest to the guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosswind import Platform
from crosswind.lab.lesson.scenes import TASKS, Scene, Scenes, Setting, children_of, rate_of

CLOSE = 0.1
"""By which a guess may differ from the outcome and be right, as a share of it."""
_FULL = 0.9  # share of a run above which a port counts as always sending


@dataclass(frozen=True)
class Explanation:
    """What to say of a wrong guess for one order.

    Attributes
    ----------
    mistakes : list of (float, str)
        The rate in tasks/s that a mistake gives, and why it is none.
    high, low : str
        Of any other guess, above and below the outcome.
    """

    mistakes: list[tuple[float, str]]
    high: str
    low: str


def explanations_of(scenes: Scenes, setting: Setting) -> list[Explanation]:
    """Return an explanation for each order of a setting."""
    return [_explanation(scenes, setting, place) for place in range(len(setting.scenes))]


def comparison_of(setting: Setting) -> tuple[str, str]:
    """Return which order is faster, or "" where they are within 5 %, and why."""
    arrival, bandwidth = setting.scenes
    tree = _Tree(setting.platform)
    if bandwidth.tasks_per_s > 1.05 * arrival.tasks_per_s:
        times = bandwidth.tasks_per_s / arrival.tasks_per_s
        return (
            "bandwidth",
            f"bandwidth is {times:.2f} times as fast as arrival here: {_port_use(tree, arrival, bandwidth)}.",
        )
    if arrival.tasks_per_s > 1.05 * bandwidth.tasks_per_s:
        times = arrival.tasks_per_s / bandwidth.tasks_per_s
        return (
            "arrival",
            f"arrival is {times:.2f} times as fast as bandwidth here: {_port_use(tree, bandwidth, arrival)}.",
        )
    loads = [
        f"{100 * tree.load(tree.names[0], scene):.0f} % of the run under {scene.order}" for scene in setting.scenes
    ]
    return "", f"Both orders reach about the same here: {tree.names[0]}'s port sends for {' and '.join(loads)}."


class _Tree:
    """A platform by places: parents, links and what each subtree computes."""

    def __init__(self, platform: Platform) -> None:
        self.nodes: list[Mapping[str, Any]] = list(platform.nodes)
        self.names = [str(node["name"]) for node in self.nodes]
        self.place = {name: at for at, name in enumerate(self.names)}
        self.children = children_of(platform)

    def parent(self, place: int) -> str:
        return str(self.nodes[place]["parent"])

    def below(self, name: str) -> list[int]:
        """Return the places of a node and of all below it."""
        return [self.place[name], *(at for child in self.children[name] for at in self.below(child))]

    def computes(self, name: str) -> float:
        """Return the work units per second of a subtree."""
        return sum(float(self.nodes[at]["compute_per_s"]) for at in self.below(name))

    def load(self, sender: str, scene: Scene) -> float:
        """Return the share of a run in which the port of a node sends."""
        return sum(scene.port[self.place[child]] for child in self.children[sender])

    def computed(self, name: str, scene: Scene) -> int:
        """Return the number of tasks that a subtree computes in a run."""
        return sum(scene.tasks[at] for at in self.below(name))

    def limiting(self, scene: Scene, other: Scene) -> str:
        """Return the node whose port limits a run: from the root down, the first one that sends all the time.

        The way down goes to the subtree that computes fewest tasks compared with a faster run, or most in the faster.
        """
        sender = self.names[0]
        while self.load(sender, scene) < _FULL:
            lost = {child: self.computed(child, scene) for child in self.children[sender] if self.children[child]}
            if scene.tasks_per_s < other.tasks_per_s:
                lost = {child: self.computed(child, other) - own for child, own in lost.items()}
            if max(lost.values(), default=0) <= 0:
                break
            sender = max(lost, key=lost.__getitem__)
        return sender


def _explanation(scenes: Scenes, setting: Setting, place: int) -> Explanation:
    tree, scene = _Tree(setting.platform), setting.scenes[place]
    found = scene.tasks_per_s
    mistakes = [
        *_all_busy(scenes, setting, tree),
        *_bound(setting, tree, place),
        *_root_alone(scenes, tree, scene),
        *_before(scenes, setting, tree, place),
        *_other_order(setting, tree, place),
    ]
    wrong = [(rate, text) for rate, text in mistakes if abs(rate - found) > CLOSE * found]
    high = f"Too high: {_port_use(tree, scene, setting.scenes[1 - place])}.{_idle(tree, scene)}"
    return Explanation(wrong, high, f"Too low: {_computed(tree, scene)}.")


def _all_busy(scenes: Scenes, setting: Setting, tree: _Tree) -> list[tuple[float, str]]:
    rate = tree.computes(tree.names[0]) / scenes.task_work
    if rate <= setting.bound_tasks_per_s * 1.02:
        return []
    name, seconds = max(((name, _port_need(scenes, tree, name)) for name in tree.names), key=lambda one: one[1])
    why = (
        f"To feed them all, {name}'s port would have to send for {seconds:.1f} s in each second"
        if seconds > 1.0
        else "But sending and receiving take a part of what the processors compute"
    )
    return [(rate, f"{rate:.2f} tasks/s is what all processors compute when none ever waits. {why}.")]


def _port_need(scenes: Scenes, tree: _Tree, name: str) -> float:
    """Return the seconds per second for which a port would send if all below it were always busy."""
    needs = [
        tree.computes(child) / scenes.task_work * scenes.task_size_mb / rate_of(tree.nodes[tree.place[child]])
        for child in tree.children[name]
    ]
    return sum(needs)


def _bound(setting: Setting, tree: _Tree, place: int) -> list[tuple[float, str]]:
    bound = setting.bound_tasks_per_s
    why = _port_use(tree, setting.scenes[place], setting.scenes[1 - place])
    return [(bound, f"{bound:.2f} tasks/s is the bound of every schedule; {why}.")]


def _root_alone(scenes: Scenes, tree: _Tree, scene: Scene) -> list[tuple[float, str]]:
    root = tree.nodes[0]
    alone = float(root["compute_per_s"]) / scenes.task_work
    if alone == 0.0:
        return []
    others = sum(scene.tasks[1:])
    text = (
        f"{alone:.2f} tasks/s is what {tree.names[0]} computes alone. The others compute {others} of the {TASKS} tasks."
    )
    return [(alone, text)]


def _before(scenes: Scenes, setting: Setting, tree: _Tree, place: int) -> list[tuple[float, str]]:
    before = scenes.as_given[place].tasks_per_s
    node = next(node for node in scenes.platform.nodes if node["name"] == setting.link)
    now_s, then_s = scenes.task_size_mb / setting.rate_mb_per_s, scenes.task_size_mb / rate_of(node)
    port = f"{tree.parent(tree.place[setting.link])}'s port"
    text = f"{before:.2f} tasks/s is the rate before the change. A task for {setting.link} now holds {port} for"
    return [(before, f"{text} {now_s:.3g} s instead of {then_s:.3g} s.")]


def _other_order(setting: Setting, tree: _Tree, place: int) -> list[tuple[float, str]]:
    other = setting.scenes[1 - place]
    text = f"{other.tasks_per_s:.2f} tasks/s is what {other.order} reaches. {comparison_of(setting)[1]}"
    return [(other.tasks_per_s, text)]


def _port_use(tree: _Tree, scene: Scene, other: Scene) -> str:
    """Return a clause on the limiting port: the child that gets most of it beyond what the other order gives it."""
    sender = tree.limiting(scene, other)
    at = max((tree.place[child] for child in tree.children[sender]), key=lambda at: scene.port[at] - other.port[at])
    name, share, others = tree.names[at], 100 * scene.port[at], 100 * other.port[at]
    computed = tree.computed(name, scene)
    clause = "whose subtree computes" if tree.children[name] else "which computes"
    port = f"{scene.order} gives {share:.0f} % of {sender}'s port to {name}, {clause} {computed} of the {TASKS} tasks"
    return f"{port} ({other.order}: {others:.0f} %)"


def _idle(tree: _Tree, scene: Scene) -> str:
    """Return a sentence on the processors that wait for more than half of the run, or nothing."""
    idle = [
        name
        for name, node, busy in zip(tree.names, tree.nodes, scene.busy, strict=True)
        if float(node["compute_per_s"]) > 0.0 and busy < 0.5
    ]
    if not idle:
        return ""
    names = f"{', '.join(idle[:-1])} and {idle[-1]} compute" if len(idle) > 1 else f"{idle[0]} computes"
    return f" {names} for less than half of the run."


def _computed(tree: _Tree, scene: Scene) -> str:
    """Return a clause on which nodes computed how many tasks, most first."""
    first, *others = sorted(zip(scene.tasks, tree.names, strict=True), key=lambda one: -one[0])
    more = "".join(f", {name} {tasks}" for tasks, name in others if tasks > 0)
    return f"{first[1]} computes {first[0]} of the {TASKS} tasks{more}"
