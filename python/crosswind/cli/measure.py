"""`crosswind measure`: Platform -> Measurement."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from crosswind import _core
from crosswind.cli.access import AllowLooseToken, TlsDirectory, TokenFile, token_in
from crosswind.cli.console import print_json, print_table, tell, tell_warnings
from crosswind.cli.fit import print_fit
from crosswind.cli.measured_runtime import as_dict, print_runtime
from crosswind.cli.outputs import Force, writable
from crosswind.cli.verbs import help_of
from crosswind.errors import DescriptionError
from crosswind.files.output import writable_directory
from crosswind.terminal.progress import progress_bar
from crosswind.terminal.sizes import parse_bytes

if TYPE_CHECKING:
    from crosswind.sweep import Sweep

UNTRUSTED = 3
USUAL_S = 60.0
INTERRUPTED = 130
KERNELS = tuple(name for name, _ in _core.KINDS["kernel"])
if TYPE_CHECKING:
    Kernel = str
else:
    Kernel = Literal[KERNELS]


Direction = Literal["each", "receive", "send", "both"]
Wait = Literal["event", "poll"]
PacedBy = Literal["peer", "sender", "receiver"]
Variation = Literal["paced", "contention"]
Pin = Literal["process", "threads"]
Beside = Literal["native"]
Placement = Literal["same-core", "other-core", "free", "explicit"]
SweepKind = Literal["footprint", "message-size", "streams", "wait", "placement", "runtime"]
Pairs = Literal["all", "star", "tree"]
Per = Literal["host", "worker"]


def parse_cpus(text: str | None, option: str) -> list[int] | None:
    """Read a CPU list such as 0,2-5, as the kernel writes them.

    Raises
    ------
    DescriptionError
        When it is no CPU list.

    Examples
    --------
    >>> parse_cpus("0,2-4", "--compute-cpus")
    [0, 2, 3, 4]
    """
    if text is None:
        return None
    cpus: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*", part)
        if not match:
            raise DescriptionError(f"{option} is {text!r}; it must be a list of CPUs", "cpus", "such as 0 or 0,2-5")
        cpus.extend(range(int(match[1]), int(match[2] or match[1]) + 1))
    return cpus


EXAMPLES = """
Without `--peer` a peer process is started on this machine: good for a first look, but its traffic
never meets a network card.

Examples:

    crosswind measure

    crosswind measure --peer host:7117 --token-file token --max-seconds 120 -o here.parquet

    crosswind measure --task 'gzip -c data.bin > /dev/null' --direction receive

    crosswind measure --runtime 'java io=direct' --beside native --max-seconds 180

    crosswind measure --runtime ./my-probe

    crosswind measure --sweep runtime --values 'java,java io=direct,go,node' -o sweep-runtime/

    crosswind measure --sweep message-size --values 64KB,1MB,8MB -o sweep-message-size/

With `--on` the hosts of a Dask cluster and the links between them, a directory with links.toml out, or, for the edges
of a tree, platform.toml:

    crosswind measure --on dask:tcp://scheduler:8786 --quick -o cluster/

    crosswind measure --on dask:tcp://scheduler:8786 --platform tree.toml -o cluster/

