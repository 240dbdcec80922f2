"""What is to be measured: the arguments checked, as the probe takes them and as the file records them."""

from __future__ import annotations

import math
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crosswind import _core
from crosswind.documents import Arguments
from crosswind.errors import DescriptionError
from crosswind.host.description import describe
from crosswind.host.route import interface_to, split_address
from crosswind.measure.placement import place
from crosswind.measure.runtime import Launch, Spec, parse_runtime
from crosswind.measure.task import for_probe

if TYPE_CHECKING:
    from crosswind.documents.measurement import Direction, Host

KERNELS = tuple(name for name, _ in _core.KINDS["kernel"])
DIRECTIONS = ("receive", "send", "each", "both")
UNITS = {**dict(_core.KINDS["kernel"]), "command": "run of the command", "callable": "call"}

SOCKET_BUFFER_BYTES = 1 << 20
"""Default of each socket buffer: under autotuning it grows while one measures, which moves IR two-fold."""
CONGESTION_CONTROL = "cubic"
"""Default where it may be set: BBR paces by timers of its own, which moves IR and halves the reach."""
CHOICES = {
    "kernel": KERNELS,
    "direction": DIRECTIONS,
    "wait": ("event", "poll"),
    "paced_by": (None, "peer", "sender", "receiver"),
    "variation": ("paced", "contention"),
    "pin": ("process", "threads"),
    "beside": (None, "native"),
}
FORKS = 5
"""Starts of a runtime in one measurement, where nothing else is said."""
MOST_FORKS = 50


class Options:
    """The arguments of `measure`, and where they put the threads.

    Raises
    ------
    DescriptionError
        When an argument is out of its range.
    """

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        _check(arguments)
        self.arguments = arguments
        self.spec: Spec | None = parse_runtime(arguments["runtime"]) if arguments["runtime"] is not None else None
        self.placed = place(arguments["placement"], arguments["compute_cpus"], arguments["traffic_cpus"])

    def __getitem__(self, name: str) -> Any:
        if name == "paced_by":
            # A process of another language keeps no rates, and one beside it must be measured the same way.
            return self.arguments[name] or ("peer" if self.spec else "sender")
        return self.arguments[name]

    @property
    def in_shell(self) -> bool:
        """Whether a shell runs the task."""
        return bool(self.arguments.get("shell", False))

    @property
    def forks(self) -> int:
        """Starts of the runtime; 1 without one."""
        return (self["forks"] or FORKS) if self.spec else 1

    @property
    def peers(self) -> list[str] | None:
        """The peers that were named; None where this machine is to be its own."""
        peer = self["peer"]
        return [peer] if isinstance(peer, str) else None if peer is None else list(peer)

    @property
    def directions(self) -> list[Direction]:
        """Directions of the channels with each peer."""
        return ["receive", "send"] if self["direction"] in ("each", "both") else [self["direction"]]

    def _kernel_name(self) -> str:
        task = self["task"]
        if task is None:
            return str(self["kernel"])
        return "callable" if callable(task) else "command"

    def _socket_buffer(self) -> int | None:
        asked = self["socket_buffer_bytes"]
        return (SOCKET_BUFFER_BYTES if asked is None else asked) or None

    def configuration(
        self, peers: Sequence[str], channels: Sequence[Mapping[str, Any]], launch: Launch | None = None
    ) -> Arguments:
        """Return what the probe is started with: our own threads, or a process of another language."""
        foreign = launch and {
            "command": list(launch.command),
            "environment": list(launch.environment.items()),
            "pin": self["pin"],
            "own_work": self["own_work"],
        }
        taken = ("message_bytes", "streams", "wait", "paced_by", "pacing_chunk_bytes")
        return {
            "kernel": {
                "name": self._kernel_name(),
                "matrix": self["matrix"],
                "diagonals": self["diagonals"],
                "task": for_probe(task, shell=self.in_shell) if isinstance(task := self["task"], str) else None,
                "foreign": foreign,
            },
            "peers": list(peers),
            "channels": [{"peer": c["peer"], "direction": c["direction"]} for c in channels],
            "loaders": list(self["loaders"]),
            **{name: self[name] for name in taken},
            "socket_buffer_bytes": self._socket_buffer(),
            "congestion_control": self["congestion_control"] or _settable(CONGESTION_CONTROL),
            "placement": {
                "compute_cpus": self.placed.compute,
                "traffic_cpus": self.placed.traffic,
                "sampler_cpus": self.placed.others,
                "compute_nice": self["nice"],
                "traffic_nice": self["traffic_nice"],
            },
        }

    def described(
        self, peers: Sequence[str], facts: Mapping[str, Any], launch: Launch | None = None, forks: int = 1
    ) -> Arguments:
        """Return what the file's header says of it; `facts` are those of the probe, `forks` were started."""
        told = facts["foreign"]
        runtime = told and {
            **told,
            "command": list(launch.command) if launch else [],
            "pin": self["pin"],
            "forks": forks,
            "own_work": self["own_work"],
        }
        return {
            "name": self["name"] or self._default_name(peers, launch is not None),
            "command": list(map(str, sys.argv)) or ["crosswind.measure"],
            "seed": self["seed"],
            "host": self._host(peers),
            "kernel": self._kernel(),
            "placement": {
                "mode": self["placement"],
                "compute_cpus": list(self.placed.compute),
                "traffic_cpus": list(self.placed.traffic),
                "sampler_cpus": list(self.placed.others),
                "compute_nice": self["nice"],
                "traffic_nice": self["traffic_nice"],
            },
            "traffic": {
                "message_bytes": self["message_bytes"],
                "streams": self["streams"],
                "wait": self["wait"],
                "paced_by": self["paced_by"],
                "pacing_chunk_bytes": self["pacing_chunk_bytes"],
                "congestion_control": facts["congestion_control"],
                "socket_buffer_bytes": self._socket_buffer(),
            },
            **({"runtime": runtime} if runtime else {}),
            "variation": self["variation"],
        }

    def _default_name(self, peers: Sequence[str], by_runtime: bool) -> str:
        what = self["task"] if isinstance(self["task"], str) else self._kernel_name()
        what = self.spec.text if by_runtime and self.spec else what
        return f"{what} against traffic with {', '.join(peers)}"

    def _kernel(self) -> Arguments:
        name, task = self._kernel_name(), self["task"]
        counted = name == "diagonals"
        return {
            "name": name,
            "unit": UNITS[name],
            "matrix": self["matrix"] if counted else None,
            "diagonals": self["diagonals"] if counted else None,
            "task": getattr(task, "__qualname__", repr(task)) if callable(task) else task,
        }

    def _host(self, peers: Sequence[str]) -> Host:
        if not hasattr(self, "_described_host"):
            interfaces = sorted({interface_to(peer) for peer in peers} - {"unknown"})
            self._described_host = describe(self.placed.compute, interfaces or None)
        return self._described_host


