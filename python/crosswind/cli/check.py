"""`crosswind check`: this node and a baseline -> whether it is sick."""

from __future__ import annotations

import random
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer.exceptions import Abort, TyperException

from crosswind.check import LEAST_S, SECONDS, fault
from crosswind.check.formats import Format, code_of, failed
from crosswind.check.metrics import metrics, metrics_of_failure, write_metrics
from crosswind.check.time_limit import process_age_s
from crosswind.cli.access import AllowLooseToken, TlsDirectory, TokenFile, token_in
from crosswind.cli.answer import show
from crosswind.cli.check_cluster import check_all
from crosswind.cli.clusters import cluster_on
from crosswind.cli.console import print_json, print_text, tell
from crosswind.cli.inputs import refuse_missing
from crosswind.cli.options import spread
from crosswind.cli.outputs import Force, writable, written
from crosswind.cli.verbs import help_of
from crosswind.cost.shares import parsed_share
from crosswind.errors import CrosswindError, DescriptionError
from crosswind.files.output import distinct, writable_directory
from crosswind.terminal.progress import Advance, duration, progress_bar

if TYPE_CHECKING:
    from crosswind.check.result import Check

INTERRUPTED = 130
SICK, UNKNOWN = 1, 3
_MANY = "Many nodes, many times"
_REPORT = "`crosswind doctor --report FILE` writes what a bug report needs"

EXAMPLES = """
It takes about 25 s and all CPUs; on a busy host up to 45 s, the time limit: what is not measured by then is unknown.
With --seconds S the limit is 1.5 S + 15 s from the start of the program. Measured are: steps of an arithmetic and of a
memory kernel per CPU second, on all CPUs at the same time; time lost on each CPU; noise; the loss of compute rate by
traffic on loopback and, with --peer, by traffic from another host, at the rate at which the baseline was measured.

A node is sick only where a whole interval lies beyond the tolerance, in both looks. The chance of that on a healthy
node is set to 1 % of checks, all measures together. Changed settings are reported; they never drain a node.
On a busy host, lost time is unknown and not sick, and a baseline is saved only with --force.

Examples:

    crosswind check --save good.json

    crosswind check --baseline good.json --tolerance 10%

    crosswind check --baseline good.json --format nhc --prometheus /var/lib/node_exporter/crosswind.prom

    crosswind check --history /var/lib/crosswind/checks --jitter 600

    crosswind check --peers /shared/crosswind --seconds 10 --format slurm || [ $? -ne 4 ]

    crosswind check --on dask:tcp://scheduler:8786 --save cluster-check.json

    crosswind check --on hosts:hosts.toml --token-file token

With --history a check is held against the last checks of the same node there, and against its first ones, and is added
to them. With --peers it is held against the newest checks of other nodes of the same kind, three at least, and is added
to them. With --on every host of a cluster and every link between two is checked once, and held against the others: no
baseline is needed.

Exit codes: 0 healthy, or a baseline was saved; 1 sick; 3 unknown, or nothing to compare with; 2 bad input; 130
interrupted. With --format npd, unknown is 2; with slurm, sick is 4 and unknown 0. Whatever fails, such as a measurement
or a full disk, is unknown: 3.
"""


@dataclass
class Many:
    """Options for many nodes, or many times."""

    on: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="Check all hosts of dask:tcp://SCHEDULER:PORT or hosts:FILE.toml, and their links.",
            rich_help_panel=_MANY,
        ),
    ] = None
    per: Annotated[
        Literal["host", "worker"],
        typer.Option(help="With --on: treat each address or each worker as a host.", rich_help_panel=_MANY),
    ] = "host"
    links: Annotated[bool, typer.Option(help="With --on: measure the links, too.", rich_help_panel=_MANY)] = True
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory of earlier checks: compare with them, and add this one.",
            rich_help_panel=_MANY,
        ),
    ] = None
    peers: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory shared by all nodes: compare this node with the others.",
            rich_help_panel=_MANY,
        ),
    ] = None
    jitter: Annotated[
        float,
        typer.Option(
            help="Wait a random time first, at most S seconds, so that nodes do not all start at once.",
            min=0.0,
            max=86400.0,
            rich_help_panel=_MANY,
        ),
    ] = 0.0


