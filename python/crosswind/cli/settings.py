"""Settings on the command line: `--set PATH=VALUE` of an experiment, `--node NODE=HOST` of a cluster, sizes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosswind.documents import Document
from crosswind.errors import DescriptionError
from crosswind.files.reading import parse_json

if TYPE_CHECKING:
    from crosswind.experiment import Experiment

SAYS_WHERE = "says what each field may be"
"""In a hint that names only the page of all fields."""


def completed(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return what the shell may complete of a setting."""
    from crosswind.cli.completion import settings

    return settings(ctx, incomplete)


Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Set a field of the experiment, such as policy.order=arrival. Repeat for more.",
        autocompletion=completed,
    ),
]


SHORT = {"link": "receive_limit_mb_per_s", "compute": "compute_per_s"}
"""Short names of a node's fields on the command line."""
_SHOWN = {"--set": "policy.order=arrival", "--network": "latency_s=1e-6"}


def settings_of(given: Sequence[str], option: str = "--set") -> Document:
    """Return dotted path -> value; a value that is neither JSON nor TOML is a string.

    Raises
    ------
    DescriptionError
        When one is not PATH=VALUE.

    Examples
    --------
    >>> settings_of(["policy.order=arrival", "seed=7"])
    {'policy.order': 'arrival', 'seed': 7}
    >>> settings_of(['workload.task_work={ distribution = "exponential", mean = 5 }'])
    {'workload.task_work': {'distribution': 'exponential', 'mean': 5}}
    """
    settings: Document = {}
    for one in given:
        path, equals, value = one.partition("=")
        if not equals:
            raise DescriptionError(
                f"{option} is {one!r}; it must be PATH=VALUE", "argument", f"{option} {_SHOWN[option]}"
            )
        path = whole_path(path.strip())
        if path in settings:
            message = f"{option} {path} is given twice; a field has one value"
            hint = f"several values: --set 'sweep.{path}=[A, B]'" if option == "--set" else "leave one out"
            raise DescriptionError(message, "argument", hint)
        settings[path] = _value_of(value.strip())
    return settings


def whole_path(path: str) -> str:
    """Return a path with a node's short field name written out.

    Examples
    --------
    >>> whole_path("node[10.0.0.3].link"), whole_path("change[0].compute"), whole_path("workload.tasks")
    ('node[10.0.0.3].receive_limit_mb_per_s', 'change[0].compute_per_s', 'workload.tasks')
    """
    head, bracket, field = path.rpartition("].")
    is_short = head.startswith(("node[", "change["))
    return f"{head}{bracket}{SHORT.get(field, field)}" if is_short else path


def _value_of(text: str) -> Any:
    """Return a value as JSON has it, or as an experiment.toml does; any other is a string."""
    try:
        return parse_json(text.encode())
    except ValueError:
        if not text.startswith(("{", "[", "'")):
            return text
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def set_fields(experiment: Experiment, settings: Mapping[str, Any], option: str = "--set ") -> Experiment:
    """Return an experiment with the fields that `--set` gives; `sweep.PATH` takes a list of values.

    Raises
    ------
    DescriptionError
        That names the option, when there is no such field, or the value is not permitted.
    """
    for path, value in settings.items():
        try:
            if path == "name" or path.startswith("sweep."):
                experiment = redescribed(experiment, path, value)
            else:
                experiment = experiment.fixed({path: value})
        except DescriptionError as error:
            from crosswind.cli.completion import hint_for

            shown = value if isinstance(value, str) else json.dumps(value)
            hint = error.hint
            if hint and SAYS_WHERE in hint:
                hint = hint_for(experiment.to_dict(), path) or hint
            if isinstance(value, list) and any(isinstance(one, dict) for one in value):
                hint = f"write [[{path}]] tables in the experiment's file; fields of one: --set '{path}[0].FIELD=VALUE'"
            elif isinstance(value, list) and not path.startswith("sweep."):
                hint = f"several values: --set 'sweep.{path}={shown}'"
            field = path.removeprefix("network.") if option != "--set " else path
            raise DescriptionError(f"{option}{field}={shown}: {error}", error.code, hint) from None
    return experiment


def redescribed(experiment: Experiment, path: str, value: Any) -> Experiment:
    """Return an experiment with a field that is of the file, not of its runs: its name, or a path of the sweep."""
    description = experiment.to_dict()
    if path == "name":
        description["name"] = value
    else:
        description["sweep"] = {**description.get("sweep", {}), path.removeprefix("sweep."): value}
    return type(experiment).from_dict(description, experiment.directory)


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
