"""`crosswind measure cluster`: the hosts and links of a cluster -> Links, or a calibrated Platform."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crosswind.cli.access import AllowLooseToken, TokenFile
from crosswind.cli.clusters import cluster_on
from crosswind.cli.console import print_json, print_table, tell, tell_warnings
from crosswind.cli.measure_options import INTERRUPTED, UNTRUSTED, Measuring
from crosswind.cli.options import spread
from crosswind.cli.outputs import Force, Json, writable
from crosswind.cli.settings import hosts_of_nodes
from crosswind.cli.verbs import help_of
from crosswind.errors import DescriptionError
from crosswind.files.output import writable_directory
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.measure.cluster import MeasuredCluster

Pairs = Literal["all", "star", "tree"]
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
        bool, typer.Option("--quick", help="4 s for each measurement, the loss to 5 % of the compute rate.")
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
            metavar="NODE=HOST", help="Where a node of --platform is; again for more.", rich_help_panel=_HOSTS
        ),
    ] = None,
    per: Annotated[Per, typer.Option(help="What counts as a host.", rich_help_panel=_HOSTS)] = "host",
    at_once: Annotated[
        int | None,
        typer.Option(help="Most pairs at a time. [default: all without a common host]", min=1, rich_help_panel=_HOSTS),
    ] = None,
    token_file: TokenFile = None,
    allow_loose_token: AllowLooseToken = False,
    resume: Annotated[bool, typer.Option(help="Keep what is complete of the same measurement.")] = True,
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
    tell_warnings(found.warnings)
    tell(f"wrote {out} ({found.measured} of {found.asked} measurements)")
    if json:
        print_json(found.to_dict())
    else:
        _print(found)
    if found.interrupted:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(0 if found.trustworthy else UNTRUSTED)


def _print(found: MeasuredCluster) -> None:
    if not found.links:
        return
    rows = [[h["name"], f"{h['compute_per_s']:.6g}", f"{h.get('send_limit_mb_per_s', '')}"] for h in found.links.hosts]
    print_table([("host", "left"), ("work/s", "right"), ("sends MB/s", "right")], rows, title=found.links.name)
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
    print_table(columns, rows)


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("cluster", help=help_of("measure cluster", EXAMPLES))(cluster)
