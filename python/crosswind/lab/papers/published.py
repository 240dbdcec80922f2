"""Reads the tables that ship with the package as CSV."""

from __future__ import annotations

import csv
from importlib.resources import files


def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of this package, such as `table_2`, every cell as printed."""
    text = files("crosswind.lab.papers").joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
