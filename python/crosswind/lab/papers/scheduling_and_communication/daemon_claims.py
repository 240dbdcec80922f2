"""Claims about daemons (D-6)."""

from __future__ import annotations

from crosswind.lab.papers.grading import (
    Check,
    Claim,
    barred,
    below,
    between,
    check_numbers,
    check_readings,
    digits,
    own,
    word,
)
from crosswind.lab.papers.scheduling_and_communication.calibration import PROGRAMS, Calibration
from crosswind.lab.papers.scheduling_and_communication.daemon_inputs import (
    EXTRACTED,
    HANDLED,
    IGNORE,
    LONGEST,
    POLLED,
    UnderDaemons,
)
from crosswind.lab.papers.scheduling_and_communication.figures import LONGER, STAGGERED, Row, Rows
from crosswind.lab.papers.scheduling_and_communication.judge import (
    GRAIN,
    NETWORK,
    OFTEN,
    PHASED,
    daemons_reach,
    listed,
    longest_daemons_s,
    none_faster,
)

WITHOUT_CONNECT = [program for program in PROGRAMS if program != "connect"]


def claims(rows: Rows, calibration: Calibration) -> list[Claim]:
    """Grade these claims."""
    judge = _OfDaemons(rows, calibration)
    return [judge.d6()]


