"""Settings on the command line: `--set PATH=VALUE` of an experiment, `--node NODE=HOST` of a cluster, sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from crosswind.errors import DescriptionError
from crosswind.files.reading import parse_json


def completed(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return what the shell may complete of a setting."""
    from crosswind.cli.completion import settings

    return settings(ctx, incomplete)


Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Set a field of the experiment, such as policy.order=arrival; again for more.",
        autocompletion=completed,
    ),
]


def settings_of(given: Sequence[str]) -> dict[str, Any]:
    """Return dotted path -> value; a value that is not JSON is a string.

    Raises
    ------
    DescriptionError
        When one is not PATH=VALUE.

    Examples
    --------
    >>> settings_of(["policy.order=arrival", "seed=7"])
    {'policy.order': 'arrival', 'seed': 7}
    """
    settings: dict[str, Any] = {}
    for one in given:
        path, equals, value = one.partition("=")
        if not equals:
            raise DescriptionError(f"--set is {one!r}; it must be PATH=VALUE", "argument", "--set policy.order=arrival")
        try:
            settings[path.strip()] = parse_json(value.encode())
        except ValueError:
            settings[path.strip()] = value.strip()
    return settings


def hosts_of_nodes(given: Sequence[str]) -> dict[str, str]:
    """Read what `--node` says: the host of each node named.

    Raises
    ------
    DescriptionError
        When one is no NODE=HOST, or names a node again.

    Examples
    --------
    >>> hosts_of_nodes(["Lab3=10.0.0.3"])
    {'Lab3': '10.0.0.3'}
    """
    found: dict[str, str] = {}
    for text in given:
        node, equals, host = text.partition("=")
        if not (node and equals and host) or node in found:
            raise DescriptionError(f"--node is {text!r}; it must be NODE=HOST, once per node", "argument")
        found[node] = host
    return found


_BYTES = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


def size_mb(option: str, text: str) -> float:
    """Return a size in MB (10^6 bytes).

    Raises
    ------
    DescriptionError
        When it is not a number above 0 with a unit.

    Examples
    --------
    >>> size_mb("--task-memory", "1.5GB")
    1500.0
    >>> size_mb("--task-memory", "512 MiB")
    536.870912
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(?:([KMGT]I?)B?|B)", text.strip().upper())
    bytes_ = float(found[1]) * _BYTES[found[2] or ""] if found else 0.0
    if not bytes_ > 0:
        message = f"{option} is {text!r}; it must be a number above 0 with a unit: B, kB, MB, GB, KiB, MiB, GiB"
        raise DescriptionError(message, "argument", f"{option} 500MB")
    return bytes_ / 1e6
