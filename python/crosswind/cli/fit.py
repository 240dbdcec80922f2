"""`crosswind fit`: Measurement, or a trace -> Platform (calibrated)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.inputs import refuse_missing
from crosswind.cli.measure_gpu import show_gpu
from crosswind.cli.measure_runtime import as_dict, with_runtime
from crosswind.cli.outputs import Force, Json, writable, written
from crosswind.cli.verbs import help_of
from crosswind.errors import DescriptionError
from crosswind.statistics.digits import half_of, percent, plain, with_half

Normalise = Literal["idle", "max"]
MOST_RATES = 3
"""Rates of which the table has losses: with their names and the interference rate they fill a terminal."""
MOST_SENTENCES = 4
NAMED_NODES = 4
"""Nodes of a platform up to which all are named."""


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
        Normalise, typer.Option(help="Normalise rates by the idle mean, or by the maximum as the papers do.")
    ] = "idle",
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    earlier: Annotated[
        list[Path] | None,
        typer.Option(help="An earlier measurement of this host, to say how far off the next may be. Repeat for more."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the calibrated platform.")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Fit interference rates and calibrate a platform."""
    refuse_missing(*measurements, *(earlier or []), hint="`crosswind measure -o FILE` makes one")
    refuse_missing(platform)
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
        show_gpu(fit_gpu(gpus[0], seed=seed), json=json)
        return
    known = [Measurement.load(path) for path in earlier or ()]
    fits = [fit_one(Measurement.load(path), normalise=normalise, seed=seed, earlier=known) for path in measurements]
    calibrated = calibrate(fits, platform) if out or platform else None
    if calibrated and out:
        writable(out, "platform", force=force, of={"name": calibrated.platform.name})
        names = ", ".join(str(p) for p in measurements)
        calibrated.platform.save(out, f"calibrated by `crosswind fit` from {names}")
    documents = [one.to_dict() | _by_runtime(one) for one in fits] if json else []
    answer = _of_platform(calibrated.platform, fits) if calibrated else answer_of(fits)
    for one in fits:
        if "runtime" in one.measurement.header:
            answer = with_runtime(answer, one.measurement, one)
    show(
        None if json else answer,
        warnings=calibrated.warnings if calibrated else [],
        earlier=[told for one in fits for told in one.warnings],
        source="the measurement" if len(fits) == 1 else "the measurements",
        wrote=written(out),
        document=(documents[0] if len(documents) == 1 else {"fits": documents}) if json else None,
    )


def _of_platform(platform: Any, fits: list[Any]) -> Answer:
    """Return the answer of a calibration: the platform, and the rates that were put into it."""
    measured = answer_of(fits)
    nodes = platform.to_dict()["node"]
    names = " and ".join(node["name"] for node in nodes) if len(nodes) <= NAMED_NODES else f"{len(nodes)} nodes"
    rates, links = (
        _range([node[field] for node in nodes if field in node])
        for field in ("compute_per_s", "receive_limit_mb_per_s")
    )
    line = f"{names}: {rates} work units/s{' each' if len(nodes) > 1 and 'to' not in rates else ''}"
    line += f", {'link' if len(nodes) == 2 else 'links'} {links} MB/s" if links else ""
    return Answer(
        lines=[line],
        tables=[_rates_table(fits)],
        notes=["IR: share of the computation lost per GB/s. ±: 95 % confidence interval"],
        wide=measured.wide,
        rest="Losses at each rate: `crosswind fit` without --out. All figures",
    )


def _range(values: list[float]) -> str:
    """Return one number, or the lowest and the highest.

    Examples
    --------
    >>> _range([221.3, 221.3]), _range([1500.0, 90.5]), _range([])
    ('221', '90.5 to 1500', '')
    """
    shown = list(dict.fromkeys(plain(value) for value in sorted(values)))
    return shown[0] if len(shown) == 1 else f"{shown[0]} to {shown[-1]}" if shown else ""


def _by_runtime(fit: Any) -> dict[str, object]:
    return {"runtime": as_dict(fit.measurement, fit)} if "runtime" in fit.measurement.header else {}