class _OfDaemons(UnderDaemons):
    def d6(self) -> Claim:
        checks = []
        for polls in self.calibration.polls:
            how = "polling" if polls else "ignoring the network"
            checks += [
                self.below_ten(f"5 ms every 10 s, {how}: below 10 %", polls),
                self.noticeable(f"5 ms every 10 s, {how}: at least 2 %", polls),
                self.below_twenty(f"10 ms every 5 s, {how}: all but CONNECT below 20 %", polls),
                self.em3d_under_daemons(f"50 ms every 5 s, {how}: EM3D 2.4 times", polls),
                self.more_than_column("sample", how, polls, GRAIN),
                self.more_than_column("connect", how, polls, OFTEN),
                self.most_are_large(f"50 ms every 5 s, {how}: most programs are slowed down much", polls),
                self.column(f"50 ms every 5 s, {how}: COLUMN below 20 %", polls),
                self.large_window(f"50 ms every 5 s, {how}: no program is faster with a large window", polls),
            ]
        checks.append(self.connects_point())
        text = "Daemons of 5 ms cost 2 to 10 %, of 10 ms below 20 %; of 50 ms EM3D 2.4 times, COLUMN below 20 %"
        return Claim("D-6", "6, figure 4", text, checks)

    def below_ten(self, text: str, polls: bool) -> Check:
        """Ask it of every program; of daemons that poll, any duration may be the paper's."""
        limit, duration_s, interval_s = below(1.1, "less than 10%"), 0.005, 10.0
        found = self.worst(
            text,
            lambda papers: {p: self.daemon(p, duration_s, interval_s, polls, papers=papers) for p in PROGRAMS},
            limit,
            daemons_reach(duration_s, interval_s),
        )
        allowed = 1000 * longest_daemons_s(1.1, interval_s)
        return (
            barred(
                found,
                "open input",
                f"how much longer a daemon runs because it must buffer, for which the text gives no cost: {allowed:.0f}"
                " ms instead of 5 would allow 10 %. The daemons' run times would settle it",
            )
            if polls
            else found
        )

    def noticeable(self, text: str, polls: bool) -> Check:
        results = []
        for way in (EXTRACTED, HANDLED) if polls else (IGNORE,):
            for name, papers in (("windows best here", False), ("the paper's windows", True)):
                found = {p: self.by_daemons(p, way, 0.005, 10.0, papers) for p in PROGRAMS}
                words, where = listed(found, digits=3), f"{way}, {name}" if polls else name
                results += [
                    (f"the program that is slowed down most, {where}", max(found.values()), words),
                    (f"every program, {where}", min(found.values()), words),
                ]
        return check_numbers(
            text,
            results,
            between(1.02, float("inf"), "2 to 10 percent"),
            'whether "parallel applications" are all five, or those at the upper end of a range. The heights of figure'
            " 4's first column would settle it",
            reach=None if polls else daemons_reach(0.005, 10.0),
        )

    def below_twenty(self, text: str, polls: bool) -> Check:
        results = []
        for way in self.ways(polls):
            for name, papers in (("windows best here", False), ("the paper's windows", True)):
                found = {p: self.by_daemons(p, way, 0.010, 5.0, papers) for p in WITHOUT_CONNECT}
                where = f"{way}, {name}" if polls else name
                results.append((where, max(found.values()), listed(found, digits=3)))
        allowed = 1000 * longest_daemons_s(1.2, 5.0)
        return check_numbers(
            text,
            results,
            below(1.2, "less than 20%, with the exception of CONNECT"),
            f"{POLLED}. {allowed:.0f} ms instead of 10 allow 20 %. The daemons' run times would settle it",
            reach=None if polls else daemons_reach(0.010, 5.0),
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
        if self.rows.has(LONGER):
            longest = self.by_daemons("connect", LONGEST, 0.010, 5.0, False)
            results.append((LONGEST, longest - 1, f"every 5 s {longest:.2f}"))
        interval_s = min(self.calibration.daemon_intervals_s)
        ignoring = daemons_reach(0.010, interval_s).most - 1
        return barred(
            check_numbers(
                "10 ms: CONNECT has one point that is slowed down by 80 %",
                results,
                digits(0.8, 0.1, "an 80% slowdown"),
            ),
            "open input",
            f"which graph the point is in, and how long its daemons ran. Those that ignore the network cost at most"
            f" {100 * ignoring:.1f} %, even where they never coincide. Those that poll may run longer, for which the"
            f" text gives no cost: {1000 * longest_daemons_s(1.8, interval_s):.0f} ms instead of 10 would allow 80 %."
            " The daemons' run times at that point would settle it",
        )

    def more_than_column(self, program: str, how: str, polls: bool, hangs_on: str) -> Check:
        return check_readings(
            f"50 ms every 5 s, {how}: {program.upper()} is slowed down more than COLUMN",
            self.slowed_more(program, "column", polls),
            word('"also strongly affected"; COLUMN "less than 20%"; asked: more than COLUMN'),
            f"{hangs_on}{f'; {POLLED}' if polls else ''}; {NETWORK}",
        )

    def most_are_large(self, text: str, polls: bool) -> Check:
        return check_readings(
            text,
            [(world.name, True, listed(world.base)) for world in self.worlds(polls)],
            own('"large slow-downs ... for most applications"'),
            "how large is large: no number is printed but EM3D's 2.4 and COLUMN's 20 %. The heights of figure 4's third"
            " column would settle it",
        )

    def column(self, text: str, polls: bool) -> Check:
        return check_numbers(
            text,
            [(world.name, world.base["column"], f"{world.base['column']:.3f}") for world in self.worlds(polls)],
            below(1.2, "less than 20%"),
            f"{f'{POLLED}; ' if polls else ''}{NETWORK}",
        )

    def em3d_under_daemons(self, text: str, polls: bool) -> Check:
        results = []
        for world in self.worlds(polls):
            results.append((f"{world.name}, each node's phase drawn", world.base["em3d"], f"{world.base['em3d']:.2f}"))
            results += [
                (f"{world.name}, {name}", slow, f"{slow:.2f}") for name, slow in world.inputs.get("em3d", {}).items()
            ]
        for papers in (False, True):
            window = self.window("em3d", papers)
            in_turn = self.rows.slowdown(STAGGERED, self.rows.one(STAGGERED, program="em3d", window=window))
            results.append((f"window {window}, one node after the other", in_turn, f"{in_turn:.2f}"))
        return check_numbers(
            text,
            results,
            digits(2.4, 0.1, "2.4 times"),
            f"{PHASED}{f'; {POLLED}' if polls else ''}. The daemons' starting times would settle it",
            continuous=True,
        )

    def large_window(self, text: str, polls: bool) -> Check:
        wide = self.calibration.large_window
        results = []
        for way in (EXTRACTED, HANDLED) if polls else (IGNORE,):
            for name, papers in (("windows best here", False), ("the paper's windows", True)):
                pairs = {
                    p: (
                        self.daemon_row(p, way == EXTRACTED, self.window(p, papers)),
                        self.daemon_row(p, way == EXTRACTED, wide),
                    )
                    for p in PROGRAMS
                }
                results.append(none_faster(f"{way}, {name}" if polls else name, pairs))
        # In a fat tree no daemon polls; that is also how it is where credits return when packets are handled.
        for one in self.calibration.fillings:
            pairs = {p: self.filling_rows(p, one, "daemons") for p in self.calibration.filling_disturbed}
            results.append(none_faster(f"{HANDLED}, {one.name}" if polls else one.name, pairs))
        hangs_on = f"{NETWORK}; and when a credit returns while a daemon polls" if polls else NETWORK
        return check_readings(text, results, word('"does not improve"'), hangs_on)

    def daemon_row(self, program: str, polls: bool, window: int) -> Row:
        """Return the row of daemons of 50 ms every 5 s."""
        where = {"duration_s": 0.050, "interval_s": 5.0, "polls": polls, "window": window}
        return self.rows.one("figure-4", program=program, **where)
