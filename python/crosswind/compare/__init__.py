"""Is one command slower than another? Both run in turn in randomised quads, so that drift meets both.

| question | module |
|---|---|
| what follows from the times? | `runs`, by which `clock` |
| what came of it, also against a stored one? | `result` |
| how is a command run? | `process` |
| what does a CI system read? | `junit` |
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosswind.compare.clock import BYS, By
from crosswind.errors import DescriptionError
from crosswind.terminal.progress import Advance

if TYPE_CHECKING:
    from crosswind.compare.result import Comparison

SECONDS = 60.0
MARGIN = 0.02
_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def compare(
    a: str | None = None,
    b: str | None = None,
    *,
    base: str | Path | Comparison | None = None,
    margin: float | None = None,
    by: By | None = None,
    seconds: float = SECONDS,
    warm_up: int = 1,
    to_the_end: bool = False,
    seed: int = 1,
    progress: Advance | None = None,
) -> Comparison:
    """Say whether command B is slower than command A, by running both in turn.

    Parameters
    ----------
    a, b : str, optional
        Commands, as in a shell without its operators (`sh -c '...'` has them). Left out with `base`, which names them.
    base : path or Comparison, optional
        An earlier comparison: its commands run again, and the new ratio of their times is compared with the stored one.
    margin : float, optional
        What counts as equivalent, as a share greater than 0 and below 1; default: 0.02, or that of `base`.
    by : str, optional
        "wall" or "cpu" time; default: wall, or that of `base`.
    seconds : float
        The most that it takes, s, greater than 0; the quad that runs then is finished.
    warm_up : int
        Runs of each that do not count, at least 0.
    to_the_end : bool
        Use all the time, and look once; else it ends when it is known.
    seed : int
        Of the order of runs, at least 0.
    progress : callable, optional
        Told the part of the time that is gone (0 to 1) and a message.

    Returns
    -------
    Comparison
        After ctrl-C with the quads that were finished.

    Raises
    ------
    DescriptionError
        When something is wrong.
    MeasurementError
        When a command fails.

    Examples
    --------
    >>> found = compare("true", "true", seconds=0.2, margin=0.5)
    >>> found.commands
    ('true', 'true')
    """
    from crosswind.compare.result import Comparison
    from crosswind.terminal.signals import heard

    stored = Comparison.load(base) if isinstance(base, (str, Path)) else base
    if stored is not None and (a is not None or b is not None):
        raise DescriptionError("a stored comparison names its commands; no others can be given", "command")
    if stored is not None:
        a, b = stored.commands
        margin, by = margin or stored.margin, by or stored.by
    margin, by = MARGIN if margin is None else margin, by or "wall"
    if a is None or b is None:
        message = "two commands are compared, or a stored comparison is run again"
        raise DescriptionError(message, "command", "crosswind compare 'command A' 'command B'")
    if not 0.0 < margin < 1.0:
        raise DescriptionError(f"margin is {100 * margin:g} %; it must be greater than 0 % and below 100 %", "margin")
    if by not in BYS:
        raise DescriptionError(f"by is {by!r}; it must be one of {', '.join(BYS)}", "by")
    if not 0.0 < seconds < float("inf"):
        raise DescriptionError(f"seconds is {seconds:g} s; it must be greater than 0 s", "seconds")
    if seed < 0 or warm_up < 0:
        raise DescriptionError("seed and warm_up must be at least 0", "argument")
    with heard(_HEARD) as asked:
        document = _measured((a, b), margin, by, seconds, warm_up, to_the_end, seed, lambda: bool(asked), progress)
    return Comparison(document, stored)


def _measured(
    commands: tuple[str, str],
    margin: float,
    by: By,
    seconds: float,
    warm_up: int,
    to_the_end: bool,
    seed: int,
    asked: Callable[[], bool],
    progress: Advance | None,
) -> dict[str, Any]:
    import numpy as np

    from crosswind import _core
    from crosswind.compare.process import run_once, words_of
    from crosswind.compare.result import KIND, SCHEMA_VERSION, Comparison
    from crosswind.cost.looks import Looks
    from crosswind.cost.quads import order_of_quad
    from crosswind.host import describe

    words = [words_of(text, name) for text, name in zip(commands, "AB", strict=True)]
    looks = Looks(planned_s=seconds, one=to_the_end)
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "crosswind": _core.__version__,
        "commands": list(commands),
        "margin": margin,
        "by": by,
        "host": describe(),
        "looks": looks.to_dict(),
        "interrupted": False,
        "wall_s": [],
        "cpu_s": [],
        "warnings": [],
    }
    draw, begun = np.random.default_rng(seed), time.monotonic()
    for _ in range(warm_up):
        for each in words:
            run_once(each, asked)
    while not asked():
        sums = {"wall_s": [0.0, 0.0], "cpu_s": [0.0, 0.0]}
        for label in order_of_quad(draw):
            wall_s, cpu_s = run_once(words[label], asked)
            sums["wall_s"][label] += wall_s
            sums["cpu_s"][label] += cpu_s
        if asked():
            break
        for name, both in sums.items():
            document[name].append(both)
        elapsed_s = time.monotonic() - begun
        if elapsed_s >= looks.next_s() and not to_the_end:
            looks.look(elapsed_s)
            document["looks"] = looks.to_dict()
            found = Comparison(document)
            if found.verdict.is_final:
                break
        if progress:
            progress(min(elapsed_s / seconds, 1.0), f"{len(document['wall_s'])} quads")
        if elapsed_s >= seconds:
            break
    if document["wall_s"]:
        looks.look(time.monotonic() - begun, at_the_end=not asked())
        document["looks"] = looks.to_dict()
    document["interrupted"] = asked()
    return document