Exit codes: 0 settled, 2 bad input, 3 done but not trustworthy (did not settle, host not quiet, a host went away),
130 interrupted.
"""


def measure(
    peer: Annotated[list[str] | None, typer.Option(help="HOST:PORT of a `crosswind serve`; again for more.")] = None,
    token_file: TokenFile = None,
    allow_loose_token: AllowLooseToken = False,
    tls: TlsDirectory = None,
    direction: Annotated[
        Direction, typer.Option(help="Seen from here. each: both alone, then some of both at once.")
    ] = "each",
    kernel: Annotated[Kernel, typer.Option(help="What computes.")] = KERNELS[0],
    matrix: Annotated[int, typer.Option(help="Side of the matrix of `diagonals`, 8..4096.")] = 1024,
    diagonals: Annotated[int, typer.Option(help="Diagonals per unit of work.")] = 1,
    task: Annotated[str | None, typer.Option(help="Your own work: a command, run again and again.")] = None,
    runtime: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|COMMAND",
            help="What computes and moves bytes: java, python, go or node with options ('java io=direct'), or a probe.",
        ),
    ] = None,
    carriers: Annotated[int | None, typer.Option(help="--runtime 'java threads=virtual': carrier threads.")] = None,
    python: Annotated[str | None, typer.Option(help="--runtime python: the interpreter.")] = None,
    pin: Annotated[Pin, typer.Option(help="--runtime: put on its CPUs before its start, or after.")] = "process",
    forks: Annotated[int | None, typer.Option(help="--runtime: starts of it. [default: 5]")] = None,
    own_work: Annotated[bool, typer.Option("--own-work", help="--runtime: a probe's own work, no kernel.")] = False,
    beside: Annotated[Beside | None, typer.Option(help="--runtime: take turns with our own threads.")] = None,
    message_size: Annotated[str, typer.Option(help="Bytes per message, 1KB..64MB.")] = "1MB",
    streams: Annotated[int, typer.Option(help="Connections per direction and peer.")] = 1,
    wait: Annotated[Wait, typer.Option(help="How this host waits for bytes.")] = "event",
    paced_by: Annotated[
        PacedBy | None, typer.Option(help="Which end keeps the rate. [default: sender; with --runtime peer]")
    ] = None,
    pacing_chunk: Annotated[str, typer.Option(help="Granularity of the pacing, bytes.")] = "64KiB",
    variation: Annotated[Variation, typer.Option(help="How the rate is varied.")] = "paced",
    loader: Annotated[
        list[str] | None, typer.Option(help="contention: a `crosswind serve` that loads the peer; again for more.")
    ] = None,
    placement: Annotated[Placement, typer.Option(help="Where the threads go: it decides the answer.")] = "same-core",
    compute_cpus: Annotated[str | None, typer.Option(help="explicit: CPUs of the computation, such as 0,2-5.")] = None,
    traffic_cpus: Annotated[str | None, typer.Option(help="explicit: CPUs of the traffic.")] = None,
    nice: Annotated[int, typer.Option(help="Nice level of the computation.", min=-20, max=19)] = 0,
    traffic_nice: Annotated[int, typer.Option(help="Nice level of the traffic.", min=-20, max=19)] = 0,
    socket_buffer: Annotated[str | None, typer.Option(help="Socket buffers, bytes; else the probe's default.")] = None,
    congestion_control: Annotated[str | None, typer.Option(help="Such as cubic, bbr.")] = None,
    top: Annotated[
        float | None,
        typer.Option(help="Top of the ladder, MB/s; give it to compare settings. Else found by calibration."),
    ] = None,
    target: Annotated[float, typer.Option(help="Stop when the 95 % interval is within this part of IR.")] = 0.05,
    loss_target: Annotated[float, typer.Option(help="... or the loss at full rate is known to this part.")] = 0.01,
    max_seconds: Annotated[
        float | None, typer.Option(help="Stop at the latest then. [default: 60, --quick: 4]", min=1, max=86400)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the shuffled levels.")] = 1,
    name: Annotated[str | None, typer.Option(help="What to call the measurement.")] = None,
    sweep: Annotated[SweepKind | None, typer.Option(help="Measure again for each of several values.")] = None,
    values: Annotated[str | None, typer.Option(help="The sweep's values, separated by commas.")] = None,
    on: Annotated[
        str | None, typer.Option(metavar="PLACE", help="dask:tcp://SCHEDULER:PORT: the hosts of a cluster.")
    ] = None,
    pairs: Annotated[
        Pairs | None, typer.Option(help="--on: every pair, from the root to all, or --platform's. [default: all]")
    ] = None,
    platform: Annotated[Path | None, typer.Option(help="--on: the tree whose edges are measured.")] = None,
    node: Annotated[
        list[str] | None, typer.Option(metavar="NODE=HOST", help="--on: where a node of --platform is; again for more.")
    ] = None,
    root: Annotated[str | None, typer.Option(help="--pairs star: the host in the middle; else the first.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="--on: 4 s for each measurement, the loss to 5 % of the compute rate.")
    ] = False,
    at_once: Annotated[
        int | None, typer.Option(help="--on: most pairs at a time; else all without a common host.", min=1)
    ] = None,
    per: Annotated[Per | None, typer.Option(help="--on: what counts as a host. [default: host]")] = None,
    resume: Annotated[bool, typer.Option(help="Keep what is complete of a sweep, or of a cluster.")] = True,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The file (measurement.parquet), or the directory of a sweep or a cluster."),
    ] = None,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure interference."""
    arguments: dict[str, Any] = {
        "peer": peer or None,
        "kernel": kernel,
        "matrix": matrix,
        "diagonals": diagonals,
        "task": task,
        "direction": direction,
        "message_bytes": parse_bytes(message_size, "--message-size"),
        "streams": streams,
        "wait": wait,
        "paced_by": paced_by or (None if runtime or sweep == "runtime" else "sender"),
        "pacing_chunk_bytes": parse_bytes(pacing_chunk, "--pacing-chunk"),
        "variation": variation,
        "runtime": _runtime(runtime, {"carriers": carriers, "python": python}),
        "pin": pin,
        "forks": forks,
        "own_work": own_work,
        "beside": beside,
        "loaders": tuple(loader or ()),
        "placement": placement,
        "compute_cpus": parse_cpus(compute_cpus, "--compute-cpus"),
        "traffic_cpus": parse_cpus(traffic_cpus, "--traffic-cpus"),
        "nice": nice,
        "traffic_nice": traffic_nice,
        "socket_buffer_bytes": parse_bytes(socket_buffer, "--socket-buffer") if socket_buffer else None,
        "congestion_control": congestion_control,
        "top_mb_per_s": top,
        "target": target,
        "loss_target": loss_target,
        "seed": seed,
        "token": token_in(token_file, allow_loose_token),
        "tls": tls,
    }
    if max_seconds is not None or on is None:
        arguments["max_seconds"] = USUAL_S if max_seconds is None else max_seconds
    if on is not None:
        how: dict[str, Any] = {
            "platform": platform,
            "pairs": pairs,
            "root": root,
            "nodes": node or [],
            "per": per or "host",
        }
        how |= {
            "quick": quick,
            "at_once": at_once,
            "resume": resume,
            "out": out or Path("cluster"),
            "force": force,
            "json": json,
        }
        raise typer.Exit(_cluster(on, arguments, {"--sweep": sweep, "--values": values, "--name": name}, how))
    given = {"--pairs": pairs, "--platform": platform, "--node": node, "--root": root, "--quick": quick, "--per": per}
    for option, value in {**given, "--at-once": at_once}.items():
        if value:
            raise DescriptionError(
                f"{option} belongs to --on", "usage", "name a cluster: --on dask:tcp://SCHEDULER:PORT"
            )
    if name:
        arguments["name"] = name
    if sweep:
        raise typer.Exit(_sweep(sweep, values, resume, out, force, arguments, json))
    if values:
        raise DescriptionError("--values is given without --sweep", "values", "say which sweep: --sweep message-size")
    raise typer.Exit(_once(out or Path("measurement.parquet"), force, arguments, json))


