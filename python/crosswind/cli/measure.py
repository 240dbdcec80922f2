"""`crosswind measure`: this host, or one of its peers -> Measurement."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

import typer

from crosswind.cli.answer import Answer, show
from crosswind.cli.console import tell
from crosswind.cli.fit import answer_of
from crosswind.cli.measure_gpu import USUAL_FILE, GpuOptions, measure_on_gpu
from crosswind.cli.measure_options import INTERRUPTED, UNTRUSTED, Measuring, Peers
from crosswind.cli.measure_runtime import as_dict, with_runtime
from crosswind.cli.options import spread
from crosswind.cli.outputs import OUTPUT, Force, Json, writable, written
from crosswind.cli.verbs import help_of
from crosswind.documents import Arguments
from crosswind.errors import DescriptionError, warning
from crosswind.terminal.progress import progress_bar

USUAL_S = 60.0
NAMED_RUNTIMES = ("java", "go", "node")

EXAMPLES = """
Examples:

    crosswind measure

    crosswind measure --peer host:7117 --token-file token --max-seconds 120 -o here.parquet

    crosswind measure --task 'gzip -c data.bin' --direction receive

    crosswind measure --task 'zcat data.gz | wc -l' --shell

    crosswind measure --runtime 'java io=direct' --beside native --max-seconds 180

    crosswind measure --runtime ./my-probe

    crosswind measure --gpu -o gpu.parquet

    crosswind measure --gpu --task train:step --gpu-traffic h2d --gpu-traffic loader:4

Without --peer a peer process is started on this machine: good for a first look, but its traffic never meets a network
card. Start `crosswind serve` on another host for --peer.

Exit codes: 0 settled, 2 bad input, 3 done but not trustworthy (did not settle, host not quiet), 130 interrupted.
"""


@spread
def measure(
    *,
    peers: Peers,
    how: Measuring,
    on: GpuOptions,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file. [default: measurement.parquet; of a GPU gpu.parquet]")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the measurement.", rich_help_panel=OUTPUT)] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Measure interference."""
    if on.gpu is not None:
        if peers.peer or how.runtime or how.shell:
            message = "--gpu measures a device of this machine: it takes no --peer, --runtime or --shell"
            raise DescriptionError(message, "usage", "leave them out, or leave out --gpu")
        to, limit = out or USUAL_FILE, how.max_seconds
        raise typer.Exit(measure_on_gpu(on, limit, how.seed, to, task=how.task, force=force, json=json))
    if on.gpu_kernel or on.gpu_traffic:
        raise DescriptionError("--gpu-kernel and --gpu-traffic belong to --gpu", "usage", "add --gpu")
    arguments = how.arguments() | peers.arguments() | {"max_seconds": how.max_seconds or USUAL_S}
    if name:
        arguments["name"] = name
    raise typer.Exit(_once(out or Path("measurement.parquet"), force, arguments, json))


def _of(arguments: Arguments) -> Arguments:
    """Return the fields of a measurement's header that say of what it is, with their values for these arguments."""
    task, peers, runtime = (arguments[name] for name in ("task", "peer", "runtime"))
    named = runtime.split()[0] if runtime else None
    return {
        "host.name": socket.gethostname(),
        "kernel.name": arguments["kernel"] if task is None else "command",
        "kernel.task": task,
        **({"peers.address": list(peers)} if peers else {"peers.loopback": [True]}),
        # Interpreters of Python and the user's own probes say later what they are called.
        **({"runtime.name": named} if named in (None, *NAMED_RUNTIMES) else {}),
        "placement.mode": arguments["placement"],
        "variation": arguments["variation"],
        "traffic.message_bytes": arguments["message_bytes"],
        "traffic.streams": arguments["streams"],
        "traffic.wait": arguments["wait"],
        "traffic.paced_by": arguments["paced_by"] or "peer",
    }


def _once(out: Path, force: bool, arguments: Arguments, json: bool) -> int:
    from crosswind.measure import measure as probe
    from crosswind.measurement import beside_file
    from crosswind.model.fit import fit

    writable(out, "measurement", force=force, of=_of(arguments))
    if arguments["beside"]:
        writable(beside_file(out), "measurement", force=force)
    try:
        with progress_bar() as advance:
            measurement = probe(**arguments, progress=advance)
    except KeyboardInterrupt:
        tell(f"interrupted before anything was sampled; {out} was not written")
        return INTERRUPTED
    measurement.save(out)
    wrote = written(out)
    if measurement.beside:
        there = beside_file(out)
        measurement.beside.save(there)
        wrote += written(there)
    by_runtime = "runtime" in measurement.header
    try:
        result = fit(measurement)
    except DescriptionError as error:
        nothing = Answer(["Too little was sampled for an interference rate."])
        show(
            None if json else with_runtime(nothing, measurement, None) if by_runtime else nothing,
            warnings=[warning(error.code, str(error), error.hint or ""), *measurement.warnings],
            wrote=wrote,
        )
        return INTERRUPTED if measurement.header["ended"] == "interrupted" else UNTRUSTED
    document = result.to_dict() | ({"runtime": as_dict(measurement, result)} if by_runtime else {})
    answer = answer_of([result])
    if by_runtime:
        answer = with_runtime(answer, measurement, result)
    show(None if json else answer, warnings=result.warnings, wrote=wrote, document=document if json else None)
    if measurement.header["ended"] == "interrupted":
        return INTERRUPTED
    return 0 if result.trustworthy else UNTRUSTED


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("measure", help=help_of("measure", EXAMPLES))(measure)
