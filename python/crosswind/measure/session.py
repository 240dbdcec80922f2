"""How a measurement goes: which block comes when, and when it ends.

Its phases: `warm-up`, `bare` (no socket exists: the baseline), `calibrate` (unpaced: finds the top), then cycles of
`ladder` and `check` blocks, channel by channel in turn, and `together`, all channels at once. A runtime goes through
them once for each fork, and takes turns with our own threads where it is measured beside them.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from crosswind.documents import Row
from crosswind.errors import AgentLost, MeasurementError, Notice, warning
from crosswind.measure import calibration, design
from crosswind.measure.options import Options
from crosswind.measure.peer_process import peer_process
from crosswind.measure.runtime import Launch, launched, warm_up
from crosswind.measure.stopping import GROWTH, Precision, precision, precision_together
from crosswind.measure.subject import Subject
from crosswind.measure.task import refuse_slow
from crosswind.measure.trust import warnings_of
from crosswind.measurement import Measurement
from crosswind.terminal.progress import duration

if TYPE_CHECKING:
    from crosswind.documents.measurement import Channel

WARM_UP_S = 1.0
TRAFFIC_WARM_UP_S = 1.0
"""Seen, cause unknown: in its first second, sending costs 0.5 to 1 s of CPU per GB, and 0.13 s/GB then."""
BARE_S = 1.0
RENEWED_BLOCKS = 2
"""Blocks of traffic that are not used after connections were made anew, at the start of each cycle."""
WARMING_S, WARMING_SHARE = 10.0, 0.3
"""Longest time that a runtime is given to become quiet at one level, and as a part of the time that is left."""
TOGETHER_CYCLES = 10
TOGETHER_SHARE = 0.2
"""Most of the time that `together` blocks may take after channels were measured alone."""

Progress = Callable[[float, str], None]
Levels = list[float | None]


class _TimeUpError(Exception):
    pass


class Session:
    """One measurement on its way through its phases."""

    def __init__(self, asked: Options, progress: Progress | None) -> None:
        self.asked = asked
        self.progress = progress
        self.max_seconds: float = asked["max_seconds"]
        self.random = Random(asked["seed"])
        self.peers = asked.peers or ["own"]
        self.channels: list[Channel] = [
            {"peer": i, "direction": d, "unpaced_mb_per_s": 0.0, "top_mb_per_s": 0.0}
            for i in range(len(self.peers))
            for d in asked.directions
        ]
        names = ["runtime" if asked.spec else "native"] + (["native"] if asked["beside"] else [])
        self.subjects = [Subject(name, len(self.channels), asked.spec is not None) for name in names]
        self.main = self.subjects[0]
        self.launch: Launch | None = None
        self.forks = 0
        self.until_s = self.max_seconds
        self.timing = design.timing(0.0)
        self.cycle = 0
        self.ended = "time-limit"
        self.started = datetime.datetime.now(datetime.UTC)
        self.found: list[Notice] = []

    @property
    def tops(self) -> list[float]:
        """Top of each channel's ladder, MB/s."""
        return [channel["top_mb_per_s"] for channel in self.channels]

    def run(self) -> Measurement:
        """Go through all phases, as far as time and interruptions allow."""
        if (task := self.asked["task"]) is not None:
            self.tell(0.0, "timing one run of the task")
            refuse_slow(task, len(self.channels), self.max_seconds, shell=self.asked.in_shell)
        with ExitStack() as stack:
            if self.asked.spec:
                self.tell(0.0, f"preparing {self.asked.spec.text}")
                directory = Path(stack.enter_context(TemporaryDirectory(prefix="crosswind-")))
                self.launch = launched(self.asked.spec, directory)
            if self.asked.peers is None:
                self.tell(0.0, "starting a peer process")
                self.peers = [stack.enter_context(peer_process(self.asked.placed.others))]
            try:
                for _ in range(self.asked.forks):
                    self._one_fork()
                if self.asked.forks > 1:
                    self._see_whether_settled()
            except _TimeUpError:
                pass
            except KeyboardInterrupt:
                self.ended = "interrupted"
            except AgentLost as lost:
                if self.cycle < 2:
                    raise
                self.ended = "peer-lost"
                self.found.append(warning("peer-lost", str(lost), lost.hint or ""))
        if not len(self.main.recording):
            raise KeyboardInterrupt if self.ended == "interrupted" else self._too_short()
        measurement = self.so_far(finished=True)
        self.tell(1.0, self.ended)
        return measurement

    def _one_fork(self) -> None:
        """Start what computes, measure for its share of the time, and end it."""
        gone = self.main.elapsed_s() if self.forks else 0.0
        self.until_s = gone + (self.max_seconds - gone) / (self.asked.forks - self.forks)
        try:
            for subject in self.subjects:
                launch = self.launch if subject.name == "runtime" else None
                task = self.asked["task"]
                subject.start(
                    self.asked.configuration(self.peers, self.channels, launch), task if callable(task) else None
                )
                self._hold(subject)
            self.forks += 1
            self._phases()
        finally:
            # The last first: each has put this thread on the sampler's CPUs, and gives back those it found.
            for subject in reversed(self.subjects):
                subject.close()

    def _see_whether_settled(self) -> None:
        so_far, goals = self.so_far(), (self.asked["target"], self.asked["loss_target"])
        together = self.asked["direction"] == "both"
        seed, moving = self.asked["seed"], [i for i, top in enumerate(self.tops) if top]
        known = [precision_together(so_far, seed)] if together else [precision(so_far, i, seed) for i in moving]
        if known and all(one and one.reached(*goals) for one in known):
            self.ended = "settled"

    def _too_short(self) -> MeasurementError:
        return MeasurementError(
            f"nothing could be sampled within {self.max_seconds:g} s", "too-short", "give it more --max-seconds"
        )

    def _phases(self) -> None:
        first = self.forks == 1
        elapsed = self.main.elapsed_s()
        scale = min(1.0, (self.until_s - elapsed) / (20 * len(self.subjects)))
        silent: Levels = [0.0] * len(self.channels)
        self.tell(self._fraction(), "warming up")
        self.block(silent, "warm-up", WARM_UP_S * scale)
        self._take()
        self._until_quiet(silent, "silence", scale)
        unit_s = self._unit_s()
        self.timing = design.timing(0.0, unit_s)
        for _ in range(calibration.TRIES):
            for _ in range(max(round(BARE_S * scale / self.timing.block_s), 3)):
                self.block(silent, "bare")
            if any(row["work"] > 0 and not row["settling"] for row in self._take()):
                break
        contended = self._connect(unit_s)
        if first:
            self._rehearse(scale)
            for channel in range(len(self.channels)):
                self._warm_traffic(channel, scale)
                self._calibrate(channel, scale)
        self._rehearse(scale)
        moving = [channel for channel, top in enumerate(self.tops) if top or contended]
        for channel in moving:
            if not first:
                self._warm_traffic(channel, scale)
            self._until_quiet(self._only(channel, self.tops[channel]), self._channel_name(channel), scale)
        if self.asked["direction"] == "both":
            self._cycles(list(range(1)), together=True)
        elif moving:
            self._cycles(moving, together=False)
            if len(moving) > 1 and not contended:
                for index in range(TOGETHER_CYCLES):
                    try:
                        self.run_cycle(design.together_cycle(self.tops, index, self.random, self.timing.passes))
                    except _TimeUpError:
                        break  # of this fork

    def _connect(self, unit_s: float) -> bool:
        """Connect all, and say whether others are to contend for the peers."""
        self.tell(self._fraction(), "connecting")
        tls = self.asked["tls"]
        for subject in self.subjects:
            subject.probe.connect(self.asked["token"], tls and str(tls))
            self._hold(subject)
        round_trip_s = max(peer["rtt_s"] for peer in self.main.facts()["peers"])
        contended = bool(self.asked["variation"] == "contention")
        self.timing = design.timing(round_trip_s, unit_s, contended=contended)
        return contended

    def _until_quiet(self, levels: Levels, where: str, scale: float) -> None:
        """Let a runtime compile what it will, at this level, before anything of it is used."""
        if self.main.name != "runtime":
            return
        most_s = self._warming_s(scale)
        rows: list[Row] = []
        for _ in range(max(round(most_s / self.timing.block_s), warm_up.BLOCKS)):
            self._block_of(self.main, levels, "warm-up")
            self._hold(self.main)
            rows += self._take()
            if warm_up.quiet(rows, len(self.channels)):
                return
        if warm_up.compiles([row for row in rows if not row["settling"]][-warm_up.BLOCKS :]):
            code, what = "jit-compiles", "its compilers still ran"
        else:
            code, what = "not-steady", "its rates still had a trend"
        if not any(one["code"] == code for one in self.found):
            message = f"after {most_s:.1f} s at {where} {what} (fork {self.forks} of {self.asked.forks})"
            self.found.append(warning(code, message, "give it longer (--max-seconds), or fewer --forks"))

    def _rehearse(self, scale: float) -> None:
        """Let a runtime do all that cycles ask of it, over new connections each time, until its compilers rest.

        A direction that begins, a pace at which it first waits for data, and a connection that is closed while it reads
        or waits make a JVM throw away what it compiled before. So it rehearses before tops are looked for, without
        pacing, and again when they are known. The samples show whether compilers rested while it was measured.
        """
        if self.main.name != "runtime":
            return
        most_s, began = self._warming_s(scale), self.main.elapsed_s()
        tops, channels = [top or 1.0 for top in self.tops], range(len(self.tops))  # 1.0: not known yet, sent unpaced
        rows: list[Row] = []
        for channel in itertools.cycle([*channels, None]):
            if self.main.elapsed_s() - began >= most_s or warm_up.rests(rows):
                return
            if channel is None:
                blocks = design.together_cycle(tops, 0, self.random)
            else:
                blocks = design.ladder_cycle(channel, tops, 0, self.random)
            self.main.probe.renew()
            for block in blocks:
                pairs = zip(block.levels, self.tops, strict=True)
                levels = [design.UNPACED if level and not top else level for level, top in pairs]
                self._block_of(self.main, levels, "warm-up")
            self._hold(self.main)
            rows += self._take()

    def _warming_s(self, scale: float) -> float:
        return min(WARMING_S * scale, WARMING_SHARE * self._left_s())

    def _unit_s(self) -> float:
        """Time of one unit of work that cannot be cut; 0 for kernels, which count finer."""
        if not self.main.facts()["coarse"]:
            return 0.0
        table = self.main.recording.table()
        work = float(table["work"].to_numpy().sum())
        return float(table["dt_s"].to_numpy().sum()) / work if work > 0 else 0.0

    def _calibrate(self, channel: int, scale: float) -> None:
        """Find the rate of a channel and the top of its ladder: one that all reach."""
        name = self._channel_name(channel)
        self.tell(self._fraction(), f"finding the rate of {name}")
        seconds = max(calibration.BLOCK_S * scale, self.timing.block_s)
        self._take()
        found = self.channels[channel]
        tops, reached = [], True
        for subject in self.subjects:

            def move(level: float | None, blocks: int, subject: Subject = subject) -> list[Row]:
                for _ in range(blocks):
                    self._block_of(subject, self._only(channel, level), "calibrate", seconds)
                return [row for row in subject.take() if not row["settling"]]

            unpaced, top, keeps = self._top_of(channel, move, subject)
            subject.unpaced_mb_per_s[channel] = unpaced
            tops.append(top)
            reached = reached and keeps
            self._hold(subject)
        found["unpaced_mb_per_s"] = self.main.unpaced_mb_per_s[channel]
        found["top_mb_per_s"] = min(tops)
        if not reached:
            self.found.append(
                {
                    "code": "top-not-reached",
                    "message": f"{name} does not keep a paced rate of {self.tops[channel]:g} MB/s",
                    "hint": "give a lower top, or a smaller pacing chunk",
                }
            )

    def _top_of(self, channel: int, move: calibration.Move, subject: Subject) -> tuple[float, float, bool]:
        """Return a channel's rate unpaced, the top of its ladder, MB/s, and whether it keeps it."""
        peer = self.channels[channel]["peer"]
        try:
            unpaced, rows = calibration.unpaced(move, channel, self.peers[peer])
        except MeasurementError:
            if subject.name != "runtime":
                raise
            return 0.0, 0.0, True  # its scheduler lets nothing move: a result, which its header explains
        loopback = subject.facts()["peers"][peer]["loopback"]
        if self.asked["top_mb_per_s"]:
            top: float = self.asked["top_mb_per_s"]
        elif loopback:
            top = design.top_on_loopback(unpaced, beside=len(self.subjects) > 1)
        else:
            top = design.top_of_ladder(unpaced, calibration.limited_by_cpu(rows, self.asked["streams"]))
        if self.asked["variation"] == "contention":
            return unpaced, top, True  # nothing is paced there
        if self.asked["top_mb_per_s"]:
            move(top, calibration.TOP_BLOCKS)  # taken as given
            return unpaced, top, True
        return unpaced, *calibration.reached_top(move, channel, top)

    def _warm_traffic(self, channel: int, scale: float) -> None:
        """Move bytes for a moment before any are counted: the first second of traffic was seen to cost more."""
        for _ in range(round(TRAFFIC_WARM_UP_S * scale / self.timing.block_s)):
            self.block(self._only(channel, self.tops[channel] or design.UNPACED), "calibrate")
        self._take()

    def _only(self, channel: int, level: float | None) -> Levels:
        levels: Levels = [0.0] * len(self.channels)
        levels[channel] = level
        return levels

    def _cycles(self, open_channels: list[int], together: bool) -> None:
        """Give each channel cycles in turn until all are known well enough, or the time is up."""
        count, index, ask_at = len(self.channels), 0, 1.0
        known: dict[int, Precision] = {}
        reserve = TOGETHER_SHARE * self.until_s / self.forks if count > 1 and not together else 0.0
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
            if self.asked.forks > 1:
                self.tell(self._fraction(), f"fork {self.forks} of {self.asked.forks}, {self.max_seconds:.0f} s in all")
            elif index >= ask_at:
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
        """Duration of a cycle of `blocks` blocks, s."""
        return (RENEWED_BLOCKS + blocks) * self.timing.block_s * len(self.subjects)

    def run_cycle(self, blocks: list[design.Block], reserve: float = 0.0) -> None:
        """Run one cycle in other memory and over other connections than the last, if there is time for all of it."""
        if self._left_s() - reserve < self._blocks_s(len(blocks)):
            raise _TimeUpError
        self._take()
        for subject in self.subjects:
            subject.probe.renew()
            self._hold(subject)
        for _ in range(RENEWED_BLOCKS):
            self.block([top or design.UNPACED for top in self.tops], "calibrate")
        for block in blocks:
            self.block(list(block.levels), block.phase, cycle=self.cycle, load=block.load)
        self.cycle += 1
        self._take()

    def block(self, levels: Levels, phase: str, seconds: float | None = None, cycle: int = -1, load: int = 0) -> None:
        """Set the levels and sample for `seconds`; several in turns, in random order."""
        turns = list(self.subjects)
        if len(turns) > 1:
            self.random.shuffle(turns)
        for subject in turns:
            self._block_of(subject, levels, phase, seconds, cycle, load)
            self._hold(subject)

    def _hold(self, subject: Subject) -> None:
        """Let it hold still while another has its turn, if there is another."""
        if len(self.subjects) > 1:
            subject.probe.hold()

    def _block_of(
        self,
        subject: Subject,
        levels: Levels,
        phase: str,
        seconds: float | None = None,
        cycle: int = -1,
        load: int = 0,
    ) -> None:
        seconds = seconds or self.timing.block_s
        subject.probe.run_block(
            levels,
            seconds,
            self.timing.settle_s,
            seconds - self.timing.settle_s,
            phase,
            cycle,
            load,
            patience_s=self.max_seconds,
        )

    def _take(self) -> list[Row]:
        """Record what is new of all, and return what is new of the one that is measured."""
        rows = [subject.take() for subject in self.subjects]
        return rows[0]

    def _left_s(self) -> float:
        return float(self.until_s - self.main.elapsed_s())

    def _fraction(self) -> float:
        return min(self.main.elapsed_s() / self.max_seconds, 1.0) if self.forks > 1 else 0.0

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
        wanted, permitted = missing * cycle_s + reserve, self._left_s()
        left = max(min(wanted, permitted), 0.0)
        elapsed = self.max_seconds - self._left_s()
        worst = max((p.ir_half_width / abs(p.ir_s_per_mb) for p in known.values() if p.ir_s_per_mb), default=math.inf)
        word = f"IR known to {100 * worst:.0f} %" if worst < 1 else "measuring"
        how = "about" if wanted < permitted else "at most"
        self.tell(elapsed / max(elapsed + left, 1e-9), f"{word}, {how} {duration(left)} left")

    def so_far(self, finished: bool = False) -> Measurement:
        """Return what there is as a measurement."""
        found = [self._measured(subject, finished) for subject in self.subjects]
        return found[0] if len(found) == 1 else replace(found[0], beside=found[1])

    def _measured(self, subject: Subject, finished: bool) -> Measurement:
        facts = subject.facts()
        unknown = [{"address": peer, "host": "", "loopback": False, "rtt_s": 0.0} for peer in self.peers]
        launch = self.launch if subject.name == "runtime" else None
        header: Any = {
            "schema_version": 1,
            "started": self.started.isoformat().replace("+00:00", "Z"),
            **self.asked.described(self.peers, facts, launch, self.forks),
            "peers": facts["peers"] or unknown,
            "channels": [
                channel | {"unpaced_mb_per_s": subject.unpaced_mb_per_s.get(i, 0.0)}
                for i, channel in enumerate(self.channels)
            ],
            "block_s": self.timing.block_s,
            "settle_s": self.timing.settle_s,
            "interval_s": self.timing.interval_s,
            "elapsed_s": subject.elapsed_s(),
            "ended": self.ended,
            "warnings": list(self.found),
        }
        measurement = Measurement(subject.recording.table(), header)
        if finished:
            header["warnings"] += warnings_of(measurement, self.asked.placed, facts)
        return measurement
