"""The fields of a `cost.json` (docs/reference/files.md)."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from annotated_types import Ge, Len
from pydantic import AfterValidator
from typing_extensions import TypedDict

from crosswind.documents.values import Head, Host, Looks, Notice, NotNegative, Number, Share, Two, of_one_length

Cpus = list[Annotated[int, Ge(0)]]


class Target(TypedDict):
    """What was stopped and continued."""

    text: str
    name: str
    how: NotRequired[str]
    cpus: Cpus
    age_s: NotRequired[NotNegative]
    used_s: NotRequired[NotNegative]


class Job(TypedDict):
    """What ran beside it."""

    name: str
    command: list[str] | None
    progress: str
    unit: str
    cpus: Cpus
    wants_cpus: Number
    block_s: NotNegative


class Undisturbed(TypedDict):
    """CPU time of each target, by windows."""

    wall_s: list[NotNegative]
    cpu_s: list[list[Number]]


class Quads(TypedDict):
    """What was counted, a row a quad."""

    contrast: list[Annotated[int, Ge(0)]]
    at_s: list[NotNegative]
    work: list[Two]
    wall_s: list[Two]
    job_cpu_s: list[Two]
    x_cpu_s: list[Two]


class Intervals(TypedDict):
    """When each target computed, undisturbed: start and duration, s."""

    length_s: NotNegative
    of: list[list[Two]]


class _Fields(Head):
    """The cost of a process."""

    asked: NotRequired[str]
    margin: Share
    of: Annotated[list[Target], Len(1)]
    job: Job
    host: Host
    steal_share: NotNegative
    looks: Looks
    undisturbed: Undisturbed
    quads: Quads
    warnings: list[Notice]
    intervals: NotRequired[Intervals]
    watched: NotRequired[Undisturbed]
    unseen_s: NotRequired[list[NotNegative]]
    waited_for: NotRequired[list[Annotated[int, Ge(0)]]]
    interrupted: NotRequired[bool]


def _consistent(document: Any) -> Any:
    quads, targets = document["quads"], len(document["of"])
    of_one_length(quads, ("at_s", "contrast", "work", "wall_s", "job_cpu_s", "x_cpu_s"))
    for name in ("undisturbed", "watched"):
        if name in document:
            of_one_length(document[name], ("wall_s", "cpu_s"))
            if any(len(row) != targets for row in document[name]["cpu_s"]):
                raise ValueError(f"{name}.cpu_s has a row without a value for each of {targets} targets")
    if len(document.get("unseen_s", document["of"])) != targets:
        raise ValueError(f"unseen_s has {len(document['unseen_s'])} values; there are {targets} targets")
    if any(each >= targets for each in document.get("waited_for", ())):
        raise ValueError(f"waited_for is {document['waited_for']}; there are {targets} targets")
    most = targets if targets > 1 else 0  # each alone, and all together
    if any(each > most for each in quads["contrast"]):
        raise ValueError(f"quads.contrast is {max(quads['contrast'])}; it must be at most {most}")
    return document


CostDocument = Annotated[_Fields, AfterValidator(_consistent)]
