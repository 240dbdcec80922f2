"""Options that several verbs share: a dataclass of them, and a function that takes one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def spread(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function that takes the fields of each dataclass among the parameters as parameters of its own.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Access:
    ...     token: str = "none"
    >>> @spread
    ... def verb(name: str, access: Access) -> None:
    ...     print(name, access.token)
    >>> print(inspect.signature(verb))
    (*, name: str, token: str = 'none') -> None
    >>> verb(name="a", token="t")
    a t
    """
    hints = get_type_hints(function, include_extras=True, localns=vars(inspect.getmodule(function)))
    shared = {name: kind for name, kind in hints.items() if is_dataclass(kind) and isinstance(kind, type)}
    parameters: dict[str, inspect.Parameter] = {}
    for one in inspect.signature(function).parameters.values():
        if one.name not in shared:
            parameters[one.name] = one.replace(annotation=hints[one.name], kind=inspect.Parameter.KEYWORD_ONLY)
            continue
        each = get_type_hints(shared[one.name], include_extras=True)
        for field in fields(shared[one.name]):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            parameters[field.name] = inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=each[field.name]
            )

    @wraps(function)
    def verb(**given: Any) -> None:
        made = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind)}) for name, kind in shared.items()
        }
        function(**given, **made)

    del verb.__wrapped__
    verb.__signature__ = inspect.Signature(list(parameters.values()), return_annotation=None)  # type: ignore[attr-defined]
    verb.__annotations__ = {name: one.annotation for name, one in parameters.items()} | {"return": None}
    return verb
