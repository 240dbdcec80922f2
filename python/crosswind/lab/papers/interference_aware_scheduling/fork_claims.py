"""What the paper claims about its six algorithms (K-9, K-10), asked of the simulated runs and of the plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from crosswind import plan
from crosswind.lab.papers.grading import Band, Check, Claim, check_readings, excluded, word
from crosswind.lab.papers.interference_aware_scheduling.calibration import Reading
from crosswind.lab.papers.interference_aware_scheduling.figures import APPLICATIONS, SLOW_NODE, SLOW_S
from crosswind.lab.papers.interference_aware_scheduling.rows import ROOT, Rows

EXCEPTION = (10, 1)
"""The application, MB and diagonals, at which RootComputes is best."""
BEHIND = [(2, 9), (2, 11)]
"""The applications at which BWC is behind CompRate."""
SINGLE = ("IA:Single", "BWC", "CompRate", "FCFS")
INPUTS = {
    "share": (
        "how much of a near link one sender fills: 85 to 95 % of the highest rate in section 2.3, which measured"
        " receiving; table 4's single sends have 10.9 to 11.1 MB/s beside 10.7 to six nodes"
    ),
    "row": "which of table 4's rows the platform has; figure 2 shows row 7's order (E0-7)",
    "ahead": "how many tasks a node asks for ahead, which only reference [13] has",
}
"""What the text leaves open of the platform and the protocol, by the field of a reading that varies it."""
ALL_18 = 'what "consistently" covers: all 18 applications, or those in which sending pays; at (10 MB, 1) it does not'
SLICED = 'what "the best performer" is: first in every application, or first on average'

Ask = Callable[[Reading], tuple[bool, str]]
Application = tuple[int, int]


def claims(rows: Rows) -> list[Claim]:
    """Grade K-9 and K-10."""
    judge = _Judge(rows)
    return [judge.algorithms(), judge.never_send()]


class _Judge:
    def __init__(self, rows: Rows) -> None:
        self.rows, self.calibration = rows, rows.calibration

    def under(self, text: str, ask: Ask, band: Band) -> Check:
        return self.under_each(text, {"": ask}, band)

    def under_each(self, text: str, asks: dict[str, Ask], band: Band, what: str = "") -> Check:
        """Ask in several ways, each under every reading; `what` differs between the ways."""
        found = [(way, one, *ask(one)) for way, ask in asks.items() for one in self.calibration.readings]
        results = [(f"{way}; {one.name}" if way else one.name, true, name) for way, one, true, name in found]
        by_way = {way: [(one, true) for of, one, true, _ in found if of == way] for way in asks}
        inputs = [INPUTS[name] for name in INPUTS if any(_differs(name, of) for of in by_way.values())]
        if any(len({true for of, other, true, _ in found if other == one}) > 1 for one in self.calibration.readings):
            inputs.insert(0, what)
        hangs_on = f"{'; '.join(inputs)} (figure-5.json). Bars of figure 5 would settle it" if inputs else ""
        return check_readings(text, results, band, hangs_on)

    def algorithms(self) -> Claim:
        rows, others = self.rows, [one for one in APPLICATIONS if one != EXCEPTION]

        def headline(reading: Reading) -> tuple[bool, str]:
            won = rows.won(reading, "IA:Multi")
            lost = [one for one in APPLICATIONS if one not in won]
            return lost == [EXCEPTION], f"{len(won)} of 18, not at {_said(lost)}"

        def exception(reading: Reading) -> tuple[bool, str]:
            times = rows.times(reading, EXCEPTION)
            return rows.best(reading, EXCEPTION) == ROOT, _times(times)

        def nowhere_else(reading: Reading) -> tuple[bool, str]:
            won = [one for one in rows.won(reading, ROOT) if one != EXCEPTION]
            return not won, f"at {_said(won)}"

        def means(reading: Reading) -> dict[str, float]:
            times = [rows.times(reading, one) for one in others]
            return {name: fmean(of[name] for of in times) for name in SINGLE}

        def first(reading: Reading) -> tuple[bool, str]:
            lost = [
                one
                for one in others
                if (of := rows.times(reading, one))["IA:Single"] > min(of[name] for name in SINGLE)
            ]
            return not lost, f"not first at {_said(lost)}"

        def first_on_average(reading: Reading) -> tuple[bool, str]:
            found = means(reading)
            return found["IA:Single"] == min(found.values()), _times(found)

        def most_where_little(reading: Reading) -> tuple[bool, str]:
            by_ratio = sorted(others, key=lambda one: one[1] / one[0])
            half = len(by_ratio) // 2
            leads = [
                fmean(rows.time(reading, one, "BWC") / rows.time(reading, one, "IA:Single") - 1 for one in some)
                for some in (by_ratio[:half], by_ratio[-half:])
            ]
            return leads[0] > max(
                leads[1], 0
            ), f"{leads[0]:.1%} in the half with the smaller ratios, else {leads[1]:.1%}"

        def next_best(reading: Reading) -> tuple[bool, str]:
            found = means(reading)
            return sorted(found, key=lambda name: found[name])[:2] == ["IA:Single", "BWC"], _times(found)

        def beats_fcfs(name: str, applications: Sequence[Application]) -> Ask:
            def ask(reading: Reading) -> tuple[bool, str]:
                lost = [one for one in applications if rows.time(reading, one, name) >= rows.time(reading, one, "FCFS")]
                return not lost, f"not at {_said(lost)}"

            return ask

        def consistently(name: str) -> dict[str, Ask]:
            return {
                "all 18 applications": beats_fcfs(name, APPLICATIONS),
                f"all but {_name(EXCEPTION)}": beats_fcfs(name, others),
            }

        best = word('"the best scheduling algorithm"')
        checks = [
            self.under(
                f"IA:Multi is the fastest of six in all applications but {_name(EXCEPTION)}",
                headline,
                word('"outperforms all", "one exception"'),
            ),
            self.under(f"at {_name(EXCEPTION)} RootComputes is the fastest", exception, best),
            self.under("RootComputes is the fastest nowhere else", nowhere_else, word('"one exception"')),
            self.under_each(
                f"IA:Single is the best with one port, {_name(EXCEPTION)} apart",
                {"in every application": first, "on average": first_on_average},
                word('"the best performer"'),
                SLICED,
            ),
            self.under(
                "IA:Single leads BWC most where the ratio of computing to sending is small",
                most_where_little,
                word('"especially"'),
            ),
            self.under("BWC is the next best to IA:Single with one port", next_best, word('"followed closely"')),
            *(
                self.under_each(
                    f"{name} is faster than FCFS in all applications",
                    consistently(name),
                    word('"consistently outperformed"'),
                    ALL_18,
                )
                for name in ("IA:Single", "BWC")
            ),
            *self.behind(),
        ]
        text = "IA:Multi is best but where sending costs more than it brings; IA:Single, closely BWC, then FCFS"
        return Claim("K-9", "4.3, figure 5", text, checks)

    def behind(self) -> list[Check]:
        """Ask where BWC is behind CompRate: with table 4's links, and with sends to Lab3 as slow as they were."""
        rows, elsewhere = self.rows, [one for one in APPLICATIONS if one not in BEHIND]
        ways = {"table 4's links": "figure-5", f"sends to {SLOW_NODE} take {SLOW_S:g} s under BWC": "slow-sends"}

        def is_behind(reading: Reading, one: Application, figure: str = "figure-5") -> bool:
            return rows.time(reading, one, "BWC", figure) > rows.time(reading, one, "CompRate")

        answers = []
        for way, figure in ways.items():
            for reading in self.calibration.readings:
                found = [one for one in BEHIND if is_behind(reading, one, figure)]
                answers.append((f"{way}; {reading.name}", found == BEHIND, f"behind at {_said(found)}"))
        times = (
            f"whether sends of 2 MB to {SLOW_NODE} took 200 ms or 2,000 ms, the reason that the text gives"
            " (slow-sends.json); send times of each run would settle it"
        )

        def nowhere(reading: Reading) -> tuple[bool, str]:
            found = [one for one in elsewhere if is_behind(reading, one)]
            return not found, f"behind at {_said(found)}"

        return [
            check_readings(f"BWC is behind CompRate at {_said(BEHIND)}", answers, word('"worse than"'), times),
            self.under("BWC is behind CompRate nowhere else", nowhere, word('"the only applications"')),
        ]

    def never_send(self) -> Claim:
        def costs(reading: Reading, application: Application) -> int:
            size, work = application
            root, *leaves = reading.platform["node"]
            return sum(leaf["ir_send_s_per_mb"] * size * root["compute_per_s"] / work >= 1 for leaf in leaves)

        def only_there(reading: Reading) -> tuple[bool, str]:
            others = {one: costs(reading, one) for one in APPLICATIONS if one != EXCEPTION and costs(reading, one)}
            return not others, ", ".join(f"{_name(one)} {count} of 6 nodes" for one, count in others.items())

        def planned(reading: Reading) -> tuple[bool, str]:
            size, work = EXCEPTION
            best = plan(reading.checked, task_size_mb=size, task_work=work)
            return (
                best.throughput_tasks_per_s == best.data["root_only_tasks_per_s"],
                f"{best.throughput_tasks_per_s:.3f} tasks/s",
            )

        checks = [
            excluded(
                self.under(f"IR_s Z C exceeds 1 at {_name(EXCEPTION)} only", only_there, word('"the only"')),
                "0.0305 s/MB times 5 MB times 9.05 tasks/s, Lab6 in row 7 at (5 MB, 1), is 1.38; for all six nodes"
                " it exceeds 1 only there (E0-8)",
            ),
            self.under(f"at {_name(EXCEPTION)} the best plan sends nothing", planned, word('"should not"')),
        ]
        return Claim("K-10", "3.2, 4.3", "A node to which sending costs more than it brings gets no task", checks)


def _differs(name: str, found: Sequence[tuple[Reading, bool]]) -> bool:
    """Whether two readings that differ in one input alone give different answers."""
    others = [other for other in INPUTS if other != name]
    answers: dict[tuple[float, ...], set[bool]] = {}
    for one, true in found:
        answers.setdefault(tuple(getattr(one, other) for other in others), set()).add(true)
    return any(len(of) > 1 for of in answers.values())


def _name(application: Application) -> str:
    return f"({application[0]} MB, {application[1]})"


def _said(applications: Sequence[Application]) -> str:
    return ", ".join(map(_name, applications)) or "none"


def _times(times: dict[str, float]) -> str:
    return ", ".join(f"{name} {time:.3f}" for name, time in times.items())