def _runtime(text: str | None, options: dict[str, Any]) -> str | None:
    """Return a runtime with the options that have a switch of their own."""
    given = {name: value for name, value in options.items() if value is not None}
    if text is None and given:
        option = f"--{next(iter(given))}"
        raise DescriptionError(f"{option} is given without --runtime", "usage", "add --runtime, such as --runtime java")
    return text and shlex.join([*shlex.split(text), *(f"{name}={value}" for name, value in given.items())])


def _once(out: Path, force: bool, arguments: dict[str, Any], json: bool) -> int:
    from crosswind.measure import measure as probe
    from crosswind.model.fit import fit

    writable(out, "measurement", force=force)
    if arguments["beside"]:
        writable(beside_file(out), "measurement", force=force)
    try:
        with progress_bar() as advance:
            measurement = probe(**arguments, progress=advance)
    except KeyboardInterrupt:
        tell(f"interrupted before anything was sampled; {out} was not written")
        return INTERRUPTED
    measurement.save(out)
    tell(f"wrote {out} ({measurement.header['ended']}, {measurement.header['elapsed_s']:.1f} s)")
    if measurement.beside:
        there = beside_file(out)
        measurement.beside.save(there)
        tell(f"wrote {there}")
    try:
        result = fit(measurement)
    except DescriptionError as error:
        tell_warnings([*measurement.warnings, {"message": str(error), "hint": error.hint or ""}])
        if "runtime" in measurement.header and not json:
            print_runtime(measurement, None)
        return INTERRUPTED if measurement.header["ended"] == "interrupted" else UNTRUSTED
    tell_warnings(result.warnings)
    by_runtime = "runtime" in measurement.header
    if json:
        document = result.to_dict()
        print_json(document | {"runtime": as_dict(measurement, result)} if by_runtime else document)
    else:
        print_fit(result)
        if by_runtime:
            print_runtime(measurement, result)
    if measurement.header["ended"] == "interrupted":
        return INTERRUPTED
    return 0 if result.trustworthy else UNTRUSTED


