"""The section about blame for a real command: what removing each cause saves."""

from __future__ import annotations

import shlex

from crosswind.blame.command import CommandBlame
from crosswind.report.figures.figure import Figure
from crosswind.report.figures.slowdowns import cost_bars
from crosswind.report.sections.blame import TERMS as OF_BLAMES
from crosswind.report.sections.blame import BlamedSection, bar, cost_answers, listed, part_of, slowed
from crosswind.report.sections.measurement import Card
from crosswind.report.sections.section import Kind, Term, each, of_type
from crosswind.report.words import number, shortened

TERMS = (
    Term(
        "interval-blocks",
        "95 % interval over blocks",
        "Student's interval of the mean over blocks; each block runs the command once with each variant, so that "
        "differences are paired.",
    ),
    *(term for term in OF_BLAMES if term.id == "removed-cost"),
)


def command_section(found: CommandBlame, place: int) -> BlamedSection:
    """Prepare the section of a blame of a command at `place` (from 1)."""
    bare = found.undisturbed.mean
    saves = {cause: found.removed_saves_s(cause) for cause in found.causes}
    ordered = sorted(saves.items(), key=lambda item: -item[1].mean)
    rows = [bar(cause, "saved when removed", one, bare) for cause, one in ordered]
    kept = f", {len(found.kept)} more in every disturbed run" if found.kept else ""
    interrupted = "; interrupted" if found.turns.interrupted else ""
    unit = "s per iteration" if found.turns.settled else "s"
    id_ = f"command-blame-{place}"
    alt = f"Bars of what removing each of {len(rows)} causes saves, with 95 % intervals."
    return BlamedSection(
        id=id_,
        title=f"Which cause slows {shortened(shlex.join(found.turns.command), 60)} most?",
        where=f"under {found.disturbance}; {found.blocks} blocks, {len(rows)} causes removed in turn"
        + kept
        + interrupted,
        large=cost_answers(found.cost, _most(found)),
        headline=f"{slowed(found.cost)} {_most(found)}",
        cards=[Card("undisturbed", number(bare, 4), unit), Card("disturbed", number(found.makespan.mean, 4), unit)],
        bars=Figure(f"{id_}-causes", "What removing each cause saves", alt, cost_bars(rows)),
        table=found.tables()[0],
        warnings=found.turns.warnings,
        terms=TERMS,
    )


def _most(found: CommandBlame) -> str:
    most = found.leading
    if not most.first:
        return "No cause's removal saves a time distinguishable from 0."
    if len(most.first) == 1 and not most.open:
        first = most.first[0]
        return f"Removing {first} saves most: {part_of(found.removed_saves_s(first), found.undisturbed.mean)}."
    return f"Removing {listed(most.first)} saves time; which cause costs most is not settled."


COMMANDS = Kind(
    "blame of a command",
    "blames of commands",
    "command_blame.html.j2",
    of_type(CommandBlame),
    each(command_section),
    {"command-blame": CommandBlame.load},
)
