"""Which of several commands is fastest? All run in turn, in an order that is drawn for each round, then reversed."""

from __future__ import annotations

import itertools
import math
import shlex
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from crosswind.compare.clock import By
from crosswind.compare.process import LateError, Run, Runner
from crosswind.compare.runs import Judged, judge
from crosswind.errors import DescriptionError, MeasurementError
from crosswind.files.atomic import finite, write_json
from crosswind.statistics.jackknife import LEAST_GROUPS, jackknife
from crosswind.tables import Column, Table
from crosswind.terminal.command_line import words_of
from crosswind.terminal.progress import Advance
from crosswind.terminal.signals import heard

SCHEMA_VERSION = 1
KIND = "comparison-of-several"
HINT = "`crosswind compare A B C -o` writes one"
MOST_COMMANDS = 26
HELD_TO = 1.1
"""Longest duration, as a multiple of the limit."""
LEVEL = 0.05
_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Several:
    """Several commands that ran in turn.

    Attributes
    ----------
    commands : list of str
    by : str
        Which time counts: "wall" or "cpu".
    margin : float
        What counts as equivalent, as a share.
    wall_s, cpu_s : list of list of float
        A row for each round: the time of each command, summed over its two runs.
    interrupted : bool
        Whether it was asked to end before its time.
    how : dict
        How they ran: `shell`, `prepare`, `ignore_failure`, `seed`, `warm_up`, and the `host`.
    """

    commands: list[str]
    by: By
    margin: float
    wall_s: list[list[float]] = field(default_factory=list)
    cpu_s: list[list[float]] = field(default_factory=list)
    interrupted: bool = False
    how: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | Path) -> Several:
        """Read what `crosswind compare A B C -o FILE` wrote: the times are read, everything else follows from them.

        Raises
        ------
        DescriptionError
            When it is another file, or with the first field that is wrong.
        """
        from crosswind.documents.comparison import SeveralDocument
        from crosswind.documents.reading import read_document

        document = read_document(path, KIND, SCHEMA_VERSION, HINT, SeveralDocument)
        times = (document["wall_s"], document["cpu_s"])
        commands = list(document["commands"].values())
        return cls(commands, document["by"], document["margin"], *times, document["interrupted"], document["how"])

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        write_json(finite(self.to_dict()), path)

    @property
    def runs(self) -> int:
        """Runs of each command."""
        return 2 * len(self.wall_s)

    def mean_s(self, by: By) -> list[float]:
        """Return the mean time of each command, s; NaN without a round."""
        rows = np.array(self.wall_s if by == "wall" else self.cpu_s, dtype=float)
        return [float(one) for one in 0.5 * rows.mean(axis=0)] if len(rows) else [math.nan] * len(self.commands)

    @property
    def best(self) -> int:
        """The place of the command with the least mean time."""
        means = self.mean_s(self.by)
        return min(range(len(means)), key=lambda k: means[k] if means[k] == means[k] else math.inf)

    def against_best(self, place: int) -> Judged:
        """Return by how much a command takes longer than the best.

        The level is divided by the number of pairs, so that the intervals hold whichever command turns out best.
        """
        rows = np.array(self.wall_s if self.by == "wall" else self.cpu_s, dtype=float).reshape(-1, len(self.commands))
        count = len(self.commands)
        found = jackknife(rows[:, [self.best, place]], lambda sums: sums[..., 1] / sums[..., 0] - 1.0)
        return judge(found, self.margin, LEVEL / (count * (count - 1) / 2), len(rows))

    @property
    def others(self) -> list[int]:
        """The places of all commands but the best, the fastest first."""
        means = self.mean_s(self.by)
        return sorted((k for k in range(len(means)) if k != self.best), key=lambda k: means[k])

    @property
    def is_settled(self) -> bool:
        """Whether each command is slower than the best, or not slower by the margin."""
        return all(self.against_best(place).outcome != "unknown" for place in self.others)

    def name(self, place: int) -> str:
        """Return the letter of a command."""
        return chr(ord("A") + place)

    @property
    def sentences(self) -> list[str]:
        """The answer: which is fastest, which are as fast, and how many more runs the others need."""
        if len(self.wall_s) < LEAST_GROUPS:
            return [f"Not settled: too few runs; {2 * LEAST_GROUPS} of each are the fewest, {self.runs} were made."]
        judged = {self.name(place): self.against_best(place) for place in self.others}
        longer = {name: f"{100 * one.value:.1f} % ± {50 * (one.high - one.low):.1f}" for name, one in judged.items()}
        slower = [f"{name} takes {longer[name]} longer" for name, one in judged.items() if one.outcome == "slower"]
        unknown = [f"{name} ({longer[name]})" for name, one in judged.items() if one.outcome == "unknown"]
        as_fast = [name for name, one in judged.items() if one.outcome not in ("slower", "unknown")]
        best, margin = self.name(self.best), f"{100 * self.margin:.3g} %"
        behind = f": {'; '.join(slower)}" if slower else ""
        if unknown:
            more = max(math.ceil(2 * one.more_quads) for one in judged.values() if one.outcome == "unknown")
            return [
                f"Not settled: {best} was the fastest so far{behind}.",
                f"Not distinguished from {best} by the margin, {margin}: {', '.join(unknown)}.",
                f"At least {more} more runs of each are needed: more --seconds.",
            ]
        if as_fast:
            return [f"{' and '.join([best, *as_fast])} are the fastest, alike within {margin}{behind}."]
        return [f"{best} is the fastest{behind}."]

    def tables(self) -> list[Table]:
        """Return the mean times of each command, and the ratio to the best with its interval."""
        wall, cpu = self.mean_s("wall"), self.mean_s("cpu")
        found = []
        for place, command in enumerate(self.commands):
            ratio = "1"
            if place != self.best:
                judged = self.against_best(place)
                known = math.isfinite(judged.high)
                ratio = f"{1 + judged.value:.3f} ± {(judged.high - judged.low) / 2:.3f}" if known else "too few runs"
            found.append([self.name(place), command, f"{1e3 * wall[place]:.4g}", f"{1e3 * cpu[place]:.4g}", ratio])
        columns = [Column("", numeric=False), Column("command", numeric=False), Column("wall, ms"), Column("CPU, ms")]
        columns.append(Column("times the best", term="cost-interval"))
        first = ("", "times the best", "wall, ms", "command", "CPU, ms")
        return [Table("Times of one run", columns, found, first=first)]

    def to_dict(self) -> dict[str, object]:
        """Return figures and every round."""
        against = {self.name(place): self.against_best(place).to_dict() for place in self.others}
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": KIND,
            "asked": asked_for(self.commands, self.margin, self.by, self.how),
            "commands": {self.name(k): command for k, command in enumerate(self.commands)},
            "by": self.by,
            "margin": self.margin,
            "best": self.name(self.best),
            "against_best": against,
            "settled": self.is_settled,
            "sentences": self.sentences,
            "interrupted": self.interrupted,
            "how": self.how,
            "wall_s": self.wall_s,
            "cpu_s": self.cpu_s,
        }


