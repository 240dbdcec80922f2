"""The head line of a recorded program (docs/reference/recorded-programs.md)."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from annotated_types import Ge, Len
from typing_extensions import TypedDict

from crosswind.documents.values import NotNegative

Count = Annotated[int, Ge(0)]


class KernelTrace(TypedDict):
    """What the kernel's trace saw of the ranks."""

    used: bool
    why: str | None
    lost_events: Count
    full: NotRequired[bool]
    host_id: NotRequired[str | None]


class RecordedProgramHead(TypedDict):
    """What stands in the first line of an `app.trace`."""

    format: Literal["crosswind-trace"]
    version: Literal[1]
    world_size: Count
    ranks: list[Count]
    command: Annotated[list[str], Len(1)]
    started: str
    seconds: NotNegative
    exit: int | None
    crosswind: str
    library: str | None
    kernel_trace: KernelTrace
    complete: bool
