"""`crosswind check --on`: all hosts of a cluster, held against each other."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.console import number_of
from crosswind.cli.outputs import writable, written
from crosswind.errors import warning
from crosswind.files.atomic import made
from crosswind.files.output import writable_directory
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.check.cluster_result import ClusterCheck
    from crosswind.measure.cluster.on_dask import DaskCluster
    from crosswind.measure.cluster.on_hosts import HostsCluster

INTERRUPTED = 130
MOST_ROWS = 10


def check_all(
    hosts: AbstractContextManager[DaskCluster | HostsCluster],
    links: bool,
    history: Path | None,
    save: Path | None,
    tolerance: float,
    seconds: float,
    force: bool,
    form: str,
) -> int:
    """Check every host and link, print what was found, and return the exit code."""
    from crosswind.check.cluster import check_cluster
    from crosswind.check.history import keep
    from crosswind.files.atomic import finite

    writable(save, "cluster-check", "--save", force=force)
    if history is not None:
        writable_directory(history, "--history")
        made(history)
    with hosts as cluster, progress_bar() as advance:
        writable(save, "cluster-check", "--save", force=force, of={"cluster": cluster.name})
        found = check_cluster(cluster, tolerance=tolerance, seconds=seconds, links=links, progress=advance)
    if save:
        found.save(save)
    warnings = list(found.warnings)
    if history is not None:
        named = Counter(one.node for one in found.checks.values())
        for host, one in found.checks.items():
            if named[one.node] > 1:  # one of them may not be the host it claims to be
                message = f"{host} is not added to {history}: {named[one.node]} hosts call themselves {one.node}"
                warnings.append(warning("same-name", message, "give each host a name of its own"))
            else:
                keep(history, one)
    show(
        _answer(found) if form != "json" else None,
        warnings=warnings,
        wrote=written(save, number_of(len(found.checks), "host"), number_of(len(found.links), "link")),
        document=finite(found.to_dict()) if form == "json" else None,
    )
    return INTERRUPTED if found.interrupted else found.exit_code


def _answer(found: ClusterCheck) -> Answer:
    """Return the verdict in one line, then the worst measure of each host and link, the worst first."""
    worst = [(host, judged[0]) for host, judged in found.hosts.items() if judged]
    worst += [("", each) for each in found.links.values()]
    order = ("sick", "unknown", "healthy")
    worst.sort(key=lambda row: order.index(row[1].outcome))
    rows = [[host, each.shown, each.outcome, each.why] for host, each in worst]
    columns = [("host", "left"), ("worst measure, against the others", "left"), ("verdict", "left"), ("why", "left")]
    first = ("verdict", "host", "worst measure, against the others")
    shown = Section(columns, rows[:MOST_ROWS], first=first)
    notes = [f"The {MOST_ROWS} worst of {len(rows)} hosts and links"] if len(rows) > MOST_ROWS else []
    rest = "All hosts and links" if len(rows) > MOST_ROWS else ""
    return Answer([found.sentence], [shown] if rows else [], notes, wide=[Section(columns, rows)], rest=rest)
