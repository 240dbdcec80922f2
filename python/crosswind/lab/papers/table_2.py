"""Tables 2 and 3: what Lab0 loses when it receives from, and sends to, one node; averages over repeated experiments.

Table 2 (Java) stands in both papers, with the same figures; table 3 (C) in interference-aware-scheduling only.
"""

from __future__ import annotations

from dataclasses import dataclass

from crosswind.lab.papers.published import rows


@dataclass(frozen=True)
class Line:
    """An averaged least-squares line of normalised compute rate over transfer rate.

    Attributes
    ----------
    ir_s_per_mb : float
        Interference rate, parts of the full compute rate per MB/s.
    intercept : float
        Constant ("const").
    std_dev, max_error : float
        Standard deviation and largest error ("StDev", "MaxE"); parts of the highest rate, it seems (E1-4).
    """

    ir_s_per_mb: float
    intercept: float
    std_dev: float
    max_error: float


@dataclass(frozen=True)
class Peer:
    """One row: what Lab0 loses when it receives from, and sends to, this node.

    Attributes
    ----------
    node : str
        Label of the other node; Lab0 is the one that is measured.
    receive, send : Line
        Lab0 receives from it, Lab0 sends to it.
    """

    node: str
    receive: Line
    send: Line


def load(table: int = 2) -> list[Peer]:
    """Return table 2 (Java, 25 peers) or table 3 (C, 8 peers) as printed.

    Parameters
    ----------
    table : {2, 3}
        Which.

    Returns
    -------
    list of Peer
        In the order of the paper.

    Raises
    ------
    ValueError
        For any other table.

    Examples
    --------
    >>> peers = load()
    >>> len(peers), peers[0].node, peers[0].receive.ir_s_per_mb
    (25, 'Lab1', 0.0458)
    """
    if table not in (2, 3):
        raise ValueError(f"table is {table}; it must be 2 or 3")
    return [Peer(row["node"], _line(row, "receive"), _line(row, "send")) for row in rows(f"table_{table}")]


def _line(row: dict[str, str], direction: str) -> Line:
    return Line(
        ir_s_per_mb=float(row[f"ir_{direction}_s_per_mb"]),
        intercept=float(row[f"{direction}_intercept"]),
        std_dev=float(row[f"{direction}_std_dev"]),
        max_error=float(row[f"{direction}_max_error"]),
    )
