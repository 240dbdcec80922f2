"""What `--runtime TEXT` means: a runtime with options (`java io=direct`), or the command of a probe."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.errors import DescriptionError
from crosswind.measure.runtime import go, java, node, python

_MODULES = {"java": java, "python": python, "go": go, "node": node}
RUNTIMES = tuple(_MODULES)
"""Those whose probes come with Crosswind."""
PROBES = Path(__file__).parent / "probes"


@dataclass(frozen=True)
class Spec:
    """A runtime as it was asked for.

    Attributes
    ----------
    name : str
        One of `RUNTIMES`, or "" for a command.
    options : dict of str to str
        Of the runtime, checked.
    command : tuple of str
        Of a probe of one's own.
    """

    name: str
    options: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The same as it is written on a command line."""
        if not self.name:
            return shlex.join(self.command)
        return " ".join([self.name, *(f"{key}={value}" for key, value in sorted(self.options.items()))])

    @property
    def compiles(self) -> bool:
        """Whether it compiles while it runs, so that its first seconds are not like the rest."""
        return self.name in ("java", "node")


@dataclass(frozen=True)
class Launch:
    """How a probe is started.

    Attributes
    ----------
    command : tuple of str
        Word by word.
    environment : dict of str to str
        Variables added to the environment.
    """

    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


def parse_runtime(text: str) -> Spec:
    """Read `java`, `java io=direct threads=virtual`, or the command of a probe such as `./my-probe --fast`.

    Raises
    ------
    DescriptionError
        When an option is unknown or its value not permitted.

    Examples
    --------
    >>> parse_runtime("java io=direct").options
    {'io': 'direct'}
    >>> parse_runtime("./my-probe --fast").command
    ('./my-probe', '--fast')
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise DescriptionError(f"runtime is {text!r}: {error}", "runtime", "close the quotes") from None
    if not words:
        hint = f"one of {', '.join(RUNTIMES)}, or the command of a probe"
        raise DescriptionError("runtime is empty", "runtime", hint)
    if words[0] not in _MODULES:
        return Spec("", {}, tuple(words))
    permitted: Mapping[str, tuple[str, ...] | str] = _MODULES[words[0]].OPTIONS
    options: dict[str, str] = {}
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if key not in permitted or not equals:
            takes = ", ".join(f"{name}={_values(values)}" for name, values in permitted.items())
            message = f"{words[0]} has no option {word!r}"
            raise DescriptionError(message, "runtime", f"KEY=VALUE, of {takes}")
        options[key] = _checked(words[0], key, value, permitted[key])
    return Spec(words[0], options)


def _values(permitted: tuple[str, ...] | str) -> str:
    return permitted if isinstance(permitted, str) else "|".join(permitted)


def _checked(runtime: str, key: str, value: str, permitted: tuple[str, ...] | str) -> str:
    def refuse(range_: str) -> DescriptionError:
        return DescriptionError(f"{key} of {runtime} is {value!r}; it must be {range_}", "runtime")

    if isinstance(permitted, tuple):
        if value not in permitted:
            raise refuse(f"one of {', '.join(permitted)}")
    elif permitted == "N":
        if not (value.isdecimal() and 1 <= int(value) <= 1024):
            raise refuse("1 to 1024")
    elif permitted == "SECONDS":
        try:
            seconds = float(value)
        except ValueError:
            seconds = -1.0
        if not 1e-6 <= seconds <= 10.0:
            raise refuse("1e-6 to 10 s")
    elif not value:
        raise refuse("the path of a program")
    return value


def launched(spec: Spec, directory: Path) -> Launch:
    """Return how to start a runtime; what has to be compiled for it is compiled into `directory`.

    Raises
    ------
    DescriptionError
        When it is not on this machine, or too old for an option.
    MeasurementError
        When its probe cannot be compiled.
    """
    if not spec.name:
        return Launch(spec.command)
    command, environment = _MODULES[spec.name].command(spec.options, PROBES, directory)
    return Launch(tuple(command), environment)
