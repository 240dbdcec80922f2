"""The fields of a `cost.json` (docs/reference/files.md)."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from annotated_types import Ge, Len
from pydantic import AfterValidator
from typing_extensions import TypedDict

from crosswind.cost.blocks import FIELDS, contrasts
from crosswind.files.shape import Host, LooksShape, Notice, NotNegative, Number, Share, Two, of_one_length

Cpus = list[Annotated[int, Ge(0)]]


class TargetShape(TypedDict):
    """What was stopped and continued."""

    text: str
    name: str
    cpus: Cpus
    age_s: NotRequired[NotNegative]
    used_s: NotRequired[NotNegative]


class JobShape(TypedDict):
    """What ran beside it."""

    name: str
    command: list[str] | None
    progress: str
    unit: str
    cpus: Cpus
    wants_cpus: Number
    block_s: NotNegative


class UndisturbedShape(TypedDict):
    """CPU time of each target, by windows."""

    wall_s: list[NotNegative]
    cpu_s: list[list[Number]]


class QuadsShape(TypedDict):
    """What was counted, a row a quad."""

    contrast: list[Annotated[int, Ge(0)]]
    at_s: list[NotNegative]
    work: list[Two]
    wall_s: list[Two]
    job_cpu_s: list[Two]
    x_cpu_s: list[Two]


class IntervalsShape(TypedDict):
    """When each target computed, undisturbed: start and duration, s."""

    length_s: NotNegative
    of: list[list[Two]]


class _Fields(TypedDict):
    """The cost of a process."""

    asked: NotRequired[str]
    margin: Share
    of: Annotated[list[TargetShape], Len(1)]
    job: JobShape
    host: Host
    steal_share: NotNegative
    looks: LooksShape
    undisturbed: UndisturbedShape
    quads: QuadsShape
    warnings: list[Notice]
    intervals: NotRequired[IntervalsShape]
    watched: NotRequired[UndisturbedShape]
    unseen_s: NotRequired[list[NotNegative]]
    waited_for: NotRequired[list[Annotated[int, Ge(0)]]]
    interrupted: NotRequired[bool]


def _consistent(document: Any) -> Any:
    quads, targets = document["quads"], len(document["of"])
    of_one_length(quads, ("at_s", "contrast", *FIELDS))
    for name in ("undisturbed", "watched"):
        if name in document:
            of_one_length(document[name], ("wall_s", "cpu_s"))
            if any(len(row) != targets for row in document[name]["cpu_s"]):
                raise ValueError(f"{name}.cpu_s has a row without a value for each of {targets} targets")
    if len(document.get("unseen_s", document["of"])) != targets:
        raise ValueError(f"unseen_s has {len(document['unseen_s'])} values; there are {targets} targets")
    if any(each >= targets for each in document.get("waited_for", ())):
        raise ValueError(f"waited_for is {document['waited_for']}; there are {targets} targets")
    most = len(contrasts(targets)) - 1
    if any(each > most for each in quads["contrast"]):
        raise ValueError(f"quads.contrast is {max(quads['contrast'])}; it must be at most {most}")
    return document


CostShape = Annotated[_Fields, AfterValidator(_consistent)]
