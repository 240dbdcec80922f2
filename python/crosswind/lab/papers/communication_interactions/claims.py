"""What the paper claims about messages that meet (N-1 to N-4), asked of the rows of the figures.

Bands come from the text; where it has only a word ("significantly", "slightly"), the number that stands for the word is
a constant here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from crosswind.lab.papers.communication_interactions import printed
from crosswind.lab.papers.communication_interactions.calibration import (
    TESTED,
    Calibration,
    FlowReading,
    ProgramReading,
    StreamReading,
)
from crosswind.lab.papers.communication_interactions.figures import LOCAL_STREAMS, SIDES
from crosswind.lab.papers.communication_interactions.rows import RECEIVED, TRANSMISSION, Rows, Spread
from crosswind.lab.papers.grading import Check, Claim, check_readings, excluded

WITHIN_MODEL = 0.06
"""Part by which a slowdown of δ may differ ("within 6 %", section 4.2)."""
WITHIN_TEXT = 0.30
"""Part by which a printed number may be missed (N-2)."""
VERY_SMALL = 0.05
"""η of EP that is "very small"."""
MOST_OF_IS = 0.25
FLATTENED = 0.5
"""Part of the growth with one queue, from 2 to 16 KB of local messages, that is left where two flatten it."""
AT_LEAST = 3.0
"""Times by which the second queue lowers the slowdown of stream A (N-3)."""
SLIGHTLY, MODERATELY = 2.0, 3.5
"""Slowdowns of the local stream beside A, beside B (N-4)."""


LINK_MB_PER_S = 155 / 8
"""Of the paper's ATM link, before what its headers take (E4-4)."""
HOSTS = (
    "what local messages take of a host's processor, and of the job on it: 500 us alone for 8 KB (4.2) leave 8.4 to"
    " 38.6 us at each end; a sweep over that and beyond, with windows of 64 KB (figures-3-4.json). What a transfer"
    " takes of such a host's processor would settle it"
)
FLAT = (
    "what is printed is the same at five times the local rate; nothing that was tried grows with the rate and does that"
)
SERVER = (
    "what the text leaves open of the filter, a process of its host (figure 7): how much longer receiving takes than"
    " sending, how many local frames go together, and the local rate; gaps are exponential (6.1). Rates and batches of"
    " section 6 would settle it (figure-8.json to figure-10.json)"
)
WINDOW = (
    "what a connection has under way, a hidden constant: the one queue's plateau is as long as its window, 64 KB here;"
    " with 8 and 16 KB, the defaults of Solaris hosts then, it is an eighth and a quarter (figure-10.json). The socket"
    " buffers of section 6 would settle it"
)
CREDITS = (
    "which time is meant, and whether credits are given: with them the stream that comes back waits behind the host's"
    " own sends (figure-10.json). Times of both local streams would settle it"
)


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
    return [judge.n1(), judge.n2(), judge.n3(), judge.n4()]


