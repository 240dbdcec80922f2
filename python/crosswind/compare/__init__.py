"""Is one command slower than another? Both run in turn in randomised quads, so that drift meets both.

| question | module |
|---|---|
| what follows from the times? | `runs`, by which `clock` |
| the result, also against a stored one? | `result` |
| when does it end? | `session` |
| which of several is fastest? | `several` |
| how is a command run, and what does it leave behind? | `process`, `runner` |
| what does a CI system read? | `junit` |
"""

from __future__ import annotations

import shlex
import signal
from pathlib import Path
from typing import TYPE_CHECKING, cast

from crosswind.compare.clock import BYS, By
from crosswind.errors import DescriptionError
from crosswind.terminal.progress import Advance

if TYPE_CHECKING:
    from crosswind.compare.result import Comparison
    from crosswind.compare.session import Settings
    from crosswind.documents.comparison import ComparisonDocument
    from crosswind.documents.values import Host

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
    shell: bool = False,
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
        Commands, split into words as a shell does. Left out with `base`, which names them.
    base : path or Comparison, optional
        An earlier comparison: its commands run again, and the new ratio of their times is compared with the stored one.
    margin : float, optional
        What counts as equivalent, as a share greater than 0 and below 1; default: 0.02, or that of `base`.
    by : str, optional
        "wall" or "cpu" time; default: wall, or that of `base`.
    shell : bool
        Run each command by `/bin/sh -c`; otherwise what only a shell understands is refused.
    seconds : float
        Time limit, s, greater than 0. Held to 10 %: no quad begins that would end later.
    warm_up : int
        Runs of each that do not count, at least 0.
    to_the_end : bool
        Use all the time, and look once; else it ends when it is known.
    seed : int
        Of the order of runs, at least 0.
    progress : callable, optional
        Called with the fraction of the time that has passed (0 to 1) and a message.

    Returns
    -------
    Comparison
        After ctrl-C with the quads that were finished.

    Raises
    ------
    DescriptionError
        When something is wrong.
    MeasurementError
        When a command fails, or takes too long for enough runs within the limit.

    Examples
    --------
    >>> found = compare("true", "true", seconds=5.0, margin=0.5)
    >>> found.commands
    ('true', 'true')
    """
    from crosswind.compare.process import Runner
    from crosswind.compare.result import Comparison
    from crosswind.compare.session import Session, Settings
    from crosswind.terminal.command_line import words_of
    from crosswind.terminal.signals import heard

    stored = Comparison.load(base) if isinstance(base, (str, Path)) else base
    if stored is not None and (a is not None or b is not None):
        raise DescriptionError("a stored comparison names its commands; no others can be given", "command")
    if stored is not None:
        if shell and not stored.in_shell:
            message = "the stored comparison ran its commands without a shell, and runs them so again"
            raise DescriptionError(message, "command", "leave out --shell, or compare the commands anew with it")
        a, b = stored.commands
        margin, by = margin or stored.margin, by or stored.by
        shell = stored.in_shell
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
    words = tuple(words_of(text, name, shell=shell) for text, name in zip((a, b), "AB", strict=True))
    settings = Settings(seconds, warm_up, to_the_end, seed)
    document = _document((a, b), margin, by, settings, shell)
    with heard(_HEARD) as asked, Runner() as runner:
        Session(words, runner, settings, document, stored, lambda: bool(asked), progress).run()
    return Comparison(document, stored)


def asked_for(a: str, b: str, margin: float, by: By, *, shell: bool) -> str:
    """Return what a comparison is of, as one would type it: a file of another one is replaced only by force.

    Examples
    --------
    >>> asked_for("./a 1", "./b", 0.02, "cpu", shell=False)
    "--margin 2% --by cpu './a 1' ./b"
    """
    options = ["--margin", f"{100 * margin:.6g}%", "--by", by, *(["--shell"] if shell else [])]
    return shlex.join([*options, a, b])


def _document(commands: tuple[str, str], margin: float, by: By, settings: Settings, shell: bool) -> ComparisonDocument:
    from crosswind import _core
    from crosswind.compare.result import KIND, SCHEMA_VERSION
    from crosswind.host.description import describe
    from crosswind.statistics.interim import Looks

    return {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "crosswind": _core.__version__,
        "asked": asked_for(*commands, margin, by, shell=shell),
        "commands": list(commands),
        "shell": shell,
        "margin": margin,
        "by": by,
        "host": cast("Host", describe()),
        "looks": Looks(planned_s=settings.seconds, one=settings.to_the_end).to_dict(),
        "interrupted": False,
        "wall_s": [],
        "cpu_s": [],
        "warnings": [],
    }
