"""What the text leaves open, and what stands in its place: named, shown in every study, never tuned to a figure.

The paper gives no constants of the network, no sizes of its inputs, no phases of local scheduling, and does not say
whether a credit returns when a message is taken off the network or when it is handled (E2-6). Where a claim hangs on
such a choice, it is graded under each *reading*, and is not decidable from the text where readings disagree.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Literal

from crosswind.documents import Document, Row

Form = Literal["quick", "full"]

PROGRAMS = ("cholesky", "connect", "column", "em3d", "sample")

PAPERS = "the paper's"
PAPERS_WINDOWS = {"sample": 1, "em3d": 2, "column": 5}
"""Windows that are best when dedicated in the paper, packets; COLUMN's is "slightly less" than a round trip of 5.2."""
ALL = 1_000_000
"""Requests between two sends: all that have arrived."""
CM5 = {"latency_s": 6e-6, "overhead_s": 2.2e-6, "gap_s": 4e-6, "packet_bytes": 16, "control_s": 5e-6}
"""What the name cm5 stands for in an experiment."""
MOST_LONGER = 1.0 / (1.0 - CM5["overhead_s"] / CM5["gap_s"])
"""How many times as long a daemon of fixed work runs at most if it takes every packet that can arrive meanwhile, and
each costs the processor o. Packets reach a node one gap apart."""


EM3D_EDGES = 160 * 20
"""Edges of EM3D at each rank between two barriers, by its defaults: each of 160 nodes depends on 20 others."""


@dataclass(frozen=True)
class Reading:
    """One way to read what the text leaves open about local scheduling.

    A credit that goes back when its packet is extracted needs a process to extract it while the program is away: then
    the other job does ("hardware or a trusted process must extract all packets from the network", section 1).

    Attributes
    ----------
    phases : str
        How the ranks' quanta lie to each other: spread or drifting (`disturbance.toml`).
    credit : str
        When a credit goes back: handled or extracted (`experiment.toml`).
    windows : str
        Which windows are the best dedicated ones: those found here, or the paper's.
    """

    phases: str
    credit: str
    windows: str = "here"

    @property
    def polls(self) -> bool:
        """Whether another process takes messages off the network while the program is away."""
        return self.credit == "extracted"

    @property
    def name(self) -> str:
        """In words."""
        windows = ", the paper's windows" if self.windows == PAPERS else ""
        return f"phases {self.phases}, credit back when {self.credit}{windows}"


@dataclass(frozen=True)
class Filling:
    """One way to read what the text leaves open about a network that can fill (`network.fat_tree`).

    Attributes
    ----------
    buffer_packets : int
        Depth of a switch's buffers; an interface holds eight times as many that have arrived, and as many to be sent.
    polls_per_send : int
        Requests that a processor takes between two packets of its own while it could send.
    """

    buffer_packets: int
    polls_per_send: int

    @property
    def name(self) -> str:
        """In words."""
        polls = "all that have arrived" if self.polls_per_send == ALL else f"{self.polls_per_send}"
        return f"fat tree, buffers of {self.buffer_packets}, polls {polls} between two sends"

    @property
    def setting(self) -> dict[str, int]:
        """What a point of a figure sets."""
        return {"buffer_packets": self.buffer_packets, "polls_per_send": self.polls_per_send}

    def network(self) -> Document:
        """Return the CM-5's costs with these switches, as an experiment describes them."""
        tree = {**self.setting, "receive_packets": 8 * self.buffer_packets, "send_packets": self.buffer_packets}
        return {**CM5, "fat_tree": tree}


