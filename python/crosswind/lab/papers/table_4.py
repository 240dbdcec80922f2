"""Table 4: the fork graph of Lab0 and six leaves on which the scheduling policies were compared."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Literal

from crosswind.documents import Document
from crosswind.lab.papers.published import rows

ROOT_COMPUTE_PER_S = 9.05
"""Lab0's compute rate, diagonals/s: about the median of row 1, whose six entries lie from 8.98 to 9.18."""
ROOT_SEND_LIMIT_MB_PER_S = 10.7
"""Most that Lab0 sends to six nodes at once (interference-in-java, section 3.2)."""


@dataclass(frozen=True)
class Leaf:
    """One column of the table; compute rates in diagonals/s, transfer rates in MB/s, interference in s/MB.

    Attributes
    ----------
    leaf : str
        Label.
    root_compute_per_s, leaf_compute_per_s : float
        Rows 1 and 2: alone.
    root_compute_while_sending_per_s, leaf_compute_while_receiving_per_s : float
        Rows 3 and 4: while the root sends to the leaf.
    rate_no_compute_mb_per_s, rate_both_compute_mb_per_s : float
        Rows 5 and 6: what is transferred when neither computes, and when both do.
    ir_send_root_computes_s_per_mb : float
        Row 7: at the root, when only the root computes (from table 2).
    ir_send_both_compute_s_per_mb, ir_receive_both_compute_s_per_mb : float
        Rows 8 and 9: at the root and at the leaf, when both compute. Fractions per MB/s, although the caption says
        percent (E0-9).
    """

    leaf: str
    root_compute_per_s: float
    leaf_compute_per_s: float
    root_compute_while_sending_per_s: float
    leaf_compute_while_receiving_per_s: float
    rate_no_compute_mb_per_s: float
    rate_both_compute_mb_per_s: float
    ir_send_root_computes_s_per_mb: float
    ir_send_both_compute_s_per_mb: float
    ir_receive_both_compute_s_per_mb: float

    @property
    def ir_send_from_rates(self) -> float:
        """(1 - row 3 / row 1) / row 6: what row 8 must be."""
        return (1.0 - self.root_compute_while_sending_per_s / self.root_compute_per_s) / self.rate_both_compute_mb_per_s

    @property
    def ir_receive_from_rates(self) -> float:
        """(1 - row 4 / row 2) / row 6: what row 9 must be."""
        left = self.leaf_compute_while_receiving_per_s / self.leaf_compute_per_s
        return (1.0 - left) / self.rate_both_compute_mb_per_s

    @property
    def consistent(self) -> bool:
        """Whether rows 8 and 9 follow from rows 1 to 6, within what rounding to the printed digits explains (1e-3)."""
        gaps = (
            self.ir_send_from_rates - self.ir_send_both_compute_s_per_mb,
            self.ir_receive_from_rates - self.ir_receive_both_compute_s_per_mb,
        )
        return max(map(abs, gaps)) < 1e-3


def load(corrected: bool = False) -> list[Leaf]:
    """Return the six columns.

    Parameters
    ----------
    corrected : bool
        Replace rows 8 and 9 where they contradict rows 1 to 6, by what these give: Tenn only (E0-6), whose printed
        .0331 equals Lab6's and whose printed .1300 fits 0.308 MB/s rather than row 6's 0.2.

    Returns
    -------
    list of Leaf
        In the order of the paper.

    Examples
    --------
    >>> [leaf.leaf for leaf in load() if not leaf.consistent]
    ['Tenn']
    >>> tenn = load(corrected=True)[-1]
    >>> round(tenn.ir_send_both_compute_s_per_mb, 4), round(tenn.ir_receive_both_compute_s_per_mb, 4)
    (0.0773, 0.2003)
    """
    leaves = [
        Leaf(leaf=row["leaf"], **{name: float(value) for name, value in row.items() if name != "leaf"})
        for row in rows("table_4")
    ]
    return [_corrected(leaf) for leaf in leaves] if corrected else leaves


def _corrected(leaf: Leaf) -> Leaf:
    if leaf.consistent:
        return leaf
    return replace(
        leaf,
        ir_send_both_compute_s_per_mb=leaf.ir_send_from_rates,
        ir_receive_both_compute_s_per_mb=leaf.ir_receive_from_rates,
    )


def platform(ir_row: Literal[7, 8] = 8, corrected: bool = False) -> Document:
    """Return the fork graph as a description with the fields of `platform.toml`.

    Row 8 describes the running system, in which leaves compute too; the paper's experiments used row 7, as the order of
    its figure 2 shows (E0-7). Each goes with the transfer rates that were measured alike: 7 with row 5, 8 with row 6.

    Parameters
    ----------
    ir_row : {7, 8}
        Row of the interference of sending.
    corrected : bool
        As in `load`; concerns rows 8 and 9.

    Returns
    -------
    dict
        For `Platform.from_dict`. The root is Lab0; work units are diagonals.

    Raises
    ------
    ValueError
        For another row.

    Examples
    --------
    >>> node = platform(ir_row=7)["node"][1]
    >>> node["name"], node["receive_limit_mb_per_s"], node["ir_send_s_per_mb"]
    ('Lab3', 11.1, 0.0299)
    """
    if ir_row not in (7, 8):
        raise ValueError(f"ir_row is {ir_row}; it must be 7 or 8")
    nodes: list[Document] = [
        {"name": "Lab0", "compute_per_s": ROOT_COMPUTE_PER_S, "send_limit_mb_per_s": ROOT_SEND_LIMIT_MB_PER_S}
    ]
    for leaf in load(corrected):
        seen = asdict(leaf)
        limit, price = (
            ("rate_no_compute_mb_per_s", "ir_send_root_computes_s_per_mb")
            if ir_row == 7
            else ("rate_both_compute_mb_per_s", "ir_send_both_compute_s_per_mb")
        )
        nodes.append(
            {
                "name": leaf.leaf,
                "parent": "Lab0",
                "compute_per_s": leaf.leaf_compute_per_s,
                "receive_limit_mb_per_s": seen[limit],
                "ir_receive_s_per_mb": leaf.ir_receive_both_compute_s_per_mb,
                "ir_send_s_per_mb": seen[price],
            }
        )
    form = "corrected" if corrected else "as printed"
    return {"schema_version": 1, "name": f"fork of table 4, {form}, row {ir_row}", "node": nodes}
