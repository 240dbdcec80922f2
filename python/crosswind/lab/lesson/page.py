"""The lesson as one HTML file: text, data and program inside, nothing fetched."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import jinja2

from crosswind import __version__
from crosswind.documents import Row
from crosswind.files.pages import script_hash, script_json
from crosswind.lab.lesson.explanations import CLOSE, comparison_of, explanations_of
from crosswind.lab.lesson.scenes import BUFFER_TASKS, TASKS, Scene, Scenes, Setting, children_of, parent_of, rate_of
from crosswind.terminal.printable import printable_values

POLICY = (
    "default-src 'none'; script-src {script}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)


def page_of(scenes: Scenes) -> str:
    """Return the page."""
    program = _asset("lesson.js")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("crosswind.lab.lesson", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    below = children_of(scenes.platform)
    slowest = min((node for node in scenes.platform.nodes[1:] if len(below[parent_of(node)]) > 1), key=rate_of)
    return environment.get_template("lesson.html.j2").render(
        **printable_values(
            {
                "platform": scenes.platform.name,
                "root": scenes.platform.nodes[0]["name"],
                "slowest": slowest["name"],
                "slowest_parent": slowest["parent"],
                "children": _children(scenes),
            }
        ),
        is_fork=len(below[scenes.platform.nodes[0]["name"]]) == len(scenes.platform.nodes) - 1,
        holds_s=scenes.task_size_mb / rate_of(slowest),
        scenes=scenes,
        root_computes=float(scenes.platform.nodes[0]["compute_per_s"]) > 0.0,
        sending_costs=any(map(_costs_its_sender, scenes.platform.nodes[1:])),
        arrival=scenes.as_given[0],
        bandwidth=scenes.as_given[1],
        tasks=TASKS,
        buffer_tasks=BUFFER_TASKS,
        data=script_json(printable_values(_data(scenes))),
        style=_asset("lesson.css"),
        program=program,
        policy=POLICY.format(script=script_hash(program)),
        version=__version__,
    )


def _costs_its_sender(node: Mapping[str, Any]) -> bool:
    """Return whether sending to a node costs its parent computation; losses stand in the place of the rate."""
    losses = node.get("send_losses") or []
    return any(lost > 0.0 for _, lost in losses) if losses else float(node.get("ir_send_s_per_mb") or 0.0) > 0.0


def _children(scenes: Scenes) -> list[Row]:
    """Return a row per child, fastest link of a parent first: what its tasks cost the port, what the plan sends it."""
    planned = {node["name"]: node for node in scenes.plan.nodes}
    below = children_of(scenes.platform)
    work = {node["name"]: float(node["compute_per_s"]) for node in scenes.platform.nodes}

    def subtree(name: str) -> float:
        return work[name] + sum(map(subtree, below[name]))

    senders = list(below)
    rows = []
    for node in scenes.platform.nodes[1:]:
        rate = rate_of(node)
        hold_s = scenes.task_size_mb / rate
        received = float(planned[node["name"]]["received_tasks_per_s"])
        rows.append(
            {
                "name": node["name"],
                "parent": node["parent"],
                "rate": rate,
                "hold_s": hold_s,
                "per_port_s": 1.0 / hold_s,
                "computes": subtree(node["name"]) / scenes.task_work,
                "received": received,
                "share": received * hold_s,
            }
        )
    return sorted(rows, key=lambda row: (senders.index(row["parent"]), -row["rate"]))


def _data(scenes: Scenes) -> Row:
    nodes = scenes.platform.nodes
    places = {node["name"]: place for place, node in enumerate(nodes)}
    return {
        "nodes": [node["name"] for node in nodes],
        "parents": [-1, *(places[parent_of(node)] for node in nodes[1:])],
        "computing": [float(node["compute_per_s"]) > 0.0 for node in nodes],
        "close": CLOSE,
        "rates": [None if node.get("parent") is None else rate_of(node) for node in nodes],
        "tasks": TASKS,
        "task_size_mb": scenes.task_size_mb,
        "window_ms": round(1000 * scenes.window_s),
        "bound": scenes.plan.bound_tasks_per_s,
        "given": [_played(scene) for scene in scenes.as_given],
        "settings": [
            {
                "link": setting.link,
                "rate": setting.rate_mb_per_s,
                "bound": setting.bound_tasks_per_s,
                "scenes": [_played(scene) for scene in setting.scenes],
                **_explained(scenes, setting),
            }
            for setting in scenes.settings
        ],
    }


def _explained(scenes: Scenes, setting: Setting) -> Row:
    faster, why = comparison_of(setting)
    whys = explanations_of(scenes, setting)
    return {
        "faster": faster,
        "why_faster": why,
        "why": [{"mistakes": one.mistakes, "high": one.high, "low": one.low} for one in whys],
    }


def _played(scene: Scene) -> Row:
    return {
        "order": scene.order,
        "tasks_per_s": scene.tasks_per_s,
        "makespan_s": scene.makespan_s,
        "sends": scene.sends,
        "computes": scene.computes,
        "port": [round(share, 4) for share in scene.port],
    }


def _asset(name: str) -> str:
    return (files("crosswind.lab.lesson") / "templates" / name).read_text(encoding="utf-8")
