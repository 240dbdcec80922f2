"""What the paper claims about programs under disturbances (D-1 to D-8), asked of the rows of the figures.

Slowdowns are relative to the time of the best dedicated window, times the jobs that share the machine: the captions'
definition (E2-5). Bands come from the text; where it has only a word ("significantly", "dramatically", "slightly"), the
number that stands for the word is a constant here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from crosswind.papers.grading import Check, Claim, check, check_readings, open_by
from crosswind.papers.scheduling_and_communication.calibration import PROGRAMS, Calibration, Reading
from crosswind.papers.scheduling_and_communication.figures import Rows, local_setting

SIGNIFICANT = 0.25
"""A window that improves a slowdown by no more than this part does not do so "significantly"."""
DRAMATIC = 2.0
"""A window that divides a slowdown by this much does so "dramatically"."""
FLAT = 0.10
"""A program whose slowest window costs no more than this is not "sensitive" to it."""
ALIKE = 0.05
"""Two slowdowns that differ by no more than this part are alike: the paper's own scatter ("noisy", section 5)."""
ONE_WAY = ("column", "em3d", "sample")
"""Programs that communicate mostly one way (section 2.3); the others ask and wait for answers."""
COSTS_OF_A_WRONG_WINDOW = {"sample": (0.6, 0.8), "em3d": (0.6, 0.8), "column": (0.2, 0.2)}
"""E2-1: "60 % faster" and "20 % faster" in section 3, "up to 80 %" at its end and in section 9."""
RANKS = 64
STAGGERED_LIGHT, STAGGERED_HEAVY = (1.0 / (1.0 - RANKS * part) for part in (0.005 / 10.0, 0.05 / 5.0))
"""What daemons on all ranks can take at most, of any program: they never coincide."""
SPREAD_HEAVY = 1.0 / (1.0 - 0.05 / 5.0) ** RANKS
"""The same where each rank has a phase of its own, over the mean part of the time that none of them takes (D2-7)."""
ROUND_TRIP_PACKETS = (2 * 6.0 + 4 * 2.2) / 4.0
"""Packets that fit into a round trip of the CM-5: (2 L + 4 o) / g."""

NETWORK = (
    "a network that can fill, with senders that must poll, by a simulation outside of this project: here buffers are"
    " unlimited, and no hot spot forms"
)
PHASES = "how the ranks' quanta lie to each other, which the text does not say: spread or drifting"

Ask = Callable[[Reading], tuple[bool, str]]


def claims(rows: Rows, calibration: Calibration) -> list[Claim]:
    """Grade every claim.

    Parameters
    ----------
    rows : Rows
        Of all figures.
    calibration : Calibration
        With which they were run.
    """
    judge = _Judge(rows, calibration)
    return [judge.d1(), judge.d2(), judge.d3(), judge.d4(), judge.d5(), judge.d6(), judge.d7(), judge.d8()]


