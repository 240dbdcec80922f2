"""Grades: whether a claim holds, under every reading of what the text leaves open; and where no grade means anything.

A grade is a promise that the runs or the printed figures could have said otherwise. `Band` says whence a limit is, and
`DEFECTS` are the ways in which a grade means nothing. A part with a defect is not decided, whatever was found.
"""

from __future__ import annotations

import math
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

Source = Literal["printed digits", "printed range", "the text's word", "own"]
"""Whence a limit is: a printed number as far as its digits go; printed limits; a word that needs no number (most, more,
grows, the same order); or a number of this project, which stands for a word that needs one."""
Defect = Literal["no figures", "own band", "cannot fail", "cannot hold", "unlike", "own figures", "open input"]
DEFECTS: Mapping[Defect, str] = {
    "no figures": "the text prints nothing that could be asked",
    "own band": "the only limit is a number of this project, so a grade would be the project's opinion",
    "cannot fail": "nothing that can be run here, or printed there, lies outside of the limit",
    "cannot hold": "nothing that can be run here lies within the limit, whatever the program",
    "unlike": "the figures are not of one kind: a mean and a largest, two populations, two directions, two bases",
    "own figures": "what is asked is the figure of the claim itself, or an input that was made from it",
    "open input": "an input that the text leaves open turns the answer, and no reading varies it",
}
"""Ways in which a grade means nothing -> what each says."""


@dataclass(frozen=True)
class Band:
    """The limits that a part must meet, and whence they are.

    Attributes
    ----------
    source : {"printed digits", "printed range", "the text's word", "own"}
    words : str
        Of the text; of an own limit, the word that it stands for.
    low, high : float
        What is within lies between them. Infinite where there is no number.

    Examples
    --------
    >>> 6.82 in digits(7), 7.6 in digits(7), 0.0548 in digits(0.05, unit=0.01)
    (True, False, True)
    """

    source: Source
    words: str = ""
    low: float = -math.inf
    high: float = math.inf

    def __contains__(self, value: float) -> bool:
        """Whether a value lies within."""
        return self.low < value < self.high

    def summary(self) -> Row:
        """Return it as JSON could hold it."""
        ends = {name: end for name, end in (("low", self.low), ("high", self.high)) if math.isfinite(end)}
        return {"source": self.source, "words": self.words, **ends}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Band:
        """Make it of what `summary` returned."""
        return cls(**entry)


def digits(printed: float, unit: float = 1.0, words: str = "") -> Band:
    """Return the band of what rounds to a printed number; `unit` is one of its last digit.

    "About" and "around" add nothing to it: they say that the number is rounded. A percentage in tens counts as rounded
    to tens where the text reads it off a figure.
    """
    half = unit * (0.5 + 1e-6)
    return Band("printed digits", words or f"{printed:g}", printed - half, printed + half)


def below(limit: float, words: str) -> Band:
    """Return the band of what is less than a printed limit."""
    return Band("printed range", words, high=limit)


def above(limit: float, words: str) -> Band:
    """Return the band of what is more than a printed limit."""
    return Band("printed range", words, low=limit)


def between(low: float, high: float, words: str) -> Band:
    """Return the band of printed limits, which are within."""
    return Band("printed range", words, low - 1e-9 * abs(low), high + 1e-9 * abs(high))


def word(words: str) -> Band:
    """Return the band of a word that needs no number: an order, a sign, all, none, the same."""
    return Band("the text's word", words)


def own(words: str, low: float = -math.inf, high: float = math.inf) -> Band:
    """Return a band of this project, for a word that needs a number. No part with it is decided."""
    return Band("own", words, low, high)


@dataclass(frozen=True)
class Reach:
    """What a quantity can come to here, whatever the program.

    Attributes
    ----------
    least, most : float
    why : str
        Which closed form or fact limits it.
    """

    least: float
    most: float
    why: str


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
        Which mechanism or reading decides it, with the experiment or the arithmetic; of an undecided part, what would
        settle it.
    answers : tuple of Answer
        Of each reading; of the text alone where it leaves nothing open. None of a part with a defect.
    band : Band or None
        Whence the limit is; None where the text prints no figures.
    defect : str
        Why a grade would mean nothing, one of `DEFECTS`; empty where it means something.
    """

    text: str
    found: str
    verdict: Verdict
    hangs_on: str = ""
    answers: tuple[Answer, ...] = ()
    band: Band | None = None
    defect: str = ""

    def summary(self) -> Row:
        """Return it as JSON could hold it."""
        band = {} if self.band is None else {"band": self.band.summary()}
        defect = {"defect": self.defect} if self.defect else {}
        return {**{k: v for k, v in asdict(self).items() if k not in ("band", "defect")}, **band, **defect}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Check:
        """Make it of what `summary` returned."""
        return cls(
            *(entry["text"], entry["found"], entry["verdict"], entry.get("hangs_on", "")),
            tuple(Answer(**answer) for answer in entry.get("answers", ())),
            Band.from_dict(entry["band"]) if "band" in entry else None,
            entry.get("defect", ""),
        )


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
        >>> parts = [check("even", True, "4", word("even")), check("five", False, "4", digits(5))]
        >>> Claim("D-0", "1", "two and two", parts).parts
        '1 of 2 parts hold'
        """
        count = sum(check.verdict == HOLDS for check in self.checks)
        return f"{count} of {len(self.checks)} parts hold"

    def summary(self) -> Row:
        """Return it as JSON could hold it."""
        checks = [check.summary() for check in self.checks]
        return {"id": self.id, "section": self.section, "text": self.text, "verdict": self.verdict, "checks": checks}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Claim:
        """Make it of what `summary` returned."""
        checks = [Check.from_dict(check) for check in entry["checks"]]
        return cls(entry["id"], entry["section"], entry["text"], checks)