def _fit_trace(trace: Any, out: Path | None, force: bool, json: bool) -> None:
    from crosswind.model.trace import fit_trace

    found = fit_trace(trace)
    if out:
        writable(out, "platform", force=force, of={"name": found.platform().name})
        found.platform().save(out, f"calibrated by `crosswind fit` from a trace of {trace.header['experiment']}")
    wrote = written(out)
    if json:
        show(None, warnings=found.warnings, wrote=wrote, document=found.to_dict())
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
                ir = [f"{rate.ir_s_per_mb:.6f}", f"{low:.6f} .. {high:.6f}"] if rate.known else ["not known", ""]
                cells = [rate.direction, rate.peer, *ir]
            rows.append([*head, *cells])
            head = ["", "", "", ""]
    line = f"{trace.header['experiment']}, on {trace.header['on']}: rates of {len(found.nodes)} nodes, from a trace."
    first = ("node", "work/s", "MB/s", "direction", "IR s/MB")
    narrow = _columns_of(columns, rows, first)
    show(
        Answer([line], [narrow], wide=[Section(columns, rows)], rest="Intervals"), warnings=found.warnings, wrote=wrote
    )


def _columns_of(columns: list[tuple[str, str]], rows: list[list[str]], names: Sequence[str]) -> Section:
    kept = [at for at, (name, _) in enumerate(columns) if name in names]
    return Section([columns[at] for at in kept], [[row[at] for at in kept] for row in rows])


def answer_of(fits: Sequence[Any]) -> Answer:
    """Return what rates cost that other measurements have too, the losses at them, and the papers' table as details."""
    lines = []
    several = len({channel.peer for one in fits for channel in one.channels}) > 1 or len(fits) > 1
    for one in fits:
        if not any(told["code"] == "jit-compiles" for told in one.warnings):  # then there is no headline
            whole = f"`{one.measurement.header['kernel']['task']}`" if _is_task(one) else "what one CPU computes"
            lines += [_sentence(channel, whole, several) for channel in one.channels if channel.headline]
    if len(lines) > MOST_SENTENCES:
        lines = [*lines[:MOST_SENTENCES], f"{len(lines) - MOST_SENTENCES} more below."]
    if any(peer["loopback"] for one in fits for peer in one.measurement.header["peers"]):
        lines.append("First look only: the traffic never left this machine.")
    return Answer(
        lines=lines,
        tables=[_losses_table(fits)],
        notes=["IR: share lost per GB/s, by a linear fit. ±: 95 % confidence interval"],
        wide=[_whole_table(one) for one in fits],
        rest="All figures",
    )


def _is_task(fit: Any) -> bool:
    return str(fit.measurement.header["kernel"]["name"]) == "command"


def _losses_table(fits: Sequence[Any]) -> Section:
    """Return the losses at the rates that were measured, and the interference rates."""
    every = [(one, channel) for one in fits for channel in one.channels]
    rates = sorted({loss.mb_per_s for _, channel in every for loss in channel.losses})[-MOST_RATES:]
    columns = [("lost at", "left"), *((_speed(rate), "right") for rate in rates), ("IR, s/GB", "right")]
    rows = []
    for one, channel in every:
        found = {loss.mb_per_s: percent(loss.loss, loss.ci95) for loss in channel.losses}
        rows.append([_name(one, channel, every), *(found.get(rate, "-") for rate in rates), _ir(channel)])
    return Section(columns, rows)


def _rates_table(fits: Sequence[Any]) -> Section:
    every = [(one, channel) for one in fits for channel in one.channels]
    rows = [[_name(one, channel, every), _ir(channel)] for one, channel in every]
    return Section([("", "left"), ("IR, s/GB", "right")], rows)


def _name(fit: Any, channel: Any, every: Sequence[tuple[Any, Any]]) -> str:
    name = "sending" if channel.direction == "send" else "receiving"
    if len({other.peer for _, other in every}) > 1:
        name += f" {'to' if channel.direction == 'send' else 'from'} {channel.peer}"
    hosts = {one.measurement.header["host"]["name"] for one, _ in every}
    return f"{fit.measurement.header['host']['name']} {name}" if len(hosts) > 1 else name


