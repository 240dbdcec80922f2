"""Homework that the program grades: the seven questions of the sheet on a platform that a seed draws.

Each student's number is a seed, so that each has another platform and all have the same questions. The answers are
computed by `crosswind.lab.papers.homework`, those on schedules and orders by search and by simulation.
"""

from __future__ import annotations

import json
import math
import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from crosswind import DescriptionError, Experiment, Platform, run
from crosswind.files.reading import read_bytes
from crosswind.lab.papers import homework

SIZE_MB, WORK = 2.0, 5.0
"""Of a task."""
TOLERANCE = 0.01
"""By which a number may differ from the program's, as a share of it."""
ORDERS = ("interference", "interference-rate", "bandwidth", "compute", "arrival")
_TASKS, _CHILDREN, _JOBS, _MACHINES = 400, 5, 9, 3
_LARGEST_SEED = 2**53

Verdict = Literal["right", "wrong", "missing"]


@dataclass(frozen=True)
class Sheet:
    """The homework of a seed.

    Attributes
    ----------
    seed : int
        0 to 2^53.
    platform : Platform
        A root `r` and five children.
    jobs : list of int
        Lengths of the jobs of the course question.
    machines : int
        Machines for these jobs.
    """

    seed: int
    platform: Platform
    jobs: list[int]
    machines: int = _MACHINES

    @cached_property
    def children(self) -> list[str]:
        """Names of the children, in the order of the platform."""
        return [str(node["name"]) for node in self.platform.nodes[1:]]

    @cached_property
    def fastest(self) -> list[str]:
        """The two children with the fastest links."""
        links = self.platform.links_mb_per_s
        return sorted(self.children, key=lambda name: -links[name])[:2]

    @cached_property
    def free_flows(self) -> dict[str, tuple[float, float]]:
        """Tasks/s that each node receives and computes if communication costs nothing.

        Many plans are equally good where the root cannot send all that the children could compute; this one gives
        each child as many tasks as it can take, the fastest links first.
        """
        links, (root, *children) = self.platform.links_mb_per_s, self.platform.nodes
        flows = {str(root["name"]): (0.0, root["compute_per_s"] / WORK)}
        left = (root["send_limit_mb_per_s"] or math.inf) / SIZE_MB
        for child in sorted(children, key=lambda child: -links[child["name"]]):
            taken = min(left, links[child["name"]] / SIZE_MB, child["compute_per_s"] / WORK)
            flows[str(child["name"])] = (taken, taken)
            left -= taken
        return flows

    @cached_property
    def promised(self) -> float:
        """What the best plan promises without interference, tasks/s."""
        return sum(computed for _, computed in self.free_flows.values())

    @cached_property
    def kept(self) -> float:
        """What the plan of `free_flows` keeps with interference, tasks/s."""
        return homework.kept_tasks_per_s(self.platform, self.free_flows, SIZE_MB, WORK)

    @cached_property
    def simulated(self) -> dict[str, float]:
        """Tasks/s of each of `ORDERS`, one send at a time, simulated."""
        runs = run(
            Experiment.from_dict(
                {
                    "schema_version": 1,
                    "name": "homework",
                    "platform": self.platform.to_dict(),
                    "workload": {"kind": "farm", "tasks": _TASKS, "task_size_mb": SIZE_MB, "task_work": WORK},
                    "policy": {"ports": "single", "level_end": False},
                    "sweep": {"policy.order": list(ORDERS)},
                }
            ),
            workers=1,
        )
        return {str(one.data["order"]): one.throughput_tasks_per_s for one in runs}