@dataclass(frozen=True)
class Calibration:
    """Every constant of a study that the text does not give, and how much of the paper's grid is run.

    Attributes
    ----------
    form : str
        quick or full.
    ranks, seed, repetitions : int
        The paper has 64 nodes and means of five runs, of a program on one input: the seed of the data stays, that of
        the disturbance varies. Where nothing is drawn, one run is all of them.
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
    small_windows : tuple of int
        Packets of CHOLESKY beside a serial job, from which a large window may have been an improvement.
    fine_operation_s : float
        A comparison of SAMPLE at its finest grain: ten cycles of the CM-5's 33 MHz. By default it takes 5 us.
    more_jobs : int
        Programs that share the machine in "more than two".
    gets_per_sync : tuple of int
        Gets of CONNECT before it waits for them, beside its default of 4096.
    em3d_operations_s : tuple of float
        An edge of EM3D, beside its default of 2 us: 4.8, 7.0, 8.0 and 9.0 ms of work between two barriers, beside 6.4.
    longer_daemons_s : tuple of (float, float)
        Durations and intervals of the daemons that are asked what it changes when they also run longer.
    narrow_window : int
        Packets to a destination that runs, where windows follow the destination.
    resend_s : float
        From one sending of a packet to the next, where packets are discarded.
    migrate_after_s, migrate_cost_s : float
        When a rank is moved off the busy node, and for how long it is away for that.
    polled_daemons_s : tuple of (float, float)
        Durations and intervals of the daemons that are asked what polling changes.
    variant_repetitions : int
        Runs of each point of what the paper did not build.
    slowed_ranks : tuple of int
        On which nodes the serial job runs, one after the other (footnote 1).
    drift : float
        With drifting phases: most by which a rank's period differs.
    skewed_parameters : dict
        Of each program in figure 3, where they are not those of the other figures.
    readings : tuple of Reading
        Of local scheduling; the first is the one that figures show.
    fillings : tuple of Filling
        Of a network that can fill.
    filling_windows : tuple of int
        Packets, of figure 1 in such a network.
    filling_parameters : dict
        Of each program there: shorter than elsewhere, for every packet takes six links.
    filling_disturbed : tuple of str
        Programs that are asked in such a network what a large window does under daemons and beside a serial job.
    shared_rank : int
        The non-idle node of figure 5.
    """

    form: Form
    ranks: int = 64
    seed: int = 1
    repetitions: int = 5
    network: str = "cm5"
    parameters: dict[str, Document] = field(default_factory=dict)
    windows: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8, 16, 32, 64, 128, 256, 512)
    coscheduled_windows: tuple[int, ...] = (1, 8, 512)
    local_windows: tuple[int, ...] = (1, 8, 512)
    large_window: int = 512
    small_windows: tuple[int, ...] = (1, 2, 4)
    fine_operation_s: float = 3e-7
    more_jobs: int = 3
    gets_per_sync: tuple[int, ...] = (512, 1)
    em3d_operations_s: tuple[float, ...] = (1.5e-6, 2.2e-6, 2.5e-6, 2.8e-6)
    longer_daemons_s: tuple[tuple[float, float], ...] = ((0.010, 5.0), (0.050, 5.0))
    narrow_window: int = 1
    resend_s: float = 0.001
    migrate_after_s: float = 1.0
    migrate_cost_s: float = 0.5
    variant_repetitions: int = 3
    slowed_ranks: tuple[int, ...] = (0, 13, 39, 52)
    local_quanta_s: tuple[float, ...] = (0.1, 0.5)
    skew_quanta_s: tuple[float, ...] = (0.1, 1.0)
    skews_s: tuple[float, ...] = (1e-5, 1e-3, 1e-2)
    daemon_durations_s: tuple[float, ...] = (0.005, 0.010, 0.050)
    daemon_intervals_s: tuple[float, ...] = (5.0, 10.0, 30.0)
    polls: tuple[bool, ...] = (True, False)
    polled_daemons_s: tuple[tuple[float, float], ...] = ((0.005, 10.0), (0.010, 5.0), (0.050, 5.0))
    shares: tuple[float, ...] = (0.2, 0.5, 0.8, 1.0)
    slice_s: float = 0.1
    shared_rank: int = 17
    drift: float = 0.001
    readings: tuple[Reading, ...] = (
        Reading("spread", "handled"),
        Reading("drifting", "handled"),
        Reading("spread", "handled", PAPERS),
        Reading("drifting", "handled", PAPERS),
    )
    fillings: tuple[Filling, ...] = (Filling(2, 0), Filling(2, 1), Filling(2, ALL), Filling(1, 1), Filling(4, 1))
    filling_windows: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8, 16, 64, 512)
    filling_parameters: dict[str, Document] = field(default_factory=dict)
    filling_disturbed: tuple[str, ...] = PROGRAMS
    skewed_parameters: dict[str, Document] = field(default_factory=dict)

    def summary(self) -> Row:
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
            (
                "runs of each point",
                f"{self.repetitions}, the disturbance drawn anew each time, on the same data; 1 where nothing is drawn",
                "five in the paper",
            ),
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
            (
                "credits while another process polls",
                "back when the packet is extracted; for daemons also when it is handled, as if none polled",
                "not in the text (E2-6); figure 0 has the second",
            ),
            (
                "what the paper did not build",
                f"migration after {self.migrate_after_s:g} s, {self.migrate_cost_s:g} s away; "
                f"{self.variant_repetitions} runs of each point",
                "ours",
            ),
            ("switching, refilling the cache", "0 s", '"negligible", section 4'),
            (
                "credits under local scheduling",
                "go back when a packet is handled",
                'figure 0: "stall until B is rescheduled and can respond with more credits"',
            ),
            (
                "a network that can fill",
                "fat tree, 4 children and 2 parents a switch, 1 µs a link; "
                + "; ".join(one.name for one in self.fillings),
                "neither topology, depths nor polling in the text; section 3 says that processors are flooded",
            ),
            (
                "grain of SAMPLE",
                f"5 µs a comparison, and {1e6 * self.fine_operation_s:g} µs: ten cycles at 33 MHz",
                "not in the text; it decides how much of SAMPLE is communication",
            ),
            (
                "syncs of CONNECT",
                f"each 4096 gets, and each {' and each '.join(map(str, self.gets_per_sync))}",
                "not in the text; it decides what CONNECT loses to daemons and skew",
            ),
            (
                "work of EM3D between barriers",
                f"6.4 ms, and {', '.join(f'{1e3 * EM3D_EDGES * one:.1f}' for one in self.em3d_operations_s)} ms",
                'section 2.3: "more than one barrier every 10 ms"',
            ),
            (
                "daemons that poll",
                f"as long as those that do not, and {MOST_LONGER:.2f} times: each packet that can arrive costs o",
                'section 6: "may run longer if it must also buffer messages"; no cost in the text',
            ),
            (
                "the paper's windows",
                ", ".join(f"{program} {window}" for program, window in PAPERS_WINDOWS.items()),
                "section 3; a variant beside the windows that are best here",
            ),
            ("readings of local scheduling", "; ".join(one.name for one in self.readings), "not in the text (E2-6)"),
            (
                "drifting phases",
                f"each rank's period up to {100 * self.drift:g} % longer or shorter",
                "not in the text",
            ),
        ]


