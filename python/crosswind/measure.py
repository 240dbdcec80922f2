"""Measure how much communication slows this host's computation down.

The probe (`crates/measure`) executes; here is decided what it does when, and when to stop. `design.py` says which
levels come in which order, `stopping.py` when enough is known, `placement.py` which CPUs are used.

A measurement goes through phases: `warm-up`, `bare` (no socket exists: the baseline), `calibrate` (unpaced: finds the
top), then cycles of `ladder` and `check` blocks, channel by channel in turn, and `together`, all channels at once.
"""

from __future__ import annotations

import datetime
import json
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from random import Random
from typing import Any

from crosswind import _core, design
from crosswind.errors import AgentLost, DescriptionError, MeasurementError
from crosswind.host import describe
from crosswind.host.route import interface_to, split_address
from crosswind.measurement import Measurement
from crosswind.peer_process import peer_process
from crosswind.placement import Placed, place
from crosswind.recording import Recording
from crosswind.stopping import GROWTH, Precision, precision, precision_together
from crosswind.trust import warnings_of

KERNELS = ("diagonals", "burn", "triad")
DIRECTIONS = ("receive", "send", "each", "both")
UNITS = {
    "diagonals": "diagonals of the matrix's square",
    "burn": "million additions of a sine",
    "triad": "million elements of a triad",
    "command": "run of the command",
    "callable": "call",
}

SOCKET_BUFFER_BYTES = 1 << 20
"""Default of each socket buffer: under autotuning it grows while one measures, which moves IR two-fold."""
CONGESTION_CONTROL = "cubic"
"""Default where it may be set: BBR paces by timers of its own, which moves IR and halves the reach."""

WARM_UP_S = 1.0
TRAFFIC_WARM_UP_S = 1.0
"""Seen, cause unknown: in its first second, sending costs 0.5 to 1 s of CPU per GB, and 0.13 s/GB then."""
BARE_S = 1.0
CALIBRATE_BLOCKS = 8
CALIBRATE_BLOCK_S = 0.15
CALIBRATE_TRIES = 3
"""Where nothing moves at first: on a crowded host a thread may wait half a second for its CPU."""
CALIBRATE_QUANTILE = 0.75
"""Of the blocks' rates: others on the host lower the rate of some blocks, and nothing raises it."""
REACHED = 0.97
"""Part of the asked rate that the top of a ladder must reach, in one block at least, to count as paced."""
LEAST_SHARE = 0.2
"""Least part of a block that counts as left to us; less says nothing about a rate."""
TOP_TRIES = 6
BUSY = 0.8
"""Part of its time that a traffic thread runs or waits for the CPU, above which the CPU limits the rate."""
TOGETHER_CYCLES = 10
TOGETHER_SHARE = 0.2
"""Most of the time that `together` blocks may take after channels were measured alone."""

Progress = Callable[[float, str], None]
Levels = list[float | None]


class _TimeUpError(Exception):
    pass


