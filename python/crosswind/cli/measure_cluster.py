"""`crosswind measure cluster`: the hosts and links of a cluster -> Links, or a calibrated Platform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from crosswind.cli.access import AllowLooseToken, TokenFile
from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.clusters import cluster_on
from crosswind.cli.console import number_of
from crosswind.cli.measure_options import INTERRUPTED, UNTRUSTED, Measuring
from crosswind.cli.options import spread
from crosswind.cli.outputs import Force, Json, writable
from crosswind.cli.settings import hosts_of_nodes
from crosswind.cli.verbs import help_of
from crosswind.errors import DescriptionError
from crosswind.files.output import writable_directory
from crosswind.statistics.digits import plain
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.measure.cluster import MeasuredCluster

Pairs = Literal["all", "star", "tree"]
MOST_LINKS = 8
"""Links on a terminal, the slowest first."""
_HOSTS = "Hosts"
Per = Literal["host", "worker"]

GROUPS = {"Where the threads run": ("placement",), "Output": ("resume",)}

EXAMPLES = """
Examples:

    crosswind measure cluster --on dask:tcp://scheduler:8786 --quick -o cluster/

    crosswind measure cluster --on dask:tcp://scheduler:8786 --platform tree.toml -o cluster/

    crosswind measure cluster --on hosts:hosts.toml --token-file token -o cluster/

The directory gets a links.toml, for `crosswind plan tree`; with --platform the edges of that tree are measured, and it
gets a platform.toml. Two pairs that share a host are never measured at the same time.

