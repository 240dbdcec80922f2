"""`crosswind check --on`: all hosts of a cluster, held against each other."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.cli.console import print_json, print_table, print_text, tell, tell_warnings
from crosswind.cli.outputs import writable
from crosswind.files.atomic import made
from crosswind.files.output import writable_directory
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.check.cluster_result import ClusterCheck
    from crosswind.measure.cluster.on_dask import DaskCluster
    from crosswind.measure.cluster.on_hosts import HostsCluster

INTERRUPTED = 130
MOST_ROWS = 40


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
    from crosswind.cost.result import finite

    writable(save, "cluster-check", "--save", force=force)
    if history is not None:
        writable_directory(history, "--history")
        made(history)
    with hosts as cluster, progress_bar() as advance:
        writable(save, "cluster-check", "--save", force=force, of={"cluster": cluster.name})
        found = check_cluster(cluster, tolerance=tolerance, seconds=seconds, links=links, progress=advance)
    if save:
        found.save(save)
        tell(f"wrote {save} ({len(found.checks)} hosts, {len(found.links)} links)")
    tell_warnings(found.warnings)
    if form == "json":
        print_json(finite(found.to_dict()))
    else:
        _print(found)
    if history is not None:
        named = Counter(one.node for one in found.checks.values())
        for host, one in found.checks.items():
            if named[one.node] > 1:  # one of them may not be the host it claims to be
                tell(f"warning: {host} is not added to {history}: {named[one.node]} hosts call themselves {one.node}")
            else:
                keep(history, one)
    return INTERRUPTED if found.interrupted else found.exit_code


def _print(found: ClusterCheck) -> None:
    """Print the verdict in one line, then the worst measure of each host and link, the worst first."""
    print_text(found.sentence)
    worst = [(host, judged[0]) for host, judged in found.hosts.items() if judged]
    worst += [("", each) for each in found.links.values()]
    order = ("sick", "unknown", "healthy")
    worst.sort(key=lambda row: order.index(row[1].outcome))
    rows = [[host, each.shown, each.outcome, each.why] for host, each in worst[:MOST_ROWS]]
    columns = [
        ("host", "left"),
        ("worst measure, against the others", "left"),
        ("verdict", "left"),
        ("why", "left"),
    ]
    print_table(columns, rows, title=f"{len(worst)} hosts and links")
