"""`crosswind fit`: Measurement, or a trace -> Platform (calibrated)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from crosswind.cli.console import narrow_width, print_json, print_table, print_text, tell, tell_warnings
from crosswind.cli.measure_gpu import print_gpu
from crosswind.cli.measure_runtime import as_dict, print_runtime
from crosswind.cli.outputs import Force, Json, writable
from crosswind.cli.verbs import help_of
from crosswind.errors import DescriptionError

Normalise = Literal["idle", "max"]
WIDE = 140
"""Columns of a terminal from which on findings are printed with all that they depend on."""


EXAMPLES = """
Examples:

    crosswind fit measurement.parquet

    crosswind fit measurement.parquet -o platform.toml

    crosswind fit today.parquet --earlier monday.parquet --earlier tuesday.parquet

    crosswind fit trace.parquet -o platform.toml

    crosswind fit here.parquet there.parquet --platform cluster.toml -o calibrated.toml
"""


def fit(
    measurements: Annotated[
        list[Path], typer.Argument(help="Files of `measure`, or one trace of `run`.", metavar="FILE...")
    ],
    platform: Annotated[
        Path | None, typer.Option(help="Calibrate this platform: its nodes named like the measured hosts.")
    ] = None,
    normalise: Annotated[
        Normalise, typer.Option(help="By the idle mean, or by the maximum as the papers do.")
    ] = "idle",
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    earlier: Annotated[
        list[Path] | None,
        typer.Option(help="An earlier measurement of the same host: how far the next may lie. Again for more."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the calibrated platform there.")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Fit interference rates and calibrate a platform."""
    from crosswind.gpu.fit import fit_gpu
    from crosswind.gpu.measurement import is_gpu
    from crosswind.measurement import Measurement
    from crosswind.model.calibrate import calibrate
    from crosswind.model.fit import fit as fit_one
    from crosswind.run.trace import Trace

    writable(out, "platform", inputs=[*measurements, platform], force=force)
    traces = [path for path in measurements if Trace.is_one(path)]
    if traces:
        if len(measurements) > 1 or platform:
            message = f"{traces[0]} is a trace; it is fitted alone, and calibrates the platform of its own run"
            raise DescriptionError(message, "argument", "one trace, or measurements")
        _fit_trace(Trace.load(traces[0]), out, force, json)
        return
    if earlier and len(measurements) > 1:
        message = f"--earlier belongs to one measurement; there are {len(measurements)}"
        raise DescriptionError(message, "usage", "fit them one by one")
    gpus = [path for path in measurements if is_gpu(path)]
    if gpus:
        if len(measurements) > 1 or platform or earlier or out:
            message = f"{gpus[0]} is a measurement of a GPU; it is fitted alone, and calibrates no platform"
            raise DescriptionError(message, "argument", f"crosswind fit {gpus[0]}")
        print_gpu(fit_gpu(gpus[0], seed=seed), json=json)
        return
    known = [Measurement.load(path) for path in earlier or ()]
    fits = [fit_one(Measurement.load(path), normalise=normalise, seed=seed, earlier=known) for path in measurements]
    for one in fits:
        tell_warnings(one.warnings)
    if out or platform:
        calibrated = calibrate(fits, platform)
        tell_warnings(calibrated.warnings)
        if out:
            writable(out, "platform", force=force, of={"name": calibrated.platform.name})
            names = ", ".join(str(p) for p in measurements)
            calibrated.platform.save(out, f"calibrated by `crosswind fit` from {names}")
            tell(f"wrote {out}")
    if json:
        documents = [one.to_dict() | _by_runtime(one) for one in fits]
        print_json(documents[0] if len(documents) == 1 else {"fits": documents})
    else:
        for one in fits:
            print_fit(one)
            if "runtime" in one.measurement.header:
                print_runtime(one.measurement, one)


def _by_runtime(fit: Any) -> dict[str, Any]:
    return {"runtime": as_dict(fit.measurement, fit)} if "runtime" in fit.measurement.header else {}


def _fit_trace(trace: Any, out: Path | None, force: bool, json: bool) -> None:
    from crosswind.model.trace import fit_trace

    found = fit_trace(trace)
    tell_warnings(found.warnings)
    if out:
        writable(out, "platform", force=force, of={"name": found.platform().name})
        found.platform().save(out, f"calibrated by `crosswind fit` from a trace of {trace.header['experiment']}")
        tell(f"wrote {out}")
    if json:
        print_json(found.to_dict())
        return
    columns = [("node", "left"), ("tasks", "right"), ("work/s", "right"), ("MB/s", "right")]
    columns += [("direction", "left"), ("peer", "left"), ("IR s/MB", "right"), ("95 %", "right")]
    rows = []
    for node in found.nodes:
        rates = (node.compute_per_s, node.receive_mb_per_s)
        head = [node.name, str(node.tasks), *(f"{one:.6g}" if math.isfinite(one) else "-" for one in rates)]
        for rate in node.rates or (None,):
            cells = ["", "", "", ""]
            if rate is not None:
                low, high = rate.ir_ci95
                ir = [f"{rate.ir_s_per_mb:.6f}", f"{low:.6f} .. {high:.6f}"] if rate.known else ["cannot be told", ""]
                cells = [rate.direction, rate.peer, *ir]
            rows.append([*head, *cells])
            head = ["", "", "", ""]
    print_table(columns, rows, title=f"{trace.header['experiment']}, on {trace.header['on']}: what its trace tells")


