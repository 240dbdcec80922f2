"""Claims about local scheduling, coscheduling and skew (D-1 to D-5)."""

from __future__ import annotations

from collections.abc import Mapping

from crosswind.lab.papers.grading import (
    Band,
    Check,
    Claim,
    Reach,
    above,
    barred,
    below,
    between,
    check,
    check_numbers,
    check_readings,
    digits,
    unsettled,
    word,
)
from crosswind.lab.papers.scheduling_and_communication.calibration import (
    PAPERS,
    PROGRAMS,
    Calibration,
    Reading,
)
from crosswind.lab.papers.scheduling_and_communication.daemon_inputs import POLLED, UnderDaemons
from crosswind.lab.papers.scheduling_and_communication.figures import (
    DRAWN_ANEW,
    MORE_JOBS,
    SKEWED_BARRIERS,
    SYNCS,
    Row,
    Rows,
    local_setting,
)
from crosswind.lab.papers.scheduling_and_communication.judge import (
    ANEW,
    DENOMINATORS,
    GRAIN,
    NETWORK,
    OFTEN,
    ONE_WAY,
    PHASES,
    WORK,
    faster,
    in_ms,
    listed,
    skew_reach,
    slowed_most,
)


def claims(rows: Rows, calibration: Calibration) -> list[Claim]:
    """Grade these claims."""
    judge = _OfScheduling(rows, calibration)
    return [judge.d1(), judge.d2(), judge.d3(), judge.d4(), judge.d5()]


