"""`crosswind probe check`: COMMAND -> what is wrong with a probe."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from crosswind.cli.console import number_of, print_json, print_text
from crosswind.cli.verbs import help_of

FAILED = 1

EXAMPLES = """
What it must say is in docs/reference/probe-protocol.md; examples/probe/probe.c is one in C. It is started twice, asked
step by step against a peer on loopback, and what is wrong is said. It takes a few seconds.

Examples:

    crosswind probe check ./my-probe

    crosswind probe check './my-probe --fast'

    crosswind probe check 'java io=direct' --json

Exit codes: 0 as the protocol has it, 1 something is wrong, 2 bad input.
"""

Action = Literal["check"]


def probe(
    action: Annotated[Action, typer.Argument(help="Check that a probe keeps to the protocol.", metavar="check")],
    command: Annotated[
        list[str], typer.Argument(help="The probe and its arguments; or java, python, go, node.", metavar="COMMAND...")
    ],
    own_work: Annotated[
        bool, typer.Option("--own-work", help="The probe has work of its own and runs none of Crosswind's kernels.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check that a probe keeps to the protocol."""
    del action  # there is one
    from crosswind.measure.runtime import check_probe

    findings = check_probe(command[0] if len(command) == 1 else command, own_work=own_work)
    wrong = any(finding["verdict"] == "wrong" for finding in findings)
    if json:
        print_json({"findings": findings, "conforms": not wrong})
    else:
        steps = number_of(len(findings), "step")
        print_text(f"The probe {'breaks' if wrong else 'keeps to'} the protocol ({steps}).", bold=True)
        for finding in findings:
            print_text(f"{finding['verdict']:6} {finding['step']:16} {finding['message']}", indent=24)
    if wrong:
        raise typer.Exit(FAILED)


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("probe", help=help_of("probe", EXAMPLES))(probe)
