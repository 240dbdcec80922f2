"""`--set PATH=VALUE`: fields of an experiment that are set on the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from crosswind.errors import DescriptionError


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