class _Judge:
    def __init__(self, rows: Rows, calibration: Calibration) -> None:
        self.rows, self.calibration = rows, calibration
        self.least, self.most = min(calibration.local_kib), max(calibration.local_kib)

    def of_flows(self, text: str, ask: Callable[[FlowReading], tuple[bool, str]]) -> Check:
        return check_readings(text, [(one.name, *ask(one)) for one in self.calibration.flow_arrivals])

    def of_programs(self, text: str, ask: Callable[[ProgramReading], tuple[bool, str]], hangs_on: str = "") -> Check:
        return check_readings(text, [(one.name, *ask(one)) for one in self.calibration.of_programs], hangs_on or HOSTS)

    def of_streams(self, text: str, ask: Callable[[StreamReading], tuple[bool, str]], hangs_on: str = SERVER) -> Check:
        return check_readings(text, [(one.name, *ask(one)) for one in self.calibration.streams], hangs_on)

    def n1(self) -> Claim:
        counts = [count for count in printed.DELTA_SLOWDOWN if count in self.calibration.flows]

        def as_printed(name: str) -> Callable[[FlowReading], tuple[bool, str]]:
            def ask(reading: FlowReading) -> tuple[bool, str]:
                found = {n: self.rows.delta(name, reading, flows=n).middle for n in counts}
                near = all(abs(found[n] / printed.DELTA_SLOWDOWN[n] - 1.0) <= WITHIN_MODEL for n in counts)
                return near, ", ".join(f"{value:.2f}" for value in found.values())

            return ask

        def same(reading: FlowReading) -> tuple[bool, str]:
            own = [
                (self.rows.delta("A", reading, flows=n).middle, self.rows.delta("B", reading, flows=n).middle)
                for n in counts
            ]
            apart = max(abs(a / b - 1.0) for a, b in own)
            return apart <= WITHIN_MODEL, f"up to {100 * apart:.0f} % apart"

        def in_table(reading: FlowReading) -> tuple[bool, str]:
            found = {
                mix: {name: self.rows.delta(name, reading, mix=mix).middle for name in both}
                for mix, both in printed.TABLE_2.items()
            }
            near = all(
                abs(found[mix][name] / value - 1.0) <= WITHIN_MODEL
                for mix, both in printed.TABLE_2.items()
                for name, value in both.items()
            )
            said = [f"{a}A {b}B: {two['A']:.2f} {two['B']:.2f}" for (a, b), two in found.items()]
            return near, ", ".join(said)

        expected = ", ".join(f"{value:g}" for value in printed.DELTA_SLOWDOWN.values())
        beyond = (
            "beyond the link's capacity: {} flows of 8 KB at {} of 2000 messages/s are {:.1f} MB/s into {:.1f} MB/s"
        )
        alone, mixed = (
            beyond.format(n, part, n * part * 2000 * 8192 / 1e6, LINK_MB_PER_S)
            for n, part in ((2, printed.DELTA_SLOWDOWN[2]), (2, printed.TABLE_2[2, 1]["A"]))
        )
        a, b = (
            self.of_flows(f"{name}: δ falls to {expected} of one flow's with 2, 3, 4 flows (6 %)", as_printed(name))
            for name in ("A", "B")
        )
        checks = [
            excluded(a, alone),
            b,
            excluded(self.of_flows("A and B lose the same (6 %)", same), alone),
            excluded(self.of_flows("mixed flows lose what table 2 says (6 %)", in_table), mixed),
        ]
        text = "Flows that meet at a host lose 9, 17, 24 % of δ with 2, 3, 4 of them, whatever their messages' size"
        return Claim("N-1", "4.2, figure 2, table 2", text, checks)

    def n2(self) -> Claim:
        alphas, hosts = self.calibration.alphas, self.calibration.program_hosts
        least, most = min(hosts), max(hosts)

        def curve(program: str, count: int, reading: ProgramReading) -> list[float]:
            return [self.rows.eta(program, count, alpha, reading).middle for alpha in alphas]

        def grows(program: str) -> Callable[[ProgramReading], tuple[bool, str]]:
            def ask(reading: ProgramReading) -> tuple[bool, str]:
                curves = {count: [self.rows.eta(program, count, alpha, reading) for alpha in alphas] for count in hosts}
                said = "; ".join(
                    f"on {count} {_percents([one.middle for one in own])}" for count, own in curves.items()
                )
                return all(_rises(own) for own in curves.values()), said

            return ask

        def less(program: str) -> Callable[[ProgramReading], tuple[bool, str]]:
            def ask(reading: ProgramReading) -> tuple[bool, str]:
                few, many = curve(program, least, reading)[-1], curve(program, most, reading)[-1]
                return many < few, f"{100 * few:.0f} % on {least}, {100 * many:.0f} % on {most}"

            return ask

        def as_printed(program: str, count: int) -> Callable[[ProgramReading], tuple[bool, str]]:
            def ask(reading: ProgramReading) -> tuple[bool, str]:
                wanted = {a: value for a, value in printed.ETA[program, count].items() if a in alphas}
                found = {a: self.rows.eta(program, count, a, reading).middle for a in wanted}
                near = all(abs(found[a] / value - 1.0) <= WITHIN_TEXT for a, value in wanted.items())
                return near, _percents(list(found.values()))

            return ask

        def at_most(program: str, limit: float) -> Callable[[ProgramReading], tuple[bool, str]]:
            def ask(reading: ProgramReading) -> tuple[bool, str]:
                worst = max(value for count in hosts for value in curve(program, count, reading))
                return worst <= limit, f"at most {100 * worst:.1f} %"

            return ask

        checks = []
        for program in ("mg", "ft"):
            name = program.upper()
            checks += [
                self.of_programs(f"η of {name} grows with the local rate", grows(program)),
                self.of_programs(
                    f"η of {name} is less on {most} hosts than on {least}, at {alphas[-1]:g}/s", less(program)
                ),
            ]
        for (program, count), wanted in printed.ETA.items():
            said = ", ".join(f"{100 * value:g}" for alpha, value in wanted.items() if alpha in alphas)
            rates = ", ".join(f"{alpha:g}" for alpha in wanted if alpha in alphas)
            if said and count in hosts:
                text = f"η of {program.upper()} on {count} hosts is {said} % at {rates}/s (30 %)"
                checks.append(self.of_programs(text, as_printed(program, count), FLAT if program == "ft" else ""))
        checks += [
            self.of_programs(f"η of EP is very small ({100 * VERY_SMALL:g} %)", at_most("ep", VERY_SMALL)),
            self.of_programs(f"η of IS is below {100 * MOST_OF_IS:g} %", at_most("is", MOST_OF_IS)),
        ]
        text = "Local flows delay MG and FT the more the faster they are, 4 hosts more than 8; IS little, EP hardly"
        return Claim("N-2", "4.3, figures 3, 4", text, checks)

    def n3(self) -> Claim:
        sizes, least, most = self.calibration.local_kib, self.least, self.most
        rows = self.rows

        def rises(side: str, tested: str) -> Callable[[StreamReading], tuple[bool, str]]:
            def ask(reading: StreamReading) -> tuple[bool, str]:
                found = [rows.slowdown(side, tested, kib, reading) for kib in sizes]
                return _rises(found), _listed([one.middle for one in found])

            return ask

        def a_worse(side: str) -> Callable[[StreamReading], tuple[bool, str]]:
            def ask(reading: StreamReading) -> tuple[bool, str]:
                a, b = (rows.slowdown(side, tested, most, reading).middle for tested in ("A", "B"))
                return a > b, f"A {a:.1f}, B {b:.1f}"

            return ask

        def flattened(side: str, tested: str) -> Callable[[StreamReading], tuple[bool, str]]:
            def ask(reading: StreamReading) -> tuple[bool, str]:
                one, two = (
                    [rows.slowdown(side, tested, kib, reading, queue=queue).middle for kib in (least, most)]
                    for queue in ("fifo", "queued")
                )
                said = f"one queue {_listed(one)}; two {_listed(two)}"
                return two[1] - two[0] <= FLATTENED * (one[1] - one[0]), said

            return ask

        def lowered(side: str) -> Callable[[StreamReading], tuple[bool, str]]:
            def ask(reading: StreamReading) -> tuple[bool, str]:
                one, two = (rows.slowdown(side, "A", most, reading, queue=queue).middle for queue in ("fifo", "queued"))
                return one / two >= AT_LEAST, f"{one:.1f} to {two:.1f}, {one / two:.1f} times"

            return ask

        def as_printed(
            side: str, tested: str, queue: str, wanted: float
        ) -> Callable[[StreamReading], tuple[bool, str]]:
            def ask(reading: StreamReading) -> tuple[bool, str]:
                found = rows.slowdown(side, tested, most, reading, queue=queue).middle
                return abs(found / wanted - 1.0) <= WITHIN_TEXT, f"{found:.1f}"

            return ask

        checks = []
        for side, figure in SIDES.items():
            where = f"{side} (figure {figure.removeprefix('figure-')})"
            for tested in TESTED:
                checks.append(
                    self.of_streams(
                        f"{where}: one queue, {tested} is slowed the more the longer local messages are",
                        rises(side, tested),
                    )
                )
            checks.append(self.of_streams(f"{where}: one queue, A is slowed more than B at {most} KB", a_worse(side)))
            for tested in TESTED:
                checks.append(
                    self.of_streams(
                        f"{where}: two queues flatten {tested}: {least} to {most} KB slow it at most half as much more",
                        flattened(side, tested),
                    )
                )
            checks.append(
                self.of_streams(f"{where}: two queues lower A's slowdown at {most} KB at least 3 times", lowered(side))
            )
            for tested, both in printed.SLOWDOWNS_16_KB.get(side, {}).items():
                for queue, words, wanted in zip(("fifo", "queued"), ("one queue", "two queues"), both, strict=True):
                    hangs_on = WINDOW if side == "one-to-all" and queue == "fifo" else SERVER
                    checks.append(
                        self.of_streams(
                            f"{where}: {words}, {tested} {wanted:g} times at {most} KB (30 %)",
                            as_printed(side, tested, queue, wanted),
                            hangs_on,
                        )
                    )
        text = "One queue slows small messages the more the longer local ones are; two queues take most of it back"
        return Claim("N-3", "6.2 to 6.4, figures 8 to 10", text, checks)

    def n4(self) -> Claim:
        sizes, rows = self.calibration.local_kib, self.rows

        def bears(side: str, tested: str, limit: float, by: str = "") -> Callable[[StreamReading], tuple[bool, str]]:
            def ask(reading: StreamReading) -> tuple[bool, str]:
                found = {
                    name: [
                        rows.slowdown(side, tested, kib, reading, queue="queued", of=name, by=by).middle
                        for kib in sizes
                    ]
                    for name in rows.locals_of(side, tested, most, reading)
                }
                worst = max(value for values in found.values() for value in values)
                return worst < limit, "; ".join(f"{name} {_listed(values)}" for name, values in found.items())

            return ask

        def before(tested: str, name: str) -> Callable[[StreamReading], tuple[bool, str]]:
            def ask(reading: StreamReading) -> tuple[bool, str]:
                found = [rows.slowdown("one-to-all", tested, kib, reading, of=name).middle for kib in sizes]
                return abs(max(found) / printed.LOCAL_ONE_TO_ALL[tested] - 1.0) <= WITHIN_TEXT, _listed(found)

            return ask

        most = self.most
        slightly = f"below {SLIGHTLY:g} times (slightly)"
        checks = [
            self.of_streams(
                f"sending side, two queues: local beside A below {SLIGHTLY:g} times", bears("sending", "A", SLIGHTLY)
            ),
            self.of_streams(
                f"sending side, two queues: local beside B below {MODERATELY:g} times",
                bears("sending", "B", MODERATELY),
            ),
            *(
                self.of_streams(
                    f"one-to-all, two queues: both local streams beside {tested} {slightly}, {words}",
                    bears("one-to-all", tested, SLIGHTLY, by),
                    CREDITS,
                )
                for tested in TESTED
                for by, words in ((RECEIVED, "100 messages received"), (TRANSMISSION, "a message's transmission"))
            ),
            *(
                self.of_streams(
                    f"one-to-all, one queue: {name} beside {tested} up to {value:g} times (30 %)", before(tested, name)
                )
                for tested, value in printed.LOCAL_ONE_TO_ALL.items()
                for name in LOCAL_STREAMS
            ),
        ]
        text = "The local stream is slowed slightly beside A, moderately beside B"
        return Claim("N-4", "6.2, 6.4, figures 8, 10", text, checks)


def _rises(values: Sequence[Spread]) -> bool:
    """Whether none is below the one before by more than the seeds scatter, and the last is above the first."""
    steady = all(later.high >= former.low for former, later in pairwise(values))
    return steady and values[-1].middle > values[0].middle


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in values)


def _percents(values: Sequence[float]) -> str:
    return ", ".join(f"{100 * value:.1f}" for value in values) + " %"