Exit codes: 0 settled, 2 bad input, 3 done but not trustworthy (did not settle, host not quiet, a host went away),
130 interrupted.
"""


@spread
def cluster(
    *,
    on: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="The cluster: dask:tcp://SCHEDULER:PORT or hosts:FILE.toml."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure each pair for 4 s, the loss to within 5 % of the compute rate.")
    ] = False,
    platform: Annotated[Path | None, typer.Option(help="The tree whose edges are measured.")] = None,
    how: Measuring,
    pairs: Annotated[
        Pairs | None,
        typer.Option(help="Every pair, from the root to all, or --platform's. [default: all]", rich_help_panel=_HOSTS),
    ] = None,
    root: Annotated[
        str | None,
        typer.Option(
            metavar="HOST", help="--pairs star: the host in the middle. [default: the first]", rich_help_panel=_HOSTS
        ),
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE=HOST", help="Host of a node of --platform. Repeat for more.", rich_help_panel=_HOSTS
        ),
    ] = None,
    per: Annotated[
        Per, typer.Option(help="Treat each address or each worker as a host.", rich_help_panel=_HOSTS)
    ] = "host",
    at_once: Annotated[
        int | None,
        typer.Option(
            help="Pairs at a time, at most. [default: all without a common host]", min=1, rich_help_panel=_HOSTS
        ),
    ] = None,
    token_file: TokenFile = None,
    allow_loose_token: AllowLooseToken = False,
    resume: Annotated[bool, typer.Option(help="Keep the completed parts of the same measurement.")] = True,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The directory.")] = Path("cluster"),
    force: Force = False,
    json: Json = False,
) -> None:
    """Measure the hosts of a cluster and the links between them."""
    from crosswind.measure.cluster import measure_cluster
    from crosswind.platform import Platform
    from crosswind.run.places import places

    there = cluster_on(on, per, token_file, allow_loose_token, "`crosswind measure` measures this host")
    if node and not platform:
        raise DescriptionError("--node belongs to --platform", "usage", "name a platform.toml")
    arguments = how.arguments()
    if how.max_seconds is not None:
        arguments["max_seconds"] = how.max_seconds
    writable_directory(out, "--out")
    if out.is_dir():
        writable(out / "platform.toml", "platform", "--out", inputs=[platform], force=True)
    tree = Platform.load(platform) if platform else None
    with there as hosts, progress_bar() as advance:
        host_of = None
        if tree:
            names = [one["name"] for one in tree.nodes]
            host_of = {
                name: host.name for name, host in places(names, hosts.places, hosts_of_nodes(node or [])).items()
            }
        found = measure_cluster(
            hosts,
            out,
            pairs=pairs,
            platform=tree,
            host_of=host_of,
            root=root,
            quick=quick,
            at_once=at_once,
            resume=resume,
            force=force,
            progress=advance,
            **arguments,
        )
    show(
        None if json else _answer(found),
        warnings=found.warnings,
        wrote=[f"{out} ({found.measured} of {found.asked} measurements)"],
        document=found.to_dict() if json else None,
    )
    if found.interrupted:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(0 if found.trustworthy else UNTRUSTED)


def _answer(found: MeasuredCluster) -> Answer:
    """Return how unequal hosts and links are, with the slowest of them."""
    if not found.links:
        return Answer([f"{found.measured} of {number_of(found.asked, 'measurement')}."])
    hosts, links = found.links.hosts, sorted(found.links.links, key=lambda one: one["receive_limit_mb_per_s"])
    rates = [f"{plain(one['compute_per_s'])} work units/s ({one['name']})" for one in _extremes(hosts, "compute_per_s")]
    lines = [f"{found.links.name}: {number_of(len(hosts), 'host')}, {' to '.join(rates)}."]
    if links:
        ends = [
            f"{plain(one['receive_limit_mb_per_s'])} MB/s ({one['from']} to {one['to']})"
            for one in _extremes(links, "receive_limit_mb_per_s")
        ]
        lines.append(f"{number_of(len(links), 'link')}: {' to '.join(ends)}.")
    columns = [("from", "left"), ("to", "left"), ("MB/s", "right"), ("receiving, s/GB", "right")]
    columns.append(("sending, s/GB", "right"))
    rows = [
        [
            one["from"],
            one["to"],
            plain(one["receive_limit_mb_per_s"]),
            plain(1e3 * one["ir_receive_s_per_mb"], 2),
            plain(1e3 * one["ir_send_s_per_mb"], 2),
        ]
        for one in links[:MOST_LINKS]
    ]
    notes = ["receiving, sending: share of the computation lost per GB/s"]
    if len(links) > MOST_LINKS:
        notes.insert(0, f"The {MOST_LINKS} slowest of {len(links)} links")
    tables = [Section(columns, rows, first=("MB/s", "from", "to"))] if rows else []
    return Answer(lines, tables, notes if rows else [], wide=_whole(found), rest="All hosts and links")


def _extremes(rows: Sequence[Mapping[str, Any]], field: str) -> list[Mapping[str, Any]]:
    """Return the rows with the least and the largest value of a field; one where both are the same."""
    ordered = sorted(rows, key=lambda one: one[field])
    return ordered[:1] if ordered[0][field] == ordered[-1][field] else [ordered[0], ordered[-1]]


def _whole(found: MeasuredCluster) -> list[Section]:
    assert found.links
    rows = [[h["name"], f"{h['compute_per_s']:.6g}", f"{h.get('send_limit_mb_per_s', '')}"] for h in found.links.hosts]
    hosts = Section([("host", "left"), ("work/s", "right"), ("sends MB/s", "right")], rows)
    columns = [("from", "left"), ("to", "left"), ("MB/s", "right"), ("latency ms", "right")]
    columns += [("IR receive s/GB", "right"), ("IR send s/GB", "right")]
    rows = [
        [
            link["from"],
            link["to"],
            f"{link['receive_limit_mb_per_s']:.6g}",
            f"{1e3 * link.get('latency_s', 0.0):.3g}",
            f"{1e3 * link['ir_receive_s_per_mb']:.4f}",
            f"{1e3 * link['ir_send_s_per_mb']:.4f}",
        ]
        for link in found.links.links
    ]
    return [hosts, Section(columns, rows)]


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("cluster", help=help_of("measure cluster", EXAMPLES))(cluster)
