"""`crosswind measure --on`: the hosts and links of a cluster -> Links, or a calibrated Platform."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosswind.cli.console import print_json, print_table, tell, tell_warnings
from crosswind.cli.outputs import writable
from crosswind.cli.settings import hosts_of_nodes
from crosswind.errors import DescriptionError
from crosswind.files.output import writable_directory
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.cluster.hosts import Per
    from crosswind.measure.cluster import MeasuredCluster, Pairs

UNTRUSTED = 3
INTERRUPTED = 130
DASK = "dask:"


def measure_on(
    on: str,
    arguments: dict[str, Any],
    *,
    platform: Path | None,
    pairs: Pairs | None,
    root: str | None,
    nodes: list[str],
    per: Per,
    quick: bool,
    at_once: int | None,
    resume: bool,
    out: Path,
    force: bool,
    json: bool,
) -> int:
    """Measure a cluster, print what was found, and return the exit code.

    Raises
    ------
    DescriptionError
        When the place is none, or an argument is wrong.
    """
    from crosswind.cluster.client import connected
    from crosswind.measure.cluster import measure_cluster
    from crosswind.measure.cluster.on_dask import DaskCluster
    from crosswind.platform import Platform
    from crosswind.run.places import places

    if not on.startswith(DASK):
        raise DescriptionError(
            f"--on is {on!r}; it must be dask:tcp://SCHEDULER:PORT", "on", "leave it out to measure here"
        )
    if nodes and not platform:
        raise DescriptionError("--node belongs to --platform", "usage", "name a platform.toml")
    writable_directory(out, "--out")
    if out.is_dir():
        writable(out / "platform.toml", "platform", "--out", inputs=[platform], force=True)
    tree = Platform.load(platform) if platform else None
    with connected(on.removeprefix(DASK)) as client, progress_bar() as advance:
        cluster = DaskCluster(client, per)
        host_of = None
        if tree:
            names = [node["name"] for node in tree.nodes]
            host_of = {node: host.name for node, host in places(names, cluster.places, hosts_of_nodes(nodes)).items()}
        found = measure_cluster(
            cluster,
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
        return INTERRUPTED
    return 0 if found.trustworthy else UNTRUSTED


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
