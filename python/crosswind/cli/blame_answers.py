"""What `crosswind blame` found, as an answer with its tables: of a program in virtual time, and of a command."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crosswind.cli.answer import Answer, Section, section
from crosswind.cli.console import number_of
from crosswind.statistics.digits import in_seconds, part_of, percent, plain

if TYPE_CHECKING:
    from crosswind.blame.command import CommandBlame
    from crosswind.blame.result import Blame
    from crosswind.statistics.interval import MeanInterval

UNSETTLED = 3
NAMED = 3
"""Causes that a sentence names."""


def answer_of(found: Blame) -> Answer:
    """Return what the causes cost a program, and which of them costs most."""
    [costs] = found.tables()
    several = len(found.seeds) > 1
    notes = [f"±: 95 % confidence interval over {len(found.seeds)} seeds"] if several else []
    return Answer(
        lines=_sentences(found),
        tables=[section(costs.part((0, 1, 2) if found.is_shared_out else (0, 1)))],
        notes=notes,
        wide=[_whole(found), section(costs)],
        rest="Seconds, each removed and alone",
    )


def _sentences(found: Blame) -> list[str]:
    bare = found.undisturbed
    programs = "; ".join(dict.fromkeys(f"{one.data['program']}, {one.data['ranks']:,} ranks" for one in found.runs))
    lines = [f"{slowed(cost_of(found), 'the program')}{_most(found)}"]
    if found.unaligned.low > 0.0:
        aligned = part_of(found.aligned_cost, bare)
        nothing = "" if found.aligned_cost.excludes_zero else "nothing measurable: "
        lines.append(f"Run at the same moment on all ranks, they would cost {nothing}{aligned}.")
    lines.append(f"{found.experiment}: {programs}, {number_of(len(found.seeds), 'seed')}.")
    return lines


def cost_of(found: Blame) -> MeanInterval:
    """Return what all causes cost a program, as a share of the undisturbed time; in s where that time is 0."""
    from crosswind.statistics.interval import MeanInterval

    cost, bare_s = found.cost, found.undisturbed.mean
    return MeanInterval(cost.mean / bare_s, cost.low / bare_s, cost.high / bare_s) if bare_s else cost


def code_of(share: MeanInterval) -> int:
    """Return the exit code of a cost: 3 where several runs leave open what it is.

    Examples
    --------
    >>> from crosswind.statistics.interval import MeanInterval
    >>> [code_of(MeanInterval(*one)) for one in ((0.2, 0.1, 0.3), (0.1, -0.1, 0.3), (0.1, -math.inf, math.inf))]
    [0, 3, 0]
    """
    return 0 if share.is_settled or not math.isfinite(share.high) else UNSETTLED


def _most(found: Blame) -> str:
    """Return which cause costs most, as far as that is settled."""
    most = found.leading
    if not most.first or not found.cost.excludes_zero or len(found.seeds) == 1:
        return ""
    parts = {one.cause: one.part for one in found.by_cause}
    first = most.first[0]
    part = f" ({_share(parts[first])} of it)" if parts[first] is not None else ""
    if most.open:
        return f" {first} costs something{part}; which cause costs most is not settled."
    if len(most.first) > 1:
        return f" Most: {_listed(most.first)}, which are not distinguishable."
    return f" Most: {first}{part}."


def _whole(found: Blame) -> Section:
    bare = found.undisturbed
    rows = [
        ["makespan", in_seconds(found.makespan), ""],
        ["undisturbed", in_seconds(bare), ""],
        ["all causes cost", in_seconds(found.cost), _signed(found.cost, bare)],
        ["beyond the sum of each alone", in_seconds(found.together), _signed(found.together, bare)],
        ["aligned over the ranks they would cost", in_seconds(found.aligned_cost), _signed(found.aligned_cost, bare)],
    ]
    return Section([("", "left"), ("s", "right"), ("of undisturbed", "right")], rows)


def answer_of_command(found: CommandBlame) -> Answer:
    """Return what the causes cost a command, and what removing each saves."""
    bare, command = found.undisturbed, shlex.join(found.turns.command)
    [saves] = found.tables()
    line = slowed(found.cost, "the command")
    most = found.leading
    if most.first and not most.open and len(most.first) == 1:
        line += f" Removing {most.first[0]} saves most."
    blocks = f"{found.disturbance}: {number_of(found.blocks, 'run')} of each. Undisturbed: {in_seconds(bare)} s"
    notes = [f"{blocks}. ±: 95 % confidence interval", *found.notes]
    if found.kept:
        notes.append(f"In every disturbed run: {number_of(len(found.kept), 'more cause')}; --cause NAME removes one")
    whole = [
        ["disturbed", in_seconds(found.makespan), ""],
        ["undisturbed", in_seconds(bare), ""],
        ["all causes cost", in_seconds(found.cost_s), _whole_part(found.cost)],
    ]
    return Answer(
        lines=[line],
        tables=[section(saves.part((0, 1, 3)))],
        notes=notes,
        wide=[
            Section([("", "left"), ("s", "right"), ("of undisturbed", "right")], whole, title=command),
            section(saves),
        ],
        rest="Seconds",
    )


def slowed(share: MeanInterval, what: str, by: str = "all causes slow") -> str:
    """Return a cost as a sentence: not settled where it is neither distinguishable from 0 nor below 1 %.

    Parameters
    ----------
    share : MeanInterval
        The cost as a share of the undisturbed time.
    what : str
        What is slowed.
    by : str
        What slows it, with the verb.

    Examples
    --------
    >>> from crosswind.statistics.interval import MeanInterval
    >>> slowed(MeanInterval(0.02, 0.017, 0.023), "the program")
    'All causes slow the program by 2.0 % ± 0.3.'
    >>> slowed(MeanInterval(0.001, -0.002, 0.004), "the program")
    'All causes slow the program by less than 1 %: 0.1 % ± 0.3.'
    >>> slowed(MeanInterval(-0.12, -1.2, 0.96), "the command")
    'Not settled: all causes slow the command by -12 % ± 108.'
    """
    part, begins = _whole_part(share), by[:1].upper() + by[1:]
    if not math.isfinite(share.high):
        return f"{begins} {what} by {part}, in one run; no interval is known."
    if not share.is_settled:
        return f"Not settled: {by} {what} by {part}."
    return f"{begins} {what} by {'less than 1 %: ' if share.is_small else ''}{part}."


def _whole_part(found: MeanInterval) -> str:
    return percent(found.mean, (found.low, found.high))


def _share(part: float | None) -> str:
    return "" if part is None else f"{plain(100 * part, 2)} %"


def _signed(found: MeanInterval, whole: MeanInterval) -> str:
    return f"{found.mean / whole.mean:+.2%}" if whole.mean else ""


def _listed(causes: Sequence[str]) -> str:
    words = list(causes) if len(causes) <= NAMED + 1 else [*causes[:NAMED], f"{len(causes) - NAMED} others"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
