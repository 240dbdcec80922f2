"""Check each host of a cluster and each link once, and hold them against each other: no baseline is needed."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, cast

from crosswind import _core
from crosswind.check import SECONDS, TOLERANCE, at_host, fault, permitted
from crosswind.check.cluster_result import KIND, SCHEMA_VERSION, ClusterCheck
from crosswind.errors import CrosswindError, DescriptionError
from crosswind.measure.cluster import Cluster, MeasuredCluster, measure_cluster
from crosswind.measure.cluster.tour import START_S, Progress, call
from crosswind.terminal.waiting import wait_for_all

if TYPE_CHECKING:
    from crosswind.documents.check import CheckDocument, Link

LINKS_PART = 0.5
"""Of the progress that is shown."""


def check_cluster(
    cluster: Cluster,
    *,
    tolerance: float = TOLERANCE,
    seconds: float = SECONDS,
    links: bool = True,
    progress: Progress | None = None,
) -> ClusterCheck:
    """Check all hosts of a cluster, and the links between them.

    Hosts are checked at the same time, those at one address in turns. Pairs without a common host are measured at the
    same time, never two that share one.

    Parameters
    ----------
    cluster : Cluster
        Hosts on which functions can be called, such as `crosswind.measure.cluster.on_dask.DaskCluster`.
    tolerance : float
        Permitted loss against the median of the others, above 0 and below 1; of memory rates twice as much, of lost
        time and noise half of it, in points of the time.
    seconds : float
        About how long a host is checked, s, 10 to 300.
    links : bool
        Whether links are measured, 4 s for each end.
    progress : callable, optional
        Called with the fraction done (0 to 1) and a message.

    Returns
    -------
    ClusterCheck
        Ctrl-C gives what was complete. A host that goes away is named, and the others are checked.

    Raises
    ------
    DescriptionError
        When an argument is wrong, or there are no two hosts.
    """
    permitted(tolerance, seconds)
    hosts = dict(cluster.hosts)
    if len(hosts) < 2:
        hint = "`crosswind check` without --on checks one; add workers, or take each for a host with --per worker"
        raise DescriptionError(f"there are {len(hosts)} hosts, and each is compared with the others", "hosts", hint)
    began, at = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    checks: dict[str, CheckDocument] = {}
    failed: dict[str, str] = {}
    measured: MeasuredCluster | None = None
    interrupted = False
    part = LINKS_PART if links else 0.0
    try:
        _check_hosts(
            cluster, seconds, checks, failed, lambda done, said: progress and progress((1 - part) * done, said)
        )
        if links:
            with tempfile.TemporaryDirectory(prefix="crosswind-check-") as folder:
                measured = measure_cluster(
                    cluster,
                    folder,
                    quick=True,
                    progress=lambda done, said: progress and progress(1 - part + part * done, f"links: {said}"),
                )
            interrupted = measured.interrupted
    except KeyboardInterrupt:  # what was complete is kept
        interrupted = True
    except CrosswindError as error:  # no link at all: the hosts' checks are there
        failed["links"] = str(error)
    except Exception as error:
        failed["links"] = f"a fault of Crosswind, {fault.described(error)}"
    for one in measured.failed if measured else ():
        failed.setdefault(f"{one['at']} with {one['peer']}", one["why"])
    return ClusterCheck(
        {
            "schema_version": SCHEMA_VERSION,
            "kind": KIND,
            "crosswind": _core.__version__,
            "at": at,
            "cluster": cluster.name,
            "hosts": hosts,
            "tolerance": tolerance,
            "checks": {host: checks[host] for host in hosts if host in checks},
            "links": cast("list[Link]", measured.links.links) if measured and measured.links else [],
            "failed": failed,
            "took_s": round(time.monotonic() - began, 2),
            "interrupted": interrupted,
        }
    )


def _turns(hosts: dict[str, str]) -> Iterator[list[str]]:
    """Yield hosts that may be checked at the same time: of those at one address one at a time."""
    left = dict(hosts)
    while left:
        turn = list({address: host for host, address in reversed(left.items())}.values())
        yield turn
        for host in turn:
            del left[host]


def _check_hosts(
    cluster: Cluster, seconds: float, checks: dict[str, CheckDocument], failed: dict[str, str], progress: Progress
) -> None:
    from crosswind.documents.check import CheckDocument
    from crosswind.documents.reading import refuse_wrong_fields

    turns = list(_turns(dict(cluster.hosts)))
    within_s, held, ended = 3 * seconds + START_S, threading.Lock(), threading.Event()

    def one(host: str) -> None:
        try:
            found = call(cluster, host, at_host.checked, seconds, within_s, within_s=within_s + START_S, ended=ended)
            refuse_wrong_fields(found, CheckDocument, f"the check of {host}", "is the same version installed there?")
        except CrosswindError as error:
            with held:
                failed[host] = str(error)
        else:
            with held:
                checks[host] = found

    def take(turn: Sequence[str]) -> None:
        threads = ThreadPoolExecutor(len(turn), "crosswind-check")
        try:
            wait_for_all(checked := [threads.submit(one, host) for host in turn])
            for each in checked:
                each.result()
        except KeyboardInterrupt:  # checks under way are not waited for; each ends by itself, after its seconds
            ended.set()
            raise
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    for number, turn in enumerate(turns):
        progress(number / len(turns), f"{len(turn)} hosts of {len(cluster.hosts)}, {seconds:.0f} s each")
        take(turn)
