"""What the page needs to know of a section, and of each kind of section; `order.py` lists the kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from crosswind.errors import Notice
from crosswind.report.figures.figure import Figure


class Term(NamedTuple):
    """A word, where to find it on the page (`term-ID`), and what it means."""

    id: str
    name: str
    text: str


class Answer(NamedTuple):
    """The answer in large type.

    A section with such answers (`large`) shows them in place of its headline, which then only lists of sections use.

    Attributes
    ----------
    value : str
        A number with its unit, or a word.
    text : str
        The sentence that it begins.
    half : str
        Half-width of its 95 % interval, in its unit; "": none.
    tone : str
        `receive`, `send`, `good` or `poor`: decides the colour.
    """

    value: str
    text: str
    half: str = ""
    tone: str = ""


class Section(Protocol):
    """What the page needs to know of every section; the rest is between a section and its template."""

    @property
    def id(self) -> str: ...  # noqa: D102
    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def warnings(self) -> list[Notice]: ...  # noqa: D102
    @property
    def figures(self) -> list[Figure]: ...  # noqa: D102
    @property
    def terms(self) -> Sequence[Term]:
        """The terms that it links to."""


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of section.

    Attributes
    ----------
    noun, nouns : str
        What one item of it is called, and several.
    template : str
        In `templates`; it finds a section of this kind as `section`.
    takes : callable
        Whether an object belongs here.
    sections : callable
        Makes the sections of all items of this kind, given those of the other kinds, too.
    files : mapping
        Kinds of file (`crosswind.files.kinds`) -> what loads one. No kind of file stands at two kinds of section.
    made : callable
        Makes an item of an object that was given.
    holds : callable
        Items of other kinds in an item.
    """

    noun: str
    nouns: str
    template: str
    takes: Callable[[object], bool]
    sections: Callable[[Sequence[Any], Contents], list[Section]]
    files: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)
    made: Callable[[Any], Any] = lambda item: item
    holds: Callable[[Any], Iterable[object]] = lambda item: ()


Contents = Mapping[Kind, Sequence[Any]]
"""What a report is about, by kind, in the order given."""


def of_type(*types: type) -> Callable[[object], bool]:
    """Return a function that recognises objects of these types."""
    return lambda item: isinstance(item, types)


def each(make: Callable[[Any, int], Section]) -> Callable[[Sequence[Any], Contents], list[Section]]:
    """Return what makes one section of each item, which it hands over with its place from 1."""
    return lambda items, _: [make(item, place) for place, item in enumerate(items, 1)]


def grouped(
    group: Callable[[Sequence[Any]], Sequence[Any]], make: Callable[[Any, int], Section]
) -> Callable[[Sequence[Any], Contents], list[Section]]:
    """Return what makes one section of each group of items."""
    return lambda items, _: [make(several, place) for place, several in enumerate(group(items), 1)]
