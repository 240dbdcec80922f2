"""Names of many hosts in one word: `node[01-16,20]` of Slurm, `0-7,12` of SimGrid."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from crosswind.errors import DescriptionError

MOST = 1_000_000
"""Names that one word may stand for."""
Refuse = Callable[[str, str], DescriptionError]


def numbers(text: str, refuse: Refuse) -> list[str]:
    """Return the numbers of a list of ranges, each as wide as the first of its range.

    Parameters
    ----------
    text : str
        Such as `0-7,12`.
    refuse : callable
        Makes the error of what is wrong and a hint.

    Examples
    --------
    >>> numbers("08-11,3", ValueError)
    ['08', '09', '10', '11', '3']
    """
    found: list[str] = []
    for part in text.split(","):
        ends = re.fullmatch(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", part)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
        if ends is None or last < first:
            raise refuse(f"`{part}` is no range of numbers", "such as 0-7, or 0-7,12")
        if len(found) + last - first >= MOST:
            raise refuse(f"`{text}` stands for more than {MOST:,} hosts", f"at most {MOST:,}")
        found += [str(number).zfill(len(ends[1])) for number in range(first, last + 1)]
    return found


def hosts(text: str, refuse: Refuse) -> Iterator[str]:
    """Return the hosts of a list as Slurm writes it.

    Examples
    --------
    >>> list(hosts("login,r[1-2]n[09-10]", ValueError))
    ['login', 'r1n09', 'r1n10', 'r2n09', 'r2n10']
    """
    words = re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", text)
    if ",".join(words) != text or not words:
        raise refuse(f"`{text}` is no list of hosts", "such as login,node[01-16]")
    for word in words:
        made = [""]
        for plain, ranges in re.findall(r"([^\[\]]+)|\[([^\[\]]*)\]", word):
            parts = [plain] if plain else numbers(ranges, refuse)
            if len(made) * len(parts) > MOST:
                raise refuse(f"`{word}` stands for more than {MOST:,} hosts", f"at most {MOST:,}")
            made = [name + part for name in made for part in parts]
        yield from made