def check(text: str, true: bool, found: str, band: Band, hangs_on: str = "") -> Check:
    """Return a check that no reading can change.

    Examples
    --------
    >>> check("below 2", 1.5 < 2, "1.5", below(2, "less than 2")).verdict
    'holds'
    >>> check("large", 1.5 > 1.25, "1.5", own("large")).verdict
    'not decidable from the text'
    """
    return _graded(Check(text, found, OPEN, hangs_on, (Answer(THE_TEXT, true, found),), band))


def needs_number(text: str, found: str, words: str, hangs_on: str) -> Check:
    """Return a check of a word that needs a number, which the text does not give: not decided, whatever was found.

    Examples
    --------
    >>> needs_number("a quadratic is marginally nearer", "7.4 % for 9.1 %", "marginal", "errors of each fit").defect
    'own band'
    """
    return Check(text, found, OPEN, hangs_on, (), own(words), "own band")


def check_readings(text: str, results: Sequence[tuple[str, bool, str]], band: Band, hangs_on: str = "") -> Check:
    """Return a check over readings, each `(name, whether it holds, numbers)`.

    Examples
    --------
    >>> two = below(2, "less than 2")
    >>> check_readings("below 2", [("spread", True, "1.5"), ("drifting", False, "3")], two).verdict
    'not decidable from the text'
    >>> check_readings("below 2", [("spread", True, "1.5"), ("drifting", True, "1.6")], two).verdict
    'holds'
    """
    answers = tuple(Answer(*result) for result in results)
    agree = band.source == "own" or len({answer.holds for answer in answers}) == 1
    said = [
        f"{one.reading}: {one.found}{'' if agree else ' (holds)' if one.holds else ' (does not)'}" for one in answers
    ]
    return _graded(Check(text, "; ".join(said), OPEN, hangs_on, answers, band))


def check_numbers(
    text: str,
    results: Sequence[tuple[str, float, str]],
    band: Band,
    hangs_on: str = "",
    *,
    reach: Reach | None = None,
    continuous: bool = False,
) -> Check:
    """Return a check of a number under readings, each `(name, number, numbers in words)`.

    Parameters
    ----------
    reach : Reach, optional
        Where all of it lies within the band, the part cannot fail; where none does, it cannot hold. Neither is graded.
    continuous : bool
        Readings differ in a quantity that can have any value: where some lie below the band and others above, one
        between them meets it, and the part is not decided.

    Examples
    --------
    >>> staggered = Reach(1.0, 1.147, "64 daemons of 10 ms every 5 s take 14.7 % at most")
    >>> check_numbers("below 20 %", [("", 1.12, "1.12")], below(1.2, "less than 20%"), reach=staggered).defect
    'cannot fail'
    >>> check_numbers("2.4", [("drawn", 1.8, ""), ("in turn", 2.8, "")], digits(2.4, 0.1), continuous=True).verdict
    'not decidable from the text'
    """
    found = check_readings(text, [(name, value in band, said) for name, value, said in results], band, hangs_on)
    if reach is not None:
        if band.low < reach.least and reach.most < band.high:
            return barred(found, "cannot fail", reach.why)
        if reach.most <= band.low or reach.least >= band.high:
            return barred(found, "cannot hold", reach.why)
    values = [value for _, value, _ in results]
    if continuous and found.verdict == FAILS and min(values) <= band.low and max(values) >= band.high:
        return replace(found, verdict=OPEN)
    return found


def _graded(part: Check) -> Check:
    """Return a check with the verdict of its answers; an own band decides nothing."""
    if part.band is not None and part.band.source == "own":
        return replace(part, verdict=OPEN, answers=(), defect="own band")
    answers = {answer.holds for answer in part.answers}
    return replace(part, verdict=OPEN if len(answers) > 1 else HOLDS if answers == {True} else FAILS)


def barred(part: Check, defect: Defect, why: str) -> Check:
    """Return a check whose grade would mean nothing: not decided, with the reason and what would settle it.

    Examples
    --------
    >>> part = check("no mean exceeds the largest", True, "9.0 %", below(9.1, "at most 9.1%"))
    >>> barred(part, "unlike", "a mean is never above the largest").verdict
    'not decidable from the text'
    """
    return replace(part, verdict=OPEN, answers=(), defect=defect, hangs_on=why)


def excluded(part: Check, arithmetic: str) -> Check:
    """Return a check of what arithmetic excludes: where it does not hold, under whatever reading, the paper is wrong.

    Examples
    --------
    >>> excluded(check("three halves of a whole", False, "2", digits(3)), "1 / 2 + 1 / 2 = 1").verdict
    'paper wrong'
    """
    return part if part.verdict == HOLDS or part.defect else replace(part, verdict=WRONG, hangs_on=arithmetic)


def unsettled(text: str, settles: str, found: str = "the text prints no figures to ask") -> Check:
    """Return a check that the printed figures cannot answer: not decidable, with what would settle it.

    Examples
    --------
    >>> unsettled("the same with two threads", "a measurement with two").verdict
    'not decidable from the text'
    """
    return Check(text, found, OPEN, settles, defect="no figures")