def sheet_of(seed: int) -> Sheet:
    """Return the homework of a seed: the same one on every machine.

    Raises
    ------
    DescriptionError
        When the seed is out of range.

    Examples
    --------
    >>> sheet = sheet_of(7)
    >>> sheet.children, len(sheet.jobs)
    (['a', 'b', 'c', 'd', 'e'], 9)
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= _LARGEST_SEED:
        raise DescriptionError(f"seed is {seed!r}; it must be a whole number from 0 to 2^53", "argument")
    draw = random.Random(seed).random  # the only method whose values are the same in every version of Python

    def shuffled(values: Sequence[float]) -> list[float]:
        return [value for _, value in sorted((draw(), value) for value in values)]

    links = [round(rate * (0.9 + 0.2 * draw()), 2) for rate in shuffled([1.0, 2.5, 5.0, 9.0, 16.0])]
    speeds = [round(rate * (0.9 + 0.2 * draw()), 1) for rate in shuffled([4.0, 8.0, 12.0, 16.0, 20.0])]
    losses = [round(rate * (0.9 + 0.2 * draw()), 4) for rate in shuffled([0.004, 0.012, 0.02, 0.028, 0.04])]
    children = [
        {
            "name": name,
            "parent": "r",
            "compute_per_s": speed,
            "receive_limit_mb_per_s": link,
            "ir_receive_s_per_mb": round(0.01 + 0.03 * draw(), 4),
            "ir_send_s_per_mb": loss,
        }
        for name, speed, link, loss in zip("abcde", speeds, links, losses, strict=True)
    ]
    root = {"name": "r", "compute_per_s": round(8.0 + 4.0 * draw(), 1), "send_limit_mb_per_s": round(9 + 6 * draw(), 1)}
    platform = {"schema_version": 1, "name": f"homework {seed}", "node": [root, *children]}
    jobs = sorted((2 + int(8 * draw()) for _ in range(_JOBS)), reverse=True)
    return Sheet(seed, Platform.from_dict(platform), jobs)


@dataclass(frozen=True)
class Mark:
    """What an answer is worth.

    Attributes
    ----------
    question : str
        "course", or "1" to "7".
    field : str
        The field of answers.toml.
    verdict : {"right", "wrong", "missing"}
    why : str
        What is wrong with it, or the answer of the program.
    """

    question: str
    field: str
    verdict: Verdict
    why: str


@dataclass(frozen=True)
class _Question:
    number: str
    field: str
    text: str
    example: str
    grade: Callable[[Sheet, Any], str | None]
    """Returns what is wrong, None for a right answer; raises `_WrongKindError` where the answer is none."""


class _WrongKindError(ValueError):
    """An answer of the wrong kind; the text says what it must be."""


def _number(answer: Any) -> float:
    if isinstance(answer, bool) or not isinstance(answer, (int, float)) or not math.isfinite(answer):
        raise _WrongKindError("a finite number")
    return float(answer)


def _names(sheet: Sheet, answer: Any) -> list[str]:
    known = ", ".join(sheet.children)
    if not isinstance(answer, list) or not all(name in sheet.children for name in answer):
        raise _WrongKindError(f"a list of children, each one of {known}")
    if len(set(answer)) < len(answer):
        raise _WrongKindError("a list that has each child once")
    return [str(name) for name in answer]


def _near(given: float, right: float, unit: str) -> str | None:
    if abs(given - right) <= TOLERANCE * abs(right) + 1e-12:
        return None
    return f"{given:.4g} {unit}; it is {right:.4g}"


def _schedule(sheet: Sheet, answer: Any) -> str | None:
    parts = answer if isinstance(answer, list) else None
    if parts is None or len(parts) > sheet.machines or not all(isinstance(part, list) for part in parts):
        raise _WrongKindError(f"at most {sheet.machines} lists of jobs, one for each machine")
    jobs = sorted((_number(job) for part in parts for job in part), reverse=True)
    if jobs != sheet.jobs:
        raise _WrongKindError(f"all jobs, each once: {', '.join(map(str, sheet.jobs))}")
    found = homework.approximation([float(job) for job in sheet.jobs], sheet.machines)
    last = max(sum(part) for part in parts)
    if last <= found.optimum:
        return None
    return (
        f"the last job ends at {last:g}, {last / found.optimum:.3f} times the optimum, {found.optimum:g}; "
        f"longest first ends at {found.longest_first:g}, at most {found.bound:.3f} times"
    )


def _promised(sheet: Sheet, answer: Any) -> str | None:
    return _near(_number(answer), sheet.promised, "tasks/s")


def _kept(sheet: Sheet, answer: Any) -> str | None:
    return _near(_number(answer), sheet.kept, "tasks/s")


def _share(sheet: Sheet, answer: Any) -> str | None:
    losses = {str(node["name"]): float(node["ir_send_s_per_mb"]) for node in sheet.platform.nodes[1:]}
    right = homework.compute_share(losses, dict.fromkeys(sheet.fastest, 3.0))
    wrong = _near(_number(answer), right, "of its rate")
    return wrong and f"{wrong}: losses of several children add up"


def _order(sheet: Sheet, answer: Any) -> str | None:
    given, right = _names(sheet, answer), homework.bandwidth_centric_order(sheet.platform, "r", SIZE_MB, WORK)
    links = sheet.platform.links_mb_per_s
    for first, second in pairwise(given):
        if links[first] < links[second]:
            return (
                f"{first} ({links[first]:g} MB/s) stands before {second} ({links[second]:g} MB/s): the shorter "
                "transfer goes first, however fast the processors are"
            )
    missing = [name for name in right if name not in given]
    return f"{', '.join(missing)} missing" if missing else None


def _rates(sheet: Sheet, answer: Any) -> str | None:
    right = homework.subtree_rates(sheet.platform, SIZE_MB, WORK)
    if not isinstance(answer, dict) or set(answer) != set(right):
        raise _WrongKindError(f"a table with a rate for each of {', '.join(right)}")
    for name, rate in right.items():
        if wrong := _near(_number(answer[name]), rate, "tasks/s"):
            return f"{name}: {wrong}"
    return None


def _measurements(sheet: Sheet, answer: Any) -> str | None:
    found = homework.situations(sheet.platform, "r")
    if _number(answer) == len(found):
        return None
    return f"{answer:g}; it is {len(found)}: {', '.join(found)}"


def _idle(sheet: Sheet, answer: Any) -> str | None:
    given, right = set(_names(sheet, answer)), homework.without_a_part(sheet.platform, SIZE_MB, WORK)
    for name in sorted(given - set(right)):
        return f"{name} takes part in the plan"
    for name in sorted(set(right) - given):
        return f"{name} takes no part: {right[name]}"
    return None


def _best(sheet: Sheet, answer: Any) -> str | None:
    if answer not in ORDERS:
        raise _WrongKindError(f"one of {', '.join(ORDERS)}")
    rates = sheet.simulated
    best = max(rates, key=lambda order: rates[order])
    if rates[answer] >= (1.0 - TOLERANCE) * rates[best]:
        return None
    return f"{answer} reaches {rates[answer]:.3g} tasks/s in the simulation, {best} {rates[best]:.3g}"


_QUESTIONS = (
    _Question(
        "course",
        "schedule",
        "Put the jobs on the machines so that the last one ends as early as possible.",
        "[[9, 4, 2], [8, 5], [7, 6]]",
        _schedule,
    ),
    _Question(
        "1",
        "promised_tasks_per_s",
        "What does the best plan promise, several sends at a time, if communication costs no computation?",
        "5.5",
        _promised,
    ),
    _Question(
        "1",
        "kept_tasks_per_s",
        "And how many of these are computed, with interference? "
        "Children with faster links get all they can compute first.",
        "4.5",
        _kept,
    ),
    _Question(
        "2",
        "compute_share",
        "Which share of its compute rate does r keep while it sends 3 MB/s to {} and 3 MB/s to {}?",
        "0.9",
        _share,
    ),
    _Question(
        "3",
        "order",
        "In which order does r serve its children, one at a time, if sending costs it nothing?",
        '["a", "b", "c", "d", "e"]',
        _order,
    ),
    _Question(
        "4",
        "subtree_tasks_per_s",
        "T(n): tasks per second computed in the subtree of each node, in the best plan with interference.",
        "{ r = 5.0, a = 0.5, b = 0.5, c = 0.5, d = 0.5, e = 0.5 }",
        _rates,
    ),
    _Question(
        "5", "measurements", "In how many situations must r be measured, which receives nothing?", "12", _measurements
    ),
    _Question("6", "idle", "Which children take no part in that plan?", '["a"]', _idle),
    _Question(
        "7",
        "best_order",
        f"Which order is the fastest, one send at a time: {', '.join(ORDERS)}? Within 1 % of the fastest is right.",
        '"arrival"',
        _best,
    ),
)


def questions(sheet: Sheet) -> str:
    """Return an answers.toml without answers: the platform and the questions as comments."""
    lines = [
        "schema_version = 1",
        f"seed = {sheet.seed}",
        "",
        f"# Each task has {SIZE_MB:g} MB and {WORK:g} work units. r has the tasks, "
        f"computes {sheet.platform.nodes[0]['compute_per_s']:g} work units/s",
        f"# and sends at most {sheet.platform.nodes[0]['send_limit_mb_per_s']:g} MB/s. Its children:",
        "#",
        "#   child  work units/s  MB/s   IR receive, s/MB  IR send of r, s/MB",
    ]
    for node in sheet.platform.nodes[1:]:
        lines.append(
            f"#   {node['name']:5}  {node['compute_per_s']:12g}  {node['receive_limit_mb_per_s']:5g}  "
            f"{node['ir_receive_s_per_mb']:16g}  {node['ir_send_s_per_mb']:18g}"
        )
    jobs = ", ".join(map(str, sheet.jobs))
    lines += ["#", f"# Jobs of the course question, for {sheet.machines} machines: {jobs}", "", "[answers]"]
    for one in _QUESTIONS:
        lines += [f"# {one.number}. {one.text.format(*sheet.fastest)}", f"# {one.field} = {one.example}", ""]
    return "\n".join(lines)


def grade(answers: str | Path | Mapping[str, Any]) -> list[Mark]:
    """Grade answers: a mark for each question.

    Parameters
    ----------
    answers : path or mapping
        An answers.toml, or its content: `schema_version`, `seed` and the table `answers`.

    Raises
    ------
    DescriptionError
        When a field is unknown, or `seed` or `schema_version` are wrong. A wrong answer is no error, and neither is
        one of the wrong kind: it is marked wrong, with what it must be.

    Examples
    --------
    >>> marks = grade({"schema_version": 1, "seed": 7, "answers": {"measurements": 6}})
    >>> [(mark.field, mark.verdict) for mark in marks if mark.verdict != "missing"]
    [('measurements', 'right')]
    """
    where = "answers" if isinstance(answers, Mapping) else str(answers)
    document = dict(answers) if isinstance(answers, Mapping) else _read(answers)
    known = {"schema_version", "seed", "answers"}
    if unknown := sorted(set(document) - known):
        raise _unknown(where, unknown[0], sorted(known))
    if document.get("schema_version") != 1:
        raise _refused(where, "schema_version", _shown(document.get("schema_version")), "1")
    if "seed" not in document:
        raise _refused(where, "seed", "missing", "the seed of the sheet, as in its first lines")
    sheet, given = sheet_of(document["seed"]), document.get("answers", {})
    fields = [one.field for one in _QUESTIONS]
    if not isinstance(given, Mapping):
        raise _refused(where, "answers", _shown(given), "a table")
    if unknown := sorted(set(given) - set(fields)):
        raise _unknown(where, f"answers.{unknown[0]}", fields)
    return [_mark(sheet, one, given) for one in _QUESTIONS]


def _mark(sheet: Sheet, one: _Question, given: Mapping[str, Any]) -> Mark:
    if one.field not in given:
        return Mark(one.number, one.field, "missing", "no answer")
    answer = given[one.field]
    try:
        wrong = one.grade(sheet, answer)
    except _WrongKindError as error:
        return Mark(one.number, one.field, "wrong", f"it is {_shown(answer)}; it must be {error}")
    return Mark(one.number, one.field, "wrong" if wrong else "right", wrong or "")


def _read(path: str | Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_bytes(path).decode())
    except (ValueError, RecursionError) as error:
        raise DescriptionError(f"{path}: {error}", "toml", "answers are TOML, as the sheet has them") from None


def _refused(where: str, field: str, value: str, expected: str) -> DescriptionError:
    return DescriptionError(f"{where}: {field} is {value}; it must be {expected}", "answers")


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _unknown(where: str, field: str, known: Sequence[str]) -> DescriptionError:
    return DescriptionError(f"{where}: unknown field {field}; known fields: {', '.join(known)}", "answers")
