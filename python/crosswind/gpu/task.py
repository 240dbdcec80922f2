"""The user's own kernel: a function that enqueues work of PyTorch or CuPy on the stream that is measured."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from crosswind.errors import CrosswindError, DescriptionError

HINT: Final = "name a function without arguments, as in --task train:step"
WARM_UP_CALLS: Final = 3
LEAD_S: Final = 0.02
FEW_CALLS: Final = 20
TRIES: Final = 3
LEAST_CALL_S: Final = 1e-6
MOST_CALL_S: Final = 1.0

Ahead = Callable[[int, float], tuple[float, float, float]]
"""Takes a number of calls and how long other work keeps the stream busy before them, s; returns the time of that work,
until the calls had returned, and of what they enqueued, s."""


@dataclass(frozen=True)
class Task:
    """A function that enqueues the work of one call on the current stream.

    Attributes
    ----------
    name : str
        In tables and files.
    function : callable
        Takes nothing; what it returns is dropped.
    """

    name: str
    function: Callable[[], object]

    @classmethod
    def of(cls, asked: str | Callable[[], object], taken: tuple[str, ...] = ()) -> Task:
        """Return the task of a function, or of `module:function`, which is imported, from the current directory, too.

        Raises
        ------
        DescriptionError
            When it cannot be imported or called, or uses neither PyTorch nor CuPy.
        """
        if callable(asked):
            module, name, function = getattr(asked, "__module__", ""), getattr(asked, "__qualname__", ""), asked
        else:
            module, function = _imported(asked)
            name = asked.rpartition(":")[2]
        name = name.rpartition(".")[2] or "task"
        if name in taken:
            name = f"{module}:{name}"
        if not any(library in sys.modules for library in ("torch", "cupy")):
            message = f'task "{name}" uses neither PyTorch nor CuPy, so its work cannot be put on the measured stream'
            raise DescriptionError(message, "task", "its module must import torch or cupy")
        return cls(name, function)

    def enqueue(self, calls: int) -> None:
        """Call the function this number of times."""
        for _ in range(calls):
            self.function()

    @contextmanager
    def on_stream(self, stream: int, index: int) -> Iterator[None]:
        """Make a stream of a device the current one of PyTorch and CuPy in this thread."""
        with ExitStack() as entered:
            torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
            if torch is not None:
                entered.enter_context(torch.cuda.stream(torch.cuda.ExternalStream(stream, device=f"cuda:{index}")))
            if cupy is not None:
                entered.enter_context(cupy.cuda.Device(index))
                entered.enter_context(cupy.cuda.ExternalStream(stream, index))
            yield

    @contextmanager
    def told(self) -> Iterator[None]:
        """Turn what the function raises into one sentence."""
        try:
            yield
        except CrosswindError:
            raise
        except Exception as error:
            first = (str(error).strip().splitlines() or [""])[0]
            message = f'task "{self.name}" raised {type(error).__name__}: {first}'
            raise DescriptionError(message, "task", "call it in Python, without crosswind, to see where") from error


@dataclass(frozen=True)
class Call:
    """What one call takes.

    Attributes
    ----------
    gpu_s : float
        Of the device, where the work is enqueued before it starts, s.
    host_s : float
        Of the processor, until the call has returned while the device is idle, s.
    """

    gpu_s: float
    host_s: float

    @property
    def seconds(self) -> float:
        """Time of a call among others: a processor that enqueues slower than the device works decides."""
        return max(self.gpu_s, self.host_s)


def examined(name: str, ahead: Ahead) -> Call:
    """Return what one call takes, behind other work and without.

    Raises
    ------
    DescriptionError
        When the function waits for the device, enqueues nothing on the stream, or is too long for a block.
    """
    ahead(WARM_UP_CALLS, 0.0)
    alone_s, whole_s = (min(values) for values in zip(*(ahead(1, 0.0)[1:] for _ in range(2)), strict=True))
    if whole_s > MOST_CALL_S:
        message = f'one call of task "{name}" takes {whole_s:.2g} s; it must be at most {MOST_CALL_S:g} s'
        raise DescriptionError(
            message, "task", "divide it: a block is one call or more, and a pair is 80 blocks or more"
        )
    wanted_s = min(max(LEAD_S, 2.0 * alone_s), MOST_CALL_S)
    for _ in range(TRIES):  # a busy processor may hold a call up once: one that waits is held up each time
        lead_s, behind_s, gpu_s = ahead(1, wanted_s)
        waits = behind_s - alone_s > lead_s / 2.0
        if not waits:
            break
    if waits:
        message = f'task "{name}" waits for the device: it must only enqueue work'
        hint = "leave out synchronize(), .item(), .cpu(), print() of a tensor, and whatever else reads a result"
        raise DescriptionError(message, "task", hint)
    calls = 1
    if gpu_s < FEW_CALLS * LEAST_CALL_S:  # events alone take a few microseconds
        calls = FEW_CALLS
        _, _, gpu_s = ahead(calls, LEAD_S)
        if gpu_s < calls * LEAST_CALL_S:
            message = f'task "{name}" enqueues nothing on the current stream: {calls} calls took {gpu_s * 1e6:.1f} µs'
            hint = "its tensors must be on the measured device, and its work on torch's or cupy's current stream"
            raise DescriptionError(message, "task", hint)
    return Call(gpu_s / calls, alone_s)


def _imported(asked: str) -> tuple[str, Callable[[], object]]:
    module, colon, name = asked.partition(":")
    if not (module and colon and name):
        raise DescriptionError(f'task is "{asked}"; with --gpu it must be MODULE:FUNCTION', "task", HINT)
    if (here := str(Path.cwd())) not in sys.path:  # as `python -m` does
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        hint = HINT if error.name == module.split(".")[0] else f"install {error.name} in the Python of crosswind"
        raise DescriptionError(f'task is "{asked}": {error}', "task", hint) from error
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0]
        raise DescriptionError(
            f'task is "{asked}": importing {module} raised {type(error).__name__}: {first}', "task", HINT
        ) from error
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise DescriptionError(f'task is "{asked}": {module} has no function {name}', "task", HINT)
    return module, found
