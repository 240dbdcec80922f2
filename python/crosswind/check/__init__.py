"""Is this node sick? Rates, lost time, interference and settings against a baseline of a healthy node.

| question | module |
|---|---|
| is it sick, by these intervals? | `decision`, without a clock |
| is it the odd one among others, or among its own earlier checks? | `outliers`, without a clock; `history`, `peers` |
| what is measured, in which order? | `session`: `rates`, `crosswind.noise`, `network` |
| what else uses the host, and what does it hide? | `surroundings` |
| is the node sick? | `result` |
| how are all hosts of a cluster and their links checked? | `cluster`: `at_host`, `cluster_result` |
| what do a batch system, a CI system and a monitor read? | `formats` |
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.errors import DescriptionError
from crosswind.terminal.progress import Advance

if TYPE_CHECKING:
    from crosswind.check.result import Check

TOLERANCE = 0.1
SECONDS = 20.0
LEAST_S, MOST_S = 10.0, 300.0


def check(
    *,
    baseline: str | Path | Check | None = None,
    tolerance: float = TOLERANCE,
    seconds: float = SECONDS,
    peer: str | None = None,
    token: str | None = None,
    tls: str | Path | None = None,
    history: str | Path | None = None,
    peers: str | Path | None = None,
    limit_s: float | None = None,
    progress: Advance | None = None,
) -> Check:
    """Measure this node and compare it with a baseline.

    Parameters
    ----------
    baseline : path or Check, optional
        An earlier check of a healthy node of the same kind; without one, nothing is judged.
    tolerance : float
        Permitted loss of a rate as a share, above 0 and below 1. Of memory rates twice as much is permitted, of lost
        time and noise half of it, in points of the time.
    seconds : float
        About how long it takes, s, 10 to 300, on an idle host. Starts of processes come on top: some 3 s.
    peer : str, optional
        HOST:PORT of a `crosswind serve`: the path to it is checked as well, at the baseline's rates.
    token, tls : str or path, optional
        What the peer asks for; this node's directory of certificates.
    history : path, optional
        A directory of earlier checks of this node: without a baseline it is held against the median of the last ones
        and against the first ones, when there are 5 or more. This one is added, unless it was interrupted.
    peers : path, optional
        A directory that all nodes share: without a baseline and a history, this node is held against the newest checks
        of three or more others of the same kind there. This one is added, unless it was interrupted.
    limit_s : float, optional
        Time limit, s, at least 10; default: `longest_s(seconds)`. What is not measured by then is unknown.
    progress : callable, optional
        Called with the fraction of the time that has passed (0 to 1) and a message.

    Returns
    -------
    Check
        After ctrl-C with the measures that were complete.

    Raises
    ------
    DescriptionError
        When an argument or the baseline is wrong.
    MeasurementError
        When nothing at all can be measured. A measure that fails alone is unknown.

    Examples
    --------
    >>> found = check(seconds=10)
    >>> "noise" in found.readings, found.exit_code
    (True, 3)
    """
    from crosswind.check import peers as others
    from crosswind.check.history import earlier, keep
    from crosswind.check.result import Check
    from crosswind.check.session import performed
    from crosswind.files.atomic import made

    permitted(tolerance, seconds)
    if limit_s is not None and not limit_s >= LEAST_S:
        raise DescriptionError(f"limit_s is {limit_s:g} s; it must be at least {LEAST_S:g} s", "limit_s")
    if peers is not None and (baseline is not None or history is not None):
        message = "peers cannot be combined with a baseline or a history"
        raise DescriptionError(message, "peers", "name one reference")
    base = Check.load(baseline) if isinstance(baseline, (str, Path)) else baseline
    past, told = ([], []) if history is None else earlier(made(history), socket.gethostname())
    if peers is not None:
        there, told = others.newest(made(peers), socket.gethostname())
    rates_of = base or (past[-1] if past else there[0] if peers is not None and there else None)
    limit_s = longest_s(seconds) if limit_s is None else limit_s
    document = performed(rates_of, tolerance, seconds, peer, token, tls, progress, limit_s)
    document["warnings"] = told + document["warnings"]
    found = Check(document, base, None if history is None else past, None if peers is None else there)
    if history is not None and not found.interrupted:
        keep(history, found)
    if peers is not None and not found.interrupted:
        others.keep(peers, found)
    return found


def longest_s(seconds: float) -> float:
    """Return the time limit of a check that takes about `seconds` on an idle host.

    Examples
    --------
    >>> longest_s(10), longest_s(20)
    (30.0, 45.0)
    """
    return 1.5 * seconds + 15.0


def permitted(tolerance: float, seconds: float) -> None:
    """Refuse a tolerance or a time that no check can have.

    Raises
    ------
    DescriptionError
        With what is permitted.
    """
    if not 0 < tolerance < 1:
        message = f"tolerance is {100 * tolerance:g} %; it must be greater than 0 % and below 100 %"
        raise DescriptionError(message, "tolerance", "such as 10%")
    if not LEAST_S <= seconds <= MOST_S:
        message = f"seconds is {seconds:g} s; it must be {LEAST_S:g} to {MOST_S:g} s"
        raise DescriptionError(message, "seconds", f"{SECONDS:g} s is the default")
