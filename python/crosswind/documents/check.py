"""The fields of a `check.json` and a `cluster-check.json` (docs/reference/files.md)."""

from __future__ import annotations

from typing import Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from crosswind.documents.values import Head, Host, Notice, NotNegative, Number, Positive, Share


@with_config(ConfigDict(extra="forbid"))
class Reading(TypedDict):
    """A measure."""

    values: list[Number]
    unit: str
    excusable: bool
    part: Positive
    mean: Number | None
    error: Number | None
    looks: NotRequired[int]


@with_config(ConfigDict(extra="forbid"))
class Judged(TypedDict):
    """A measure as it was judged."""

    name: str
    outcome: Literal["healthy", "sick", "unknown"]
    loss: Number | None
    low: Number | None
    high: Number | None
    tolerance: Number
    share: bool
    why: str


class Result(TypedDict):
    """What a check was found to say."""

    judged: list[Judged]
    changed: list[str]


class Load(TypedDict):
    """What others used of the host."""

    others: Number
    steal: Number


class CheckDocument(Head):
    """A check of a node."""

    at: str
    host: Host
    peer: NotRequired[str | None]
    tolerance: Share
    readings: dict[str, Reading]
    tops_mb_per_s: dict[str, NotNegative]
    load: Load
    hidden: str | None
    took_s: NotNegative
    interrupted: bool
    failed: NotRequired[dict[str, str]]
    warnings: list[Notice]
    result: NotRequired[Result]


Link = TypedDict("Link", {"from": str, "to": str, "receive_limit_mb_per_s": Number})
"""A measured link."""


class ClusterCheckDocument(Head):
    """A check of a cluster."""

    at: str
    cluster: NotRequired[str]
    took_s: NotRequired[NotNegative]
    hosts: dict[str, str]
    tolerance: Share
    checks: dict[str, CheckDocument]
    links: list[Link]
    failed: dict[str, str]
    interrupted: bool
