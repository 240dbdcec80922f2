"""Table 3: as table 2, with C processes and messages of 1 KB in the place of Java threads and messages of 1 MB."""

from __future__ import annotations

from crosswind.lab.papers import table_2
from crosswind.lab.papers.table_2 import Peer


def load() -> list[Peer]:
    """Return the 8 rows of table 3 as printed.

    Examples
    --------
    >>> [peer.node for peer in load()][-2:]
    ['new york', 'india']
    """
    return table_2.load(3)
