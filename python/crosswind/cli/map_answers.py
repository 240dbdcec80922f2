"""What `crosswind map` did: how many inputs in which time, and the failures, alike ones together."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosswind.cli.answer import Answer
from crosswind.cli.console import number_of, tell
from crosswind.cli.run_tables import tables_of
from crosswind.statistics.digits import plain

if TYPE_CHECKING:
    from crosswind.documents.shared import RunEvent
    from crosswind.run.results import Runs

FAILED = "task-failed"
MOST_GROUPS = 3
MOST_NAMES = 10
_SPOOLED = re.compile(r"[^\s'\"]*/crosswind-spool-[^/\s]+/[^/\s]+/\d+/(?:in/)?")
"""Where an agent keeps an input while a command reads it: the user knows the input by its name."""


def failures_of(done: Runs[Any]) -> int:
    """Return how many tasks failed for good."""
    return sum(event["tasks"] for event in done[0].events if event["code"] == FAILED)


def results_of(done: Runs[Any], out: Path) -> str:
    """Return the directory of the results, and how many of them this run wrote.

    It says nothing of results that an earlier run left there.
    """
    failed = failures_of(done)
    results = number_of(done[0].data["tasks"] - failed, "result")
    return f"{out} ({results}{f', {failed} failed' if failed else ''})"


def answer_of(done: Runs[Any], out: Path, most: int, noun: str) -> Answer:
    """Return what was done.

    Parameters
    ----------
    done : Runs
        One run.
    out : Path
        Directory of the results.
    most : int
        Most nodes in the table of `--wide`.
    noun : str
        What the inputs are: file, or value.
    """
    (one,) = done
    tasks, failed = one.data["tasks"], failures_of(done)
    rate = f" ({plain(one.throughput_tasks_per_s, 2)} {noun}s/s)" if tasks - failed and one.makespan_s else ""
    line = f"{tasks - failed} of {number_of(tasks, noun)} in {plain(one.makespan_s, 2)} s{rate}"
    line += f", {failed} failed. " if failed else ". "
    lines = [f"{line}Results: {out}/"]
    if failed:
        lines.append("Run only the failed ones again: the same command with --resume")
    return Answer(lines, wide=tables_of(done, most), rest="What each node did")


def tell_failures(done: Runs[Any], *, wide: bool) -> None:
    """Say what happened: failures with the same reason together, each alone with `wide`; then all other events."""
    (one,) = done
    groups: dict[str, list[RunEvent]] = {}
    for event in one.events:
        file, found, reason = event["message"].partition(f": failed on {event.get('node')}: ")
        alike = event["code"] == FAILED and found and not wide
        reason = _without_names(reason, file)
        groups.setdefault(reason if alike else f"{event['t_s']}{event['message']}", []).append(event)
    shown = list(groups.items())
    for reason, events in shown[:MOST_GROUPS] if not wide else shown:
        if len(events) == 1:
            _tell_event(events[0])
            continue
        names = [event["message"].partition(f": failed on {event['node']}: ")[0] for event in events]
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        tell(f"{len(events)} failed with {reason}".replace("\n", "\n    "))
        listed = f"{', '.join(names[:MOST_NAMES])}{more}"
        tell(textwrap.fill(listed, 80, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False))
    left = sum(len(events) for _, events in shown[MOST_GROUPS:])
    if left and not wide:
        tell(f"{number_of(left, 'more event')}: --wide")


def _tell_event(event: RunEvent) -> None:
    tell(f"{event['t_s']:.3f} s: {_SPOOLED.sub('', event['message'])}".replace("\n", "\n    "))


def _without_names(reason: str, file: str) -> str:
    """Return why a command failed without the name of its input, so that alike reasons are equal.

    Examples
    --------
    >>> _without_names("gzip: /tmp/crosswind-spool-a1/crosswind-7-b2/1/in/2.log: unknown suffix", "data/2.log")
    'gzip: {name}: unknown suffix'
    """
    path = re.compile(_SPOOLED.pattern + re.escape(Path(file).name))
    return _SPOOLED.sub("", path.sub("{name}", reason))
