"""What the paper claims about messages that meet (N-1 to N-4), asked of the rows of the figures.

Printed numbers are met as far as their digits go. Words without a number ("slightly", "very small") have none here:
such parts are not decided. Where readings differ in a quantity of which the text says nothing and lie on both sides of
a printed number, neither is it decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from crosswind.lab.papers.communication_interactions import printed
from crosswind.lab.papers.communication_interactions.calibration import (
    TESTED,
    Calibration,
    ProgramReading,
    StreamReading,
)
from crosswind.lab.papers.communication_interactions.figures import LOCAL_STREAMS, SIDES
from crosswind.lab.papers.communication_interactions.rows import RECEIVED, TRANSMISSION, Rows, Spread
from crosswind.lab.papers.grading import (
    FAILS,
    OPEN,
    Band,
    Check,
    Claim,
    below,
    between,
    check_numbers,
    check_readings,
    digits,
    own,
    unsettled,
    word,
)

MODEL_OF_TWO = 0.88
"""What the model says of two flows (section 4.2), and how far the measured slowdowns are from it at most."""
WITHIN_MODEL = 0.06

PAUSES = (
    "what flows of 8 KB pause: at 2000 messages/s of 500 us each there is no pause, and two that do not wait are beyond"
    " the link. With pauses of 500 us they keep more, and not enough (figure-2.json, table-2.json); with longer ones"
    " they no longer send 2000/s. Times of single messages, or what was timed, would settle it"
)
B_ALONE = (
    "what a message of B takes alone, which is not printed, and whether a flow waits for its message before the next:"
    " the more of B's time is the hosts', the less a full link adds to it (figure-2.json, table-2.json). B's time"
    " alone, and what was timed, would settle it"
)
HOSTS = (
    "what local messages take of a host's processor, and of the job on it: 500 us alone for 8 KB (4.2) leave 8.4 to"
    " 38.6 us at each end; a sweep over that and beyond, with windows of 64 KB (figures-3-4.json). What a transfer"
    " takes of such a host's processor would settle it"
)
FLAT = (
    "what is printed is the same at five times the local rate; nothing that was tried grows with the rate and does"
    " that. Times of FT alone and beside local flows would settle it"
)
INPUTS = {
    "receiving": "what receiving takes of the filter beside sending",
    "load": "the local rate",
    "batch": "how many local frames go together",
    "credits": "whether credits are given",
    "window_kib": "what a connection has under way, a hidden constant",
    "tested_gap_ms": "whether the tested stream is backlogged or has exponential gaps too, and which",
    "even_bytes": "whether longer local messages come less often",
    "drawn_lengths": "whether lengths are drawn",
}
"""What section 6 leaves open, by the field of a reading that varies it."""
TIME = "which time is meant of a local stream"


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


WORSE = {"sending": '"less slowdown"', "receiving": '"up to 14, and 6"', "one-to-all": '"up to 45 times and 30 times"'}
REDUCED = {
    "sending": '"effectively reduced"',
    "receiving": '"could effectively reduce the slowdown"',
    "one-to-all": '"reduced the delay"',
}
"""The text's words of each side's figure (6.2 to 6.4)."""

Ask = Callable[[StreamReading], tuple[bool, str]]
AskProgram = Callable[[ProgramReading], tuple[bool, str]]


class _Judge:
    def __init__(self, rows: Rows, calibration: Calibration) -> None:
        self.rows, self.calibration = rows, calibration
        self.least, self.most = min(calibration.local_kib), max(calibration.local_kib)

    def of_programs(self, text: str, ask: AskProgram, band: Band, hangs_on: str = HOSTS) -> Check:
        return check_readings(text, [(one.name, *ask(one)) for one in self.calibration.of_programs], band, hangs_on)

    def of_streams(self, text: str, ask: Ask, band: Band, side: str) -> Check:
        found = [(one, *ask(one)) for one in self.calibration.streams]
        hangs_on = turned_by([(one, true) for one, true, _ in found], side)
        return check_readings(text, [(one.name, true, said) for one, true, said in found], band, hangs_on)

    def number(self, text: str, value: Callable[[StreamReading], float], band: Band, side: str) -> Check:
        """Ask for a printed number, which a reading between two others may meet."""
        found = [(one, value(one)) for one in self.calibration.streams]
        results = [(one.name, number, f"{number:.1f}") for one, number in found]
        sides = [(one, (number > band.low) + (number >= band.high)) for one, number in found]
        return check_numbers(text, results, band, turned_by(sides, side), continuous=True)

    def n1(self) -> Claim:
        rows, calibration = self.rows, self.calibration
        near = between(
            MODEL_OF_TWO * (1 - WITHIN_MODEL), MODEL_OF_TWO * (1 + WITHIN_MODEL), "88%, the difference within 6%"
        )

        def of_two(name: str) -> Check:
            found = [(one.name, rows.delta(name, one, flows=2).middle) for one in calibration.flow_arrivals]
            return check_numbers(
                f"two flows of {name} keep 88 % of one flow's δ, within 6 %",
                [(reading, value, f"{value:.2f}") for reading, value in found],
                near,
                PAUSES if name == "A" else B_ALONE,
                continuous=True,
            )

        def in_table(mix: tuple[int, int]) -> Check:
            bands = {name: digits(value, 0.01) for name, value in printed.TABLE_2[mix].items()}
            found = [
                (one.name, {name: rows.delta(name, one, mix=mix).middle for name in bands})
                for one in calibration.flow_arrivals
            ]
            text = " and ".join(f"{name} {band.words}" for name, band in bands.items())
            a, b = mix
            whole = check_readings(
                f"table 2: {a} A and {b} B together keep {text}",
                [
                    (
                        name,
                        all(kept[kind] in band for kind, band in bands.items()),
                        ", ".join(f"{kind} {value:.2f}" for kind, value in kept.items()),
                    )
                    for name, kept in found
                ],
                replace(bands["A"], words=text),
                PAUSES if a > 1 else B_ALONE,
            )
            columns = {kind: [kept[kind] for _, kept in found] for kind in bands}
            return _between(whole, list(columns.values()), list(bands.values()))

        checks = [
            *(of_two(name) for name in ("A", "B") if 2 in calibration.flows),
            unsettled(
                "three to six flows keep what the model says, within 6 %",
                "the heights of figure 2, which are lost; table 2 has mixed flows only",
            ),
            *(in_table(mix) for mix in printed.TABLE_2),
            unsettled(
                "flows that are mixed are slowed as flows of one kind are",
                'by how much is "similar"; the heights of figure 2 would tell what those of one kind lose',
            ),
        ]
        text = "Flows that meet at a host lose 12 % of δ when they are two, whatever their messages' size; table 2"
        return Claim("N-1", "4.2, figure 2, table 2", text, checks)

    def n2(self) -> Claim:
        alphas, hosts = self.calibration.alphas, self.calibration.program_hosts
        least, most = min(hosts), max(hosts)

        def curve(program: str, count: int, reading: ProgramReading) -> list[float]:
            return [self.rows.eta(program, count, alpha, reading).middle for alpha in alphas]

        def grows(program: str) -> AskProgram:
            def ask(reading: ProgramReading) -> tuple[bool, str]:
                curves = {count: [self.rows.eta(program, count, alpha, reading) for alpha in alphas] for count in hosts}
                said = "; ".join(
                    f"on {count} {_percents([one.middle for one in values])}" for count, values in curves.items()
                )
                return all(_rises(values) for values in curves.values()), said

            return ask

        def less(program: str) -> AskProgram:
            def ask(reading: ProgramReading) -> tuple[bool, str]:
                few, many = curve(program, least, reading)[-1], curve(program, most, reading)[-1]
                return many < few, f"{100 * few:.0f} % on {least}, {100 * many:.0f} % on {most}"

            return ask

        def as_printed(program: str, count: int) -> Check:
            """Ask for all printed numbers of a curve; not decided where each lies between what two readings give."""
            wanted = {alpha: value for alpha, value in printed.ETA[program, count].items() if alpha in alphas}
            found = {
                one.name: [self.rows.eta(program, count, alpha, one).middle for alpha in wanted]
                for one in self.calibration.of_programs
            }
            bands = [
                digits(value, 0.001 if round(1000 * value) % 10 else 0.01, f"{100 * value:g}%")
                for value in wanted.values()
            ]
            said = ", ".join(f"{100 * value:g}" for value in wanted.values())
            whole = check_readings(
                f"η of {program.upper()} on {count} hosts is {said} % at {', '.join(f'{a:g}' for a in wanted)}/s",
                [
                    (name, all(value in band for value, band in zip(values, bands, strict=True)), _percents(values))
                    for name, values in found.items()
                ],
                bands[0],
                FLAT if program == "ft" else HOSTS,
            )
            columns = list(zip(*found.values(), strict=True))
            return _between(whole, columns, bands)

        def worst(program: str, reading: ProgramReading) -> float:
            return max(value for count in hosts for value in curve(program, count, reading))

        def very_small(reading: ProgramReading) -> tuple[bool, str]:
            found = worst("ep", reading)
            return found < 1, f"at most {100 * found:.1f} %"

        checks = []
        for program in ("mg", "ft"):
            name = program.upper()
            checks += [
                self.of_programs(f"η of {name} grows with the local rate", grows(program), word('"increases"')),
                self.of_programs(
                    f"η of {name} is less on {most} hosts than on {least}, at {alphas[-1]:g}/s",
                    less(program),
                    word('"less than that on the N4 platform"'),
                ),
            ]
        checks += [
            as_printed(program, count)
            for (program, count), wanted in printed.ETA.items()
            if count in hosts and any(alpha in alphas for alpha in wanted)
        ]
        quarter = below(0.25, "< 25%")
        checks += [
            self.of_programs("η of EP is very small", very_small, own('"very small"'), f"{HOSTS}, and figure 4"),
            check_numbers(
                "η of IS is below 25 %",
                [
                    (one.name, found := worst("is", one), f"at most {100 * found:.1f} %")
                    for one in self.calibration.of_programs
                ],
                quarter,
                HOSTS,
            ),
        ]
        text = "Local flows delay MG and FT the more the faster they are, 4 hosts more than 8; IS little, EP hardly"
        return Claim("N-2", "4.3, figures 3, 4", text, checks)

    def n3(self) -> Claim:
        sizes, most, rows = self.calibration.local_kib, self.most, self.rows

        def slow(side: str, tested: str, reading: StreamReading, queue: str = "fifo") -> float:
            return rows.slowdown(side, tested, most, reading, queue=queue).middle

        def rises(side: str, tested: str) -> Ask:
            def ask(reading: StreamReading) -> tuple[bool, str]:
                found = [rows.slowdown(side, tested, kib, reading) for kib in sizes]
                return _rises(found), _listed([one.middle for one in found])

            return ask

        def a_worse(side: str) -> Ask:
            def ask(reading: StreamReading) -> tuple[bool, str]:
                a, b = (slow(side, tested, reading) for tested in ("A", "B"))
                return a > b, f"A {a:.1f}, B {b:.1f}"

            return ask

        def reduced(side: str, tested: str) -> Ask:
            def ask(reading: StreamReading) -> tuple[bool, str]:
                one, two = (slow(side, tested, reading, queue) for queue in ("fifo", "queued"))
                return two < one, f"{one:.2f} to {two:.2f}"

            return ask

        def a_gains_more(side: str) -> Ask:
            def ask(reading: StreamReading) -> tuple[bool, str]:
                a, b = (slow(side, tested, reading) / slow(side, tested, reading, "queued") for tested in ("A", "B"))
                return a > b, f"A {a:.1f} times, B {b:.1f}"

            return ask

        checks = []
        for side, figure in SIDES.items():
            where = f"{side} (figure {figure.removeprefix('figure-')})"
            printed_here = printed.SLOWDOWNS_16_KB.get(side, {})
            checks += [
                self.of_streams(
                    f"{where}: one queue, {tested} is slowed the more the longer local messages are",
                    rises(side, tested),
                    word('"up to ... when the message size increased"'),
                    side,
                )
                for tested in printed_here
            ]
            checks.append(
                self.of_streams(
                    f"{where}: one queue, A is slowed more than B at {most} KB", a_worse(side), word(WORSE[side]), side
                )
            )
            checks += [
                self.of_streams(
                    f"{where}: two queues slow {tested} less than one at {most} KB",
                    reduced(side, tested),
                    word(REDUCED[side]),
                    side,
                )
                for tested in TESTED
            ]
            if printed_here:
                checks.append(
                    self.of_streams(
                        f"{where}: two queues gain A more than B at {most} KB",
                        a_gains_more(side),
                        word('"more effective"'),
                        side,
                    )
                )
            for tested, both in printed_here.items():
                for queue, words, wanted in zip(("fifo", "queued"), ("one queue", "two queues"), both, strict=True):
                    checks.append(
                        self.number(
                            f"{where}: {words}, {tested} {wanted:g} times at {most} KB",
                            lambda one, side=side, tested=tested, queue=queue: slow(side, tested, one, queue),  # type: ignore[misc]
                            digits(wanted),
                            side,
                        )
                    )
        text = "One queue slows small messages the more the longer local ones are; two queues take most of it back"
        return Claim("N-3", "6.2 to 6.4, figures 8 to 10", text, checks)

    def n4(self) -> Claim:
        sizes, rows = self.calibration.local_kib, self.rows

        def local(side: str, tested: str, reading: StreamReading, queue: str, name: str, by: str = "") -> list[float]:
            return [rows.slowdown(side, tested, kib, reading, queue=queue, of=name, by=by).middle for kib in sizes]

        def rise(tested: str, reading: StreamReading) -> float:
            one, two = (max(local("sending", tested, reading, queue, "local")) for queue in ("fifo", "queued"))
            return two / one

        def higher(tested: str) -> Ask:
            def ask(reading: StreamReading) -> tuple[bool, str]:
                found = rise(tested, reading)
                return found > 1, f"{found:.2f} times as slow as with one"

            return ask

        def more_with_b(reading: StreamReading) -> tuple[bool, str]:
            a, b = rise("A", reading), rise("B", reading)
            return b > a, f"{a:.2f} times beside A, {b:.2f} beside B"

        def slightly(tested: str) -> Check:
            """Ask whether the filter spares both local streams, by either time: "up to 7", and then "only slightly"."""
            results, times = [], []
            for by, words in ((RECEIVED, "100 messages received"), (TRANSMISSION, "a message's transmission")):
                for one in self.calibration.streams:
                    slowed = {
                        name: [max(local("one-to-all", tested, one, queue, name, by)) for queue in ("fifo", "queued")]
                        for name in LOCAL_STREAMS
                    }
                    spared = all(two < with_one for with_one, two in slowed.values())
                    said = ", ".join(f"{name} {with_one:.1f} to {two:.1f}" for name, (with_one, two) in slowed.items())
                    results.append((f"{words}; {one.name}", spared, said))
                    times.append((by, one, spared))
            by_time = {by: [(one, spared) for other, one, spared in times if other == by] for by, _, _ in times}
            inputs = list(dict.fromkeys(name for of in by_time.values() for name in turning(of)))
            if len({of[0][1] for of in by_time.values()}) > 1:
                inputs.append(TIME)
            return check_readings(
                f"one-to-all: two queues slow both local streams beside {tested} less than one",
                results,
                word(f'"up to" {printed.LOCAL_ONE_TO_ALL[tested]:g} with one, "only slightly" with two'),
                _settled("one-to-all", inputs),
            )

        checks = [
            *(
                self.of_streams(
                    f"sending side: two queues slow the local stream beside {tested} more than one does",
                    higher(tested),
                    word('"higher"'),
                    "sending",
                )
                for tested in TESTED
            ),
            self.of_streams(
                "sending side: that is more beside B than beside A",
                more_with_b,
                word('"only slightly" beside A, "moderately" beside B'),
                "sending",
            ),
            *(slightly(tested) for tested in TESTED),
            *(
                self.number(
                    f"one-to-all, one queue: {name} beside {tested} up to {value:g} times",
                    lambda one, tested=tested, name=name: max(local("one-to-all", tested, one, "fifo", name)),  # type: ignore[misc]
                    digits(value, words=f"up to {value:g}"),
                    "one-to-all",
                )
                for tested, value in printed.LOCAL_ONE_TO_ALL.items()
                for name in LOCAL_STREAMS
            ),
        ]
        text = "The local stream is slowed slightly beside A, moderately beside B"
        return Claim("N-4", "6.2, 6.4, figures 8, 10", text, checks)


def turning(found: Sequence[tuple[StreamReading, object]]) -> list[str]:
    """Return the inputs that turn an answer: those of `INPUTS` that alone give another than the first reading.

    Where none does alone, the inputs of those readings that give another answer.
    """
    (first, usual), *others = found
    differing = [
        [name for name in INPUTS if getattr(one, name) != getattr(first, name)]
        for one, answer in others
        if answer != usual
    ]
    alone = [names for names in differing if len(names) == 1]
    return list(dict.fromkeys(name for names in alone or differing for name in names))


def turned_by(found: Sequence[tuple[StreamReading, object]], side: str) -> str:
    """Return what turns the answer of a part, and what would settle it."""
    return _settled(side, turning(found))


def _settled(side: str, inputs: Sequence[str]) -> str:
    if not inputs:
        return f"no input that was varied turns it ({SIDES[side]}.json); times of single messages would settle it"
    said = "; ".join(INPUTS.get(name, name) for name in inputs)
    return f"{said} ({SIDES[side]}.json). What section 6 had of these would settle it"


def _between(whole: Check, columns: Sequence[Sequence[float]], bands: Sequence[Band]) -> Check:
    """Leave a part open that no reading meets, where each of its numbers lies between what two readings give."""
    surrounded = all(
        min(column) < band.high and max(column) > band.low for column, band in zip(columns, bands, strict=True)
    )
    return replace(whole, verdict=OPEN) if whole.verdict == FAILS and surrounded else whole


def _rises(values: Sequence[Spread]) -> bool:
    """Whether none is below the one before, and the last is above the first, by more than the seeds scatter."""
    steady = all(later.high >= former.low for former, later in pairwise(values))
    return steady and values[-1].middle > values[0].high


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in values)


def _percents(values: Sequence[float]) -> str:
    return ", ".join(f"{100 * value:.1f}" for value in values) + " %"
