"""What daemons cost the programs, by each input that the text leaves open.

The text does not say when a credit returns while a daemon polls, nor how much longer such a daemon runs because it
must buffer. Nor does it give SAMPLE's grain, CONNECT's gets before a sync, and EM3D's work between barriers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crosswind.lab.papers.scheduling_and_communication.calibration import (
    MOST_LONGER,
    PAPERS_WINDOWS,
    PROGRAMS,
)
from crosswind.lab.papers.scheduling_and_communication.figures import (
    BARRIERS,
    DISTURBED,
    FINE,
    FINE_DISTURBED,
    LONGER,
    SYNCS,
    Row,
)
from crosswind.lab.papers.scheduling_and_communication.judge import FINE_GRAIN, Judge, in_ms, listed

HEAVY = {"duration_s": 0.050, "interval_s": 5.0}
"""The hardest daemons of figure 4."""
IGNORE = "daemons that ignore the network"
EXTRACTED = "credit back when extracted"
HANDLED = "credit back when handled"
LONGEST = f"credit back when handled, daemons run {MOST_LONGER:.1f} times as long"
PROGRAMS_INPUTS = ("operation_s", "gets_per_sync")
POLLED = (
    "when a credit returns while a daemon polls: on extraction, or when the packet is handled; and how much longer the"
    f" daemon runs to buffer, for which the text gives no cost: not at all, or {MOST_LONGER:.1f} times, if each packet"
    " costs o (figure-4-longer)"
)


@dataclass(frozen=True)
class World:
    """Slowdowns of the programs in one network, with one choice of windows and under one kind of daemon.

    Attributes
    ----------
    name : str
        In words.
    base : dict
        By program.
    inputs : dict
        By program, with each value of its own inputs beside the one in `base`.
    """

    name: str
    base: Mapping[str, float]
    inputs: Mapping[str, Mapping[str, float]]

    def least(self, program: str) -> float:
        """Return the slowdown with the input that costs the program least."""
        return min([self.base[program], *self.inputs.get(program, {}).values()])

    def most(self, program: str) -> float:
        """Return the slowdown with the input that costs the program most."""
        return max([self.base[program], *self.inputs.get(program, {}).values()])


class UnderDaemons(Judge):
    """Ways to ask what daemons cost."""

    def ways(self, polls: bool) -> tuple[str, ...]:
        """Return how a daemon may act.

        Where a credit returns when its packet is handled, polling changes nothing. So the runs are those of daemons
        that ignore the network.
        """
        if not polls:
            return (IGNORE,)
        return (EXTRACTED, HANDLED, LONGEST) if self.rows.has(LONGER) else (EXTRACTED, HANDLED)

    def by_daemons(self, program: str, way: str, duration_s: float, interval_s: float, papers: bool) -> float:
        """Return a program's slowdown with its own inputs as elsewhere."""
        if way != LONGEST:
            return self.daemon(program, duration_s, interval_s, way == EXTRACTED, papers=papers)
        where = {"duration_s": duration_s, "interval_s": interval_s, "window": self.window(program, papers)}
        row = self.rows.one(LONGER, program=program, **where, **dict.fromkeys(PROGRAMS_INPUTS))
        return self.rows.slowdown(LONGER, row)

    def worlds(self, polls: bool) -> list[World]:
        """Return the slowdowns under the hardest daemons: with either choice of windows, and in each fat tree."""
        found = []
        for way in self.ways(polls):
            for windows, papers in (("windows best here", False), ("the paper's windows", True)):
                base = {p: self.by_daemons(p, way, **HEAVY, papers=papers) for p in PROGRAMS}
                name = f"{way}, {windows}" if polls else windows
                found.append(World(name, base, self._inputs(way, papers)))
            # In a fat tree no daemon polls; that is also how it is where credits return when packets are handled.
            if way in (IGNORE, HANDLED) and set(self.calibration.filling_disturbed) == set(PROGRAMS):
                for one in self.calibration.fillings:
                    rows = {p: self.filling_rows(p, one, "daemons")[0] for p in PROGRAMS}
                    base = {p: self.rows.slowdown(DISTURBED, row) for p, row in rows.items()}
                    found.append(World(f"{way}, {one.name}" if polls else one.name, base, {}))
        return found

    def _inputs(self, way: str, papers: bool) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {"sample": {}, "connect": {}, "em3d": {}}
        fine = PAPERS_WINDOWS["sample"] if papers else self.rows.best_window("sample", FINE)
        if row := self._row(way, FINE_DISTURBED, program="sample", under="daemons", window=fine):
            found["sample"][FINE_GRAIN] = row
        for gets in self.calibration.gets_per_sync:
            if row := self._row(way, SYNCS, program="connect", under="daemons", gets_per_sync=gets):
                found["connect"][f"{gets} gets before a sync"] = row
        if self.rows.has(BARRIERS) and way != LONGEST and not papers:
            for one in self.rows.of(BARRIERS, polls=way == EXTRACTED):
                found["em3d"][in_ms(one.params["operation_s"])] = self.rows.slowdown(BARRIERS, one)
        return found

    def _row(self, way: str, figure: str, *, program: str, under: str, **where: object) -> float | None:
        """Return the slowdown of a program with another input."""
        if way == LONGEST:
            own = {"operation_s": self.calibration.fine_operation_s} if program == "sample" else {}
            return self.rows.slowdown(LONGER, self.rows.one(LONGER, program=program, **own, **where, **HEAVY))
        if not self.rows.has(figure):
            return None
        one: Row = self.rows.one(figure, under=under, polls=way == EXTRACTED, **where)
        return self.rows.slowdown(figure, one)

    def slowed_more(self, program: str, than: str | None, polls: bool) -> list[tuple[str, bool, str]]:
        """Answer whether a program is slowed down more than another, or than all others.

        Asked with the inputs of the programs as elsewhere, and with those that speak most against it.
        """
        results = []
        for world in self.worlds(polls):
            others = [than] if than else [p for p in PROGRAMS if p != program]
            base = {p: world.base[p] for p in (program, *others)}
            results.append((world.name, base[program] > max(base[p] for p in others), listed(base)))
            if any(world.inputs.get(p) for p in (program, *others)):
                for name, own, rest in (
                    ("against it", world.least(program), {p: world.most(p) for p in others}),
                    ("for it", world.most(program), {p: world.least(p) for p in others}),
                ):
                    found = listed({program: own, **rest})
                    results.append((f"{world.name}, inputs that speak {name}", own > max(rest.values()), found))
        return results
