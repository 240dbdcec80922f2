"""Measurements made from a known law, with noise like that of real ones: correlated from sample to sample, drifting.

What the law says and what the noise adds is known exactly, so a fit can be held against it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from crosswind.measurement import Measurement

BLOCK_S = 0.1
SETTLE_S = 0.03
INTERVAL_S = 0.01


@dataclass(frozen=True)
class Law:
    """What happens on the synthetic host; the defaults are about what the prototype found for one shared core."""

    ir: tuple[float, ...]  # s/MB, one per channel
    top_mb_per_s: tuple[float, ...]
    compute_per_s: float = 9.0
    bare_factor: float = 1.0  # rate without any socket over rate with idle sockets
    interaction: float = 0.0  # (s/MB)^2: + gives back computation when channels are used together (synergy)
    curvature: float = 0.0  # (s/MB)^2: + makes the loss convex in the rate
    call_us: float = 1.0
    gb_s: float = 0.061
    wakeup_us: float = 12.1
    kb_per_call: float = 100.0
    calls_per_wakeup: float = 5.0
    noise: float = 0.03  # of the compute rate, relative, per interval
    correlation: float = 0.7  # of the noise from one block to the next
    drift: float = 0.03  # slow change of the compute rate, relative
    foreign: float = 0.0  # mean part of the computing CPU that other people use
    foreign_burst_s: float = 0.5
    short_of_asked: float = 0.0  # part of the asked rate that is not reached

    def rate(self, x: np.ndarray) -> float:
        """Normalised compute rate at transfer rates x, MB/s, one per channel."""
        loss = float(np.dot(self.ir, x)) - self.curvature * float(x @ x)
        if len(x) > 1:
            loss -= self.interaction * float(x[0] * x[1])
        return max(1.0 - loss, 0.01)


@dataclass
class Rows:
    """Collects samples."""

    columns: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, **row: Any) -> None:
        for name, value in row.items():
            self.columns.setdefault(name, []).append(value)


def measurement(
    ir_receive: float | tuple[float, ...] | None = 0.00016,
    ir_send: float | tuple[float, ...] | None = 0.0001,
    *,
    seed: int = 1,
    cycles: int = 20,
    together_cycles: int = 5,
    top_mb_per_s: float = 2500.0,
    placement: str = "same-core",
    host: str = "synthetic",
    variation: str = "paced",
    ended: str = "settled",
    peers: tuple[str, ...] | None = None,
    loopback: bool = True,
    settings: dict[str, str] | None = None,
    **law: Any,
) -> Measurement:
    """Make a measurement of which everything is known.

    One peer per entry of the longer of `ir_receive` and `ir_send`; None leaves a direction out. Ladder cycles
    of each channel (0, 0, 1/2, 1, 1, shuffled), every tenth followed by check points at 1/4 and 3/4, then
    `together_cycles` cycles with several channels at once.
    """
    receive = (ir_receive,) if isinstance(ir_receive, float) else ir_receive or ()
    send = (ir_send,) if isinstance(ir_send, float) else ir_send or ()
    count = max(len(receive), len(send))
    addresses = peers or tuple(f"peer{i}.example:7117" for i in range(count))
    channels = []
    ir: list[float] = []
    for peer in range(count):
        for direction, rates in (("receive", receive), ("send", send)):
            if peer < len(rates):
                channels.append({"peer": peer, "direction": direction})
                ir.append(rates[peer])
    tops = tuple(top_mb_per_s for _ in ir)
    host_law = Law(ir=tuple(ir), top_mb_per_s=tops, **law)
    for channel in channels:
        channel |= {"unpaced_mb_per_s": top_mb_per_s * 1.05, "top_mb_per_s": top_mb_per_s}

    samples = _sample(host_law, np.random.default_rng(seed), cycles, together_cycles, placement, variation)
    cpus = {
        "same-core": ([0], [0], [1]),
        "other-core": ([0], [1], [1]),
        "free": ([], [], []),
    }[placement]
    header = {
        "schema_version": 1,
        "name": f"synthetic {seed}",
        "started": "2026-01-02T03:04:05Z",
        "command": ["synthetic"],
        "seed": seed,
        "host": {
            "name": host,
            "cpu": "none",
            "cpus": 2,
            "kernel": "none",
            "settings": {"cpu_quota": "none"} | (settings or {}),
        },
        "kernel": {"name": "diagonals", "unit": "diagonal", "matrix": 1024, "diagonals": 1, "task": None},
        "placement": {
            "mode": placement,
            "compute_cpus": cpus[0],
            "traffic_cpus": cpus[1],
            "sampler_cpus": cpus[2],
            "compute_nice": 0,
            "traffic_nice": 0,
        },
        "traffic": {
            "message_bytes": 1_000_000,
            "streams": 1,
            "wait": "event",
            "paced_by": "peer",
            "pacing_chunk_bytes": 65_536,
            "congestion_control": "cubic",
            "socket_buffer_bytes": None,
        },
        "variation": variation,
        "peers": [
            {"address": a, "host": host if loopback else a.split(":")[0], "loopback": loopback, "rtt_s": 5e-5}
            for a in addresses
        ],
        "channels": channels,
        "block_s": BLOCK_S,
        "settle_s": SETTLE_S,
        "interval_s": INTERVAL_S,
        "elapsed_s": float(samples.column("t_s")[-1].as_py()) + INTERVAL_S,
        "ended": ended,
        "warnings": [],
    }
    return Measurement(samples, header)


def _blocks(law: Law, rng: np.random.Generator, cycles: int, together: int, variation: str) -> list[Any]:
    """(phase, cycle, asked rates) of each block in order."""
    n = len(law.ir)
    top = np.array(law.top_mb_per_s)
    rest = np.zeros(n)
    blocks: list[Any] = [("warm-up", -1, rest)] + [("bare", -1, rest)] * 10
    for i in range(n):
        blocks.append(("calibrate", -1, np.where(np.arange(n) == i, np.nan, 0.0)))
    cycle = 0
    for turn in range(cycles):
        for i in range(n):
            steps = [0.0, 0.0, 0.5, 1.0, 1.0] if variation == "paced" else [0.0, np.nan, np.nan, np.nan, np.nan]
            only = (np.arange(n) == i).astype(float)
            phase = "ladder" if variation == "paced" else "contention"
            levels = [np.nan_to_num(only * s * top) if s == s else np.where(only > 0, np.nan, 0.0) for s in steps]
            blocks += [(phase, cycle, levels[k]) for k in rng.permutation(len(levels))]
            cycle += 1
            if turn % 10 == 9 and variation == "paced":
                blocks += [("check", cycle, only * top * s) for s in rng.permutation([0.0, 0.25, 0.75])]
                cycle += 1
    if n > 1:
        receives = np.arange(n)
        for _ in range(together):
            grid = [rest, top, top * np.where(receives == 0, 1, 0.5), top * np.where(receives == 0, 0.5, 1), top * 0.5]
            if n > 2:  # rates that add up to what one alone reaches
                grid = [g / n * 2 for g in grid]
            blocks += [("together", cycle, grid[k]) for k in rng.permutation(len(grid))]
            cycle += 1
    return blocks


def _sample(law: Law, rng: np.random.Generator, cycles: int, together: int, placement: str, variation: str) -> pa.Table:
    rows = Rows()
    n = len(law.ir)
    per_block = round(BLOCK_S / INTERVAL_S)
    step = law.correlation ** (INTERVAL_S / BLOCK_S)
    wobble, drift, foreign_left, t = rng.normal(), 0.0, 0.0, 0.0
    for number, (phase, cycle, asked) in enumerate(_blocks(law, rng, cycles, together, variation)):
        top = np.array(law.top_mb_per_s)
        aim = np.where(
            np.isnan(asked), top * (1.05 if phase == "calibrate" else rng.choice([1, 0.5, 0.33, 0.25])), asked
        )
        for k in range(per_block):
            wobble = step * wobble + np.sqrt(1 - step**2) * rng.normal()
            drift += rng.normal() * law.drift / 30
            if foreign_left <= 0 and rng.random() < law.foreign * INTERVAL_S / law.foreign_burst_s * 2:
                foreign_left = law.foreign_burst_s
            stolen = 0.5 if foreign_left > 0 else 0.0
            foreign_left -= INTERVAL_S
            wall = aim * (1 - law.short_of_asked) * (1 + 0.01 * rng.normal(size=n))
            wall = np.where(aim > 0, wall, 0.0)
            mb = wall * INTERVAL_S
            own = INTERVAL_S * (1 - stolen)
            speed = law.compute_per_s * np.exp(drift) * (law.bare_factor if phase == "bare" else 1.0)
            rate = law.rate(wall * INTERVAL_S / own) + law.noise * wobble
            calls = mb.sum() * 1000 / law.kb_per_call * rng.uniform(0.7, 1.3)
            wakeups = calls / law.calls_per_wakeup * rng.uniform(0.5, 1.5)
            traffic_cpu = 1e-6 * law.call_us * calls + law.gb_s * mb.sum() / 1000 + 1e-6 * law.wakeup_us * wakeups
            same = placement == "same-core"
            traffic_cpu = min(traffic_cpu, 0.9 * own)
            row = {
                "t_s": t,
                "dt_s": INTERVAL_S,
                "block": number,
                "cycle": cycle,
                "phase": phase,
                "settling": k * INTERVAL_S < SETTLE_S,
                "work": max(speed * rate * own, 0.0),
                "compute_cpu_s": own - traffic_cpu if same else own,
                "compute_wait_s": INTERVAL_S - own + (traffic_cpu if same else 0.0),
                "compute_switches": wakeups + 1,
                "traffic_cpu_s": traffic_cpu,
                "traffic_wait_s": 0.1 * traffic_cpu,
                "traffic_switches": wakeups,
                "calls": calls,
                "user_s": own - traffic_cpu if same else own,
                "system_s": traffic_cpu if same else 0.0,
                "irq_s": 0.0,
                "softirq_s": 0.0,
                "steal_s": 0.0,
                "idle_s": 0.0,
                "context_switches": wakeups * 2 + 5,
                "foreign_cpu_s": np.nan if placement == "free" else stolen * INTERVAL_S,
            }
            for i in range(n):
                row[f"channel{i}_mb"] = mb[i]
                row[f"channel{i}_asked_mb_per_s"] = asked[i]
            rows.add(**row)
            t += INTERVAL_S
    table = pa.table(rows.columns)
    for name in ("block", "cycle"):
        at = table.column_names.index(name)
        table = table.set_column(at, name, table.column(name).cast(pa.int32()))
    at = table.column_names.index("phase")
    return table.set_column(at, "phase", table.column("phase").dictionary_encode())


def in_one_cycle(found: Measurement) -> Measurement:
    """Return a measurement as if all of it had been one cycle: rates can be fitted, but no interval has an end."""
    cycles = np.minimum(found.samples["cycle"].to_numpy(), 0)
    place = found.samples.schema.get_field_index("cycle")
    kind = found.samples.schema.field(place)
    return Measurement(found.samples.set_column(place, kind, pa.array(cycles, kind.type)), found.header)
