"""Claims about daemons (D-6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from crosswind.lab.papers.grading import (
    Check,
    Claim,
    Reach,
    above,
    below,
    between,
    check_numbers,
    check_readings,
    digits,
    word,
)
from crosswind.lab.papers.scheduling_and_communication.calibration import (
    PAPERS_WINDOWS,
    PROGRAMS,
    Calibration,
)
from crosswind.lab.papers.scheduling_and_communication.figures import (
    FINE,
    FINE_DISTURBED,
    STAGGERED,
    SYNCS,
    Row,
    Rows,
)
from crosswind.lab.papers.scheduling_and_communication.judge import (
    FINE_GRAIN,
    GRAIN,
    LARGE,
    NETWORK,
    OFTEN,
    PHASED,
    Judge,
    daemons_reach,
    listed,
    none_faster,
)

WITHOUT_CONNECT = [program for program in PROGRAMS if program != "connect"]


def claims(rows: Rows, calibration: Calibration) -> list[Claim]:
    """Grade these claims."""
    judge = _OfDaemons(rows, calibration)
    return [judge.d6()]


class _OfDaemons(Judge):
    def d6(self) -> Claim:
        checks = []
        for polls in self.calibration.polls:
            how = "polling" if polls else "ignoring the network"

            def slow(
                duration_s: float,
                interval_s: float,
                papers: bool,
                programs: Iterable[str] = PROGRAMS,
                polls: bool = polls,
            ) -> dict[str, float]:
                return {p: self.daemon(p, duration_s, interval_s, polls, papers=papers) for p in programs}

            light, middling, heavy = daemons_reach(0.005, 10.0), daemons_reach(0.010, 5.0), daemons_reach(0.050, 5.0)
            checks += [
                self.worst(
                    f"5 ms every 10 s, {how}: below 10 %",
                    lambda papers, slow=slow: slow(0.005, 10.0, papers),  # type: ignore[misc]
                    below(1.1, "less than 10%"),
                    light,
                ),
                self.noticeable(how, slow),
                self.worst(
                    f"10 ms every 5 s, {how}: all but CONNECT below 20 %",
                    lambda papers, slow=slow: slow(0.010, 5.0, papers, WITHOUT_CONNECT),  # type: ignore[misc]
                    below(1.2, "less than 20%, with the exception of CONNECT"),
                    middling,
                ),
                self.em3d_under_daemons(how, polls),
                self.strongly("sample", how, polls, GRAIN),
                self.strongly("connect", how, polls, OFTEN),
                self.most_are_large(how, polls),
                self.worst(
                    f"50 ms every 5 s, {how}: COLUMN below 20 %",
                    lambda papers, slow=slow: slow(0.050, 5.0, papers, ["column"]),  # type: ignore[misc]
                    below(1.2, "less than 20%"),
                    heavy,
                ),
                self.large_window(f"50 ms every 5 s, {how}: no program is faster with a large window", polls),
            ]
        checks.append(self.connects_point())
        text = "Daemons of 5 ms cost 2 to 10 %, of 10 ms below 20 %; of 50 ms EM3D 2.4 times, COLUMN below 20 %"
        return Claim("D-6", "6, figure 4", text, checks)

    def noticeable(self, how: str, slow: Callable[[float, float, bool], dict[str, float]]) -> Check:
        results = []
        for name, papers in (("windows best here", False), ("the paper's windows", True)):
            found = slow(0.005, 10.0, papers)
            words = listed(found, digits=3)
            results += [
                (f"the program that is slowed down most, {name}", max(found.values()), words),
                (f"every program, {name}", min(found.values()), words),
            ]
        return check_numbers(
            f"5 ms every 10 s, {how}: at least 2 %",
            results,
            between(1.02, float("inf"), "2 to 10 percent"),
            'whether "parallel applications" are all five, or those at the upper end of a range',
            reach=daemons_reach(0.005, 10.0),
        )

    def connects_point(self) -> Check:
        """Ask for CONNECT's slowest point under daemons of 10 ms."""
        results = []
        for name, papers in (("windows best here", False), ("the paper's windows", True)):
            slow = {
                f"every {interval:g} s": self.daemon("connect", 0.010, interval, False, papers=papers)
                for interval in self.calibration.daemon_intervals_s
            }
            results.append((name, max(slow.values()) - 1, listed(slow)))
        reach = daemons_reach(0.010, min(self.calibration.daemon_intervals_s))
        return check_numbers(
            "10 ms: CONNECT has one point that is slowed down by 80 %",
            results,
            digits(0.8, 0.1, "an 80% slowdown"),
            reach=Reach(0.0, reach.most - 1, reach.why),
        )

    def by_input(self, program: str, polls: bool) -> dict[str, float]:
        """Return the slowdowns of SAMPLE or CONNECT under daemons of 50 ms, by the input that the text leaves open."""
        found = {}
        for name, papers in (("windows best here", False), ("the paper's windows", True)):
            found[name] = self.daemon(program, 0.050, 5.0, polls, papers=papers)
        if program == "sample" and self.rows.has(FINE_DISTURBED):
            for window in sorted({self.rows.best_window("sample", FINE), PAPERS_WINDOWS["sample"]}):
                row = self.rows.one(FINE_DISTURBED, under="daemons", polls=polls, window=window)
                found[f"{FINE_GRAIN}, window {window}"] = self.rows.slowdown(FINE_DISTURBED, row)
        if program == "connect" and self.rows.has(SYNCS):
            for gets in self.calibration.gets_per_sync:
                row = self.rows.one(SYNCS, under="daemons", polls=polls, gets_per_sync=gets)
                found[f"{gets} gets before a sync"] = self.rows.slowdown(SYNCS, row)
        return found

    def strongly(self, program: str, how: str, polls: bool, hangs_on: str) -> Check:
        return check_numbers(
            f"50 ms every 5 s, {how}: {program.upper()} by more than the 20 % that COLUMN stays below",
            [(name, value, f"{value:.2f}") for name, value in self.by_input(program, polls).items()],
            above(1.0 + LARGE, '"strongly affected"; COLUMN "less than 20%"'),
            hangs_on,
            reach=daemons_reach(0.050, 5.0),
        )

    def most_are_large(self, how: str, polls: bool) -> Check:
        """Ask whether three of five are slowed down more than COLUMN is at most, by what open inputs cost."""
        least, most = (
            {
                p: (
                    pick(self.by_input(p, polls).values())
                    if p in ("sample", "connect")
                    else pick([self.daemon(p, 0.050, 5.0, polls, papers=papers) for papers in (False, True)])
                )
                for p in PROGRAMS
            }
            for pick in (min, max)
        )
        return check_readings(
            f"50 ms every 5 s, {how}: most programs by more than the 20 % that COLUMN stays below",
            [
                (name, sum(value > 1.0 + LARGE for value in slow.values()) >= 3, listed(slow))
                for name, slow in (("inputs that cost least", least), ("inputs that cost most", most))
            ],
            above(1.0 + LARGE, '"large slow-downs ... for most applications"; COLUMN "less than 20%"'),
            f"{GRAIN}; {OFTEN}",
        )

    def em3d_under_daemons(self, how: str, polls: bool) -> Check:
        results = []
        for papers in (False, True):
            window = self.window("em3d", papers)
            in_turn = self.rows.slowdown(STAGGERED, self.rows.one(STAGGERED, program="em3d", window=window))
            drawn = self.daemon("em3d", 0.050, 5.0, polls, papers=papers)
            results += [
                (f"window {window}, each node's phase drawn", drawn, f"{drawn:.2f}"),
                (f"window {window}, one node after the other", in_turn, f"{in_turn:.2f}"),
            ]
        return check_numbers(
            f"50 ms every 5 s, {how}: EM3D 2.4 times",
            results,
            digits(2.4, 0.1, "2.4 times"),
            PHASED,
            reach=daemons_reach(0.050, 5.0),
            continuous=True,
        )

    def large_window(self, text: str, polls: bool) -> Check:
        wide = self.calibration.large_window
        results = []
        for name, papers in (("windows best here", False), ("the paper's windows", True)):
            pairs = {
                p: (self.daemon_row(p, polls, self.window(p, papers)), self.daemon_row(p, polls, wide))
                for p in PROGRAMS
            }
            results.append(none_faster(name, pairs))
        # In a fat tree nothing polls while the program is away.
        for one in () if polls else self.calibration.fillings:
            pairs = {p: self.filling_rows(p, one, "daemons") for p in self.calibration.filling_disturbed}
            results.append(none_faster(one.name, pairs))
        return check_readings(text, results, word('"does not improve"'), NETWORK)

    def daemon_row(self, program: str, polls: bool, window: int) -> Row:
        """Return the row of daemons of 50 ms every 5 s."""
        where = {"duration_s": 0.050, "interval_s": 5.0, "polls": polls, "window": window}
        return self.rows.one("figure-4", program=program, **where)