def beside_file(out: Path) -> Path:
    """Return where the measurement of our own threads goes, beside that of a runtime.

    Examples
    --------
    >>> str(beside_file(Path("here/java.parquet")))
    'here/java.native.parquet'
    """
    return out.with_suffix(f".native{out.suffix}")


def _cluster(on: str, arguments: dict[str, Any], beside: dict[str, Any], how: dict[str, Any]) -> int:
    from crosswind.cli.measured_cluster import measure_on

    if arguments.pop("token") is not None or arguments.pop("tls") is not None:
        hint = "each pair of hosts gets a token of its own, which travels as Dask's messages do"
        raise DescriptionError("--token-file and --tls do not go with --on", "usage", hint)
    usual = {"peer": None, "direction": "each", "loaders": (), "variation": "paced"}
    beside = beside | {f"--{name.rstrip('s')}": arguments[name] != value for name, value in usual.items()}
    for option, value in beside.items():
        if value:
            raise DescriptionError(f"{option} does not go with --on", "usage", "choose the pairs of hosts with --pairs")
    return measure_on(on, {name: value for name, value in arguments.items() if name not in usual}, **how)


def _sweep(
    kind: str, values: str | None, resume: bool, out: Path | None, force: bool, arguments: dict[str, Any], json: bool
) -> int:
    from crosswind.sweep import parse_values, run_sweep

    directory = out or Path(f"sweep-{kind}")
    writable_directory(directory, "--out")
    with progress_bar() as advance:
        result = run_sweep(
            kind,
            directory,
            parse_values(kind, values) if values else None,
            resume=resume,
            force=force,
            progress=advance,
            **arguments,
        )
    tell(f"wrote {directory} ({len(result.points)} points)")
    tell_warnings(result.warnings)
    if json:
        rows = result.to_arrow().to_pylist()
        print_json({"kind": kind, "directory": str(directory), "points": rows, "warnings": result.warnings})
    else:
        _print_sweep(result)
    if not result.complete:
        return INTERRUPTED
    return 0 if result.trustworthy else UNTRUSTED


def _print_sweep(result: Sweep) -> None:
    """Print a line per value, peer and direction: what is not known is a hyphen."""
    columns = [(result.kind, "right"), ("peer", "left"), ("direction", "left"), ("IR s/GB", "right"), ("95 %", "right")]
    columns += [("up to MB/s", "right"), ("loss there", "right"), ("all reach MB/s", "right"), ("loss there", "right")]
    columns += [("settled", "left")]
    rows = []
    for row in result.to_arrow().to_pylist():
        low, high, bound = 1000 * row["ir_low"], 1000 * row["ir_high"], row["upper_bound_s_per_mb"]
        ir = f"< {1000 * bound:.4f}" if bound is not None else _known(1000 * row["ir_s_per_mb"], ".4f")
        interval = f"{low:.4f} .. {high:.4f}" if math.isfinite(low + high) else "-"
        reached, matched = (_known(row[name], ".0f") for name in ("transfer_max_mb_per_s", "matched_mb_per_s"))
        at_top, at_matched = (_known(row[name], ".1%") for name in ("loss_at_top", "loss_at_matched"))
        where = [str(row["value"]), row["peer"], row["direction"]]
        rows.append([*where, ir, interval, reached, at_top, matched, at_matched, "yes" if row["settled"] else "no"])
    print_table(columns, rows)


def _known(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else "-"


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("measure", help=help_of("measure", EXAMPLES))(measure)
