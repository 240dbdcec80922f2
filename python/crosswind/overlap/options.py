"""What an overlap matrix is asked for: ways to wait, nice levels, kinds of messages; and the runs that it takes."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from crosswind.errors import DescriptionError
from crosswind.terminal.sizes import parse_bytes

Wait = Literal["event", "poll", "spin-block", "buffered"]
Scheduler = Literal["decay", "fair"]
On = Literal["live", "sim"]

WAITS: tuple[Wait, ...] = ("event", "poll", "spin-block", "buffered")
"""The last is simulated only."""
NICES = (-20, 0, 19)
MOST_BYTES = 64 << 20
MOST_MESSAGES = 100_000_000
LONGEST_BURN_S = 240.0  # a ping that waits behind it gives up after 300 s without an answer
MOST_BURNERS = 4096


class Exchange(NamedTuple):
    """Messages that go and come back: how many round trips, of how many bytes each way."""

    messages: int
    message_bytes: int


EXCHANGES = (Exchange(1, 1_000_000), Exchange(1, 64_000_000), Exchange(640, 1_000_000), Exchange(10, 64_000_000))
"""The paper's four, the many at a tenth of their number: seconds where its machines took a minute."""


class Key(NamedTuple):
    """What distinguishes the cells of a matrix."""

    wait: Wait
    burn_nice: int
    messages: int
    message_bytes: int

    @property
    def exchange(self) -> Exchange:
        """Its messages."""
        return Exchange(self.messages, self.message_bytes)


class Step(NamedTuple):
    """One run: `what` is ping-alone, burn-alone or together; what does not concern it is None."""

    what: Literal["ping-alone", "burn-alone", "together"]
    repetition: int
    wait: Wait | None = None
    burn_nice: int | None = None
    messages: int | None = None
    message_bytes: int | None = None

    def to_dict(self) -> dict[str, object]:
        """Return what is said of it in a file."""
        return {name: value for name, value in self._asdict().items() if value is not None}


@dataclass(frozen=True)
class Options:
    """The design of a matrix, checked when it is made.

    Attributes
    ----------
    waits : tuple of str
        "event", "poll", "spin-block", "buffered".
    nices : tuple of int
        Nice levels of the burners, -20 to 19.
    exchanges : tuple of Exchange
        Round trips (1 to 100,000,000) and bytes (1 to 67,108,864) of each kind of message.
    burn_s : float
        How long a burner computes alone, about, s: 0.01 to 240.
    burners : int
        How many burn here, 1 to 4096.
    repetitions : int
        Runs of each kind, 1 to 1000; the medians count.
    seed : int
        Of the order of the runs, and of the simulator.
    """

    waits: tuple[Wait, ...]
    nices: tuple[int, ...]
    exchanges: tuple[Exchange, ...]
    burn_s: float
    burners: int
    repetitions: int
    seed: int

    def __post_init__(self) -> None:
        for name, values in (("wait", self.waits), ("nice", self.nices), ("ping", self.exchanges)):
            if not values:
                raise DescriptionError(f"{name} is empty; it must have at least one value", "argument")
            if len(set(values)) < len(values):
                raise DescriptionError(f"{name} names the same value twice", "argument")
        for wait in self.waits:
            if wait not in WAITS:
                raise DescriptionError(f"wait is {wait!r}; it must be one of {', '.join(WAITS)}", "argument")
        for nice in self.nices:
            _within("nice", nice, -20, 19, "")
        for one in self.exchanges:
            _within("messages", one.messages, 1, MOST_MESSAGES, "messages")
            _within("message_bytes", one.message_bytes, 1, MOST_BYTES, "bytes")
        _within("burn_s", self.burn_s, 0.01, LONGEST_BURN_S, "s")
        _within("burners", self.burners, 1, MOST_BURNERS, "processes")
        _within("repetitions", self.repetitions, 1, 1000, "runs")
        _within("seed", self.seed, 0, 2**63 - 1, "")

    def cell_keys(self) -> list[Key]:
        """Return the cells, kind of messages by kind of messages."""
        return [Key(wait, nice, *exchange) for exchange in self.exchanges for wait in self.waits for nice in self.nices]

    def steps(self) -> list[Step]:
        """Return the runs, repetition by repetition, each in an order of its own.

        Shuffled by the seed: the speed of a machine drifts, and would else look like an effect of what comes last.
        """
        found = []
        for repetition in range(self.repetitions):
            steps = [Step("burn-alone", repetition)]
            steps += [Step("ping-alone", repetition, wait, None, *one) for one in self.exchanges for wait in self.waits]
            steps += [Step("together", repetition, *key) for key in self.cell_keys()]
            random.Random(self.seed * 1_000_003 + repetition).shuffle(steps)
            found += steps
        return found


def parse_exchange(text: str) -> Exchange:
    """Read how many messages of which size, as in `6400x1MB`.

    Raises
    ------
    DescriptionError
        When it is something else.

    Examples
    --------
    >>> parse_exchange("6400x1MB")
    Exchange(messages=6400, message_bytes=1000000)
    """
    match = re.fullmatch(r"\s*(\d{1,12})\s*[xX]\s*(\S+)\s*", text)
    if not match:
        hint = "such as 6400x1MB: 6400 round trips of 1 MB each way"
        raise DescriptionError(f"--ping is {text!r}; it must be COUNTxSIZE", "argument", hint)
    return Exchange(int(match[1]), parse_bytes(match[2], "--ping"))


def _within(name: str, value: float, least: float, most: float, unit: str) -> None:
    if isinstance(value, bool) or not least <= value <= most:
        unit = f" {unit}" if unit else ""
        raise DescriptionError(f"{name} is {value:g}{unit}; it must be {least:g} to {most:g}{unit}", "argument")


def as_exchanges(values: Sequence[tuple[int, int]] | None) -> tuple[Exchange, ...]:
    """Return pairs of numbers as exchanges; None: the usual ones."""
    return EXCHANGES if values is None else tuple(Exchange(int(count), int(size)) for count, size in values)