@contextmanager
def _never_sick() -> Iterator[None]:
    """Have no error end with the exit code that says sick, by which nodes are drained."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # what fails here would else fail after this
    except CrosswindError as error:
        if error.exit_code == SICK:
            error.exit_code = UNKNOWN
        raise
    except (typer.Exit, TyperException, Abort):
        raise
    except Exception as error:
        found = CrosswindError(f"a fault of Crosswind, {fault.described(error)}", "fault", _REPORT)
        found.exit_code = UNKNOWN
        raise found from error


@spread
@_never_sick()
def check(
    *,
    save: Annotated[Path | None, typer.Option(help="Write check.json: a baseline, or a record of this check.")] = None,
    baseline: Annotated[Path | None, typer.Option(help="A check.json of a healthy node.")] = None,
    tolerance: Annotated[str, typer.Option(help="Permitted loss, such as 10% or 0.1.")] = "10%",
    seconds: Annotated[
        float,
        typer.Option(help="Seconds on an idle host, 10 to 300. A busy one takes at most 1.5 times that plus 15 s."),
    ] = SECONDS,
    peer: Annotated[
        str | None, typer.Option(help="Check the path to a `crosswind serve`.", metavar="HOST:PORT")
    ] = None,
    token_file: TokenFile = None,
    allow_loose_token: AllowLooseToken = False,
    tls: TlsDirectory = None,
    many: Many,
    form: Annotated[Format, typer.Option("--format", help="Form of the output.")] = "text",
    prometheus: Annotated[
        Path | None,
        typer.Option(help="Write metrics for the node exporter's textfile collector (FILE.prom, mode 644)."),
    ] = None,
    per_cpu: Annotated[
        bool, typer.Option("--per-cpu", help="With --prometheus: series for each CPU, not only for the worst one.")
    ] = False,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document, as --format json.")] = False,
) -> None:
    """Say whether this node is sick."""
    refuse_missing(baseline, hint="`crosswind check --save FILE` makes one, on a healthy, idle node")
    from crosswind.check import permitted
    from crosswind.check.result import Check

    share = parsed_share(tolerance, "--tolerance")
    form = "json" if json else form
    permitted(share, seconds)
    if per_cpu and prometheus is None:
        raise DescriptionError("--per-cpu is given without --prometheus", "argument", "--prometheus FILE.prom")
    if many.on is not None:
        apart = {
            "--baseline": baseline,
            "--peer": peer,
            "--peers": many.peers,
            "--prometheus": prometheus,
            "--tls": tls,
        }
        _refuse_beside_on(apart, form)
        hint = "without --on it checks this node"
        hosts = cluster_on(many.on, many.per, token_file, allow_loose_token, hint)
        raise typer.Exit(check_all(hosts, many.links, many.history, save, share, seconds, force, form))
    is_verdict = _is_verdict(baseline, many, save)
    base = Check.load(baseline) if baseline else None
    of = {"host.name": socket.gethostname(), "peer": peer}
    writable(save, "check", "--save", inputs=[baseline], force=force, of=of)
    if many.history is not None:
        writable_directory(many.history, "--history")
    writable_directory(many.peers, "--peers")
    writable(prometheus, "metrics", "--prometheus", inputs=[baseline], force=force)
    distinct({"--save": save, "--prometheus": prometheus})
    try:
        found = _measured(base, share, seconds, peer, token_in(token_file, allow_loose_token), tls, many)
        _print(found, form)
    except Exception as error:
        if not is_verdict or (isinstance(error, CrosswindError) and error.exit_code not in (SICK, UNKNOWN)):
            raise
        _tell_failure(error, form, prometheus)
        raise typer.Exit(code_of(UNKNOWN, form)) from error
    code = code_of(found.exit_code, form)
    wrote: list[str] = []
    if prometheus and not found.interrupted:  # first: a file that --save refuses is no reason to leave old metrics
        write_metrics(metrics(found, per_cpu=per_cpu), prometheus)
        wrote += written(prometheus)
    if save and not found.interrupted:
        if not is_verdict:
            try:
                _refuse_as_baseline(found, force)
            except CrosswindError:
                show(None, warnings=found.warnings, wrote=wrote)
                raise
            code = 0
        found.save(save)
        wrote += written(save, f"{len(found.readings)} measures")
    show(None, warnings=found.warnings, wrote=wrote)
    raise typer.Exit(INTERRUPTED if found.interrupted else code)


def _is_verdict(baseline: Path | None, many: Many, save: Path | None) -> bool:
    """Return whether there is a reference to hold the check against; refuse none at all, and too many."""
    given = {"--baseline": baseline, "--history": many.history, "--peers": many.peers}
    options = [option for option, value in given.items() if value is not None]
    if not options and save is None:
        hint = "crosswind check --save good.json on a healthy node, then --baseline good.json"
        raise DescriptionError("none of --baseline, --history, --peers and --save is given", "command", hint)
    if len(options) > 1 and many.peers is not None:
        raise DescriptionError(f"--peers cannot be combined with {options[0]}", "argument", "name one reference")
    return bool(options)


def _measured(
    base: Check | None,
    tolerance: float,
    seconds: float,
    peer: str | None,
    token: str | None,
    tls: Path | None,
    many: Many,
) -> Check:
    from crosswind.check import check as measure
    from crosswind.check import longest_s

    with progress_bar() as advance:
        _wait(many.jitter, advance)
        # A batch system counts from the start of the process, which takes seconds on a busy host.
        age_s = 0.0 if many.jitter else min(process_age_s(), seconds)
        return measure(
            baseline=base,
            tolerance=tolerance,
            seconds=seconds,
            peer=peer,
            token=token,
            tls=tls,
            history=many.history,
            peers=many.peers,
            limit_s=max(longest_s(seconds) - age_s, LEAST_S),
            progress=advance,
        )


def _refuse_as_baseline(found: Check, force: bool) -> None:
    """Refuse to save a baseline that would hide faults, unless forced.

    Raises
    ------
    CrosswindError
        When the host was busy, or a measure is missing.
    """
    load, failed = found.document["load"], list(found.document.get("failed", {}).items())
    hint = "save it on an idle node; --force saves it all the same"
    if found.busy and not force:
        message = f"not saved: the host is busy; other processes use {100 * load['others']:.0f} % of the CPUs"
        message += f" and the hypervisor takes {100 * load['steal']:.1f} %; at most 15 % and 2 % are permitted"
        raise CrosswindError(message, "busy-host", hint)
    if failed and not force:
        name, why = failed[0]
        more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        raise CrosswindError(f"not saved: {name} was not measured ({why}){more}", "missing", hint)


def _tell_failure(error: Exception, form: Format, prometheus: Path | None) -> None:
    """Say that nothing is known, and why, in each place that reads verdicts; never with a traceback."""
    expected = isinstance(error, CrosswindError)
    why = str(error) if expected else f"a fault of Crosswind, {fault.described(error)}"
    if form in ("json", "junit"):
        tell(f"error: {why}")  # standard output stays empty: there is no document
    else:
        print_text(failed(why, form))
    if not expected:
        tell(f"hint: {_REPORT}")
    if prometheus:
        write_metrics(metrics_of_failure(), prometheus)


def _wait(jitter_s: float, advance: Advance | None) -> None:
    """Wait for a random part of the time, so that the nodes of a cluster do not all check at once."""
    until = time.monotonic() + random.uniform(0.0, jitter_s)
    while (left := until - time.monotonic()) > 0:
        if advance:
            advance(0.0, f"begins in {duration(left)}")
        time.sleep(min(left, 1.0))


def _refuse_beside_on(given: Mapping[str, object], form: Format) -> None:
    for option, value in given.items():
        if value is not None:
            why = "requests to hosts are not encrypted" if option == "--tls" else "hosts are compared with each other"
            hint = "without --on it checks this node"
            raise DescriptionError(f"{option} does not go with --on: {why}", "argument", hint)
    if form not in ("text", "json"):
        raise DescriptionError(f"--format is {form!r}; with --on it must be text or json", "format")


def _print(found: Check, form: Format) -> None:
    from crosswind.check import formats
    from crosswind.files.atomic import finite

    if form == "json":
        print_json(finite(found.to_dict()))
    elif form == "junit":
        print_text(formats.junit(found).rstrip("\n"))
    elif form in ("nhc", "slurm"):
        print_text(formats.nhc(found))
    elif form == "npd":
        print_text(formats.npd(found))
    else:
        print_text(found.sentence)


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("check", help=help_of("check", EXAMPLES))(check)
