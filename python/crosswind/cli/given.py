"""Options that were typed: those without an effect on what was given are refused, not ignored."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from typer.core import TyperOption

from crosswind.errors import DescriptionError

_typed: ContextVar[Any] = ContextVar("typed", default=None)


@contextmanager
def typed(ctx: Any) -> Iterator[None]:
    """Remember the words of the command line while its verb runs."""
    token = _typed.set(ctx)
    try:
        yield
    finally:
        _typed.reset(token)


def refuse_others(what: str, effective: Collection[str], hint: str = "") -> None:
    """Refuse an option of the command line that changes nothing; called from Python, do nothing.

    Parameters
    ----------
    what : str
        What the option would have to apply to, as the message names it: "traces", "--dry-run".
    effective : collection of str
        Names of the parameters that have an effect.
    hint : str
        What to do instead. Default: the options that apply.

    Raises
    ------
    DescriptionError
        That names the first such option.
    """
    ctx = _typed.get()
    if ctx is None:
        return
    # How a verb prints (--wide, --warnings) is none of its parameters.
    options = [one for one in ctx.command.params if isinstance(one, TyperOption) and one.expose_value]
    for option in options:
        source = ctx.get_parameter_source(option.name or "")
        if option.name not in effective and source is not None and source.name == "COMMANDLINE":
            names = ", ".join(_longest(one) for one in options if one.name in effective)
            message = f"{_longest(option)} does not apply to {what}"
            raise DescriptionError(message, "argument", hint or f"leave it out; these do: {names}")


def _longest(option: TyperOption) -> str:
    return max(option.opts, key=len)
