"""What is known of a running farm: counts and rates of each node and link beside the plan. Times are handed in."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any

from crosswind.documents import Row
from crosswind.platform import link_mb_per_s

_BIN_S = 0.5
_WINDOW_S, _LONG_WINDOW_S = 10.0, 60.0
_FEW = 10  # results in the window, below which a rate is taken over the long one
_BEHIND = 0.7  # of the planned rate
_CERTAIN = 2.0  # standard deviations of a count
_SETTLED_S, _SETTLED_TASKS = 10.0, 10  # before either, no node is said to be behind
_ENDING = 0.9  # of the tasks: after that, nodes run out of them
_HISTORY = 120
_EVENTS = 8
_LOST = ("agent-lost", "agent-failed")


class Rate:
    """How many things happen a second, over the last 10 s, or over the last 60 s while they are few.

    Examples
    --------
    >>> rate = Rate(begun=0.0)
    >>> for second in range(20):
    ...     rate.add(2, float(second))
    >>> rate.at(20.0)
    2.0
    """

    def __init__(self, begun: float) -> None:
        self._begun = begun
        self._bins: deque[tuple[int, int]] = deque()

    def add(self, count: int, now: float) -> None:
        """Count what happened now."""
        place = int(now / _BIN_S)
        if self._bins and self._bins[-1][0] == place:
            count += self._bins.pop()[1]
        self._bins.append((place, count))
        while self._bins[0][0] < place - _LONG_WINDOW_S / _BIN_S:
            self._bins.popleft()

    def counted(self, now: float) -> tuple[int, float]:
        """Return how many happened, and in how many seconds up to now."""
        for window in (_WINDOW_S, _LONG_WINDOW_S):
            count = sum(number for place, number in self._bins if place * _BIN_S >= now - window)
            if count >= _FEW:
                break
        return count, max(min(window, now - self._begun), _BIN_S)

    def at(self, now: float) -> float:
        """Return how many happen a second."""
        count, seconds = self.counted(now)
        return count / seconds


class WatchedRun:
    """A run of a farm as its results and events tell it.

    Parameters
    ----------
    platform : mapping
        The content of its platform.toml.
    total : int, optional
        Tasks that there are; None: not known.
    plan : mapping, optional
        The content of a plan.json for the mean task; None: there is none to compare with.
    mean_task : (float, float)
        Its size, MB, and its work.
    time_scale : float
        Seconds of the platform per second of the clock; all rates are those of the platform.
    now : float
        When it began, s on a clock that never goes back.
    below : str, optional
        The node that it is looked at from: only that node, and those below it, are known. The bound is then what the
        plan has them compute.
    name : str, optional
        Of the experiment or the command. Default: the platform's.
    """

    def __init__(
        self,
        platform: Mapping[str, Any],
        total: int | None,
        plan: Mapping[str, Any] | None,
        mean_task: tuple[float, float],
        time_scale: float,
        now: float,
        below: str | None = None,
        name: str | None = None,
    ) -> None:
        self.total = total
        place = str(platform["name"])
        self._platform = place if name and name != place else None
        self._name = f"{name or place}, {below} and below" if below is not None else name or place
        self._nodes = {node["name"]: dict(node) for node in platform["node"]}
        self._planned = {node["name"]: node for node in plan["nodes"]} if plan is not None else {}
        self._bound = float(plan["bound_tasks_per_s"]) if plan is not None else None
        if below is not None:
            self._look_from(below)
        self._size_mb, self._work = mean_task
        self._scale = time_scale
        self._begun = now
        self._first: float | None = None
        self._ended: float | None = None
        self._done: Counter[str] = Counter()
        self._rates: dict[str, Rate] = {}
        self._rate, self._before = Rate(now), 0
        self._lost: dict[str, str] = {}
        self._events: deque[Row] = deque(maxlen=_EVENTS)
        self._history: deque[tuple[float, float]] = deque(maxlen=_HISTORY)

    def _look_from(self, top: str) -> None:
        kept: dict[str, Row] = {}
        for name, _ in self._in_order():
            if name == top or self._nodes[name].get("parent") in kept:
                kept[name] = self._nodes[name]
        self._nodes = kept
        kept[top].pop("parent", None)
        self._planned = {name: node for name, node in self._planned.items() if name in self._nodes}
        if self._bound is not None:
            self._bound = sum(float(node["computed_tasks_per_s"]) for node in self._planned.values())

    def took(self, nodes: Iterable[str], now: float) -> None:
        """Count results by the nodes that computed them, or take their counts; a node that sends one is not lost."""
        counts = Counter(nodes)
        if not counts:
            return
        if self._first is None:
            # How long the first ones took is not known, since agents need a moment to start: rates count from then on.
            self._first, self._rate, self._before = now, Rate(now), counts.total()
            self._rates = {name: Rate(now) for name in counts}
        for name, count in counts.items():
            self._nodes.setdefault(name, {"name": name, "parent": next(iter(self._nodes))})
            self._done[name] += count
            self._lost.pop(name, None)
            if now > self._first:
                self._rates.setdefault(name, Rate(self._first)).add(count, now)
        if now > self._first:
            self._rate.add(counts.total(), now)

    def happened(self, code: str, node: str | None, message: str, now: float) -> None:
        """Note an event."""
        self._events.append({"t_s": self._platform_s(now - self._begun), "code": code, "message": message})
        if node is not None and code in _LOST:
            self._lost[node] = "lost"
        elif node is not None and code == "agent-left":
            self._lost[node] = "left"
        elif node is not None and code == "agent-joined":
            self._lost.pop(node, None)
            self._nodes.setdefault(node, {"name": node, "parent": next(iter(self._nodes))})

    def end(self, now: float) -> None:
        """Note that it is over."""
        self._ended = self._ended or now

    def snapshot(self, now: float) -> Row:
        """Return what is known at a moment.

        Returns
        -------
        dict
            `state` (starting, running, ended), `name`, `platform` (where that has another name), `done`, `total`,
            `elapsed_s`, `left_s`, `tasks_per_s`, `bound_tasks_per_s`, `history` (pairs of s and tasks/s), `events`
            and `nodes`, each with `name`, `parent`,
            `depth`, `state` (works, waits, behind, lost, left, sends, unused, done), `tasks`, `tasks_per_s`,
            `processor` and `link` (parts of what it can do, 0..1), `planned_processor` and `planned_link`; a value
            that is not known is None.
        """
        now = self._ended if self._ended is not None else now
        done = self._done.total()
        rate = self._rate.at(now) / self._scale
        if self._ended is not None and self._first is not None:
            rate = (done - self._before) / self._scale / max(self._ended - self._first, _BIN_S)
        elapsed = self._platform_s(now - self._begun)
        if rate > 0 and (not self._history or elapsed - self._history[-1][0] >= self._scale * _BIN_S):
            self._history.append((elapsed, rate))
        left = (self.total - done) / rate if self.total is not None and rate > 0 else None
        return {
            "state": "ended" if self._ended is not None else "running" if self._first is not None else "starting",
            "name": self._name,
            "platform": self._platform,
            "done": done,
            "total": self.total,
            "elapsed_s": elapsed,
            "left_s": 0.0 if self._ended is not None else left,
            "tasks_per_s": rate,
            "bound_tasks_per_s": self._bound,
            "history": [list(point) for point in self._history],
            "events": list(self._events),
            "nodes": self._rows(now),
        }

    def _platform_s(self, seconds: float) -> float:
        return seconds * self._scale

    def _rows(self, now: float) -> list[Row]:
        computed = {name: rate.at(now) / self._scale for name, rate in self._rates.items()}
        planned = {name: float(node["computed_tasks_per_s"]) for name, node in self._planned.items()}
        received, to_receive = self._through(computed), self._through(planned)
        known = bool(self._planned)
        rows = []
        for name, depth in self._in_order():
            node = self._nodes[name]
            limit = link_mb_per_s(node)
            speed = float(node.get("compute_per_s", 0.0))
            has_link = known and limit is not None

            def processor(rate: float, speed: float = speed) -> float | None:
                return rate * self._work / speed if known and speed > 0 else None

            def link(rate: float, limit: float | None = limit) -> float:
                return rate * self._size_mb / float(limit or math.inf)

            rows.append(
                {
                    "name": name,
                    "parent": node.get("parent"),
                    "depth": depth,
                    "state": self._state(name, planned.get(name), now),
                    "tasks": self._done[name],
                    "tasks_per_s": computed.get(name, 0.0),
                    "planned_tasks_per_s": planned.get(name),
                    "processor": processor(computed.get(name, 0.0)),
                    "planned_processor": processor(planned.get(name, 0.0)),
                    "link": link(received[name]) if has_link else None,
                    "planned_link": link(to_receive[name]) if has_link else None,
                }
            )
        return rows

    def _in_order(self) -> list[tuple[str, int]]:
        """Return each node with its depth, a parent before its children."""
        below: dict[str | None, list[str]] = {}
        for name, node in self._nodes.items():
            below.setdefault(node.get("parent"), []).append(name)
        order, open_ = [], [(name, 0) for name in reversed(below.get(None, []))]
        while open_:
            name, depth = open_.pop()
            order.append((name, depth))
            open_ += [(child, depth + 1) for child in reversed(below.get(name, []))]
        return order

    def _through(self, computed: Mapping[str, float]) -> dict[str, float]:
        """Return the tasks per second that each node takes in: what it and all below it compute."""
        taken = {name: computed.get(name, 0.0) for name in self._nodes}
        for name, _ in reversed(self._in_order()):
            parent = self._nodes[name].get("parent")
            if parent is not None:
                taken[parent] += taken[name]
        return taken

    def _state(self, name: str, planned: float | None, now: float) -> str:
        if name in self._lost:
            return self._lost[name]
        if self._ended is not None:
            return "done" if self._done[name] or self._nodes[name].get("compute_per_s") == 0.0 else "unused"
        if self._nodes[name].get("compute_per_s") == 0.0:
            return "sends"
        if planned and self._is_behind(name, planned * self._scale, now):
            return "behind"
        if self._done[name]:
            return "works"
        return "unused" if planned == 0.0 else "waits"

    def _is_behind(self, name: str, planned: float, now: float) -> bool:
        """Whether a node has certainly computed less than it was to."""
        if self._first is None:
            return False
        if self.total is not None and self._done.total() > _ENDING * self.total:
            return False
        if now - self._first < max(_SETTLED_S, _SETTLED_TASKS / planned):
            return False
        count, seconds = self._rates[name].counted(now) if name in self._rates else (0, now - self._first)
        expected = planned * seconds
        return count < _BEHIND * expected and expected - count > _CERTAIN * math.sqrt(expected)
