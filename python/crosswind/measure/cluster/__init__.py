"""Measure the hosts of a cluster and the links between them: Cluster -> Links, or a calibrated Platform.

| file | question |
|---|---|
| `pairs` | which links must be known, and which host measures what of them? |
| `rounds` | which pairs at the same time? |
| `tour` | how does it go, round after round, whatever dies? |
| `at_host` | what is done on a host? |
| `directory` | what is kept, and what need not be measured again? |
| `result` | what do all measurements together tell? |
| `on_dask` | how are the hosts of a Dask cluster called? |
| `on_hosts`, `handshake`, `resident`, `calls` | how are the hosts of a file called? |

A single measurement is `crosswind.measure`'s; which tree to build over the links is `crosswind.plan.tree`'s question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosswind.errors import DescriptionError, MeasurementError, Notice, warning
from crosswind.links import Links
from crosswind.measure.cluster.directory import Directory
from crosswind.measure.cluster.pairs import Pairs, Visit, links_wanted, visits
from crosswind.measure.cluster.result import Fitted
from crosswind.measure.cluster.tour import Cluster, Progress, Tour
from crosswind.platform import Platform

__all__ = ["Cluster", "MeasuredCluster", "Pairs", "measure_cluster"]

USUAL_S, QUICK_S = 60.0, 4.0
"""Most seconds of a measurement; quick ones end then, others mostly before."""


@dataclass(frozen=True)
class MeasuredCluster:
    """What was measured of a cluster.

    Attributes
    ----------
    directory : Path
        Where the measurements lie, `links.toml`, and `platform.toml` where a tree was given.
    links : Links or None
        What is known; None where nothing is.
    platform : Platform or None
        The tree with what was measured.
    measured, asked : int
        Measurements that are there, and that were asked for.
    lost : list of str
        Hosts that went away.
    failed : list of dict
        Measurements that are missing: `at`, `peer`, `direction`, `why`.
    interrupted : bool
        Whether ctrl-C ended it: what was done by then is kept.
    trustworthy : bool
        Whether nothing is missing and every measurement keeps what it promises.
    warnings : list of dict
        What to keep in mind.
    """

    directory: Path
    links: Links | None
    platform: Platform | None
    measured: int
    asked: int
    lost: list[str]
    failed: list[dict[str, str]]
    interrupted: bool
    trustworthy: bool
    warnings: list[Notice]

    def to_dict(self) -> dict[str, object]:
        """Return the JSON document of `crosswind measure cluster --on ... --json`."""
        return {
            "directory": str(self.directory),
            "measured": self.measured,
            "asked": self.asked,
            "lost": self.lost,
            "failed": self.failed,
            "interrupted": self.interrupted,
            "trustworthy": self.trustworthy,
            "links": self.links.to_dict() if self.links else None,
            "platform": self.platform.to_dict() if self.platform else None,
            "warnings": self.warnings,
        }


def measure_cluster(
    cluster: Cluster,
    out: str | Path,
    *,
    pairs: Pairs | None = None,
    platform: Platform | str | Path | None = None,
    host_of: Mapping[str, str] | None = None,
    root: str | None = None,
    quick: bool = False,
    at_once: int | None = None,
    resume: bool = True,
    force: bool = False,
    progress: Progress | None = None,
    **measure_arguments: Any,
) -> MeasuredCluster:
    """Measure what each host computes, what each link carries, and what they cost each other.

    For a link, the receiver is measured while it receives and the sender while it sends. Pairs without a common host
    are measured at the same time, never two that share one.

    Parameters
    ----------
    cluster : Cluster
        Hosts on which functions can be called, such as `crosswind.measure.cluster.on_dask.DaskCluster`.
    out : str or Path
        Directory for the measurements and what they tell; made where it does not exist.
    pairs : {"all", "star", "tree"}, optional
        Every ordered pair; from the root to all others; the edges of `platform`. Default: "tree" where `platform` is
        given, else "all".
    platform : Platform or path, optional
        A tree; what was measured takes the place of what it says.
    host_of : mapping, optional
        Host of each node of `platform`; default: the host of the node's own name.
    root : str, optional
        For "star": the host in the middle; default: the first.
    quick : bool
        4 s for each measurement unless `max_seconds` is given, in which the loss at full rate is known to about 5 %.
    at_once : int, optional
        Most pairs at a time, at least 1; default: as many as have no host in common.
    resume : bool
        Keep what lies in `out` already, if it was measured with the same arguments.
    force : bool
        Replace what was measured of other hosts, and descriptions in `out` that no measurement wrote; without `resume`
        also what was measured with other arguments.
    progress : callable, optional
        Called with the fraction done (0 to 1) and a message with the time left.
    **measure_arguments
        Passed on to `crosswind.measure` on each host: `kernel`, `matrix`, `task` (a command), `max_seconds`, ...

    Returns
    -------
    MeasuredCluster
        Ctrl-C gives what was measured until then. A host that goes away is named, and the others are measured.

    Raises
    ------
    DescriptionError
        When an argument is wrong, a node has no host, or `out` holds measurements with other arguments.
    MeasurementError
        When nothing at all could be measured; what went wrong first is in the message.
    """
    hosts = list(cluster.hosts)
    tree = Platform.load(platform) if isinstance(platform, (str, Path)) else platform
    pairs = pairs or ("tree" if tree else "all")
    placed = _placed(tree, hosts, host_of) if tree else {}
    edges = [(placed[up], placed[n["name"]]) for n in tree.nodes if (up := n.get("parent"))] if tree else None
    wanted = links_wanted(pairs, hosts, edges, root)
    if not wanted:
        hint = "a link needs two: add workers, or take each for a host with --per worker"
        raise DescriptionError(f"there is no link to measure among {len(hosts)} hosts", "hosts", hint)
    if at_once is not None and at_once < 1:
        raise DescriptionError(f"at_once is {at_once}; it must be at least 1", "at_once")
    arguments = {"max_seconds": QUICK_S if quick else USUAL_S, **measure_arguments}
    to_do = visits(wanted)
    kept = Directory.taken_up(out, hosts, arguments, to_do, resume, force)
    about = {"cluster": cluster.name, "pairs": pairs, "hosts": dict(cluster.hosts), "links": [list(a) for a in wanted]}
    kept.write_index(**about, ended="under way")
    tour = Tour(cluster, arguments, kept.keep, progress)
    interrupted = False
    try:
        tour.go([visit for visit in to_do if visit not in kept.measurements], at_once)
    except KeyboardInterrupt:
        interrupted = True
    fitted = Fitted.of(kept.measurements, quick)
    reasons = {**tour.failed, **fitted.unusable}
    missing = {visit: reasons.get(visit, "interrupted") for visit in to_do if visit not in fitted.fits}
    failed = [{"at": v.at, "peer": v.peer, "direction": v.direction, "why": why} for v, why in missing.items()]
    kept.write_index(**about, ended="interrupted" if interrupted else "done", lost=tour.lost, failed=failed)
    if not fitted.fits and not interrupted:
        why = next(iter(missing.values()))
        hint = "can the hosts reach each other, and are they quiet?"
        raise MeasurementError(f"nothing could be measured: {why}", "nothing-measured", hint)
    told = [*_told(tour.lost, missing, len(to_do)), *fitted.warnings()]
    links = fitted.links(cluster.name, hosts, wanted)
    comment = f"measured by `crosswind measure cluster --on`: {len(fitted.fits)} of {len(to_do)} measurements"
    if links:
        links.save(kept.path / "links.toml", comment)
    measured = None
    if tree:
        measured, guesses = fitted.platform(tree, placed)
        told += guesses
        measured.save(kept.path / "platform.toml", comment)
    return MeasuredCluster(
        directory=kept.path,
        links=links,
        platform=measured,
        measured=len(fitted.fits),
        asked=len(to_do),
        lost=tour.lost,
        failed=failed,
        interrupted=interrupted,
        trustworthy=not failed and fitted.trustworthy,
        warnings=told,
    )


def _placed(tree: Platform, hosts: list[str], given: Mapping[str, str] | None) -> dict[str, str]:
    """Return the host of each node of a tree."""
    placed = {node["name"]: (given or {}).get(node["name"], node["name"]) for node in tree.nodes}
    unknown = next((node for node, host in placed.items() if host not in hosts), None)
    if unknown is not None:
        hint = f"there are: {', '.join(hosts[:20])}"
        raise DescriptionError(f"node {unknown!r} has no host in the cluster", "place", hint)
    if len(set(placed.values())) < len(placed):
        raise DescriptionError("two nodes are placed on one host", "place", "a host is measured as one node")
    return placed


def _told(lost: list[str], missing: Mapping[Visit, str], asked: int) -> list[Notice]:
    told = [warning("host-lost", f"{host} went away", "start it again, then the same command") for host in lost]
    others = [(visit, why) for visit, why in missing.items() if not {visit.at, visit.peer} & set(lost)]
    if others:
        visit, why = others[0]
        message = f"{len(others)} of {asked} measurements are missing, such as {visit.at} with {visit.peer}: {why}"
        told.append(warning("missing", message, "the same command measures what is missing"))
    return told
