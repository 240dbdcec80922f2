"""`--sweep PATH=VALUES`: lists, and ranges with whole, equal or logarithmic steps."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosswind.cli.settings import redescribed, whole_path
from crosswind.errors import DescriptionError
from crosswind.files.reading import parse_json

if TYPE_CHECKING:
    from crosswind.experiment import Experiment

FORMS = "VALUE,VALUE,... or LOW..HIGH (whole numbers), LOW..HIGH:COUNT, LOW..HIGH:log, LOW..HIGH:log:COUNT"
PER_DECADE = 3
"""Steps of `:log` from a value to ten times of it."""
MOST_VALUES = 100_000
DIGITS = 12
"""Significant digits of computed values: 0.3, not 0.30000000000000004."""

_RANGE = re.compile(
    r"(?P<low>[^.,\s]*(?:\.[^.,\s]+)?)\.\.(?P<high>[^:,]+)(?::(?P<scale>log|lin))?(?::(?P<count>[^:,]*))?"
)

Sweeps = Annotated[
    list[str] | None,
    typer.Option(
        "--sweep",
        metavar="PATH=VALUES",
        help="Try several values of a field: policy.order=arrival,planned, 'node[n3].link=1..100:log'. Repeat for more "
        "fields, of which each combination runs. LOW..HIGH: whole numbers; :COUNT: equal steps; :log[:COUNT].",
    ),
]


def sweeps_of(given: Sequence[str], settings: Sequence[str] = ()) -> dict[str, list[Any]]:
    """Return dotted path -> values, in the order given; the last path varies fastest.

    Parameters
    ----------
    given : sequence of str
        What `--sweep` says.
    settings : sequence of str
        Paths that `--set` gives; a path has one value or several, not both.

    Raises
    ------
    DescriptionError
        When one is not PATH=VALUES, or a range is none.

    Examples
    --------
    >>> sweeps_of(["policy.order=arrival,planned", "node[n3].link=1..100:log:3", "seed=1..3"])
    {'policy.order': ['arrival', 'planned'], 'node[n3].receive_limit_mb_per_s': [1, 10, 100], 'seed': [1, 2, 3]}
    """
    sweeps: dict[str, list[Any]] = {}
    for one in given:
        path, equals, text = one.partition("=")
        path = whole_path(path.strip())
        if not (equals and path):
            message = f"--sweep is {one!r}; it must be PATH=VALUES"
            raise DescriptionError(message, "argument", "--sweep policy.order=arrival,planned")
        if path in sweeps or path in settings:
            other = "--sweep" if path in sweeps else "--set"
            message = f"--sweep {path} is given beside {other} {path}"
            raise DescriptionError(message, "argument", "give all values of a field in one --sweep")
        sweeps[path] = _values(text.strip(), one)
    return sweeps


def swept(experiment: Experiment, sweeps: dict[str, list[Any]]) -> Experiment:
    """Return the experiment with these paths in its sweep; they replace what it says of them, and vary fastest.

    Raises
    ------
    DescriptionError
        That names the option, when there is no such field, or a value is not permitted.
    """
    for path, values in sweeps.items():
        try:
            experiment = redescribed(experiment, f"sweep.{path}", values)
        except DescriptionError as error:
            shown = ",".join(value if isinstance(value, str) else json.dumps(value) for value in values[:4])
            more = ",..." if len(values) > 4 else ""
            message = str(error).removeprefix("experiment: ").removeprefix(f"sweep.{path} ")
            raise DescriptionError(f"--sweep {path}={shown}{more}: {message}", error.code, error.hint) from None
    return experiment


def _values(text: str, whole: str) -> list[Any]:
    if text.startswith("["):
        try:
            listed = parse_json(text.encode())
        except ValueError:
            listed = None
        if isinstance(listed, list) and listed:
            return listed
        raise DescriptionError(f"--sweep is {whole!r}: {text} is no list in JSON", "argument", FORMS)
    values = [value for part in _parts(text) for value in _value(part.strip(), whole)]
    repeated = next((value for place, value in enumerate(values) if value in values[:place]), None)
    if repeated is not None:
        raise DescriptionError(f"--sweep is {whole!r}: {repeated} is in it twice", "argument", "name each value once")
    return values


def _parts(text: str) -> list[str]:
    """Return what stands between commas that are in no bracket and no string.

    Examples
    --------
    >>> _parts('a,{"low": 1, "high": 2},"b,c"')
    ['a', '{"low": 1, "high": 2}', '"b,c"']
    """
    parts, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == '"'
        depth += 0 if quoted else (letter in "[{") - (letter in "]}")
        if letter == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _value(text: str, whole: str) -> list[Any]:
    if not text:
        raise DescriptionError(f"--sweep is {whole!r}: a value is empty", "argument", FORMS)
    if found := _RANGE.fullmatch(text):
        low, high = _number(found["low"]), _number(found["high"])
        if low is not None and high is not None:
            return _range(low, high, found["scale"], found["count"], whole)
        if low is not None or high is not None:  # words with two dots between them may be a path
            raise DescriptionError(f"--sweep is {whole!r}: {text} is no range of numbers", "argument", FORMS)
    try:
        return [parse_json(text.encode())]
    except ValueError:
        return [text]


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _range(low: float, high: float, scale: str | None, count: str | None, whole: str) -> list[float]:
    """Return the values of a range, both ends among them."""

    def refused(why: str) -> DescriptionError:
        return DescriptionError(f"--sweep is {whole!r}: {why}", "argument", FORMS)

    if not low < high:
        raise refused(f"the range begins at {low:g} and ends at {high:g}; it must ascend")
    if count is not None and not (count.isascii() and count.isdigit() and 2 <= int(count) <= MOST_VALUES):
        raise refused(f"the range has {count!r} values; it must be 2 to {MOST_VALUES}")
    if scale == "log":
        if low <= 0:
            raise refused(f"a logarithmic range begins at {low:g}; it must begin above 0")
        steps = int(count) - 1 if count else max(1, round(PER_DECADE * math.log10(high / low)))
        between = _short([low * (high / low) ** (step / steps) for step in range(1, steps)], low, high)
    elif count is not None:
        steps = int(count) - 1
        between = [low + (high - low) * step / steps for step in range(1, steps)]
    elif scale is not None or not (low.is_integer() and high.is_integer()):
        raise refused(f"{low:g}..{high:g} needs the number of values")
    elif high - low >= MOST_VALUES:
        raise refused(f"{low:g}..{high:g} has more than {MOST_VALUES} whole numbers")
    else:
        between = [float(value) for value in range(int(low) + 1, int(high))]
    return [_plain(value) for value in (low, *between, high)]


def _short(values: list[float], low: float, high: float) -> list[float]:
    """Return the values between two ends to three digits, where that leaves them apart.

    Examples
    --------
    >>> _short([2.15443469, 4.64158883], 1, 10), _short([1.0001, 1.0002], 1, 1.0003)
    ([2.15, 4.64], [1.0001, 1.0002])
    """
    rounded = [float(f"{value:.3g}") for value in values]
    whole = [low, *rounded, high]
    return rounded if all(one < next_ for one, next_ in itertools.pairwise(whole)) else values


def _plain(value: float) -> float | int:
    """Return a value to 12 significant digits; a whole number as such.

    Examples
    --------
    >>> _plain(0.1 + 0.2), _plain(10.000000000000002), _plain(2.5)
    (0.3, 10, 2.5)
    """
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded
