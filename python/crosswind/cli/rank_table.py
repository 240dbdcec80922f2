"""The ranks of a swept field on the terminal: the best value, and how far the others are behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswind.cli.answer import Section
from crosswind.cli.console import number_of
from crosswind.cli.figures import plain, with_half
from crosswind.cli.run_tables import shown_value

if TYPE_CHECKING:
    from crosswind.run.ranking import Ranked, Ranking


def ranks_table(found: Ranking, most: int) -> Section:
    """Return the ranking as a table, the best first.

    Examples
    --------
    >>> from crosswind.run.ranking import Ranked, Ranking
    >>> rows = [Ranked("planned", 1.1, 15, 0.0, 0.0), Ranked("arrival", 1.9, 1, 0.0612, 0.0075)]
    >>> ranks_table(Ranking("policy.order", "makespan_s", rows, 16, 30, 0), 40).rows
    [['planned', '1.1', '15 of 16', 'the best'], ['arrival', '1.9', '1 of 16', '6.1 ± 0.8']]
    """
    name = found.path.rsplit(".", 1)[-1]
    columns = [(name, "left"), ("mean rank", "right"), ("best at", "right"), ("% behind the best", "right")]
    rows = [
        [
            shown_value(row.value),
            f"{row.rank:.1f}",
            f"{row.best_at} of {found.points}",
            _behind(row, row is found.rows[0]),
        ]
        for row in found.rows[:most]
    ]
    return Section(columns, rows, title=f"Ranks by {found.measure}", first=(name, "% behind the best", "mean rank"))


def _behind(row: Ranked, is_best: bool) -> str:
    if is_best:
        return "the best"
    if row.half is None:
        return plain(100 * row.behind)
    tied = ", tied" if row.is_tied else ""
    return f"{with_half(100 * row.behind, 100 * row.half)}{tied}"


def rank_notes(found: Ranking) -> list[str]:
    """Return how the runs are paired, and what ± holds for."""
    seeds = number_of(found.seeds, "seed")
    paired = (
        f"Ranks: every value ran with the same {seeds} at {number_of(found.points, 'point')} (common random numbers)."
    )
    if found.seeds == 1:
        paired = "Ranks are of one run per value and point; with drawn tasks, --set repetitions=30 gives intervals."
    notes = [paired]
    if found.seeds > 1:
        notes.append("± of a difference: paired by seed, 95 % for all pairs of values at once.")
    if found.left_out:
        notes.append(
            f"{number_of(found.left_out, 'run')} without a partner of the same seed and point: left out of the ranks."
        )
    return notes
