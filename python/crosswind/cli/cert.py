"""`crosswind cert`: certificates for a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crosswind.certificates import DEFAULT_DAYS, LONGEST_DAYS
from crosswind.cli.console import print_json, print_table, tell
from crosswind.cli.verbs import help_of
from crosswind.errors import DescriptionError
from crosswind.files.output import writable_directory

UNTRUSTED = 3

EXAMPLES = """
Examples:

    crosswind cert --out certs Lab0=192.168.1.7 Lab3 Lab4 --parent Lab0

    crosswind cert --out certs --platform platform.toml

    crosswind cert --show certs

Copy certs/Lab3 to the node Lab3, and name it there: `crosswind serve --parent ... --name Lab3 --tls Lab3`. Keep
certs/ca where it is. A node is dialled by its name or by what stands behind `=`; --parent: it may have others run code.
Exit codes: 0 done, 2 bad input, 3 a certificate is not valid.
"""


def cert(
    nodes: Annotated[
        list[str] | None, typer.Argument(metavar="NAME[=HOST,...]...", help="Nodes, as the platform names them.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Directory of the certificates.")
    ] = None,
    parent: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="The root, or a node with children. Repeat for more.")
    ] = None,
    platform: Annotated[Path | None, typer.Option(help="Take the nodes and the parents from a platform.")] = None,
    days: Annotated[int, typer.Option(help="Days that they are valid.", min=1, max=LONGEST_DAYS)] = DEFAULT_DAYS,
    show: Annotated[Path | None, typer.Option(metavar="DIR", help="Print the content of certificates.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Make or show a cluster's certificates."""
    if (out is None) == (show is None):
        raise DescriptionError(
            "one of --out and --show must be given", "argument", "crosswind cert --out certs NAME..."
        )
    if show is not None:
        for option, value in {"NAME": nodes, "--parent": parent, "--platform": platform}.items():
            if value:
                raise DescriptionError(f"{option} does not go with --show", "argument")
        _show(show, json)
    elif out is not None:
        writable_directory(out, "--out")
        _make(out, nodes or [], parent or [], platform, days)
        _show(out, json)


def _make(out: Path, named: list[str], parents: list[str], platform: Path | None, days: int) -> None:
    from dataclasses import replace

    from crosswind.certificates import Node, make_certificates, nodes_of
    from crosswind.platform import Platform

    nodes = {one.name: one for one in nodes_of(Platform.load(platform))} if platform is not None else {}
    for text in named:
        name, _, hosts = text.partition("=")
        known = nodes.get(name, Node(name))
        nodes[name] = replace(known, hosts=tuple(filter(None, hosts.split(","))))
    if not nodes:
        raise DescriptionError("no node is named", "argument", "crosswind cert --out certs NAME..., or --platform FILE")
    for name in parents:
        if name not in nodes:
            raise DescriptionError(f"--parent is {name!r}, which is no node that is named", "argument")
        nodes[name] = replace(nodes[name], parent=True)
    if not any(one.parent for one in nodes.values()) and not (out / "ca").exists():
        tell("none of them may have others run code: for a farm, name its root with --parent")
    make_certificates(out, nodes.values(), days)


def _show(directory: Path, json: bool) -> None:
    from crosswind.certificates import show_certificates

    shown = show_certificates(directory)
    if json:
        print_json({"directory": str(directory), "certificates": shown})
    else:
        rows = [
            [
                one["name"],
                "parent" if one["parent"] else "authority" if one["name"] == "ca" else "",
                one["valid_until"][:10],
                str(one["days_left"]),
                one["problem"] or "ok",
                ", ".join(one["names"]),
            ]
            for one in shown
        ]
        heads = ("node", "may", "valid until", "days left", "state", "names")
        print_table([(head, "right" if head == "days left" else "left") for head in heads], rows)
    if any(one["problem"] for one in shown):
        raise typer.Exit(UNTRUSTED)


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("cert", help=help_of("cert", EXAMPLES))(cert)
