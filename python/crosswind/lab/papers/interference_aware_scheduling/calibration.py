"""What the text leaves open, and what stands in its place: named, shown in the study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from crosswind import Platform
from crosswind.documents import Document
from crosswind.lab.papers import table_4

Form = Literal["quick", "full"]
Row = Literal[7, 8]

SIZES_MB, WORKS = (2, 5, 10), (1, 3, 5, 7, 9, 11)
TASKS = 1000
"""Of an experiment (section 4.2)."""
AHEAD = 2
"""Tasks that a node asks for ahead in most readings."""
NEAR = "Lab"
"""Nodes of the same lab, which section 2.3 calls near; of the others table 4 has what the way to them carries."""


@dataclass(frozen=True)
class Reading:
    """How the platform of the experiments is read.

    Attributes
    ----------
    row : int
        Row of table 4 with the interference of sending, 7 or 8; each comes with the links that were measured alike.
    share : float
        Part of a near link that one sender fills.
    ahead : int
        Tasks that a node asks for beyond the one that it computes.
    """

    row: Row
    share: float
    ahead: int = AHEAD

    @property
    def name(self) -> str:
        """What it is called."""
        words = f"row {self.row}, one sender fills {self.share:.0%} of a near link"
        return words if self.ahead == AHEAD else f"{words}, {self.ahead} tasks asked for ahead"

    @property
    def platform(self) -> Document:
        """The fork graph, with the fields of `platform.toml`."""
        described = table_4.platform(self.row)
        for node in described["node"]:
            if "parent" in node and node["name"].startswith(NEAR) and self.share < 1:
                node["one_sender_share"] = self.share
        return {**described, "name": f"{described['name']}, share {self.share:g}"}

    @property
    def checked(self) -> Platform:
        """The same, checked."""
        return Platform.from_dict(self.platform)


@dataclass(frozen=True)
class Calibration:
    """Every constant of the study that the text does not give.

    Attributes
    ----------
    form : str
        quick or full.
    rows : sequence of int
        Rows of table 4 that are tried.
    shares : sequence of float
        Parts of a near link that one sender fills. Section 2.3 has 85 to 95 % of the highest rate, receiving; single
        sends of table 4 have all of it.
    aheads : sequence of int
        Other numbers of tasks that are asked for ahead, each tried with `ahead_shares`: reference [13] has it, the
        paper only that there is "sufficient buffer space".
    repetitions, seed : int
        Nothing is drawn.
    """

    form: Form
    shares: Sequence[float]
    rows: Sequence[Row] = (7, 8)
    aheads: Sequence[int] = (1, 4, 8)
    ahead_shares: Sequence[float] = (1.0, 0.9)
    repetitions: int = 1
    seed: int = 1

    @property
    def readings(self) -> list[Reading]:
        """Every row with every share, and some with other numbers of tasks ahead."""
        usual = [Reading(row, share) for row in self.rows for share in self.shares]
        others = [
            Reading(row, share, ahead) for row in self.rows for share in self.ahead_shares for ahead in self.aheads
        ]
        return [*usual, *others]

    def table(self) -> list[tuple[str, str, str]]:
        """Return what stands in the place of what the text leaves open: name, value, whence."""
        shares = ", ".join(f"{share:g}" for share in self.shares)
        return [
            ("row of table 4", ", ".join(map(str, self.rows)), "both printed; figure 2 shows row 7's order (E0-7)"),
            (
                "one sender's share of a near link",
                shares,
                "0.85 to 0.95 in section 2.3, receiving; 1 in table 4, sending",
            ),
            ("near nodes", f"{NEAR}3 to {NEAR}6", "those in Lab0's own lab; the way to SB0 and Tenn carries less"),
            (
                "highest rate to all nodes",
                f"{table_4.ROOT_SEND_LIMIT_MB_PER_S} MB/s",
                "six nodes at once (section 2.4)",
            ),
            ("compute rate of Lab0", f"{table_4.ROOT_COMPUTE_PER_S} diagonals/s", "table 4, row 1: 8.98 to 9.18"),
            ("works", ", ".join(map(str, WORKS)), '"six task compute sizes ranging from 1 to 11" (4.3): equal steps'),
            (
                "tasks asked for ahead",
                ", ".join(map(str, (AHEAD, *self.aheads))),
                "reference [13], which the paper does not repeat",
            ),
        ]


QUICK = Calibration("quick", (1.0, 0.95, 0.9, 0.85))
FULL = Calibration("full", tuple(round(1 - 0.01 * step, 2) for step in range(21)))
"""Down to 0.80, below what the text has: where a claim turns stands inside the range."""


def of(form: Form) -> Calibration:
    """Return the calibration of a form."""
    return QUICK if form == "quick" else FULL
