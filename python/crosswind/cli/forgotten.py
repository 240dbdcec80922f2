"""What a user forgot to type: the `--` before a command, or the file that belongs before it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperOption
from typer.exceptions import TyperException

from crosswind.errors import DescriptionError

DASHES = "--"


def read(command: Any, ctx: Any, args: list[str], parse: Callable[[Any, list[str]], list[str]]) -> list[str]:
    """Parse the words after a verb that takes a command of the user's.

    Raises
    ------
    DescriptionError
        When `--` is missing before that command, or the file that belongs before `--`.
    """
    if not takes_a_command(command):
        return parse(ctx, args)
    verb, given = str(ctx.info_name), list(args)
    if DASHES in given:
        _refuse_without_a_file(command, verb, given)
        return parse(ctx, args)
    try:
        return parse(ctx, args)
    except TyperException as error:
        option, at = getattr(error, "option_name", None), _begin_of_the_command(command, given)
        if option and at is None and (begin := _command_without_a_file(command, given)) is not None:
            line = shlex.join(["crosswind", verb, *given[:begin], "noise.toml", DASHES, *given[begin:]])
            message = f"the disturbance file is missing, and -- before the command {given[begin]}"
            raise DescriptionError(message, "usage", f"such as one of `crosswind record`: {line}") from None
        if not option or at is None or option not in [word.partition("=")[0] for word in given[at:]]:
            raise
        line = shlex.join(["crosswind", verb, *given[:at], DASHES, *given[at:]])
        message = f"{option} is not an option of `crosswind {verb}`"
        raise DescriptionError(message, "usage", f"put -- before the command: {line}") from None


def takes_a_command(command: Any) -> bool:
    """Whether the last argument of a verb is the words of a command, after --."""
    arguments = _arguments(command)
    return bool(arguments) and str(arguments[-1].metavar or "").lstrip("[").startswith(DASHES)


def _refuse_without_a_file(command: Any, verb: str, words: Sequence[str]) -> None:
    before = words[: words.index(DASHES)]
    places = list(_words_of_arguments(command, before))
    required = [one for one in _arguments(command)[:-1] if one.required]
    if None in places or len(places) >= len(required) or {"-h", "--help"} & set(before):
        return
    kind = str(required[len(places)].metavar)
    rest = shlex.join(words)
    hint = f"`crosswind record --seconds 60 -o noise.toml` makes one; then `crosswind {verb} noise.toml {rest}`"
    what = "the disturbance file" if kind in ("DISTURBANCE.toml", "FILE") else kind
    raise DescriptionError(f"{what} is missing before --", "usage", hint)


def _begin_of_the_command(command: Any, words: Sequence[str]) -> int | None:
    """Return the place of the first word of the user's command; None where a word before it is not understood."""
    places = list(_words_of_arguments(command, words))
    before = len(_arguments(command)) - 1
    return places[before] if len(places) > before else None


def _command_without_a_file(command: Any, words: Sequence[str]) -> int | None:
    """Return the place of a command that stands where a file belongs, with an option that no verb has behind it."""
    places = list(_words_of_arguments(command, words))
    first = places[0] if len(places) == 2 and places[1] is None else None
    files = len(_arguments(command)) - 1
    return None if first is None or files != 1 or Path(words[first]).suffix == ".toml" else first


def _words_of_arguments(command: Any, words: Sequence[str]) -> Iterator[int | None]:
    """Yield the place of each word that is no option and no option's value; None, at the end, where one is unknown."""
    options = {name: one for one in command.params for name in (*one.opts, *one.secondary_opts)}
    at = 0
    while at < len(words):
        word = words[at]
        if not word.startswith("-") or word == "-":
            yield at
        elif word not in ("-h", "--help"):
            option = options.get(word.partition("=")[0])
            if option is None:
                yield None
                return
            at += 0 if option.is_flag or "=" in word else 1
        at += 1


def _arguments(command: Any) -> list[Any]:
    return [one for one in command.params if not isinstance(one, TyperOption)]