def measure(
    peer: str | Sequence[str] | None = None,
    *,
    kernel: str = "diagonals",
    matrix: int = 1024,
    diagonals: int = 1,
    task: str | Callable[[], object] | None = None,
    direction: str = "each",
    message_bytes: int = 1_000_000,
    streams: int = 1,
    wait: str = "event",
    paced_by: str = "sender",
    pacing_chunk_bytes: int = 65_536,
    variation: str = "paced",
    loaders: Sequence[str] = (),
    placement: str = "same-core",
    compute_cpus: Sequence[int] | None = None,
    traffic_cpus: Sequence[int] | None = None,
    nice: int = 0,
    traffic_nice: int = 0,
    socket_buffer_bytes: int | None = None,
    congestion_control: str | None = None,
    top_mb_per_s: float | None = None,
    target: float = 0.05,
    loss_target: float = 0.01,
    max_seconds: float = 60.0,
    seed: int = 1,
    name: str | None = None,
    progress: Progress | None = None,
) -> Measurement:
    """Compute and communicate at the same time, at many transfer rates, and sample both.

    Parameters
    ----------
    peer : str or sequence of str, optional
        HOST:PORT of a `crosswind serve`, or several. None starts a peer process on this machine and ends it.
    kernel : {"diagonals", "burn", "triad"}
        What computes: diagonals of a matrix's square, arithmetic without memory, or a stream bound by memory.
    matrix : int
        Side of the matrix of `diagonals`, 8 to 4096.
    diagonals : int
        Diagonals per unit of work, 1 to `matrix`.
    task : str or callable, optional
        Your own work instead of a kernel: a command, or a Python callable without arguments, done again and again.
    direction : {"each", "receive", "send", "both"}
        Seen from this host. "each": both directions alone, then some cycles of both at once; "both": only at once.
    message_bytes : int
        Bytes per message, 1 000 to 64 000 000.
    streams : int
        Connections per direction and peer, 1 to 64.
    wait : {"event", "poll"}
        How this host waits for bytes: blocked in the kernel, or asking again and again.
    paced_by : {"peer", "sender", "receiver"}
        Which end keeps the rate. "sender": bytes arrive and leave in chunks at even times. "peer" (for sending: the
        receiver): pacing costs this host nothing, but a paced receiver leaves a queue in the send buffer, which either
        host's CPU then moves, in turns that last for seconds: expect wide intervals.
    pacing_chunk_bytes : int
        Granularity of the pacing, 1 000 to 64 000 000 bytes.
    variation : {"paced", "contention"}
        How the rate is varied: by pacing, or (the papers' way) by other senders that load the peer.
    loaders : sequence of str
        For "contention": HOST:PORT of `crosswind serve` processes that load the peers; otherwise each loads itself.
    placement : {"same-core", "other-core", "free", "explicit"}
        Where the threads go; it decides the answer.
    compute_cpus, traffic_cpus : sequence of int, optional
        CPUs for "explicit".
    nice, traffic_nice : int
        Nice levels of the computing thread and of the threads that move bytes, -20 to 19.
    socket_buffer_bytes : int, optional
        Each socket buffer, bytes; None: 1 MiB; 0: the kernel's autotuning, under which IR drifts.
    congestion_control : str, optional
        Of the data connections; None: cubic where it may be set.
    top_mb_per_s : float, optional
        Top of the ladder, MB/s; give it to compare settings over the same range. None: found by calibration.
    target : float
        Stop when the 95 % interval of every IR is within this part of it ...
    loss_target : float
        ... or the loss at the top is known to this part of the compute rate.
    max_seconds : float
        Stop at the latest then, at least 1 s.
    seed : int
        Of the shuffled levels.
    name : str, optional
        What to call the measurement.
    progress : callable, optional
        Called as `progress(fraction, message)`, with the time left in the message.

    Returns
    -------
    Measurement
        `header["ended"]` says why it ended. Ctrl-C gives what was sampled until then, "interrupted".

    Raises
    ------
    DescriptionError
        When an argument is out of its range.
    MeasurementError
        When a peer cannot be reached, a setting is refused by the system, or the task fails.
    AgentLost
        When a peer goes away before anything useful was sampled.

    Examples
    --------
    >>> found = measure(matrix=64, direction="receive", max_seconds=4)
    >>> found.header["channels"][0]["direction"], found.samples.num_rows > 20
    ('receive', True)
    """
    arguments = dict(locals())
    for field, value, permitted in (
        ("kernel", kernel, KERNELS),
        ("direction", direction, DIRECTIONS),
        ("wait", wait, ("event", "poll")),
        ("paced_by", paced_by, ("peer", "sender", "receiver")),
        ("variation", variation, ("paced", "contention")),
    ):
        if value not in permitted:
            raise DescriptionError(f"{field} is {value!r}; it must be one of {', '.join(permitted)}", field)
    for field, number, least in (("target", target, 0.0), ("loss_target", loss_target, 0.0)):
        if not (math.isfinite(number) and number > least):
            raise DescriptionError(f"{field} is {number}; it must be greater than {least:g}", field)
    if not (math.isfinite(max_seconds) and max_seconds >= 1):
        raise DescriptionError(f"max_seconds is {max_seconds} s; it must be at least 1 s", "max_seconds")
    if top_mb_per_s is not None and not (math.isfinite(top_mb_per_s) and top_mb_per_s > 0):
        raise DescriptionError(f"top_mb_per_s is {top_mb_per_s} MB/s; it must be greater than 0 MB/s", "top_mb_per_s")
    if direction == "both" and variation == "contention":
        raise DescriptionError(
            "direction is 'both' with variation 'contention'", "direction", "contention studies one direction at a time"
        )
    if peer is not None and not isinstance(peer, str) and not peer:
        raise DescriptionError("peer is []; it must be HOST:PORT, or several", "peer")
    for address in [peer] if isinstance(peer, str) else [*(peer or ()), *loaders]:
        if split_address(address)[1] is None:
            raise DescriptionError(f"peer is {address!r}; it must be HOST:PORT", "peer", f"such as {address}:7117")
    placed = place(placement, compute_cpus, traffic_cpus)
    return _Session(arguments, placed).run()


