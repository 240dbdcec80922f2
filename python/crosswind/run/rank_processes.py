"""The processes of a parallel program's ranks: started all at once, ended by their number, however the run ends.

As the agents of a farm (`processes`): the token goes in on stdin, which stays open, and a rank ends when it closes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from crosswind.host.processes import end_by
from crosswind.run.agent_process import environment
from crosswind.run.spool import Logs

END_PATIENCE_S = 3.0
RANK_VARIABLE = "PMI_RANK"
"""The variable by which an injection knows which process is which rank."""
_SHOWN = 5  # last lines of a log that an error shows


class RankProcesses:
    """One process per rank, with a log each.

    Parameters
    ----------
    token : str
        What they share with the conductor.
    logs : Path, optional
        Directory of the logs; default: one of its own, removed unless something went wrong.
    """

    def __init__(self, token: str, logs: Path | None = None) -> None:
        self._token = token
        self._logs = Logs(logs)
        self.logs = self._logs.path
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, ranks: int, conductor: str, cpus: Sequence[int] | None = None, tracer: int = 0) -> None:
        """Start the ranks; they connect to the conductor's address.

        Parameters
        ----------
        ranks : int
        conductor : str
            Its HOST:PORT.
        cpus : sequence of int, optional
            Rank r is bound to the r-th of these CPUs; default: none is bound.
        tracer : int
            Process that may trace them; 0: none but their parents.
        """
        for rank in range(ranks):
            command = [sys.executable, "-m", "crosswind.run.rank", "--conductor", conductor, "--rank", str(rank)]
            command += ["--tracer", str(tracer)] if tracer else []
            with self.log_of(rank).open("ab") as log, bound(None if cpus is None else cpus[rank]):
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env={**environment(), RANK_VARIABLE: str(rank)},
                    start_new_session=True,
                )
            self._processes.append(process)
            assert process.stdin is not None  # it was asked for
            with contextlib.suppress(BrokenPipeError):  # it has ended already: seen when it is looked after
                process.stdin.write(self._token.encode() + b"\n")
                process.stdin.flush()

    def log_of(self, rank: int) -> Path:
        """Return the file of what a rank said."""
        return self.logs / f"rank-{rank}.log"

    def pid(self, rank: int) -> int:
        """Process number of a rank."""
        return self._processes[rank].pid

    def fallen(self) -> str | None:
        """Return which rank has ended before its time, how, and its last words; None: none has."""
        for rank, process in enumerate(self._processes):
            status = process.poll()
            if status:
                how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
                lines = self.log_of(rank).read_text(errors="replace").strip().splitlines()[-_SHOWN:]
                return f"rank {rank} has ended {how}" + (": " + "\n".join(lines) if lines else "")
        return None

    def end(self, *, keep_logs: bool) -> None:
        """End all: ranks that know that the run is over have ended; the others lose their stdin, then are killed."""
        for process in self._processes:
            if process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
        until = time.monotonic() + END_PATIENCE_S
        for process in self._processes:
            end_by(process, until)
        self._processes.clear()
        self._logs.close(keep=keep_logs)


@contextlib.contextmanager
def bound(cpu: int | None) -> Iterator[None]:
    """Bind this thread, and the processes that it starts, to a CPU for a while; None: leave it as it is."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, before if cpu is None else {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
