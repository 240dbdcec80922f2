"""Files of measured amounts, such as times of tasks: one number per line."""

from __future__ import annotations

import math

from crosswind.errors import DescriptionError

MOST = 1_000_000


def amounts_of(file: str, content: bytes) -> list[float]:
    r"""Return the numbers of a file with one per line.

    Blank lines and lines that begin with `#` are skipped, and so is a header: a first line that is no number and does
    not begin with a digit. Quotes around a number, as spreadsheets write them, do not count.

    Raises
    ------
    DescriptionError
        With file and line: what is no number, or is not finite and above 0; a file without any, or with more than a
        million.

    Examples
    --------
    >>> amounts_of("times.csv", b"seconds\n1.5\n# a slow one\n20\n")
    [1.5, 20.0]
    """
    found: list[float] = []
    is_first = True
    for number, raw in enumerate(content.decode("utf-8-sig", errors="replace").splitlines(), 1):
        line = raw.strip().strip('"').strip()
        if not line or line.startswith("#"):
            continue
        try:
            value = float(line)
        except ValueError:
            if not is_first or line[0].isdigit():  # a header begins with a letter
                what = f"{file}:{number}: {line[:40]!r} is no number; a line has one number"
                raise DescriptionError(what, "value") from None
            is_first = False
            continue
        is_first = False
        if not (math.isfinite(value) and value > 0):
            raise DescriptionError(f"{file}:{number}: {line[:40]} must be finite and greater than 0", "value")
        found.append(value)
    if not 1 <= len(found) <= MOST:
        raise DescriptionError(f"{file}: {len(found):,} numbers; there must be 1 to {MOST:,}", "value")
    return found
