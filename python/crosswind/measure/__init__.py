"""Measure how much communication slows this host's computation down.

| file | question |
|---|---|
| `asked` | what is to be measured, and what does the file say of it? |
| `session` | which block comes when, and when does it end? |
| `subject` | what takes turns, and what has each sampled? |
| `runtime` | how are Java, Python, Go and Node started? |
| `calibration` | how fast can traffic go, and so where is the top of the ladder? |

The probe (`crates/measure`) executes. Beside them `design.py` says which levels come in which order, `stopping.py` when
enough is known, `placement.py` which CPUs are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from crosswind.measure.options import CONGESTION_CONTROL, DIRECTIONS, KERNELS, SOCKET_BUFFER_BYTES, Options
from crosswind.measure.session import Progress, Session
from crosswind.measurement import Measurement

__all__ = ["CONGESTION_CONTROL", "DIRECTIONS", "KERNELS", "SOCKET_BUFFER_BYTES", "measure"]


def measure(
    peer: str | Sequence[str] | None = None,
    *,
    kernel: str = "diagonals",
    matrix: int = 1024,
    diagonals: int = 1,
    task: str | Callable[[], object] | None = None,
    shell: bool = False,
    direction: str = "each",
    message_bytes: int = 1_000_000,
    streams: int = 1,
    wait: str = "event",
    paced_by: str | None = None,
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
    runtime: str | None = None,
    pin: str = "process",
    forks: int | None = None,
    own_work: bool = False,
    beside: str | None = None,
    token: str | None = None,
    tls: str | Path | None = None,
    progress: Progress | None = None,
) -> Measurement:
    """Compute and communicate at the same time, at many transfer rates, and sample both.

    Parameters
    ----------
    peer : str or sequence of str, optional
        HOST:PORT of a `crosswind serve`, or several. None starts a peer process on this machine and ends it.
    kernel : str
        What computes, one of `crosswind.measure.KERNELS`: diagonals of a matrix's square, arithmetic without memory,
        or a stream bound by memory.
    matrix : int
        Side of the matrix of `diagonals`, 8 to 4096.
    diagonals : int
        Diagonals per unit of work, 1 to `matrix`.
    task : str or callable, optional
        Your own work instead of a kernel: a command, or a Python callable without arguments, done again and again.
    shell : bool
        Run a command by `/bin/sh -c`; otherwise what only a shell understands is refused.
    direction : {"each", "receive", "send", "both"}
        Seen from this host. "each": both directions alone, then some cycles of both at once; "both": only at once.
    message_bytes : int
        Bytes per message, 1 000 to 64 000 000.
    streams : int
        Connections per direction and peer, 1 to 64.
    wait : {"event", "poll"}
        How this host waits for bytes: blocked in the kernel, or asking again and again.
    paced_by : {"peer", "sender", "receiver"}, optional
        Which end keeps the rate; None: the sender, or with a runtime the peer. "sender": bytes arrive and leave in
        chunks at even times. "peer" (for sending: the receiver): pacing costs this host nothing, but a paced receiver
        leaves a queue in the send buffer, which either host's CPU then moves, in turns that last for seconds: expect
        wide intervals.
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
    runtime : str, optional
        What computes and moves the bytes in place of our own threads: `java`, `python`, `go` or `node`, with options
        such as `java io=direct threads=virtual`, or the command of a probe (docs/reference/probe-protocol.md).
    pin : {"process", "threads"}
        With a runtime: put it on its CPUs before it starts, or thread by thread once it has. Runtimes look at
        their CPUs when they start: on one, a JVM takes the serial collector and one carrier, Go GOMAXPROCS 1.
    forks : int, optional
        With a runtime: how often it is started anew, 1 to 50; None: 5. The interval is over forks, for what a start
        draws stays as long as the process lives.
    own_work : bool
        With a runtime: it computes work of its own in place of the kernel.
    beside : {"native"}, optional
        With a runtime: our own threads take turns with it, block by block; the result's `beside` is their measurement.
    token : str, optional
        What the peers ask for: 16 bytes or more that all share; needed off loopback, where there is no `tls`.
    tls : path, optional
        This node's directory of certificates (`crosswind cert`). What controls the measurement is sealed then; the
        bytes that are measured are plain TCP all the same.
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
        When a peer cannot be reached, a setting is refused by the system, or the task fails or is too slow.
    AgentLost
        When a peer goes away before anything useful was sampled.
    KeyboardInterrupt
        After ctrl-C before anything was sampled.

    Examples
    --------
    >>> found = measure(matrix=64, direction="receive", max_seconds=4)
    >>> found.header["channels"][0]["direction"], found.samples.num_rows > 20
    ('receive', True)
    """
    arguments = dict(locals())
    return Session(Options(arguments), progress).run()