SHORT = {
    "cholesky": {"matrices": 40},
    "connect": {"vertices_per_rank": 2_048},
    "column": {"keys_per_rank": 66_560},
    "em3d": {"steps": 100},
    "sample": {"keys_per_rank": 32_768},
}
SHORTER = {
    "cholesky": {"matrices": 10},
    "connect": {"vertices_per_rank": 512},
    "column": {"keys_per_rank": 16_640},
    "em3d": {"steps": 10},
    "sample": {"keys_per_rank": 4_096},
}

FULL = Calibration(
    "full",
    parameters={"cholesky": {"matrices": 60}},
    skewed_parameters={"em3d": {"steps": 1500}},
    filling_parameters=SHORT,
)
"""Under skew EM3D runs for ten quanta of 1 s at least: the quantum that its end falls into counts as a whole. CHOLESKY
factorises fewer matrices than by default: the text gives no number, and ten are under way in either case. CONNECT keeps
its size, which decides how often it synchronises."""

QUICK = Calibration(
    "quick",
    repetitions=1,
    variant_repetitions=1,
    parameters=SHORT,
    windows=(1, 2, 5, 8, 512),
    coscheduled_windows=(1, 8, 512),
    local_windows=(8, 512),
    skews_s=(1e-2,),
    daemon_intervals_s=(5.0, 10.0),
    polls=(False,),
    shares=(0.2, 0.5),
    filling_windows=(1, 2, 3, 5, 8, 512),
    filling_parameters=SHORTER,
    filling_disturbed=("sample", "cholesky"),
)
"""Shorter programs, one seed, the points that the claims need: the shape in a minute or two."""


def of(form: Form) -> Calibration:
    """Return the calibration of a form."""
    return FULL if form == "full" else QUICK