class _Session:
    """One measurement on its way through its phases."""

    def __init__(self, arguments: dict[str, Any], placed: Placed) -> None:
        self.arguments = arguments
        self.placed = placed
        self.max_seconds: float = arguments["max_seconds"]
        self.random = Random(arguments["seed"])
        peer = arguments["peer"]
        self.peers: list[str] = [peer] if isinstance(peer, str) else list(peer or ["own"])
        directions = ["receive", "send"] if arguments["direction"] in ("each", "both") else [arguments["direction"]]
        self.channels: list[dict[str, Any]] = [
            {"peer": i, "direction": d, "unpaced_mb_per_s": 0.0, "top_mb_per_s": 0.0}
            for i in range(len(self.peers))
            for d in directions
        ]
        self.recording = Recording(len(self.channels))
        self.timing = design.timing(0.0)
        self.cycle = 0
        self.ended = "time-limit"
        self.started = datetime.datetime.now(datetime.UTC)
        self.found: list[dict[str, str]] = []

    @property
    def tops(self) -> list[float]:
        return [channel["top_mb_per_s"] for channel in self.channels]

    def run(self) -> Measurement:
        with ExitStack() as stack:
            if self.arguments["peer"] is None:
                self.tell(0.0, "starting a peer process")
                self.peers = [stack.enter_context(peer_process(self.placed.others))]
            congestion = self.arguments["congestion_control"] or _settable(CONGESTION_CONTROL)
            task = self.arguments["task"]
            self.probe = _core.Probe(json.dumps(self._config(congestion)), task if callable(task) else None)
            stack.callback(self.probe.close)
            try:
                self._phases()
            except _TimeUpError:
                pass
            except KeyboardInterrupt:
                self.ended = "interrupted"
            except AgentLost as lost:
                if self.cycle < 2:
                    raise
                self.ended = "peer-lost"
                self.found.append({"code": "peer-lost", "message": str(lost), "hint": lost.hint or ""})
            self.recording.add(self.probe.take())
            if not len(self.recording):
                raise KeyboardInterrupt if self.ended == "interrupted" else self._too_short()
            measurement = self.so_far(finished=True)
        self.tell(1.0, self.ended)
        return measurement

    def _too_short(self) -> MeasurementError:
        return MeasurementError(
            f"nothing could be sampled within {self.max_seconds:g} s", "too-short", "give it more --max-seconds"
        )

    def _phases(self) -> None:
        scale = min(1.0, self.max_seconds / 20)
        silent: Levels = [0.0] * len(self.channels)
        self.tell(0.0, "warming up")
        self.block(silent, "warm-up", WARM_UP_S * scale)
        self.recording.add(self.probe.take())
        unit_s = self._unit_s()
        self.timing = design.timing(0.0, unit_s)
        for _ in range(CALIBRATE_TRIES):
            for _ in range(max(round(BARE_S * scale / self.timing.block_s), 3)):
                self.block(silent, "bare")
            if any(row["work"] > 0 and not row["settling"] for row in self._new_rows()):
                break
        self.tell(0.0, "connecting")
        self.probe.connect()
        round_trip_s = max(peer["rtt_s"] for peer in self.probe.header()["peers"])
        contended = self.arguments["variation"] == "contention"
        self.timing = design.timing(round_trip_s, unit_s, contended=contended)
        for channel in range(len(self.channels)):
            self._calibrate(channel, scale)
        for channel in range(len(self.channels)):
            self._warm_traffic(channel, scale)
        if self.arguments["direction"] == "both":
            self._cycles(list(range(1)), together=True)
        else:
            self._cycles(list(range(len(self.channels))), together=False)
            if len(self.channels) > 1 and self.arguments["variation"] == "paced":
                for index in range(TOGETHER_CYCLES):
                    self.run_cycle(design.together_cycle(self.tops, index, self.random, self.timing.passes))

    def _unit_s(self) -> float:
        """Time of one unit of work that cannot be cut; 0 for kernels, which count finer."""
        if not self.probe.header()["coarse"]:
            return 0.0
        table = self.recording.table()
        work = float(table["work"].to_numpy().sum())
        return float(table["dt_s"].to_numpy().sum()) / work if work > 0 else 0.0

    def _calibrate(self, channel: int, scale: float) -> None:
        """Find the rate without pacing, and from it a top that is the same from run to run and is reached."""
        self.tell(0.0, f"finding the rate of {self._channel_name(channel)}")
        levels: Levels = [0.0] * len(self.channels)
        levels[channel] = design.UNPACED
        seconds = max(CALIBRATE_BLOCK_S * scale, self.timing.block_s)
        self.recording.add(self.probe.take())
        for _ in range(CALIBRATE_TRIES):
            for _ in range(CALIBRATE_BLOCKS):
                self.block(levels, "calibrate", seconds)
            rows = [row for row in self._new_rows() if not row["settling"]]
            unpaced = _upper_quartile(_rates(rows, channel))
            if unpaced > 0:
                break
        if unpaced <= 0:
            peer = self.peers[self.channels[channel]["peer"]]
            raise MeasurementError(f"no byte moved to or from {peer}", "no-traffic", "does a firewall drop data?")
        busy = sum(row["traffic_cpu_s"] + row["traffic_wait_s"] for row in rows) / sum(row["dt_s"] for row in rows)
        loopback = self.probe.header()["peers"][self.channels[channel]["peer"]]["loopback"]
        by_cpu = loopback or busy > BUSY * self.arguments["streams"]
        self.channels[channel]["unpaced_mb_per_s"] = unpaced
        top = self.arguments["top_mb_per_s"] or design.top_of_ladder(unpaced, by_cpu)
        self.channels[channel]["top_mb_per_s"] = top
        if self.arguments["variation"] == "contention":
            return
        for _ in range(TOP_TRIES):
            levels[channel] = self.channels[channel]["top_mb_per_s"] = top
            for _ in range(CALIBRATE_BLOCKS // 2):
                self.block(levels, "calibrate", seconds)
            rows = [row for row in self._new_rows() if not row["settling"]]
            if self.arguments["top_mb_per_s"] or max(_rates(rows, channel)) >= REACHED * top:
                return
            top = design.top_of_ladder(top / design.PART_WHERE_CPU_LIMITS * 0.99, limited_by_cpu=True)
        self.found.append(
            {
                "code": "top-not-reached",
                "message": f"{self._channel_name(channel)} does not keep a paced rate of {top:g} MB/s",
                "hint": "give a lower top, or a smaller pacing chunk",
            }
        )

    def _warm_traffic(self, channel: int, scale: float) -> None:
        """Move bytes for a moment before any are counted: the first second of traffic was seen to cost more."""
        levels: Levels = [0.0] * len(self.channels)
        levels[channel] = self.tops[channel] or design.UNPACED
        for _ in range(round(TRAFFIC_WARM_UP_S * scale / self.timing.block_s)):
            self.block(levels, "calibrate")
        self.recording.add(self.probe.take())

    def _cycles(self, open_channels: list[int], together: bool) -> None:
        """Give each channel cycles in turn until all are known well enough, or the time is up."""
        count, index, ask_at = len(self.channels), 0, 1.0
        known: dict[int, Precision] = {}
        reserve = TOGETHER_SHARE * self.max_seconds if count > 1 and not together else 0.0
        together_s = TOGETHER_CYCLES * self.timing.passes * (len(design.LADDER) + 1) * self.timing.block_s
        reserve = min(reserve, together_s)
        while open_channels:
            for channel in open_channels:
                if together:
                    blocks = design.together_cycle(self.tops, index, self.random, self.timing.passes)
                elif self.arguments["variation"] == "contention":
                    blocks = design.contention_cycle(channel, count, self.random)
                else:
                    blocks = design.ladder_cycle(channel, self.tops, index, self.random, self.timing.passes)
                try:
                    self.run_cycle(blocks, reserve)
                except _TimeUpError:
                    return
            index += 1
            if index >= ask_at:
                ask_at = max(index + 1, index * GROWTH)
                so_far = self.so_far()
                for channel in open_channels:
                    seed = self.arguments["seed"]
                    found = precision_together(so_far, seed) if together else precision(so_far, channel, seed)
                    if found:
                        known[channel] = found
                goals = self.arguments["target"], self.arguments["loss_target"]
                open_channels = [i for i in open_channels if i not in known or not known[i].reached(*goals)]
                self._tell_precision(known, open_channels, goals, reserve)
        self.ended = "settled"

    def run_cycle(self, blocks: list[design.Block], reserve: float = 0.0) -> None:
        """Run one cycle, if there is time for all of it."""
        if self._left_s() - reserve < len(blocks) * self.timing.block_s:
            raise _TimeUpError
        for block in blocks:
            self.block(list(block.levels), block.phase, cycle=self.cycle, load=block.load)
        self.cycle += 1
        self.recording.add(self.probe.take())

    def block(self, levels: Levels, phase: str, seconds: float | None = None, cycle: int = -1, load: int = 0) -> None:
        seconds = seconds or self.timing.block_s
        self.probe.run_block(
            levels,
            seconds,
            self.timing.settle_s,
            seconds - self.timing.settle_s,
            phase,
            cycle,
            load,
            patience_s=self.max_seconds,
        )

    def _new_rows(self) -> list[dict[str, Any]]:
        columns = self.probe.take()
        self.recording.add(columns)
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def _left_s(self) -> float:
        elapsed: float = self.probe.header()["elapsed_s"]
        return self.max_seconds - elapsed

    def _channel_name(self, channel: int) -> str:
        found = self.channels[channel]
        peer = self.peers[found["peer"]]
        return f"receiving from {peer}" if found["direction"] == "receive" else f"sending to {peer}"

    def tell(self, fraction: float, message: str) -> None:
        if self.arguments["progress"]:
            self.arguments["progress"](fraction, message)

    def _tell_precision(
        self, known: dict[int, Precision], open_channels: list[int], goals: tuple[float, float], reserve: float
    ) -> None:
        if not self.arguments["progress"]:
            return
        cycle_s = len(design.LADDER) * self.timing.passes * self.timing.block_s
        missing = sum(known[i].cycles_to_go(*goals) if i in known else math.inf for i in open_channels)
        left = max(min(missing * cycle_s + reserve, self._left_s()), 0.0)
        elapsed = self.max_seconds - self._left_s()
        worst = max((p.ir_half_width / abs(p.ir_s_per_mb) for p in known.values() if p.ir_s_per_mb), default=math.inf)
        word = f"IR known to {100 * worst:.0f} %" if worst < 1 else "measuring"
        self.tell(elapsed / max(elapsed + left, 1e-9), f"{word}, about {left:.0f} s left")

    def so_far(self, finished: bool = False) -> Measurement:
        """Return what there is as a measurement."""
        facts = self.probe.header()
        header = {
            "schema_version": 1,
            "name": self.arguments["name"] or self._default_name(),
            "started": self.started.isoformat().replace("+00:00", "Z"),
            "command": list(map(str, sys.argv)) or ["crosswind.measure"],
            "seed": self.arguments["seed"],
            "host": self._host(),
            "kernel": self._kernel(),
            "placement": {
                "mode": self.arguments["placement"],
                "compute_cpus": list(self.placed.compute),
                "traffic_cpus": list(self.placed.traffic),
                "sampler_cpus": list(self.placed.others),
                "compute_nice": self.arguments["nice"],
                "traffic_nice": self.arguments["traffic_nice"],
            },
            "traffic": {
                "message_bytes": self.arguments["message_bytes"],
                "streams": self.arguments["streams"],
                "wait": self.arguments["wait"],
                "paced_by": self.arguments["paced_by"],
                "pacing_chunk_bytes": self.arguments["pacing_chunk_bytes"],
                "congestion_control": facts["congestion_control"],
                "socket_buffer_bytes": self._buffer(),
            },
            "variation": self.arguments["variation"],
            "peers": facts["peers"]
            or [{"address": p, "host": "", "loopback": False, "rtt_s": 0.0} for p in self.peers],
            "channels": self.channels,
            "block_s": self.timing.block_s,
            "settle_s": self.timing.settle_s,
            "interval_s": self.timing.interval_s,
            "elapsed_s": facts["elapsed_s"],
            "ended": self.ended,
            "warnings": list(self.found),
        }
        measurement = Measurement(self.recording.table(), header)
        if finished:
            header["warnings"] += warnings_of(measurement, self.placed, facts)
        return measurement

    def _host(self) -> dict[str, Any]:
        if not hasattr(self, "_described"):
            interfaces = sorted({interface_to(peer) for peer in self.peers})
            self._described = describe(self.placed.compute, [name for name in interfaces if name != "unknown"] or None)
        return self._described

    def _buffer(self) -> int | None:
        asked = self.arguments["socket_buffer_bytes"]
        return (SOCKET_BUFFER_BYTES if asked is None else asked) or None

    def _kernel_name(self) -> str:
        task = self.arguments["task"]
        if task is None:
            return str(self.arguments["kernel"])
        return "callable" if callable(task) else "command"

    def _kernel(self) -> dict[str, Any]:
        name, task = self._kernel_name(), self.arguments["task"]
        counted = name == "diagonals"
        return {
            "name": name,
            "unit": UNITS[name],
            "matrix": self.arguments["matrix"] if counted else None,
            "diagonals": self.arguments["diagonals"] if counted else None,
            "task": getattr(task, "__qualname__", repr(task)) if callable(task) else task,
        }

    def _default_name(self) -> str:
        what = self.arguments["task"] if isinstance(self.arguments["task"], str) else self._kernel_name()
        return f"{what} against traffic with {', '.join(self.peers)}"

    def _config(self, congestion: str | None) -> dict[str, Any]:
        task = self.arguments["task"]
        taken = ("message_bytes", "streams", "wait", "paced_by", "pacing_chunk_bytes", "traffic_nice")
        return {
            "kernel": {
                "name": self._kernel_name(),
                "matrix": self.arguments["matrix"],
                "diagonals": self.arguments["diagonals"],
                "task": task if isinstance(task, str) else None,
            },
            "peers": self.peers,
            "channels": [{"peer": c["peer"], "direction": c["direction"]} for c in self.channels],
            "loaders": list(self.arguments["loaders"]),
            **{name: self.arguments[name] for name in taken},
            "socket_buffer_bytes": self._buffer(),
            "congestion_control": congestion,
            "compute_cpus": self.placed.compute,
            "traffic_cpus": self.placed.traffic,
            "sampler_cpus": self.placed.others,
            "compute_nice": self.arguments["nice"],
        }


def _settable(congestion: str) -> str | None:
    """Return the congestion control if this process may set it, else None."""
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        except OSError:
            return None
    return congestion


def _rates(rows: list[dict[str, Any]], channel: int) -> list[float]:
    """Return the rates of a channel, MB per second that others left to us on the computing CPU."""

    def seconds(row: dict[str, Any]) -> float:
        foreign: float = row["foreign_cpu_s"]
        left: float = row["dt_s"] - (foreign if math.isfinite(foreign) else 0.0)
        return max(left, LEAST_SHARE * float(row["dt_s"]))

    return [row[f"channel{channel}_mb"] / seconds(row) for row in rows]


def _upper_quartile(rates: list[float]) -> float:
    return sorted(rates)[math.floor(CALIBRATE_QUANTILE * len(rates))]
