"""What the text leaves open, and what stands in its place: named, shown in every study, never tuned to a figure.

The paper gives no constants of the network, no sizes of its inputs, no phases of local scheduling, and does not say
whether a credit returns when a message is taken off the network or when it is handled (E2-6). Where a claim hangs on
such a choice, it is graded under each *reading*, and is not decidable from the text where readings disagree.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Form = Literal["quick", "full"]

PROGRAMS = ("cholesky", "connect", "column", "em3d", "sample")


@dataclass(frozen=True)
class Reading:
    """One way to read what the text leaves open about local scheduling.

    Attributes
    ----------
    phases : str
        How the ranks' quanta lie to each other: spread or drifting (`disturbance.toml`).
    credit : str
        When a credit goes back: handled or extracted (`experiment.toml`).
    """

    phases: str
    credit: str

    @property
    def name(self) -> str:
        """In words."""
        return f"phases {self.phases}, credit back when {self.credit}"


@dataclass(frozen=True)
class Calibration:
    """Every constant of a study that the text does not give, and how much of the paper's grid is run.

    Attributes
    ----------
    form : str
        quick or full.
    ranks, seed, repetitions : int
        The paper has 64 nodes and means of five runs.
    network : str
        The CM-5: L 6 us, o 2.2 us, g 4 us, 16-byte packets. Not in the paper.
    parameters : dict
        Of each program, where they are not its defaults.
    windows : tuple of int
        Packets, of figure 1.
    coscheduled_windows : tuple of int
        Packets, of section 4's comparison.
    local_windows : tuple of int
        Packets that are tried to find the best window under local scheduling.
    large_window : int
        Packets of "a larger window".
    drift : float
        With drifting phases: most by which a rank's period differs.
    readings : tuple of Reading
        Of local scheduling; the first is the one that figures show.
    shared_rank : int
        The non-idle node of figure 5.
    """

    form: Form
    ranks: int = 64
    seed: int = 1
    repetitions: int = 5
    network: str = "cm5"
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)
    windows: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 16, 32, 64, 128, 256, 512)
    coscheduled_windows: tuple[int, ...] = (1, 2, 4, 8, 64, 512)
    local_windows: tuple[int, ...] = (1, 2, 8, 64, 512)
    large_window: int = 512
    local_quanta_s: tuple[float, ...] = (0.1, 0.5)
    skew_quanta_s: tuple[float, ...] = (0.1, 1.0)
    skews_s: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2)
    daemon_durations_s: tuple[float, ...] = (0.005, 0.010, 0.050)
    daemon_intervals_s: tuple[float, ...] = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0)
    polls: tuple[bool, ...] = (True, False)
    shares: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 1.0)
    slice_s: float = 0.1
    shared_rank: int = 17
    drift: float = 0.001
    readings: tuple[Reading, ...] = (
        Reading("spread", "handled"),
        Reading("spread", "extracted"),
        Reading("drifting", "handled"),
        Reading("drifting", "extracted"),
    )

    def summary(self) -> dict[str, Any]:
        """Return it as JSON could hold it."""
        return asdict(self)

    def table(self) -> list[tuple[str, str, str]]:
        """Return name, value and whence, for people."""
        named = ", ".join(
            f"{program}: {', '.join(f'{name} {value}' for name, value in parameters.items())}"
            for program, parameters in self.parameters.items()
        )
        sizes = named or "their defaults"
        return [
            ("ranks", str(self.ranks), "section 2.2"),
            ("runs of each point", str(self.repetitions), "five in the paper"),
            (
                "network",
                "CM-5: L 6 µs, o 2.2 µs, g 4 µs a packet of 16 bytes",
                "LogP papers of the time; not in the text",
            ),
            ("programs", sizes, "sizes chosen to show section 2.3's granularity; not in the text"),
            (
                "daemons of figure 4",
                "constant interval and duration, each rank at its own phase",
                "the text says no more",
            ),
            (
                "shared node",
                f"rank {self.shared_rank}; slices of the program share / (1 - share) times 0.1 s",
                "inferred",
            ),
            ("switching, refilling the cache", "0 s", '"negligible", section 4'),
            ("readings of local scheduling", "; ".join(one.name for one in self.readings), "not in the text (E2-6)"),
            (
                "drifting phases",
                f"each rank's period up to {100 * self.drift:g} % longer or shorter",
                "not in the text",
            ),
        ]


FULL = Calibration("full")

QUICK = Calibration(
    "quick",
    repetitions=1,
    parameters={
        "connect": {"vertices_per_rank": 4_096},
        "column": {"keys_per_rank": 66_560},
        "em3d": {"steps": 100},
        "sample": {"keys_per_rank": 32_768},
    },
    windows=(1, 2, 4, 8, 512),
    coscheduled_windows=(1, 8, 512),
    local_windows=(8, 512),
    skews_s=(1e-2,),
    daemon_intervals_s=(5.0, 10.0),
    polls=(False,),
    shares=(0.2, 0.5),
    readings=(Reading("spread", "handled"), Reading("drifting", "handled")),
)
"""Shorter programs, one seed, the points that the claims need: the shape in a minute or two."""


def of(form: Form) -> Calibration:
    """Return the calibration of a form."""
    return FULL if form == "full" else QUICK
