"""Why a processor did not compute: from a trace's activities, for every gap between its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crosswind.report.figures.look import CRIMSON, GREY, OCHRE, PINK, VIOLET
from crosswind.run.trace import Trace

Span = tuple[float, float]

REASONS = {
    "its task is on the way": PINK,
    "its parent sends to others": OCHRE,
    "nothing comes": VIOLET,
    "no work left": GREY,
    "lost": CRIMSON,
}
ON_THE_WAY, OTHERS, NOTHING, OVER, LOST = REASONS


def idle_spans(trace: Trace, nodes: Sequence[str]) -> Iterator[tuple[str, str, Span]]:
    """Yield each node's gaps: the node, the reason (a word of `REASONS`), and from when to when, s."""
    parents = {str(node["name"]): node.get("parent") for node in trace.nodes}
    lost = {str(event["node"]) for event in trace.run.get("events", ()) if event["code"] in ("agent-lost", "node-left")}
    end = float(trace.run["makespan_s"])
    computed = _by(trace, "compute", "node")
    received = _by(trace, "send", "child")
    sent = _by(trace, "send", "node")
    for name in nodes:
        own, busy = received.get(name, []), computed.get(name, [])
        port = sent.get(str(parents.get(name)), [])
        last = max((to for _, to in busy), default=0.0)
        for gap in _without([(0.0, end)], busy):
            if gap[0] >= last:
                yield name, LOST if name in lost else OVER, gap
                continue
            rest = [gap]
            for reason, spans in ((ON_THE_WAY, own), (OTHERS, port)):
                left = _without(rest, spans)
                yield from ((name, reason, one) for one in _without(rest, left))
                rest = left
            yield from ((name, NOTHING, one) for one in rest)


def _by(trace: Trace, kind: str, owner: str) -> dict[str, list[Span]]:
    found: dict[str, list[Span]] = {}
    table = trace.of_kind(kind).select([owner, "start_s", "end_s"]).to_pydict()
    for name, start, to in zip(table[owner], table["start_s"], table["end_s"], strict=True):
        found.setdefault(str(name), []).append((start, to))
    return {name: sorted(spans) for name, spans in found.items()}


def _without(spans: Sequence[Span], taken: Sequence[Span]) -> list[Span]:
    """Return what is left of spans when others, in the order of their starts, are taken away.

    Examples
    --------
    >>> _without([(0.0, 10.0)], [(1.0, 2.0), (1.5, 4.0), (8.0, 12.0)])
    [(0.0, 1.0), (4.0, 8.0)]
    """
    found = []
    for start, end in spans:
        at = start
        for begin, over in taken:
            if begin >= end:
                break
            if over <= at:
                continue
            if begin > at:
                found.append((at, begin))
            at = max(at, over)
        if at < end:
            found.append((at, end))
    return found
