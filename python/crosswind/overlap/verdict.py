"""Whether communication and computation overlap, in a word, a sentence, and what to change.

Absolute times decide, not percentages: the two ends do not coincide (quadrics-overlap, page 2). One that waits for the
other's whole time is serialised: the part that it waited is `(ping_s - ping_alone_s) / burn_alone_s`, 0.91 to 0.97 in
the paper's table 3, and for the burners `(burn_s - burn_alone_s) / ping_alone_s`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Word = Literal["overlapped", "serialised", "ping-delayed", "burn-delayed", "both-damaged"]

HURT = 0.10
"""A time longer by less than this part is as good as alone; the paper's event-driven runs took up to 11 % longer."""
GRAIN_S = 0.01
"""So much is a few slices of a scheduler: a shorter delay says nothing."""
MOSTLY = 0.5
"""A program that waits for at least this part of the other's time alone is serialised."""
WORTH = 0.1
"""A change is worth it when it saves this part of both times' sum and more than the grain; the smallest is reported."""

WORDS: Mapping[str, str] = {
    "overlapped": "overlapped",
    "serialised": "serialised",
    "ping-delayed": "communication delayed",
    "burn-delayed": "computation delayed",
    "both-damaged": "both damaged",
}

Cell = Mapping[str, Any]


@dataclass(frozen=True)
class Verdict:
    """Of one cell.

    Attributes
    ----------
    word : str
        overlapped, serialised, ping-delayed, burn-delayed, both-damaged.
    says : str
        In a sentence, with the times.
    change : str or None
        What to change; None where nothing in the matrix is better, or nothing is wrong.
    """

    word: Word
    says: str
    change: str | None


def judge(cell: Cell, matrix: Sequence[Cell], cpus: int, burners: int) -> Verdict:
    """Judge a cell; `matrix` has the others, for what to change."""
    word = word_of(cell)
    return Verdict(word, _says(cell, word), None if word == "overlapped" else _change(cell, matrix, cpus, burners))


def word_of(cell: Cell) -> Word:
    """Return the verdict's word.

    Examples
    --------
    >>> word_of({"ping_alone_s": 41.7, "burn_alone_s": 63.1, "ping_s": 102, "burn_s": 63.5})
    'serialised'
    >>> word_of({"ping_alone_s": 41.7, "burn_alone_s": 63.1, "ping_s": 83.6, "burn_s": 90.5})
    'both-damaged'
    """
    ping, burn = is_hurt(cell, "ping"), is_hurt(cell, "burn")
    if ping and burn:
        return "both-damaged"
    if (ping and ping_waited(cell) >= MOSTLY) or (burn and burn_waited(cell) >= MOSTLY):
        return "serialised"
    return "ping-delayed" if ping else "burn-delayed" if burn else "overlapped"


def is_hurt(cell: Cell, which: Literal["ping", "burn"]) -> bool:
    """Whether one took longer than alone by more than can be passed over."""
    alone, together = float(cell[f"{which}_alone_s"]), float(cell[f"{which}_s"])
    return together - alone > max(HURT * alone, GRAIN_S)


def ping_waited(cell: Cell) -> float:
    """Return which part of the burners' time alone the messages waited: 0 overlapped, 1 serialised."""
    return float((cell["ping_s"] - cell["ping_alone_s"]) / cell["burn_alone_s"])


def burn_waited(cell: Cell) -> float:
    """Return which part of the messages' time alone the burners waited."""
    return float((cell["burn_s"] - cell["burn_alone_s"]) / cell["ping_alone_s"])


def lost_s(cell: Cell) -> float:
    """Return what both lost together, s."""
    return float(cell["ping_s"] - cell["ping_alone_s"] + cell["burn_s"] - cell["burn_alone_s"])


def seconds(value: float) -> str:
    """Return a time in words, with three digits.

    Examples
    --------
    >>> seconds(63.14), seconds(0.00251), seconds(0.000012)
    ('63.1 s', '2.51 ms', '12 us')
    """
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value * 1e6:.3g} us"


def _times(cell: Cell, which: Literal["ping", "burn"]) -> str:
    alone, together = float(cell[f"{which}_alone_s"]), float(cell[f"{which}_s"])
    return f"{which} {seconds(together)} instead of {seconds(alone)}"


def _says(cell: Cell, word: Word) -> str:
    both = f"{_times(cell, 'ping')}, {_times(cell, 'burn')}"
    slower = cell["ping_s"] / cell["ping_alone_s"]
    match word:
        case "overlapped":
            return f"overlapped: {both}"
        case "both-damaged":
            more = cell["burn_s"] / cell["burn_alone_s"] - 1.0
            return f"both damaged: messages take {slower:.3g} times as long, the computation {more:.0%} longer: {both}"
        case "serialised" if is_hurt(cell, "ping"):
            return f"serialised by {_part(ping_waited(cell))}: messages wait for the computation: {both}"
        case "serialised":
            return f"serialised by {_part(burn_waited(cell))}: the computation waits for the messages: {both}"
        case "ping-delayed":
            return (
                f"communication delayed: messages take {slower:.3g} times as long "
                f"(serialised by {ping_waited(cell):.0%}): {both}"
            )
        case _:
            return f"computation delayed (serialised by {burn_waited(cell):.0%}): {both}"