def _check(asked: Mapping[str, Any]) -> None:
    for field, permitted in CHOICES.items():
        if asked[field] not in permitted:
            names = ", ".join(filter(None, permitted))
            raise DescriptionError(f"{field} is {asked[field]!r}; it must be one of {names}", field)
    for field in ("target", "loss_target"):
        if not (math.isfinite(asked[field]) and asked[field] > 0):
            raise DescriptionError(f"{field} is {asked[field]}; it must be greater than 0", field)
    seconds, top, peer = asked["max_seconds"], asked["top_mb_per_s"], asked["peer"]
    if not (math.isfinite(seconds) and seconds >= 1):
        raise DescriptionError(f"max_seconds is {seconds} s; it must be at least 1 s", "max_seconds")
    if top is not None and not (math.isfinite(top) and top > 0):
        raise DescriptionError(f"top_mb_per_s is {top} MB/s; it must be greater than 0 MB/s", "top_mb_per_s")
    if asked["direction"] == "both" and asked["variation"] == "contention":
        raise DescriptionError(
            "direction is 'both' with variation 'contention'", "direction", "contention studies one direction at a time"
        )
    if isinstance(asked["task"], str):
        for_probe(asked["task"], shell=bool(asked.get("shell", False)))
    elif asked.get("shell", False):
        raise DescriptionError("shell is given without a command as task", "shell", "add --task 'COMMAND'")
    (_check_without_runtime if asked["runtime"] is None else _check_with_runtime)(asked)
    if peer is not None and not peer:
        raise DescriptionError(f"peer is {peer!r}; it must be HOST:PORT, or several", "peer")
    for address in [peer] if isinstance(peer, str) else [*(peer or ()), *asked["loaders"]]:
        if split_address(address)[1] is None:
            raise DescriptionError(f"peer is {address!r}; it must be HOST:PORT", "peer", f"such as {address}:7117")


def _check_without_runtime(asked: Mapping[str, Any]) -> None:
    for field, usual in (("beside", None), ("forks", None), ("own_work", False), ("pin", "process")):
        if asked[field] != usual:
            raise DescriptionError(f"{field} is given without a runtime", field, "add --runtime java, for example")


def _check_with_runtime(asked: Mapping[str, Any]) -> None:
    forks = asked["forks"]
    if forks is not None and not 1 <= forks <= MOST_FORKS:
        raise DescriptionError(f"forks is {forks}; it must be 1 to {MOST_FORKS}", "forks")
    if asked["task"] is not None:
        hint = "a probe of your own computes its own work with --own-work"
        raise DescriptionError("task is given beside a runtime, which computes by itself", "task", hint)
    usual = {"variation": "paced", "wait": "event"}
    for field, permitted in usual.items():
        if asked[field] != permitted:
            raise DescriptionError(f"{field} is {asked[field]!r}; with a runtime it must be {permitted!r}", field)
    if asked["paced_by"] not in (None, "peer"):
        hint = "leave --paced-by out"
        raise DescriptionError(
            f"paced_by is {asked['paced_by']!r}; with a runtime the peer keeps the rates", "paced_by", hint
        )
    own = asked["placement"] == "explicit" and set(asked["compute_cpus"] or ()) != set(asked["traffic_cpus"] or ())
    if asked["placement"] == "other-core" or own:
        message = "a runtime's computing and traffic cannot be put on different CPUs: its scheduler places them"
        raise DescriptionError(message, "placement", "same-core, free, or explicit with the same CPUs for both")
    if asked["traffic_nice"] != 0:
        raise DescriptionError(
            "traffic_nice is given with a runtime, whose threads share one nice level", "traffic_nice"
        )
    if asked["own_work"] and asked["beside"]:
        raise DescriptionError("beside is given with own_work: there is no native version of it", "beside")


def _settable(congestion: str) -> str | None:
    """Return the congestion control if this process may set it, else None."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        except OSError:
            return None
    return congestion
