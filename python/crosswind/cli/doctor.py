"""`crosswind doctor`: what this host lacks, or what will disturb a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli.access import AllowLooseToken, TlsDirectory, TokenFile, token_in
from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.console import number_of, print_json, print_text, tell
from crosswind.cli.outputs import Force, writable, written
from crosswind.cli.verbs import help_of

if TYPE_CHECKING:
    from crosswind.doctor.finding import Finding

UNTRUSTED = 3

EXAMPLES = """
Examples:

    crosswind doctor

    crosswind doctor --peer 192.168.1.7:7117 --json

    crosswind doctor --report doctor.json
"""


def doctor(
    peer: Annotated[str | None, typer.Option(help="A `crosswind serve` to check as well.")] = None,
    token_file: TokenFile = None,
    allow_loose_token: AllowLooseToken = False,
    tls: TlsDirectory = None,
    seconds: Annotated[float, typer.Option(help="Seconds to watch the CPUs.", min=0.1, max=60)] = 1.0,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write what a bug report needs, as JSON.")] = None,
    force: Force = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Print everything that was looked at, then the verdict.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Look at what this host lacks or what will disturb a measurement."""
    from crosswind.doctor import doctor
    from crosswind.doctor.readiness import verdict

    writable(report, "bug-report", "--report", force=force)
    findings = doctor(peer=peer, seconds=seconds, token=token_in(token_file, allow_loose_token), tls=tls)
    disturbed = any(f.level in ("warning", "problem") for f in findings)
    found = {"findings": [f.to_dict() for f in findings], "quiet": not disturbed}
    if report:
        from crosswind.build import build_facts
        from crosswind.files.atomic import write_json
        from crosswind.host.description import describe

        write_json({"kind": "bug-report", "build": build_facts(), "host": describe(), **found}, report)
        (there,) = written(report)
        tell(f"Wrote {there}: it names this host and its network interfaces; look at it before you attach it")
    if json:
        print_json(found)
    elif everything:
        for finding in findings:
            print_text(f"{finding.level:8} {finding.message}", indent=9)
            if finding.hint:
                print_text(f"{'':8}   {finding.hint}", indent=11)
        show(Answer([verdict(findings)]))
    else:
        _print_verdict(findings, peer)
    if disturbed:
        raise typer.Exit(UNTRUSTED)


def _print_verdict(findings: Sequence[Finding], peer: str | None) -> None:
    """Print whether this host is ready, what to change first, and which verbs are ready all the same."""
    from crosswind.doctor.readiness import MOST_CHANGES, disturbing, readiness, verdict

    print_text(verdict(findings), bold=True)
    for finding in disturbing(findings)[:MOST_CHANGES]:
        print_text(f"  {finding.message}", indent=2)
        if finding.hint:
            print_text(f"    {finding.hint}", indent=4)
    rows = [[one.verbs, "yes" if one.ready else "no", one.why] for one in readiness(findings)]
    left = len(disturbing(findings)) - MOST_CHANGES
    counts = [number_of(left, "more warning")] if left > 0 else []
    counts += [number_of(sum(one.level == "note" for one in findings), "note")]
    counts += [f"{sum(one.level == 'ok' for one in findings)} checks passed"]
    notes = []
    if peer is None:
        notes = [
            "For a network: `crosswind serve` on another host, then",
            "  `crosswind measure --peer HOST:7117 --token-file FILE` here. Without it, loopback is measured.",
        ]
    table = Section([("verbs", "left"), ("ready", "left"), ("", "left")], rows)
    show(Answer([], [table], [*notes, f"{', '.join(counts)}: --all"]))


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("doctor", help=help_of("doctor", EXAMPLES))(doctor)
