"""`--set PATH=VALUE`: fields of an experiment that are set on the command line, and completed by the shell."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from crosswind.errors import CrosswindError, DescriptionError


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
            settings[path.strip()] = json.loads(value)
        except ValueError:
            settings[path.strip()] = value.strip()
    return settings


def complete_setting(context: typer.Context, incomplete: str) -> list[str]:
    """Return what `--set` may begin with: the paths of the experiment that the command line names, each with `=`."""
    from crosswind.experiment import Experiment

    try:
        experiment = Experiment.load(context.params["experiment"])
    except (CrosswindError, KeyError, TypeError):
        return []  # none is named yet, or a wrong one: a shell that completes is no place to say so
    described = experiment.to_dict()
    swept = described.get("sweep", {})
    found = {path: values[0] for path, values in swept.items()}
    found |= {path: value for path, value in _leaves("", described) if not path.startswith("sweep")}
    return [
        f"{path}="
        for path, value in found.items()
        if path.startswith(incomplete) and _settable(experiment, path, value)
    ]


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the dotted path of every field, and its value."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(f"{path}.{name}" if path else name, inner)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for place, inner in enumerate(value):
            yield from _leaves(f"{path}[{place}]", inner)
    else:
        yield path, value


def _settable(experiment: Any, path: str, value: Any) -> bool:
    try:
        experiment.fixed({path: value})
    except DescriptionError:
        return False
    return True
