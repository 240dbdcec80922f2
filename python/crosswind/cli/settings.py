"""Settings on the command line: `--set PATH=VALUE` of an experiment, `--node NODE=HOST` of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crosswind.errors import DescriptionError
from crosswind.reading import parse_json


def settings_of(given: Sequence[str]) -> dict[str, Any]:
    """Return dotted path -> value; a value that is no JSON is a string.

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