class _OfScheduling(UnderDaemons):
    def d1(self) -> Claim:
        most = word('"the most severely"')
        checks = [self.em3d_most_locally(most)]
        for polls in self.calibration.polls:
            how = "that poll" if polls else "that ignore the network"
            checks.append(
                check_readings(
                    f"EM3D is slowed down most by daemons of 50 ms every 5 s {how}",
                    self.slowed_more("em3d", None, polls),
                    word('"slowed down the most"'),
                    f"{OFTEN}; {GRAIN}; {NETWORK}{f'; {POLLED}' if polls else ''}",
                )
            )
        text = "EM3D is affected most severely by local scheduling and by daemons, because of its barriers"
        return Claim("D-1", "4, 6", text, checks)

    def em3d_most_locally(self, band: Band) -> Check:
        """Ask whether EM3D is slowed down most at 100 ms, however often CONNECT waits for its gets."""
        found = {one.name: {p: self.local(p, one, 0.1) for p in PROGRAMS} for one in self.calibration.readings}
        if self.rows.has(SYNCS):
            for gets in self.calibration.gets_per_sync:
                row = self.rows.one(SYNCS, under="local", gets_per_sync=gets)
                slow = {**found[self.calibration.readings[0].name], "connect": self.rows.slowdown(SYNCS, row)}
                found[f"{self.calibration.readings[0].name}, {gets} gets before a sync"] = slow
        return check_readings(
            "EM3D is slowed down most, locally scheduled, 100 ms, dedicated windows",
            [(name, *slowed_most("em3d", slow)) for name, slow in found.items()],
            band,
            OFTEN,
        )

    def d2(self) -> Claim:
        ninety = below(1.9, "less than 90%")

        def most(reading: Reading) -> tuple[str, float, str]:
            slow = {p: self.local(p, reading, 0.1) for p in PROGRAMS}
            name = max(slow, key=lambda p: slow[p])
            return reading.name, slow[name], f"{name} {slow[name]:.2f}"

        def others(reading: Reading) -> tuple[bool, str]:
            slow = {p: self.local(p, reading, 0.1) for p in ("sample", "cholesky", "connect")}
            return max(slow.values()) in ninety, listed(slow)

        def windows(reading: Reading) -> tuple[bool, str]:
            short, long = (max(self.gain(p, reading, quantum) for p in PROGRAMS) for quantum in (0.1, 0.5))
            return short < long, f"{short:.3f} at 100 ms, {long:.3f} at 500 ms"

        checks = [
            check_numbers(
                "the largest slowdown at 100 ms is 7",
                [most(reading) for reading in self.calibration.readings],
                digits(7, words="up to seven times"),
                PHASES,
                continuous=True,
            ),
            self.under_readings(
                "SAMPLE, CHOLESKY and CONNECT are slowed down by less than 90 % at 100 ms", others, ninety
            ),
            self.under_readings(
                "other windows gain less at 100 ms than at 500 ms",
                windows,
                word('"does not improve performance significantly", "dramatically" at 500 ms; asked: less'),
            ),
        ]
        if self.rows.has(MORE_JOBS):
            checks.append(self.more_jobs())
        text = "Locally scheduled with quanta of 100 ms: up to 7 times slower; the window hardly matters"
        return Claim("D-2", "4, figure 2", text, checks)

    def more_jobs(self) -> Check:
        """Ask whether every program is slowed down more with more than one other."""

        def ask(reading: Reading) -> tuple[bool, str]:
            where = {"phases": reading.phases, "credit": reading.credit}
            found = {
                p: self.rows.slowdown(MORE_JOBS, self.rows.one(MORE_JOBS, program=p, **where))
                / self.local(p, reading, 0.1)
                for p in PROGRAMS
            }
            return min(found.values()) > 1.0, listed(found, "times as slow as with two")

        readings = [one for one in self.calibration.readings if one.windows != PAPERS]
        return check_readings(
            f"with {self.calibration.more_jobs} jobs every program is slowed down more than with 2, 100 ms",
            [(one.name, *ask(one)) for one in readings],
            word('"increase substantially"; asked: increase'),
            PHASES,
        )

    def gain(self, program: str, reading: Reading, quantum_s: float) -> float:
        """How many times faster the best window is than the one that is best when dedicated."""
        narrow, fastest = self.tried(program, reading, quantum_s)
        return narrow.makespan_s / fastest.makespan_s

    def tried(self, program: str, reading: Reading, quantum_s: float) -> tuple[Row, Row]:
        """Return the rows of the window that is best when dedicated, and of the best one of those tried."""
        papers = reading.windows == PAPERS
        setting = local_setting(program, reading, quantum_s, self.window(program, papers))
        every = self.rows.of("figure-2", **{k: v for k, v in setting.items() if k != "window"})
        return self.rows.one("figure-2", **setting), min(every, key=lambda row: row.makespan_s)

    def d3(self) -> Claim:
        def band(reading: Reading, times: int) -> tuple[bool, str]:
            slow = {p: times * self.local(p, reading, 0.5) for p in PROGRAMS}
            return all(5.0 <= value <= 75.0 for value in slow.values()), listed(slow)

        def one_way(reading: Reading) -> tuple[bool, str]:
            gained = {p: self.gain(p, reading, 0.5) for p in PROGRAMS}
            most = max(gained, key=lambda p: gained[p])
            return most in ONE_WAY and faster(*self.tried(most, reading, 0.5)), listed(gained, "times")

        def still(reading: Reading) -> tuple[bool, str]:
            slow = {p: self.local(p, reading, 0.5, tried=True) for p in PROGRAMS}
            return max(slow.values()) > 20.0, listed(slow)

        checks = [
            check_readings(
                "slowdowns at 500 ms, dedicated windows, are between 5 and 75",
                [
                    (f"{reading.name}, over {over}", *band(reading, times))
                    for over, times in DENOMINATORS.items()
                    for reading in self.calibration.readings
                ],
                between(5, 75, "range between 5 and 75"),
                f"{PHASES}; and whether the 75 is relative to the dedicated time, as the text's 7 of CPU time may be,"
                " or to twice that, as the caption says (figure-2.json)",
            ),
            self.under_readings(
                "at 500 ms the program that gains most by another window communicates one way",
                one_way,
                word('"if the dependency ... was simply a one-way message"'),
            ),
            self.under_readings(
                "with the best windows some programs are still slowed down more than 20 times",
                still,
                above(20, "more than a factor of 20"),
            ),
        ]
        text = "Quanta of 500 ms: 5 to 75 times slower; larger windows help one-way programs most, some stay above 20"
        return Claim("D-3", "4, figure 2", text, checks)

    def d4(self) -> Claim:
        chosen = {p: self.rows.one("section-4", program=p, window=self.best[p]) for p in PROGRAMS}
        slow = {p: self.rows.slowdown("section-4", row) for p, row in chosen.items()}
        lost = {
            p: row.makespan_s / min(other.makespan_s for other in self.rows.of("section-4", program=p))
            for p, row in chosen.items()
        }
        within = between(0.95, 1.05, "within five percent")
        stretched = (
            "all ranks stop together, and a switch and a cold cache cost nothing here: a program is only stretched."
        )
        checks = [
            barred(
                check(
                    "coscheduled makespans are within 5 % of the sum of the dedicated ones",
                    all(value in within for value in slow.values()),
                    listed(slow),
                    within,
                ),
                "cannot fail",
                f"{stretched} `switch_cost_s` and `cache_cost_s` measured on the machine would settle it",
            ),
            barred(
                check(
                    "the windows that are best when dedicated are best when coscheduled",
                    max(lost.values()) <= 1.0,
                    listed(lost),
                    word('"identical"'),
                ),
                "cannot fail",
                f"{stretched} Makespans of the machine by window, dedicated and coscheduled, would settle it",
            ),
            unsettled(
                "flushing the cache between slices has a negligible effect",
                "`crosswind compare` of a job beside one that strides through memory; no processor here has a cache",
            ),
        ]
        text = "Coscheduling costs at most 5 % over the sum of the dedicated run times; the best windows are the same"
        return Claim("D-4", "4", text, checks)

    def skewed(self, program: str, quantum_s: float) -> dict[float, float]:
        """Return figure 3's slowdowns with the dedicated window, by skew."""
        rows = self.rows.of("figure-3", program=program, quantum_s=quantum_s, window=self.best[program])
        return {row.params["skew_s"]: self.rows.slowdown("figure-3", row) for row in rows}

    def d5(self) -> Claim:
        skew = max(self.calibration.skews_s)
        fine = {p: max(self.skewed(p, 0.1).values()) for p in PROGRAMS}
        coarse = {p: max(self.skewed(p, 1.0).values()) for p in PROGRAMS}
        reach = skew_reach(skew, 0.1)
        em3d, connect = self.em3d_under_skew(fine["em3d"]), self.connect_under_skew(fine["connect"])
        checks = [
            check_numbers(
                "EM3D, 100 ms: 5 % at the largest skew, 10 % of the quantum",
                [(name, slow - 1, f"{slow:.4f}") for name, slow in em3d.items()],
                digits(0.05, 0.01, "5%"),
                f"{WORK}; and {ANEW}",
                reach=Reach(0.0, reach.most - 1, reach.why),
                continuous=True,
            ),
            check_readings(
                "EM3D is slowed down most, 100 ms",
                [
                    (f"EM3D: {name}; CONNECT: {gets}", *slowed_most("em3d", {**fine, "em3d": own_, "connect": other}))
                    for name, own_ in em3d.items()
                    for gets, other in connect.items()
                ],
                word('"the most significant"'),
                f"{OFTEN}; {WORK}; and {ANEW}",
            ),
            self.others_under_skew(fine, connect, reach),
            self.grow_with_skew(skew),
            check_numbers(
                "all, 1 s: below 3 %",
                [("as the text says", max(coarse.values()), listed(coarse, digits=3))],
                below(1.03, "below 3%"),
                reach=skew_reach(skew, 1.0),
            ),
            barred(
                check("a large window does not help", True, self.wide_under_skew(skew), word('"did not affect"')),
                "cannot fail",
                "in a network that holds everything a large window hurts no program: the paper's reason cannot arise."
                " Runs of figure 3 in a network that can fill would settle it",
            ),
        ]
        text = "Skews up to 10 ms cost less than 5 % with quanta of 100 ms, less than 3 % with 1 s, whatever the window"
        return Claim("D-5", "5, figure 3", text, checks)

    def em3d_under_skew(self, base: float) -> dict[str, float]:
        """Return EM3D's slowdown at the largest skew by what the text leaves open."""
        found = {"6.4 ms between barriers": base}
        if self.rows.has(SKEWED_BARRIERS):
            for row in self.rows.of(SKEWED_BARRIERS, skew_s=max(self.calibration.skews_s)):
                found[in_ms(row.params["operation_s"])] = self.rows.slowdown(SKEWED_BARRIERS, row)
        if self.rows.has(DRAWN_ANEW):
            row = self.rows.one(DRAWN_ANEW, program="em3d")
            found["delays drawn anew for each quantum"] = self.rows.slowdown(DRAWN_ANEW, row)
        return found

    def connect_under_skew(self, base: float) -> dict[str, float]:
        """Return CONNECT's slowdown at the largest skew by how often it waits for its gets."""
        found = {"4096 gets before a sync": base}
        for gets in self.calibration.gets_per_sync if self.rows.has(SYNCS) else ():
            one, none = (
                self.rows.one(SYNCS, under="skew", gets_per_sync=gets, skew_s=skew_s).makespan_s
                for skew_s in (max(self.calibration.skews_s), 0.0)
            )
            found[f"{gets} before a sync"] = one / none
        return found

    def others_under_skew(self, fine: Mapping[str, float], connect: Mapping[str, float], reach: Reach) -> Check:
        """Ask that the other four stay below 5 %, however often CONNECT waits for its gets."""
        others = {p: value for p, value in fine.items() if p != "em3d"}
        found = {gets: {**others, "connect": slow} for gets, slow in connect.items()}
        return check_numbers(
            "the others, 100 ms: below 5 %",
            [(name, max(slow.values()), listed(slow, digits=3)) for name, slow in found.items()],
            below(1.05, "less than 5%"),
            OFTEN,
            reach=reach,
        )

    def grow_with_skew(self, skew_s: float) -> Check:
        """Ask whether all are slower at the largest skew than without: by the mean, and by any run."""
        rows = {
            p: (
                self.rows.one("figure-3", program=p, quantum_s=0.1, skew_s=skew_s, window=self.best[p]),
                self.rows.one("figure-3", program=p, quantum_s=0.1, skew_s=0.0, window=self.best[p]).makespan_s,
            )
            for p in PROGRAMS
        }
        mean = {p: row.makespan_s / alone for p, (row, alone) in rows.items()}
        slowest = {p: row.high_s / alone for p, (row, alone) in rows.items()}
        return check_readings(
            "all five are slower at the largest skew than without, 100 ms",
            [
                ("in the mean of the runs", min(mean.values()) > 1.0, listed(mean, digits=4)),
                ("in the slowest of the runs", min(slowest.values()) > 1.0, listed(slowest, digits=4)),
            ],
            word('"see an increase"; "somewhat noisy"'),
            "how often CHOLESKY and SAMPLE synchronise; slowdowns are as small as the scatter, the paper's and the one"
            " here (figure-3.json)",
        )

    def wide_under_skew(self, skew_s: float) -> str:
        """Return how many times faster a large window is at the largest skew, in words."""
        gains = {}
        for program in PROGRAMS:
            point = {"program": program, "quantum_s": 0.1, "skew_s": skew_s}
            narrow = self.rows.one("figure-3", **point, window=self.best[program])
            wide = self.rows.one("figure-3", **point, window=self.calibration.large_window)
            gains[program] = narrow.makespan_s / wide.makespan_s
        return listed(gains, "times", 3)