def asked_for(commands: Sequence[str], margin: float, by: By, how: Mapping[str, Any]) -> str:
    """Return what a comparison is of, as one would type it: a file of another one is replaced only by force.

    Examples
    --------
    >>> asked_for(["./a 1", "./b", "./c"], 0.02, "cpu", {"shell": True, "prepare": "sync"})
    "--margin 2% --by cpu --shell --prepare sync './a 1' ./b ./c"
    """
    options = ["--margin", f"{100 * margin:.6g}%", "--by", by, *(["--shell"] if how.get("shell") else [])]
    options += ["--prepare", how["prepare"]] if how.get("prepare") else []
    options += ["--ignore-failure"] if how.get("ignore_failure") else []
    return shlex.join([*options, *commands])


def expanded(commands: Sequence[str], parameters: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the commands with each value of each parameter in the place of its name in braces.

    Raises
    ------
    DescriptionError
        When no command has a parameter's name.

    Examples
    --------
    >>> expanded(["load {workers}"], {"workers": ["1", "2"]})
    ['load 1', 'load 2']
    >>> expanded(["./a {n}", "./b"], {"n": ["1", "2"]})
    ['./a 1', './a 2', './b']
    """
    for name in parameters:
        if not any(f"{{{name}}}" in command for command in commands):
            hint = f"'./app --workers {{{name}}}'"
            raise DescriptionError(f"no command has {{{name}}}, the parameter of -L", "parameter", hint)
    found = []
    for command in commands:
        names = [name for name in parameters if f"{{{name}}}" in command]
        for values in itertools.product(*(parameters[name] for name in names)):
            one = command
            for name, value in zip(names, values, strict=True):
                one = one.replace(f"{{{name}}}", value)
            found.append(one)
    return list(dict.fromkeys(found))


def compare_several(
    commands: Sequence[str],
    *,
    by: By = "wall",
    margin: float = 0.02,
    shell: bool = False,
    seconds: float = 60.0,
    warm_up: int = 1,
    prepare: str | None = None,
    ignore_failure: bool = False,
    seed: int = 1,
    progress: Advance | None = None,
) -> Several:
    """Run commands in turn for `seconds`, and say which is fastest.

    Parameters
    ----------
    commands : sequence of str
        2 to 26, split into words as a shell does.
    by, margin, shell, seconds, warm_up, seed, progress
        As of `compare`; there is one look, at the end.
    prepare : str, optional
        A command that runs before each run and is not timed.
    ignore_failure : bool
        Count runs that end with another status than 0.

    Raises
    ------
    DescriptionError
        When something is wrong.
    MeasurementError
        When a command fails, or the time is too short for a round.
    """
    if not 2 <= len(commands) <= MOST_COMMANDS:
        raise DescriptionError(f"{len(commands)} commands; there must be 2 to {MOST_COMMANDS}", "command")
    from crosswind.host.description import describe

    letters = [chr(ord("A") + place) for place in range(len(commands))]
    words = [words_of(text, letter, shell=shell) for text, letter in zip(commands, letters, strict=True)]
    before = words_of(prepare, "--prepare", shell=shell) if prepare else None
    how = {"shell": shell, "prepare": prepare, "ignore_failure": ignore_failure, "seed": seed, "warm_up": warm_up}
    found = Several(list(commands), by, margin, how={**how, "host": describe()})
    draw, begun = np.random.default_rng(seed), time.monotonic()
    until, longest_s = begun + HELD_TO * seconds, 0.0
    with heard(_HEARD) as asked, Runner() as runner:

        def run(place: int) -> Run | None:
            if before and runner.run(before, lambda: bool(asked), until) is None:
                return None
            return runner.run(words[place], lambda: bool(asked), until, ignore_failure=ignore_failure)

        try:
            for _ in range(warm_up):
                for place in range(len(words)):
                    if run(place) is None:
                        return replace(found, interrupted=True)
            while not asked and time.monotonic() - begun < seconds and time.monotonic() + longest_s < until:
                started = time.monotonic()
                sums = {"wall_s": [0.0] * len(words), "cpu_s": [0.0] * len(words)}
                order = [int(one) for one in draw.permutation(len(words))]
                for place in (*order, *reversed(order)):
                    one = run(place)
                    if one is None:
                        return replace(found, interrupted=True)
                    sums["wall_s"][place] += one.wall_s
                    sums["cpu_s"][place] += one.cpu_s
                found.wall_s.append(sums["wall_s"])
                found.cpu_s.append(sums["cpu_s"])
                longest_s = max(longest_s, time.monotonic() - started)
                if progress:
                    part = min((time.monotonic() - begun) / seconds, 1.0)
                    progress(part, f"{found.runs} runs of each of {len(words)} commands")
        except LateError:
            pass
    if asked:
        return replace(found, interrupted=True)
    if not found.wall_s:
        hint = "more --seconds, or a smaller input"
        raise MeasurementError(f"--seconds is {seconds:g}: too short for two runs of each command", "too-short", hint)
    return found