def print_fit(fit: Any) -> None:
    """Print what a rate costs that other measurements have too, then the interference rates as the papers' table 2."""
    compiles = any(one["code"] == "jit-compiles" for one in fit.warnings)
    several = len({channel.peer for channel in fit.channels}) > 1
    short = (narrow_width() or WIDE) < WIDE
    for channel in fit.channels:
        if channel.headline and not compiles:  # while a runtime compiles there is no headline
            print_text(_short_sentence(channel, several) if short else _sentence(channel))
    columns = [("peer", "left"), ("direction", "left"), ("IR s/GB", "right"), ("95 %", "right"), ("const", "right")]
    columns += [("StDev", "right"), ("MaxErr", "right"), ("at MB/s", "right"), ("loss there", "right")]
    columns += [("CPU s/GB", "right"), ("us/call", "right"), ("us/wake-up", "right"), ("time base", "left")]
    rows = []
    for channel in fit.channels:
        low, high = channel.ir_ci95
        bound = channel.upper_bound
        cost = channel.cost
        apart = cost is not None and cost.separable  # else the parts are a guess, and only the whole is known
        rows.append(
            [
                channel.peer,
                channel.direction,
                f"< {1000 * bound:.4f}" if bound is not None else f"{1000 * channel.ir_s_per_mb:.4f}",
                f"{1000 * low:.4f} .. {1000 * high:.4f}" if math.isfinite(low + high) else "unknown",
                f"{channel.intercept:.4f}",
                f"{channel.std_dev:.4f}",
                f"{channel.max_error:.4f}",
                f"{channel.top_mb_per_s:.0f}",
                f"{100 * channel.loss_at_top:.1f} %",
                f"{cost.all_in_per_gb_s:.3f}" if cost else "",
                f"{channel.cost_per_call_us:.2f}" if apart else "-",
                f"{channel.cost_per_wakeup_us:.2f}" if apart else "-",
                channel.estimator,
            ]
        )
    header = fit.measurement.header
    by = f"{header['runtime']['name']} {header['runtime']['version']}, " if "runtime" in header else ""
    what = f"{by}{header['kernel']['name']}"
    first = [*(["peer"] if several else []), "direction", "IR s/GB", "95 %", "loss there"]
    print_table(columns, rows, title=f"{header['host']['name']}, {what}, {header['placement']['mode']}", first=first)


def _sentence(channel: Any) -> str:
    """Return what moving bytes at the headline's rate costs, and where the next measurement will find it.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> found = SimpleNamespace(mb_per_s=1000.0, loss=0.361, ci95=(0.339, 0.393), next95=(0.31, 0.42), earlier=4)
    >>> print(_sentence(SimpleNamespace(direction="send", peer="b:7117", headline=found)))
    Sending 1 GB/s to b:7117 takes 36.1 % of the computation (33.9 to 39.3 %; the next, by 4 earlier: 31.0 to 42.0 %)
    """
    found = channel.headline
    moves, word = _moves(channel)
    low, high, next_low, next_high = (100 * part for part in (*found.ci95, *found.next95))
    known = "how well is unknown: too few cycles"
    if math.isfinite(low + high):
        by = f"by {found.earlier} earlier" if found.earlier else "if the host stays as it is"
        known = f"{low:.1f} to {high:.1f} %; the next, {by}: {next_low:.1f} to {next_high:.1f} %"
    return f"{moves} {word} {channel.peer} takes {100 * found.loss:.1f} % of the computation ({known})"


def _short_sentence(channel: Any, several: bool) -> str:
    """Return the same in one line of a terminal.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> found = SimpleNamespace(mb_per_s=1000.0, loss=0.521, ci95=(0.499, 0.553))
    >>> print(_short_sentence(SimpleNamespace(direction="send", peer="b:7117", headline=found), several=False))
    Sending 1 GB/s takes 52 % of the computation (50 to 55 %)
    """
    found = channel.headline
    moves, word = _moves(channel)
    where = f" {word} {channel.peer}" if several else ""
    low, high = (100 * part for part in found.ci95)
    known = f"{low:.0f} to {high:.0f} %" if math.isfinite(low + high) else "interval unknown: too few cycles"
    return f"{moves}{where} takes {100 * found.loss:.0f} % of the computation ({known})"


def _moves(channel: Any) -> tuple[str, str]:
    rate = channel.headline.mb_per_s
    size = f"{rate / 1000:g} GB/s" if rate >= 1000 else f"{rate:g} MB/s"
    return (f"Sending {size}", "to") if channel.direction == "send" else (f"Receiving {size}", "from")


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("fit", help=help_of("fit", EXAMPLES))(fit)