class _Judge:
    def __init__(self, rows: Rows, calibration: Calibration) -> None:
        self.rows, self.calibration = rows, calibration
        self.best = {program: rows.best_window(program) for program in PROGRAMS}

    # Slowdowns of each figure, by its caption.

    def local(self, program: str, reading: Reading, quantum_s: float, window: int | None = None) -> float:
        """Figure 2; window None: the best of those tried under local scheduling."""
        if window is not None:
            row = self.rows.one("figure-2", **local_setting(program, reading, quantum_s, window))
            return self.rows.slowdown("figure-2", row)
        tried = self.rows.of(
            "figure-2", program=program, phases=reading.phases, credit=reading.credit, quantum_s=quantum_s
        )
        return min(self.rows.slowdown("figure-2", row) for row in tried)

    def daemon(
        self, program: str, duration_s: float, interval_s: float, polls: bool, window: int | None = None
    ) -> float:
        """Figure 4; window None: the best dedicated one."""
        found = self.rows.one(
            "figure-4",
            program=program,
            duration_s=duration_s,
            interval_s=interval_s,
            polls=polls,
            window=window or self.best[program],
        )
        return self.rows.slowdown("figure-4", found)

    def shared(self, program: str, share: float, polls: bool = False, window: int | None = None) -> float:
        """Figure 5."""
        found = self.rows.one(
            "figure-5", program=program, share=share, polls=polls, window=window or self.best[program]
        )
        return self.rows.slowdown("figure-5", found)

    def under_readings(self, text: str, ask: Ask) -> Check:
        return check_readings(text, [(reading.name, *ask(reading)) for reading in self.calibration.readings], PHASES)

    # The claims.

    def d1(self) -> Claim:
        checks = [
            self.under_readings(
                f"EM3D is slowed down most, locally scheduled, {1000 * quantum:g} ms, dedicated windows",
                lambda reading, quantum=quantum: _most(  # type: ignore[misc]
                    "em3d", {p: self.local(p, reading, quantum, self.best[p]) for p in PROGRAMS}
                ),
            )
            for quantum in self.calibration.local_quanta_s
        ]
        for polls in self.calibration.polls:
            slow = {p: self.daemon(p, 0.050, 5.0, polls) for p in PROGRAMS}
            true, found = _most("em3d", slow)
            how = "that poll" if polls else "that ignore the network"
            checks.append(check(f"EM3D is slowed down most by daemons of 50 ms every 5 s {how}", true, found))
        text = "EM3D is affected most severely by local scheduling and by daemons, because of its barriers"
        return Claim("D-1", "4, 6", text, checks)

    def d2(self) -> Claim:
        def most(reading: Reading) -> tuple[bool, str]:
            slow = {p: self.local(p, reading, 0.1, self.best[p]) for p in PROGRAMS}
            name = max(slow, key=lambda p: slow[p])
            return 5.0 <= slow[name] <= 9.0, f"{name} {slow[name]:.2f}"

        def others(reading: Reading) -> tuple[bool, str]:
            slow = {p: self.local(p, reading, 0.1, self.best[p]) for p in ("sample", "cholesky", "connect")}
            return max(slow.values()) < 1.9, _listed(slow)

        def windows(reading: Reading) -> tuple[bool, str]:
            gained = {p: self.gain(p, reading, 0.1) for p in PROGRAMS}
            return max(gained.values()) <= 1.0 + SIGNIFICANT, _listed(gained, "times")

        checks = [
            self.under_readings("the largest slowdown at 100 ms is about 7 (5 to 9)", most),
            self.under_readings("SAMPLE, CHOLESKY and CONNECT are slowed down by less than 90 % at 100 ms", others),
            self.under_readings(
                f"no other window is faster by more than {_percent(SIGNIFICANT)} at 100 ms (not significantly)",
                windows,
            ),
        ]
        text = "Locally scheduled with quanta of 100 ms: up to 7 times slower; the window hardly matters"
        return Claim("D-2", "4, figure 2", text, checks)

    def gain(self, program: str, reading: Reading, quantum_s: float) -> float:
        """How many times faster the best window is than the one that is best when dedicated."""
        return self.local(program, reading, quantum_s, self.best[program]) / self.local(program, reading, quantum_s)

    def d3(self) -> Claim:
        def band(reading: Reading) -> tuple[bool, str]:
            slow = {p: self.local(p, reading, 0.5, self.best[p]) for p in PROGRAMS}
            return all(5.0 <= value <= 75.0 for value in slow.values()), _listed(slow)

        def one_way(reading: Reading) -> tuple[bool, str]:
            gained = {p: self.gain(p, reading, 0.5) for p in PROGRAMS}
            dramatic = {p for p, value in gained.items() if value >= DRAMATIC}
            return bool(dramatic) and dramatic <= set(ONE_WAY), _listed(gained, "times")

        def still(reading: Reading) -> tuple[bool, str]:
            slow = {p: self.local(p, reading, 0.5) for p in PROGRAMS}
            return max(slow.values()) > 20.0, _listed(slow)

        checks = [
            self.under_readings("slowdowns at 500 ms, dedicated windows, are between 5 and 75", band),
            self.under_readings(
                f"at 500 ms another window is {DRAMATIC:g} times as fast for some programs, all of them one-way",
                one_way,
            ),
            self.under_readings("with the best windows some programs are still slowed down more than 20 times", still),
        ]
        text = "Quanta of 500 ms: 5 to 75 times slower; larger windows help one-way programs only, some stay above 20"
        return Claim("D-3", "4, figure 2", text, checks)

    def d4(self) -> Claim:
        own = {p: self.rows.one("section-4", program=p, window=self.best[p]) for p in PROGRAMS}
        slow = {p: self.rows.slowdown("section-4", row) for p, row in own.items()}
        lost = {
            p: row.makespan_s / min(other.makespan_s for other in self.rows.of("section-4", program=p))
            for p, row in own.items()
        }
        checks = [
            check(
                "coscheduled makespans are at most 5 % above the sum of the dedicated ones",
                max(slow.values()) <= 1.0 + ALIKE,
                _listed(slow),
            ),
            check(
                "the windows that are best when dedicated are best when coscheduled (to 2 %)",
                max(lost.values()) <= 1.02,
                _listed(lost),
            ),
        ]
        text = "Coscheduling costs at most 5 % over the sum of the dedicated run times; the best windows are the same"
        return Claim("D-4", "4", text, checks)

    def d5(self) -> Claim:
        def slow(quantum_s: float, programs: Iterable[str]) -> dict[str, float]:
            own = {p: {"program": p, "quantum_s": quantum_s, "window": self.best[p]} for p in programs}
            return {
                p: max(self.rows.slowdown("figure-3", row) for row in self.rows.of("figure-3", **where))
                for p, where in own.items()
            }

        fine, coarse = slow(0.1, PROGRAMS), slow(1.0, PROGRAMS)
        others = {p: value for p, value in fine.items() if p != "em3d"}
        skew = max(self.calibration.skews_s)
        gains = {}
        for program in PROGRAMS:
            point = {"program": program, "quantum_s": 0.1, "skew_s": skew}
            narrow = self.rows.one("figure-3", **point, window=self.best[program])
            wide = self.rows.one("figure-3", **point, window=self.calibration.large_window)
            gains[program] = narrow.makespan_s / wide.makespan_s
        checks = [
            check(
                "EM3D, 100 ms: about 5 % at the largest skew, 10 % of the quantum (below 11 %, E2-7)",
                fine["em3d"] < 1.11,
                f"{fine['em3d']:.3f}",
            ),
            check("the others, 100 ms: below 5 %", max(others.values()) < 1.05, _listed(others, digits=3)),
            check("all, 1 s: below 3 %", max(coarse.values()) < 1.03, _listed(coarse, digits=3)),
            check("a large window does not help", max(gains.values()) <= 1.0 + ALIKE, _listed(gains, "times", 3)),
        ]
        text = "Skews up to 10 ms cost less than 5 % with quanta of 100 ms, less than 3 % with 1 s, whatever the window"
        return Claim("D-5", "5, figure 3", text, checks)

    def d6(self) -> Claim:
        checks = []
        for polls in self.calibration.polls:
            how = "polling" if polls else "ignoring the network"
            light = {p: self.daemon(p, 0.005, 10.0, polls) for p in PROGRAMS}
            medium = {p: self.daemon(p, 0.010, 5.0, polls) for p in PROGRAMS}
            heavy = {p: self.daemon(p, 0.050, 5.0, polls) for p in PROGRAMS}
            checks += [
                check(f"5 ms every 10 s, {how}: below 10 %", max(light.values()) < 1.10, _listed(light, digits=3)),
                check(
                    f"5 ms every 10 s, {how}: at least 2 % for the program that is slowed down most"
                    f" (daemons that never coincide take {100 * (STAGGERED_LIGHT - 1):.1f} %)",
                    max(light.values()) >= 1.02,
                    _listed(light, digits=3),
                ),
                check(f"10 ms every 5 s, {how}: below 20 %", max(medium.values()) < 1.2, _listed(medium, digits=3)),
                open_by(
                    check(
                        f"50 ms every 5 s, {how}: EM3D 2.4 times (1.9 to 2.8, D2-7)",
                        1.9 <= heavy["em3d"] <= 2.8,
                        f"{heavy['em3d']:.2f}",
                    ),
                    "how the nodes' daemons lie to each other, which the text does not say: with phases drawn for each,"
                    f" what any of them takes allows {SPREAD_HEAVY:.2f} on average, one after the other"
                    f" {STAGGERED_HEAVY:.2f}",
                ),
                check(f"50 ms every 5 s, {how}: COLUMN below 20 %", heavy["column"] < 1.2, f"{heavy['column']:.3f}"),
            ]
            gains = {p: heavy[p] / self.daemon(p, 0.050, 5.0, polls, self.calibration.large_window) for p in PROGRAMS}
            checks.append(
                check(
                    f"50 ms every 5 s, {how}: a large window does not help",
                    max(gains.values()) <= 1.0 + ALIKE,
                    _listed(gains, "times", 3),
                    NETWORK,
                )
            )
        text = "Daemons of 5 ms cost 2 to 10 %, of 10 ms below 20 %; of 50 ms EM3D 2.4 times, COLUMN below 20 %"
        return Claim("D-6", "6, figure 4", text, checks)

    def d7(self) -> Claim:
        shares = [share for share in self.calibration.shares if share < 1.0]
        balanced, imbalanced = {}, {}
        for share in shares:
            for program in ("em3d", "column"):
                balanced[f"{program} at {_percent(share)}"] = self.shared(program, share) * share
            for program in ("cholesky", "connect"):
                imbalanced[f"{program} at {_percent(share)}"] = self.shared(program, share) * share
        polling = {
            f"{p} at {_percent(share)}": self.shared(p, share, polls=True) / self.shared(p, share)
            for p in PROGRAMS
            for share in shares
        }
        least = min(shares)
        gains = {
            p: self.shared(p, least) / self.shared(p, least, window=self.calibration.large_window) for p in PROGRAMS
        }
        helped = {p: gains[p] for p in ("sample", "cholesky")}
        checks = [
            check(
                "EM3D and COLUMN are slowed down to 1/p, within 5 %",
                _within(balanced, 0.05),
                _listed(balanced, "of 1/p"),
            ),
            check(
                "CHOLESKY and CONNECT are slowed down less than 1/p",
                max(imbalanced.values()) < 1.0,
                _listed(imbalanced, "of 1/p"),
            ),
            check("whether the serial job polls makes no difference (5 %)", _within(polling, ALIKE), _range(polling)),
            check(
                f"a large window helps SAMPLE and CHOLESKY, at {_percent(least)}",
                min(helped.values()) > 1.0 + ALIKE,
                _listed(gains, "times"),
                "follows from D-8: only programs whose best dedicated window is small have a larger one to gain by",
            ),
        ]
        text = "One shared node slows balanced programs to its rate; polling is irrelevant; large windows help some"
        return Claim("D-7", "7, figure 5", text, checks)

    def d8(self) -> Claim:
        costs = {p: self.window_cost(p) for p in PROGRAMS}
        checks = [
            check("SAMPLE is fastest with 1 packet", self.best["sample"] == 1, f"{self.best['sample']}", NETWORK),
            check("EM3D is fastest with 2 packets", self.best["em3d"] == 2, f"{self.best['em3d']}", NETWORK),
            check(
                f"COLUMN is fastest with slightly less than a round trip ({ROUND_TRIP_PACKETS:.1f} packets: 3 to 6)",
                3 <= self.best["column"] <= 6,
                f"{self.best['column']}",
                NETWORK,
            ),
            check(
                f"CHOLESKY and CONNECT are not sensitive ({_percent(FLAT)})",
                max(costs["cholesky"], costs["connect"]) <= FLAT,
                _listed({p: costs[p] for p in ("cholesky", "connect")}, "lost"),
                "how many sums CHOLESKY has under way: a parameter that the text leaves open",
            ),
            *(
                check(
                    f"the wrong window costs {p.upper()} {_band(least, most)}",
                    0.75 * least <= costs[p] <= 1.25 * most,
                    f"{costs[p]:.2f}",
                    NETWORK,
                )
                for p, (least, most) in COSTS_OF_A_WRONG_WINDOW.items()
            ),
        ]
        text = "Best windows: SAMPLE 1, EM3D 2, COLUMN just below a round trip; a wrong one costs up to 80 %"
        return Claim("D-8", "3, figure 1", text, checks)

    def window_cost(self, program: str) -> float:
        """By how much the slowest window is slower than the fastest."""
        makespans = [row.makespan_s for row in self.rows.of("figure-1", program=program)]
        return max(makespans) / min(makespans) - 1.0


def _most(program: str, slow: dict[str, float]) -> tuple[bool, str]:
    return slow[program] >= max(slow.values()), _listed(slow)


def _within(values: dict[str, float], part: float) -> bool:
    return all(abs(value - 1.0) <= part for value in values.values())


def _listed(values: dict[str, float], unit: str = "", digits: int = 2) -> str:
    ordered = sorted(values.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in ordered) + (f" {unit}" if unit else "")


def _range(values: dict[str, float]) -> str:
    low, high = min(values, key=lambda k: values[k]), max(values, key=lambda k: values[k])
    return f"{values[low]:.3f} ({low}) to {values[high]:.3f} ({high})"


def _band(least: float, most: float) -> str:
    return f"about {_percent(least)}" if least == most else f"{100 * least:.0f} to {_percent(most)}"


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"