def _ir(channel: Any) -> str:
    if channel.upper_bound is not None:
        return f"< {plain(1000 * channel.upper_bound)}"
    ends = [1000 * end for end in channel.ir_ci95]
    return with_half(1000 * channel.ir_s_per_mb, half_of(1000 * channel.ir_s_per_mb, ends))


def _whole_table(fit: Any) -> Section:
    """Return the interference rates as the papers' table 2, with all that is known of each."""
    columns = [("peer", "left"), ("direction", "left"), ("IR s/GB", "right"), ("95 %", "right"), ("const", "right")]
    columns += [("StDev", "right"), ("MaxErr", "right"), ("at MB/s", "right"), ("loss there", "right")]
    columns += [("CPU s/GB", "right"), ("us/call", "right"), ("us/wake-up", "right"), ("time base", "left")]
    columns += [("next loss", "right")]
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
                _next(channel),
            ]
        )
    header = fit.measurement.header
    by = f"{header['runtime']['name']} {header['runtime']['version']}, " if "runtime" in header else ""
    what = f"{by}{header['kernel']['name']}"
    return Section(columns, rows, title=f"{header['host']['name']}, {what}, {header['placement']['mode']}")


def _next(channel: Any) -> str:
    """Return where the next measurement will find the headline's loss, if the host stays as it is."""
    found = channel.headline
    if found is None or not math.isfinite(sum(found.next95)):
        return "unknown"
    by = f" ({found.earlier} earlier)" if found.earlier else ""
    return f"{100 * found.next95[0]:.1f} .. {100 * found.next95[1]:.1f} % at {_speed(found.mb_per_s)}{by}"


def _sentence(channel: Any, whole: str, several: bool) -> str:
    """Return what moving bytes at the headline's rate costs.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> found = SimpleNamespace(mb_per_s=1000.0, loss=0.361, ci95=(0.339, 0.393), next95=(0.31, 0.42), earlier=4)
    >>> channel = SimpleNamespace(direction="send", peer="b:7117", headline=found)
    >>> print(_sentence(channel, "what one CPU computes", several=True))
    Sending 1 GB/s to b:7117 costs 36 % ± 3 of what one CPU computes (the next: 31 to 42 %, by 4 earlier).
    >>> found.earlier = 0
    >>> print(_sentence(channel, "what one CPU computes", several=False))
    Sending 1 GB/s costs 36 % ± 3 of what one CPU computes.
    >>> found.loss, found.ci95 = 0.24, (-0.64, 1.12)
    >>> print(_sentence(channel, "what one CPU computes", several=False))
    Sending 1 GB/s: a cost is not distinguishable from 0 (24 % ± 88 of what one CPU computes).
    """
    found = channel.headline
    moves, word = _moves(channel)
    where = f" {word} {channel.peer}" if several else ""
    known = "" if math.isfinite(sum(found.ci95)) else " (interval unknown: too few cycles)"
    if found.earlier and not known:
        low, high = (100 * end for end in found.next95)
        known = f" (the next: {low:.0f} to {high:.0f} %, by {found.earlier} earlier)"
    cost = percent(found.loss, found.ci95)
    if found.ci95[0] <= 0.0:
        return f"{moves}{where}: a cost is not distinguishable from 0 ({cost} of {whole}){known}."
    return f"{moves}{where} costs {cost} of {whole}{known}."


def _speed(mb_per_s: float) -> str:
    return f"{mb_per_s / 1000:g} GB/s" if mb_per_s >= 1000 else f"{mb_per_s:g} MB/s"


def _moves(channel: Any) -> tuple[str, str]:
    size = _speed(channel.headline.mb_per_s)
    return (f"Sending {size}", "to") if channel.direction == "send" else (f"Receiving {size}", "from")


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("fit", help=help_of("fit", EXAMPLES))(fit)
