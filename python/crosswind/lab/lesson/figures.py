"""The lesson's figures for slides: the tree, what each order does when, and both orders below each other."""

from __future__ import annotations

from pathlib import Path

from crosswind.files.atomic import made
from crosswind.lab.drawing import COLOURS, IDLE, MUTED, WIRE, Drawing, fits, write_drawing
from crosswind.lab.lesson.scenes import TASKS, Scene, Scenes, children_of, parent_of, rate_of

WIDTH = 960.0
_LABEL, _PORT, _LANE = 150.0, 26.0, 22.0
_TITLES = {"arrival": "arrival: first come, first served", "bandwidth": "bandwidth: fastest link first"}


def write_figures(scenes: Scenes, directory: Path) -> list[Path]:
    """Write `tree`, each order, and `orders` as SVG and PNG; return their paths.

    Raises
    ------
    DescriptionError
        When the directory cannot be made.
    """
    made(directory, "figures")
    drawn = {"tree": _tree(scenes), "orders": _orders(scenes, scenes.as_given)}
    drawn |= {scene.order: _orders(scenes, [scene]) for scene in scenes.as_given}
    written = []
    for name, drawing in sorted(drawn.items()):
        for suffix in (".png", ".svg"):
            written.append(directory / f"{name}{suffix}")
            write_drawing(drawing, written[-1])
    return written


def _tree(scenes: Scenes) -> Drawing:
    """Draw the tree from left to right: boxes with what each node computes alone, links with their rates."""
    nodes = list(scenes.platform.nodes)
    below = children_of(scenes.platform)
    levels: dict[str, int] = {}
    for node in nodes:
        levels[node["name"]] = 0 if node.get("parent") is None else levels[parent_of(node)] + 1
    rows: dict[str, float] = {}
    leaves = [str(node["name"]) for node in nodes if not below[node["name"]]]
    for node in reversed(nodes):
        name, children = node["name"], below[node["name"]]
        rows[name] = sum(rows[child] for child in children) / len(children) if children else leaves.index(name)
    box, row = 170.0, 62.0
    step = (WIDTH - 40.0 - box) / max(levels.values())
    drawing = Drawing(WIDTH, len(leaves) * row + 30.0)

    def corner(name: str) -> tuple[float, float]:
        return 20.0 + levels[name] * step, 20.0 + rows[name] * row

    for node in nodes[1:]:
        (x1, y1), (x2, y2) = corner(parent_of(node)), corner(node["name"])
        drawing.line(x1 + box, y1 + 22, x2, y2 + 22, WIRE, 2)
        drawing.text(x2 - 12, y2 + 18, f"{rate_of(node):g} MB/s", 16, "end", MUTED, over=True)
    for at, node in enumerate(nodes):
        x, y = corner(node["name"])
        drawing.rect(x, y, box, 44, "#f6f7f9", COLOURS[at], 8)
        drawing.text(x + 12, y + 19, _short(node["name"], box - 24, 17), 17)
        rate = float(node["compute_per_s"]) / scenes.task_work
        drawing.text(x + 12, y + 37, f"{rate:.3g} tasks/s alone" if rate else "only sends", 14, colour=MUTED)
    return drawing


def _orders(scenes: Scenes, shown: list[Scene]) -> Drawing:
    """Draw runs one below the other on one axis of time: each port, and when each node computes."""
    senders = [name for name, children in children_of(scenes.platform).items() if children]
    one = 46.0 + len(senders) * (_PORT + 6.0) + len(scenes.platform.nodes) * _LANE + 24.0
    drawing = Drawing(WIDTH, len(shown) * one + 30.0)
    for at, scene in enumerate(shown):
        _order(drawing, scenes, scene, senders, 30.0 + at * one)
    scale = (WIDTH - _LABEL - 30.0) / scenes.window_s
    tick = next((step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500) if step * 8 >= scenes.window_s), 1000)
    for second in range(0, int(scenes.window_s) + 1, tick):
        drawing.text(_LABEL + second * scale, drawing.height - 12, f"{second} s", 14, "middle", MUTED)
    return drawing


def _order(drawing: Drawing, scenes: Scenes, scene: Scene, senders: list[str], top: float) -> None:
    nodes = list(scenes.platform.nodes)
    scale = (WIDTH - _LABEL - 30.0) / (1000.0 * scenes.window_s)
    end = scenes.window_s * 1000.0
    found = f"{scene.tasks_per_s:.2f} tasks/s, {TASKS} tasks in {scene.makespan_s:.1f} s"
    drawing.text(10, top, f"{_TITLES[scene.order]}: {found}", 19)
    y = top + 16.0
    lanes = {}
    for sender in senders:
        label = f"port of {sender}" if len(senders) > 1 else "port"
        drawing.text(10, y + 19, _short(label, _LABEL - 20, 15), 15)
        drawing.rect(_LABEL, y, end * scale, _PORT, IDLE)
        lanes[sender] = y
        y += _PORT + 6.0
    for at, start, length in _triples(scene.sends):
        x, width = _LABEL + start * scale, (min(start + length, end) - start) * scale
        lane = lanes[parent_of(nodes[at])]
        drawing.rect(x, lane, max(width - 0.5, 0.5), _PORT, COLOURS[at])
        if fits(nodes[at]["name"], width, 13):
            drawing.text(x + width / 2, lane + 18, nodes[at]["name"], 13, "middle", "#ffffff")
    for at, node in enumerate(nodes):
        drawing.text(10, y + at * _LANE + 14, _short(node["name"], _LABEL - 20, 14), 14, colour=MUTED)
        drawing.rect(_LABEL, y + at * _LANE, end * scale, _LANE - 5, IDLE)
    for at, start, length in _triples(scene.computes):
        width = (min(start + length, end) - start) * scale
        drawing.rect(_LABEL + start * scale, y + at * _LANE, max(width, 0.5), _LANE - 5, COLOURS[at])


def _triples(flat: list[int]) -> list[tuple[int, int, int]]:
    return list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))


def _short(name: str, width: float, size: float) -> str:
    while not fits(name, width, size) and len(name) > 2:
        name = f"{name[:-2]}…"
    return name
