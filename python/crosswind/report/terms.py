"""The words of the report, each explained in two or three sentences (`templates/terms.toml`)."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

Group = Literal[
    "measured",
    "together",
    "swept",
    "planned",
    "ran",
    "disturbed",
    "blamed",
    "studied",
    "injected",
    "streamed",
    "overlapped",
]


class Term(NamedTuple):
    """A word, where to find it on the page (`term-ID`), and what it means."""

    id: str
    name: str
    text: str


@cache
def terms(group: Group) -> tuple[Term, ...]:
    """Return the terms that one kind of content needs.

    Examples
    --------
    >>> terms("measured")[0].name
    'interference rate (IR)'
    """
    content = (files("crosswind.report") / "templates" / "terms.toml").read_text(encoding="utf-8")
    return tuple(Term(**term) for term in tomllib.loads(content)[group])
