"""Values of options that are plainly right, taken without pydantic: importing it takes longer than a small plan.

typer checks values with pydantic. A number within its range, a word of a list, a text or a path needs no such check;
whatever else is given goes typer's way. What typer refuses is an error with the option, the value and the range.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from typer._coercion import RuntimeParam, TypeDescriptor, build_runtime_param
from typer._param_types import coerce_cli_path
from typer.core import TyperOption
from typer.exceptions import TyperException

from crosswind.errors import DescriptionError

_NUMBER = {int: re.compile(r"-?[0-9]{1,15}"), float: re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?(e-?[0-9]{1,2})?")}
_WITHOUT_VALUE = {"--gpu": "0"}
"""What an option stands for that is followed by another option or by nothing."""


class PlainValues:
    """A typer command whose parameters take values that are plainly right without pydantic; stands before typer's."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all parameters, that of `--help` too."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc] # of the command beside it
        for parameter in parameters:
            known: TypeDescriptor = parameter.type_descriptor
            parameter._runtime_param = _PlainFirst(known.parameter_info, known.annotation, known)
        return parameters

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words, with the values that some options may leave out."""
        return super().parse_args(ctx, completed(args))  # type: ignore[misc, no-any-return] # of the command beside it


def completed(args: list[str]) -> list[str]:
    """Return the words with the values that some options may leave out.

    Examples
    --------
    >>> completed(["--gpu", "-o", "gpu.parquet"]), completed(["--gpu", "1"])
    (['--gpu', '0', '-o', 'gpu.parquet'], ['--gpu', '1'])
    """
    found = []
    for word, following in zip(args, [*args[1:], "--"], strict=False):
        if word == "--":
            break
        found.append(word)
        if word in _WITHOUT_VALUE and following.startswith("-"):
            found.append(_WITHOUT_VALUE[word])
    return found + args[args.index("--") :] if "--" in args else found


def name_of(parameter: Any) -> str:
    """Return an option's long name, or what the usage calls an argument."""
    if isinstance(parameter, TyperOption):
        return max(parameter.opts, key=len)
    return str(parameter.metavar or str(parameter.name).upper()).strip("[]")


def _permitted(annotation: Any, info: Any) -> tuple[str, tuple[str, ...]] | None:
    """Return what a value must be, in words, and the words of which it must be one; None for other types."""
    if get_origin(annotation) is list:
        (annotation,) = get_args(annotation)
    if get_origin(annotation) is Literal:
        words = tuple(str(word) for word in get_args(annotation))
        return f"one of {', '.join(words)}", words
    if annotation not in _NUMBER:
        return None
    kind = "a whole number" if annotation is int else "a number"
    low, high = (None if end is None else f"{end:g}" for end in (info.min, info.max))
    if low is not None and high is not None:
        return f"{kind}, {low} to {high}", ()
    return kind + (f", at least {low}" if low is not None else f", at most {high}" if high is not None else ""), ()


def _refusal(name: str, value: Any, permitted: str, words: tuple[str, ...]) -> DescriptionError:
    wrong = value
    if isinstance(value, list | tuple):
        wrong = next((one for one in value if one not in words), value[0]) if words or len(value) == 1 else list(value)
    near = get_close_matches(str(wrong), words, 1)
    hint = f"the nearest is {near[0]!r}" if near else None
    shown = str(wrong) if _NUMBER[float].fullmatch(str(wrong)) else repr(str(wrong))
    return DescriptionError(f"{name} is {shown}; it must be {permitted}", "argument", hint)


@dataclass(frozen=True)
class _PlainFirst(RuntimeParam):
    descriptor: TypeDescriptor

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return self._plain(value, self.annotation, param, ctx)
        except ValueError:
            pass
        try:
            return build_runtime_param(self.descriptor)._coerce_value(value, param, ctx)
        except TyperException:
            permitted = _permitted(self.annotation, self.parameter_info)
            if permitted is None:
                raise
        raise _refusal(name_of(param), value, *permitted)

    def _plain(self, value: Any, annotation: Any, param: Any, ctx: Any) -> Any:
        """Return what a value stands for; ValueError where that takes more than a look."""
        info = self.parameter_info
        if get_origin(annotation) is list and isinstance(value, list | tuple):
            (each,) = get_args(annotation)
            return [self._plain(one, each, param, ctx) for one in value]
        if get_origin(annotation) is Literal and value in get_args(annotation):
            return value
        if annotation is Path and isinstance(value, str | Path):
            return coerce_cli_path(Path(value), info, path_type=Path, param=param, ctx=ctx)
        if annotation is str and isinstance(value, str):
            return value
        if annotation in _NUMBER and _NUMBER[annotation].fullmatch(str(value)) and not info.clamp:
            number = annotation(value)
            if (info.min is None or number >= info.min) and (info.max is None or number <= info.max):
                return number
        raise ValueError
