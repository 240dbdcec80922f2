"""A fault of the program itself, in one line: the check that meets one reports "unknown" and continues."""

from __future__ import annotations

from pathlib import Path


def described(error: Exception) -> str:
    """Return an error with the place that raised it.

    Examples
    --------
    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError as error:
    ...     described(error).partition(" at ")[0]
    'ZeroDivisionError: division by zero'
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else ""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"{' '.join(said.split())}{where}"