def _part(waited: float) -> str:
    return f"{waited:.0%}" if waited <= 1.0 else "100% and more (one after the other would be faster)"


def _change(cell: Cell, matrix: Sequence[Cell], cpus: int, burners: int) -> str | None:
    same = [one for one in matrix if all(one[name] == cell[name] for name in ("messages", "message_bytes"))]
    worth = max(WORTH * (cell["ping_alone_s"] + cell["burn_alone_s"]), GRAIN_S)
    least_s = min(lost_s(one) for one in same)

    def effort(one: Cell) -> tuple[int, int, float]:
        changes = sum(one[name] != cell[name] for name in ("wait", "burn_nice"))
        return (changes, abs(one["burn_nice"]), lost_s(one))

    best = min((one for one in same if lost_s(one) <= least_s + worth), key=effort)
    if lost_s(cell) - lost_s(best) > worth:
        steps = []
        if best["wait"] != cell["wait"]:
            steps.append(
                {
                    "event": "wait for events (block)",
                    "poll": "poll",
                    "spin-block": "spin as long as a wake-up costs, then block",
                    "buffered": "buffer messages and move them in slices",
                }[best["wait"]]
                + f" instead of {'polling' if cell['wait'] == 'poll' else cell['wait']}"
            )
        if best["burn_nice"] != cell["burn_nice"]:
            steps.append(f"run the computation at nice {best['burn_nice']} instead of {cell['burn_nice']}")
        return f"{' and '.join(steps)}: {_times(best, 'ping')}, {_times(best, 'burn')}"
    needed = cell.get("ping_cpu_s")
    if needed is not None and burners >= cpus and needed > MOSTLY * cell["ping_alone_s"]:
        part = needed / cell["ping_alone_s"]
        return f"the messages themselves need {part:.1f} processors: leave them one, with {max(cpus - 1, 1)} burners"
    return None


def findings(matrix: Sequence[Cell]) -> list[str]:
    """Return what the matrix says as a whole: what waiting for events, polling and priorities come to here."""
    found = []
    even = [cell for cell in matrix if cell["burn_nice"] == 0]
    for wait in dict.fromkeys(cell["wait"] for cell in even):
        cells = [cell for cell in even if cell["wait"] == wait]
        found.append(f"{_WAYS[wait]}, all at nice 0: {_counted(cells)}; {_worst(cells)}")
    polled = _pairs(matrix, "wait", "event", "poll")
    if polled:
        ping, burn = (sum(b[f"{w}_s"] - a[f"{w}_s"] for a, b in polled) for w in ("ping", "burn"))
        found.append(
            f"polling instead of waiting for events: messages {_more(ping)}, computation {_more(burn)}, in all"
        )
    for level in sorted({cell["burn_nice"] for cell in matrix} - {0}):
        pairs = _pairs(matrix, "burn_nice", 0, level)
        if pairs:
            ping, burn = (sum(b[f"{w}_s"] - a[f"{w}_s"] for a, b in pairs) for w in ("ping", "burn"))
            part = burn / sum(a["burn_s"] for a, _ in pairs)
            found.append(
                f"computation at nice {level} instead of 0: computation {_more(burn)} ({part:+.1%}), "
                f"messages {_more(ping)}, in all"
            )
    return found


_WAYS = {
    "event": "waiting for events",
    "poll": "polling",
    "spin-block": "spinning, then blocking",
    "buffered": "waiting for buffered messages",
}


def _more(value: float) -> str:
    return f"{seconds(abs(value))} {'longer' if value >= 0 else 'shorter'}"


def _counted(cells: Sequence[Cell]) -> str:
    words = [word_of(cell) for cell in cells]
    return ", ".join(f"{words.count(word)} of {len(words)} {WORDS[word]}" for word in WORDS if word in words)


def _worst(cells: Sequence[Cell]) -> str:
    ping, burn = (max(cell[f"{w}_s"] / cell[f"{w}_alone_s"] for cell in cells) for w in ("ping", "burn"))
    return f"at worst messages {ping:.3g} times, computation {burn:.3g} times as long as alone"


def _pairs(matrix: Sequence[Cell], name: str, one: Any, other: Any) -> list[tuple[Cell, Cell]]:
    """Return the cells that differ in one thing only."""
    rest = [key for key in ("wait", "burn_nice", "messages", "message_bytes") if key != name]
    by = {(cell[name], *(cell[key] for key in rest)): cell for cell in matrix}
    return [(cell, by[other, *place]) for (value, *place), cell in by.items() if value == one and (other, *place) in by]
