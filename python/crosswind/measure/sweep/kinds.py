"""What can be swept: which argument of a measurement, over which values, in which unit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crosswind.errors import DescriptionError
from crosswind.measure.runtime import RUNTIMES, parse_runtime
from crosswind.terminal.sizes import parse_bytes

Value = int | str


@dataclass(frozen=True)
class Kind:
    """One kind of sweep.

    Attributes
    ----------
    name : str
        What it is called.
    argument : str
        The argument of `measure` that it varies.
    unit : str
        The unit of the values; empty for names.
    values : tuple
        What is measured when nothing else is asked for, in the order in which they are shown.
    lowest, highest : int
        Permitted range of numbers.
    written : callable, optional
        Checks a value that is not one of a few, and returns it as it is written everywhere.
    """

    name: str
    argument: str
    unit: str
    values: tuple[Value, ...]
    lowest: int = 0
    highest: int = 0
    written: Callable[[str], str] | None = None

    def check(self, value: Value) -> Value:
        """Return the value if it is permitted.

        Raises
        ------
        DescriptionError
            When it is not.
        """
        if self.written is not None:
            return self.written(str(value))
        if isinstance(self.values[0], str):
            if value not in self.values:
                permitted = ", ".join(map(str, self.values))
                raise DescriptionError(
                    f"a value of the {self.name} sweep is {value!r}", "values", f"one of {permitted}"
                )
        elif isinstance(value, bool) or not isinstance(value, int) or not self.lowest <= value <= self.highest:
            range_ = f"{self.lowest}..{self.highest} {self.unit}"
            raise DescriptionError(f"a value of the {self.name} sweep is {value!r}; it must be in {range_}", "values")
        return value

    def parse(self, text: str) -> list[Value]:
        """Return the values of a list such as `64KB,1MB`.

        Raises
        ------
        DescriptionError
            When one is not permitted.
        """
        parts = [part.strip() for part in text.split(",")]
        if isinstance(self.values[0], str):
            return [self.check(part) for part in parts]
        if self.unit == "bytes":
            return [self.check(parse_bytes(part, "--values")) for part in parts]
        return [self.check(int(part) if part.isdecimal() else part) for part in parts]


_MATRIX = tuple(2**power for power in range(3, 12))
_MESSAGES = (1_000, 4_000, 16_000, 64_000, 256_000, 1_000_000, 4_000_000, 8_000_000)
KINDS = {
    kind.name: kind
    for kind in (
        Kind("footprint", "matrix", "rows", _MATRIX, 8, 4096),
        Kind("message-size", "message_bytes", "bytes", _MESSAGES, 1_000, 64_000_000),
        Kind("streams", "streams", "connections", (1, 2, 4, 8), 1, 64),
        Kind("wait", "wait", "", ("event", "poll")),
        Kind("placement", "placement", "", ("same-core", "other-core", "free")),
        Kind("runtime", "runtime", "", RUNTIMES, written=lambda text: parse_runtime(text).text),
    )
}


def kind_of(name: str) -> Kind:
    """Return the kind of that name.

    Raises
    ------
    DescriptionError
        When there is none.
    """
    if name not in KINDS:
        raise DescriptionError(f"the sweep is {name!r}", "sweep", f"one of {', '.join(KINDS)}")
    return KINDS[name]


def parse_values(kind: str, text: str) -> list[Value]:
    """Return the values of a sweep as written on a command line.

    Raises
    ------
    DescriptionError
        When the kind is unknown or a value is not permitted.

    Examples
    --------
    >>> parse_values("message-size", "64KB,1MB")
    [64000, 1000000]
    """
    return kind_of(kind).parse(text)


def checked(kind: Kind, values: Sequence[Value]) -> list[Value]:
    """Return permitted values, each once, in the order in which they are shown: numbers ascending, names as given.

    Raises
    ------
    DescriptionError
        When there is none, or one is not permitted.
    """
    once = list(dict.fromkeys(kind.check(value) for value in values))
    if not once:
        raise DescriptionError(f"the {kind.name} sweep has no values", "values", "leave them out for the usual ones")
    return sorted(once, key=lambda value: value if isinstance(value, int) else 0)
