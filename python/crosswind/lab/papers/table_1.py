"""Table 1: the 26 hosts of the testbed. Both papers that measure have it, with the same rows."""

from __future__ import annotations

from dataclasses import dataclass

from crosswind.lab.papers.published import rows


@dataclass(frozen=True)
class Host:
    """A host of the testbed, as printed.

    Attributes
    ----------
    label : str
        Its name in the papers, such as `Campus3`.
    architecture, system : str
    mhz : int
        Of each of its processors.
    processors : int
    ram_mb : int
    place : str
        Laboratory, with the city, state or country in parentheses.
    """

    label: str
    architecture: str
    system: str
    mhz: int
    processors: int
    ram_mb: int
    place: str


def load() -> list[Host]:
    """Return the hosts in the order of the table, each of a row such as `Campus0-8` by itself.

    Examples
    --------
    >>> hosts = load()
    >>> len(hosts), hosts[0].label, sum(host.system.startswith("SunOS") for host in hosts)
    (26, 'Lab0', 3)
    """
    return [
        Host(
            label,
            row["architecture"],
            row["system"],
            int(row["mhz"]),
            int(row["processors"]),
            int(row["ram_mb"]),
            row["place"],
        )
        for row in rows("table_1")
        for label in _labels(row)
    ]


def _labels(row: dict[str, str]) -> list[str]:
    if not row["first"]:
        return [row["label"]]
    return [f"{row['label']}{number}" for number in range(int(row["first"]), int(row["last"]) + 1)]
