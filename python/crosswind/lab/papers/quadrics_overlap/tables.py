"""Tables 1 to 4: run times of a ping (`dping`) and of burners (`burn_cycles`), alone and together, as printed."""

from __future__ import annotations

from dataclasses import dataclass

from crosswind.lab.papers.published import rows

SETTINGS = {"event": ("event", 0), "burn -20": ("event", -20), "burn +20": ("event", 19), "poll": ("poll", 0)}
"""Tables 2, 3 (left, right) and 4: how the ping waits, and the burners' nice level. 20 does not exist (E3-3)."""
CELLS = ((1, 1), (1, 64), (6400, 1), (100, 64))
"""Rows of every table: round trips, and MiB of each message."""
BURN_S = 63.1
"""Of the burners alone."""


@dataclass(frozen=True)
class Printed:
    """One row of a table, s.

    Attributes
    ----------
    setting : str
        alone, event, burn -20, burn +20, poll.
    messages, message_mib : int
        Round trips; MiB of each message.
    ping_s, burn_s : float
        Mean of three runs, rounded by the paper.
    """

    setting: str
    messages: int
    message_mib: int
    ping_s: float
    burn_s: float

    @property
    def cell(self) -> tuple[int, int]:
        """Round trips and MiB of each message."""
        return self.messages, self.message_mib


def load() -> list[Printed]:
    """Return every row of tables 1 to 4.

    Examples
    --------
    >>> [row.ping_s for row in load() if row.setting == "burn -20"]
    [60.0, 69.0, 102.0, 107.0]
    """
    return [
        Printed(
            row["setting"],
            int(row["messages"]),
            int(row["message_mib"]),
            float(row["ping_s"]),
            float(row["burn_s"]),
        )
        for row in rows("quadrics_overlap/tables")
    ]


def printed(setting: str, cell: tuple[int, int]) -> Printed:
    """Return one row.

    Examples
    --------
    >>> printed("poll", (6400, 1)).burn_s
    90.5
    """
    return next(row for row in load() if row.setting == setting and row.cell == cell)


def in_words(cell: tuple[int, int]) -> str:
    """Return what a row is called.

    Examples
    --------
    >>> in_words((6400, 1))
    '6400 x 1 MiB'
    """
    return f"{cell[0]} x {cell[1]} MiB"
