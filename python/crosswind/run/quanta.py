"""Which of several parallel jobs has which processor when: decided from time alone, live and simulated alike.

Each processor gives every job one quantum after the other. A live run (`beside`) goes through `Quanta.switches`; a
simulated one takes `Quanta.disturbance`, in which a job is away while the others have their quanta.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from crosswind.disturbance import Disturbance

CAUSE = "other job"


@dataclass(frozen=True)
class Quanta:
    """Quanta of jobs on processors.

    Attributes
    ----------
    jobs : int
        How many take turns, at least 2.
    quantum_ns : int
        Length of a quantum, ns, greater than 0.
    shifts_ns : tuple of int
        By processor: how far its turns are ahead at time 0, ns. Equal shifts are gang scheduling.

    Examples
    --------
    >>> gang = Quanta.gang(jobs=2, processors=2, quantum_s=0.1)
    >>> [[gang.job_at(processor, at_ns) for processor in (0, 1)] for at_ns in (0, 99_999_999, 100_000_000)]
    [[0, 0], [0, 0], [1, 1]]
    """

    jobs: int
    quantum_ns: int
    shifts_ns: tuple[int, ...]

    @classmethod
    def gang(cls, jobs: int, processors: int, quantum_s: float) -> Quanta:
        """Return quanta in which all processors change jobs at the same times."""
        return cls(jobs, round(quantum_s * 1e9), (0,) * processors)

    @classmethod
    def local(cls, jobs: int, processors: int, quantum_s: float, seed: int) -> Quanta:
        """Return quanta of each processor by itself: its phase is uniform over a round of all jobs."""
        quantum_ns, random = round(quantum_s * 1e9), Random(seed)
        return cls(jobs, quantum_ns, tuple(random.randrange(jobs * quantum_ns) for _ in range(processors)))

    @property
    def round_ns(self) -> int:
        """After which time everything repeats, ns."""
        return self.jobs * self.quantum_ns

    def job_at(self, processor: int, at_ns: int) -> int:
        """Return the job that has a processor at a time, ns since time 0."""
        return (at_ns + self.shifts_ns[processor]) // self.quantum_ns % self.jobs

    def switches(self) -> Iterator[tuple[int, list[int]]]:
        """Yield without end when processors change jobs, ns since time 0, and which ones do; the first after time 0."""
        together: dict[int, list[int]] = {}
        for processor, shift_ns in enumerate(self.shifts_ns):
            together.setdefault(self.quantum_ns - shift_ns % self.quantum_ns, []).append(processor)
        begun_ns = 0
        while True:
            for after_ns, processors in sorted(together.items()):
                yield begun_ns + after_ns, processors
            begun_ns += self.quantum_ns

    def away(self, job: int, processor: int) -> list[tuple[int, int]]:
        """Return when a job does not have a processor, in the first round: from, to, ns."""
        begin_ns = (job * self.quantum_ns - self.shifts_ns[processor]) % self.round_ns
        end_ns = begin_ns + self.quantum_ns
        if end_ns > self.round_ns:
            return [(end_ns - self.round_ns, begin_ns)]
        return [pair for pair in ((0, begin_ns), (end_ns, self.round_ns)) if pair[0] < pair[1]]

    def disturbance(self, name: str, job: int, ranks: int) -> Disturbance:
        """Return what the turns of the other jobs take from one of them, whose rank r has processor r."""
        cpu = [
            {"cpu": rank, "intervals": [[a * 1e-9, (b - a) * 1e-9, 0] for a, b in self.away(job, rank)]}
            for rank in range(ranks)
        ]
        source = {"kind": "recorded", "length_s": self.round_ns * 1e-9, "causes": [CAUSE], "aligned": True, "cpu": cpu}
        return Disturbance.from_dict({"schema_version": 1, "name": name, "source": [source]})
