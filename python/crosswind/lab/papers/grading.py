"""Grades: whether a claim holds, under every reading of what the text leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from crosswind.documents import Row

Verdict = Literal["holds", "does not hold", "not decidable from the text", "paper wrong"]
HINT = "`crosswind reproduce` writes one"
"""Where a `study.json` comes from."""
HOLDS: Verdict = "holds"
FAILS: Verdict = "does not hold"
OPEN: Verdict = "not decidable from the text"
WRONG: Verdict = "paper wrong"
THE_TEXT = "as the text says"
"""The reading of a part that leaves nothing open."""


@dataclass(frozen=True)
class Answer:
    """What one reading of the text says to a part of a claim.

    Attributes
    ----------
    reading : str
        Its name.
    holds : bool
        Whether the part is true under it.
    found : str
        The numbers.
    """

    reading: str
    holds: bool
    found: str


@dataclass(frozen=True)
class Check:
    """One part of a claim that can be true or false of numbers.

    Attributes
    ----------
    text : str
        What must be true, with the band.
    found : str
        The numbers.
    verdict : str
        Holds; does not hold; where readings of the text disagree, not decidable from it; or, where arithmetic excludes
        what the text says, the paper is wrong.
    hangs_on : str
        Which mechanism or reading decides it, with the experiment or the arithmetic; empty where none was found.
    answers : tuple of Answer
        Of each reading; of the text alone where it leaves nothing open.
    """

    text: str
    found: str
    verdict: Verdict
    hangs_on: str = ""
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and its checks.

    Attributes
    ----------
    id : str
        Such as D-1.
    section : str
        Where it stands.
    text : str
        What is claimed.
    checks : sequence of Check
        At least one.
    """

    id: str
    section: str
    text: str
    checks: Sequence[Check]

    @property
    def verdict(self) -> Verdict:
        """Fails when one check fails; else open when one is; else the paper is wrong where one is; else it holds."""
        verdicts = {check.verdict for check in self.checks}
        return next((verdict for verdict in (FAILS, OPEN, WRONG) if verdict in verdicts), HOLDS)

    @property
    def hangs_on(self) -> str:
        """What decides the checks that do not hold, each once."""
        told = dict.fromkeys(check.hangs_on for check in self.checks if check.verdict != HOLDS and check.hangs_on)
        return "; ".join(told)

    @property
    def parts(self) -> str:
        """How many checks hold, in words.

        Examples
        --------
        >>> Claim("D-0", "1", "two and two", [check("even", True, "4"), check("five", False, "4")]).parts
        '1 of 2 parts hold'
        """
        count = sum(check.verdict == HOLDS for check in self.checks)
        return f"{count} of {len(self.checks)} parts hold"

    def summary(self) -> Row:
        """Return it as JSON could hold it."""
        checks = [asdict(check) for check in self.checks]
        return {"id": self.id, "section": self.section, "text": self.text, "verdict": self.verdict, "checks": checks}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Claim:
        """Make it of what `summary` returned."""
        checks = [
            Check(
                *(check["text"], check["found"], check["verdict"], check.get("hangs_on", "")),
                tuple(Answer(**answer) for answer in check.get("answers", ())),
            )
            for check in entry["checks"]
        ]
        return cls(entry["id"], entry["section"], entry["text"], checks)


def check(text: str, true: bool, found: str, hangs_on: str = "") -> Check:
    """Return a check that no reading can change.

    Examples
    --------
    >>> check("below 2", 1.5 < 2, "1.5").verdict
    'holds'
    """
    return Check(text, found, HOLDS if true else FAILS, hangs_on, (Answer(THE_TEXT, true, found),))


def excluded(asked: Check, arithmetic: str) -> Check:
    """Return a check of what arithmetic excludes: where it does not hold, under whatever reading, the paper is wrong.

    Examples
    --------
    >>> excluded(check("three halves of a whole", False, "2"), "1 / 2 + 1 / 2 = 1").verdict
    'paper wrong'
    """
    return asked if asked.verdict == HOLDS else replace(asked, verdict=WRONG, hangs_on=arithmetic)


def unsettled(text: str, settles: str, found: str = "the text prints no figures to ask") -> Check:
    """Return a check that the printed figures cannot answer: not decidable, with what would settle it.

    Examples
    --------
    >>> unsettled("the same with two threads", "a measurement with two").verdict
    'not decidable from the text'
    """
    return Check(text, found, OPEN, settles)


def check_readings(text: str, results: Sequence[tuple[str, bool, str]], hangs_on: str = "") -> Check:
    """Return a check over readings, each `(name, whether it holds, numbers)`.

    Examples
    --------
    >>> check_readings("below 2", [("spread", True, "1.5"), ("drifting", False, "3")]).verdict
    'not decidable from the text'
    >>> check_readings("below 2", [("spread", True, "1.5"), ("drifting", True, "1.6")]).verdict
    'holds'
    """
    verdicts = {true for _, true, _ in results}
    verdict = OPEN if len(verdicts) > 1 else HOLDS if verdicts == {True} else FAILS
    said = [
        f"{name}: {found}{'' if len(verdicts) == 1 else ' (holds)' if true else ' (does not)'}"
        for name, true, found in results
    ]
    return Check(text, "; ".join(said), verdict, hangs_on, tuple(Answer(*result) for result in results))
