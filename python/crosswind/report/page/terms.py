"""The terms of a page: each is explained once, below the text that uses it first."""

from __future__ import annotations

from collections.abc import Iterable

from crosswind.report.sections.section import Term


class Terms:
    """What a page has explained, and what it has used since and not explained yet.

    Examples
    --------
    >>> terms = Terms()
    >>> terms.know([Term("ir", "interference rate", "The part of a CPU's rate that is lost per GB/s.")])
    >>> _ = terms.use("ir"), terms.use("ir")
    >>> heading_of(terms.due()), terms.due()
    ('What “interference rate” means', [])
    """

    def __init__(self) -> None:
        self._known: dict[str, Term] = {}
        self._used: dict[str, None] = {}
        self._explained: set[str] = set()

    def know(self, terms: Iterable[Term]) -> None:
        """Take the terms of a section; one that an earlier section has keeps its text."""
        for term in terms:
            self._known.setdefault(term.id, term)

    def use(self, id_: str) -> str:
        """Note that a term is used here; nothing is shown for that."""
        if id_ not in self._explained:
            self._used[id_] = None
        return ""

    def due(self) -> list[Term]:
        """Return the terms that were used since the last call and never explained: they are from now on."""
        due = [self._known[id_] for id_ in self._used if id_ in self._known]
        self._explained.update(term.id for term in due)
        self._used.clear()
        return due


def heading_of(due: list[Term]) -> str:
    """Return what stands above the explanations of some terms.

    Examples
    --------
    >>> heading_of([Term("a", "loss", ""), Term("b", "rank", ""), Term("c", "gap", "")])
    'What “loss”, “rank” and “gap” mean'
    """
    names = [f"“{term.name}”" for term in due]
    return f"What {names[0]} means" if len(names) == 1 else f"What {', '.join(names[:-1])} and {names[-1]} mean"
