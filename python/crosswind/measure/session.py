"""How a measurement goes: which block comes when, and when it ends.

Its phases: `warm-up`, `bare` (no socket exists: the baseline), `calibrate` (unpaced: finds the top), then cycles of
`ladder` and `check` blocks, channel by channel in turn, and `together`, all channels at once.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from typing import Any

from crosswind import _core
from crosswind.errors import AgentLost, MeasurementError, warning
from crosswind.measure import calibration, design
from crosswind.measure.asked import Asked
from crosswind.measure.peer_process import peer_process
from crosswind.measure.recording import Recording
from crosswind.measure.stopping import GROWTH, Precision, precision, precision_together
from crosswind.measure.trust import warnings_of
from crosswind.measurement import Measurement

WARM_UP_S = 1.0
TRAFFIC_WARM_UP_S = 1.0
"""Seen, cause unknown: in its first second, sending costs 0.5 to 1 s of CPU per GB, and 0.13 s/GB then."""
BARE_S = 1.0
RENEWED_BLOCKS = 2
"""Blocks of traffic that are not used after connections were made anew, at the start of each cycle."""
TOGETHER_CYCLES = 10
TOGETHER_SHARE = 0.2
"""Most of the time that `together` blocks may take after channels were measured alone."""

Progress = Callable[[float, str], None]
Levels = list[float | None]


class _TimeUpError(Exception):
    pass


class Session:
    """One measurement on its way through its phases."""

    def __init__(self, asked: Asked, progress: Progress | None) -> None:
        self.asked = asked
        self.progress = progress
        self.max_seconds: float = asked["max_seconds"]
        self.random = Random(asked["seed"])
        self.peers = asked.peers or ["own"]
        self.channels: list[dict[str, Any]] = [
            {"peer": i, "direction": d, "unpaced_mb_per_s": 0.0, "top_mb_per_s": 0.0}
            for i in range(len(self.peers))
            for d in asked.directions
        ]
        self.recording = Recording(len(self.channels))
        self.timing = design.timing(0.0)
        self.cycle = 0
        self.ended = "time-limit"
        self.started = datetime.datetime.now(datetime.UTC)
        self.found: list[dict[str, str]] = []

    @property
    def tops(self) -> list[float]:
        """Top of each channel's ladder, MB/s."""
        return [channel["top_mb_per_s"] for channel in self.channels]

    def run(self) -> Measurement:
        """Go through all phases, as far as time and interruptions allow."""
        with ExitStack() as stack:
            if self.asked.peers is None:
                self.tell(0.0, "starting a peer process")
                self.peers = [stack.enter_context(peer_process(self.asked.placed.others))]
            configuration = json.dumps(self.asked.configuration(self.peers, self.channels))
            task = self.asked["task"]
            self.probe = _core.Probe(configuration, task if callable(task) else None)
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
                self.found.append(warning("peer-lost", str(lost), lost.hint or ""))
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
        for _ in range(calibration.TRIES):
            for _ in range(max(round(BARE_S * scale / self.timing.block_s), 3)):
                self.block(silent, "bare")
            if any(row["work"] > 0 and not row["settling"] for row in self._new_rows()):
                break
        self.tell(0.0, "connecting")
        tls = self.asked["tls"]
        self.probe.connect(self.asked["token"], tls and str(tls))
        round_trip_s = max(peer["rtt_s"] for peer in self._facts()["peers"])
        contended = self.asked["variation"] == "contention"
        self.timing = design.timing(round_trip_s, unit_s, contended=contended)
        for channel in range(len(self.channels)):
            self._calibrate(channel, scale)
        for channel in range(len(self.channels)):
            self._warm_traffic(channel, scale)
        if self.asked["direction"] == "both":
            self._cycles(list(range(1)), together=True)
        else:
            self._cycles(list(range(len(self.channels))), together=False)
            if len(self.channels) > 1 and self.asked["variation"] == "paced":
                for index in range(TOGETHER_CYCLES):
                    self.run_cycle(design.together_cycle(self.tops, index, self.random, self.timing.passes))

    def _facts(self) -> dict[str, Any]:
        """Return what is in force: peers, sockets, work."""
        facts: dict[str, Any] = json.loads(self.probe.header())
        return facts

    def _unit_s(self) -> float:
        """Time of one unit of work that cannot be cut; 0 for kernels, which count finer."""
        if not self._facts()["coarse"]:
            return 0.0
        table = self.recording.table()
        work = float(table["work"].to_numpy().sum())
        return float(table["dt_s"].to_numpy().sum()) / work if work > 0 else 0.0

    def _calibrate(self, channel: int, scale: float) -> None:
        """Find the rate of a channel and the top of its ladder."""
        name = self._channel_name(channel)
        self.tell(0.0, f"finding the rate of {name}")
        seconds = max(calibration.BLOCK_S * scale, self.timing.block_s)
        self.recording.add(self.probe.take())

        def move(level: float | None, blocks: int) -> list[calibration.Row]:
            for _ in range(blocks):
                self.block(self._only(channel, level), "calibrate", seconds)
            return [row for row in self._new_rows() if not row["settling"]]

        found = self.channels[channel]
        unpaced, rows = calibration.unpaced(move, channel, self.peers[found["peer"]])
        loopback = self._facts()["peers"][found["peer"]]["loopback"]
        if self.asked["top_mb_per_s"]:
            top = self.asked["top_mb_per_s"]
        elif loopback:
            top = design.top_on_loopback(unpaced)
        else:
            top = design.top_of_ladder(unpaced, calibration.limited_by_cpu(rows, self.asked["streams"]))
        found["unpaced_mb_per_s"], found["top_mb_per_s"] = unpaced, top
        if self.asked["variation"] == "contention":
            return  # nothing is paced there
        reached = True
        if self.asked["top_mb_per_s"]:
            move(top, calibration.TOP_BLOCKS)  # taken as given
        else:
            found["top_mb_per_s"], reached = calibration.reached_top(move, channel, top)
        if not reached:
            self.found.append(
                {
                    "code": "top-not-reached",
                    "message": f"{name} does not keep a paced rate of {self.tops[channel]:g} MB/s",
                    "hint": "give a lower top, or a smaller pacing chunk",
                }
            )

    def _warm_traffic(self, channel: int, scale: float) -> None:
        """Move bytes for a moment before any are counted: the first second of traffic was seen to cost more."""
        for _ in range(round(TRAFFIC_WARM_UP_S * scale / self.timing.block_s)):
            self.block(self._only(channel, self.tops[channel] or design.UNPACED), "calibrate")
        self.recording.add(self.probe.take())

    def _only(self, channel: int, level: float | None) -> Levels:
        levels: Levels = [0.0] * len(self.channels)
        levels[channel] = level
        return levels

    def _cycles(self, open_channels: list[int], together: bool) -> None:
        """Give each channel cycles in turn until all are known well enough, or the time is up."""
        count, index, ask_at = len(self.channels), 0, 1.0
        known: dict[int, Precision] = {}
        reserve = TOGETHER_SHARE * self.max_seconds if count > 1 and not together else 0.0
        together_s = TOGETHER_CYCLES * self._blocks_s(self.timing.passes * (len(design.LADDER) + 1))
        reserve = min(reserve, together_s)
        while open_channels:
            for channel in open_channels:
                if together:
                    blocks = design.together_cycle(self.tops, index, self.random, self.timing.passes)
                elif self.asked["variation"] == "contention":
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
                    seed = self.asked["seed"]
                    found = precision_together(so_far, seed) if together else precision(so_far, channel, seed)
                    if found:
                        known[channel] = found
                goals = self.asked["target"], self.asked["loss_target"]
                open_channels = [i for i in open_channels if i not in known or not known[i].reached(*goals)]
                self._tell_precision(known, open_channels, goals, reserve)
        self.ended = "settled"

    def _blocks_s(self, blocks: int) -> float:
        """Time that a cycle of so many blocks takes."""
        return (RENEWED_BLOCKS + blocks) * self.timing.block_s

    def run_cycle(self, blocks: list[design.Block], reserve: float = 0.0) -> None:
        """Run one cycle in other memory and over other connections than the last, if there is time for all of it."""
        if self._left_s() - reserve < self._blocks_s(len(blocks)):
            raise _TimeUpError
        self.recording.add(self.probe.take())
        self.probe.renew()
        for _ in range(RENEWED_BLOCKS):
            self.block([top or design.UNPACED for top in self.tops], "calibrate")
        for block in blocks:
            self.block(list(block.levels), block.phase, cycle=self.cycle, load=block.load)
        self.cycle += 1
        self.recording.add(self.probe.take())

    def block(self, levels: Levels, phase: str, seconds: float | None = None, cycle: int = -1, load: int = 0) -> None:
        """Set the levels and sample for so many seconds."""
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
        elapsed: float = self._facts()["elapsed_s"]
        return self.max_seconds - elapsed

    def _channel_name(self, channel: int) -> str:
        found = self.channels[channel]
        peer = self.peers[found["peer"]]
        return f"receiving from {peer}" if found["direction"] == "receive" else f"sending to {peer}"

    def tell(self, fraction: float, message: str) -> None:
        """Say how far it is."""
        if self.progress:
            self.progress(fraction, message)

    def _tell_precision(
        self, known: dict[int, Precision], open_channels: list[int], goals: tuple[float, float], reserve: float
    ) -> None:
        if not self.progress:
            return
        cycle_s = self._blocks_s(len(design.LADDER) * self.timing.passes)
        missing = sum(known[i].cycles_to_go(*goals) if i in known else math.inf for i in open_channels)
        left = max(min(missing * cycle_s + reserve, self._left_s()), 0.0)
        elapsed = self.max_seconds - self._left_s()
        worst = max((p.ir_half_width / abs(p.ir_s_per_mb) for p in known.values() if p.ir_s_per_mb), default=math.inf)
        word = f"IR known to {100 * worst:.0f} %" if worst < 1 else "measuring"
        self.tell(elapsed / max(elapsed + left, 1e-9), f"{word}, about {left:.0f} s left")

    def so_far(self, finished: bool = False) -> Measurement:
        """Return what there is as a measurement."""
        facts = self._facts()
        unknown = [{"address": peer, "host": "", "loopback": False, "rtt_s": 0.0} for peer in self.peers]
        header = {
            "schema_version": 1,
            "started": self.started.isoformat().replace("+00:00", "Z"),
            **self.asked.described(self.peers, facts["congestion_control"]),
            "peers": facts["peers"] or unknown,
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
            header["warnings"] += warnings_of(measurement, self.asked.placed, facts)
        return measurement
