"""Claims about the window when nothing disturbs (D-8)."""

from __future__ import annotations

from crosswind.lab.papers.grading import (
    Band,
    Check,
    Claim,
    check_numbers,
    check_readings,
    digits,
    own,
    unsettled,
    word,
)
from crosswind.lab.papers.scheduling_and_communication.calibration import (
    Calibration,
    Filling,
)
from crosswind.lab.papers.scheduling_and_communication.figures import (
    ONE_SUM,
    Rows,
)
from crosswind.lab.papers.scheduling_and_communication.judge import (
    COARSE_GRAIN,
    FINE_GRAIN,
    GRAIN,
    NETWORK,
    ROUND_TRIP_PACKETS,
    UNLIMITED,
    AskNetwork,
    Judge,
    listed,
)

WRONG_WINDOW = {
    "sample": Band("printed digits", '"60% faster" and "up to 80%"', 0.55, 0.85),
    "em3d": Band("printed digits", '"60% faster" and "up to 80%"', 0.55, 0.85),
    "column": digits(0.2, 0.1, "20 %"),
}
"""E2-1: "60 % faster" and "20 % faster" in section 3, "up to 80 %" at its end and in section 9; all rounded to tens."""


def claims(rows: Rows, calibration: Calibration) -> list[Claim]:
    """Grade these claims."""
    judge = _OfWindows(rows, calibration)
    return [judge.d8()]


class _OfWindows(Judge):
    def d8(self) -> Claim:
        def best(program: str, least: int, most: int) -> AskNetwork:
            def ask(network: Filling | None) -> tuple[bool, str]:
                window = self.best_in(program, network)
                return least <= window <= most, f"{window}"

            return ask

        def lost(network: Filling | None) -> dict[str, float]:
            return {p: max(self.costs_of_windows(p, network).values()) for p in ("cholesky", "connect", "column")}

        def flat(name: str, costs: dict[str, float]) -> tuple[str, bool, str]:
            return name, max(costs["cholesky"], costs["connect"]) < costs["column"], listed(costs, "lost")

        sums = [row.makespan_s for row in self.rows.of(ONE_SUM)]
        one_sum = {**lost(None), "cholesky": max(sums) / min(sums) - 1.0}

        checks = [
            self.samples_best(),
            self.in_networks(
                "EM3D is fastest with 2 packets", best("em3d", 2, 2), digits(2, words="a window size of two")
            ),
            self.in_networks(
                f"COLUMN is fastest with less than a round trip ({ROUND_TRIP_PACKETS:.1f} packets)",
                best("column", 1, int(ROUND_TRIP_PACKETS)),
                word('"slightly less than the round-trip time"; asked: less'),
            ),
            check_readings(
                "CHOLESKY and CONNECT are less sensitive to the window than COLUMN",
                [
                    flat(UNLIMITED, lost(None)),
                    flat(f"{UNLIMITED}, one sum at a time", one_sum),
                    *(flat(one.name, lost(one)) for one in self.calibration.fillings),
                ],
                word('"Neither CHOLESKY nor CONNECT are sensitive"; COLUMN is; asked: less than COLUMN'),
                "how many sums CHOLESKY has under way, a parameter that the text leaves open; and the network",
            ),
            *(self.wrong_window(p, band) for p, band in WRONG_WINDOW.items()),
            self.twice_as_fast(),
            unsettled(
                "the other programs are 10 to 40 % slower with flow control than over CMAML",
                "what a check for credits and an acknowledgement cost a processor of the CM-5 ([TM94]): nothing here",
                "flow control costs no processor time here",
            ),
        ]
        text = "Best windows: SAMPLE 1, EM3D 2, COLUMN just below a round trip; a wrong one costs up to 80 %"
        return Claim("D-8", "3, figure 1", text, checks)

    def samples_best(self) -> Check:
        results = [
            (f"{COARSE_GRAIN}, {UNLIMITED if one is None else one.name}", self.best_in("sample", one))
            for one in (None, *self.calibration.fillings)
        ]
        results += [
            (f"{FINE_GRAIN}, {UNLIMITED if one is None else one.name}", min(costs, key=lambda window: costs[window]))
            for one, costs in self.fine_costs()
        ]
        return check_readings(
            "SAMPLE is fastest with 1 packet",
            [(name, window == 1, f"{window}") for name, window in results],
            digits(1, words="one packet"),
            f"{NETWORK}; {GRAIN}",
        )

    def wrong_window(self, program: str, band: Band) -> Check:
        """Ask what a window that is wrong costs: too large; of COLUMN on either side."""
        by_network = [
            (UNLIMITED if one is None else one.name, self.costs_of_windows(program, one))
            for one in (None, *self.calibration.fillings)
        ]
        if program == "sample":
            by_network += [
                (f"{FINE_GRAIN}, {UNLIMITED if one is None else one.name}", costs) for one, costs in self.fine_costs()
            ]
        results = []
        for name, costs in by_network:
            best = min(costs, key=lambda window: (costs[window], window))
            narrow = max((cost for window, cost in costs.items() if window < best), default=0.0)
            wide = max((cost for window, cost in costs.items() if window > best), default=0.0)
            value = max(narrow, wide) if program == "column" else wide
            results.append((name, value, f"{narrow:.2f} below {best}, {wide:.2f} above"))
        printed = "20 %" if program == "column" else "60 to 80 %"
        side = "on either side" if program == "column" else "where it is too large"
        hangs_on = f"{NETWORK}; {GRAIN}" if program == "sample" else NETWORK
        return check_numbers(
            f"the wrong window costs {program.upper()} {printed}, {side}", results, band, hangs_on, continuous=True
        )

    def twice_as_fast(self) -> Check:
        """Ask SAMPLE's gain over a layer without flow control: in place of CMAML, a window that never closes."""
        results = []
        for one in self.calibration.fillings:
            costs = self.costs_of_windows("sample", one)
            results.append((f"{COARSE_GRAIN}, {one.name}", 1.0 + costs[max(costs)]))
        results += [
            (f"{FINE_GRAIN}, {one.name}", 1.0 + costs[max(costs)])
            for one, costs in self.fine_costs()
            if one is not None
        ]
        return check_numbers(
            "SAMPLE with its best window is twice as fast as without flow control",
            [(name, value, f"{value:.2f} times") for name, value in results],
            own('"twice as fast"', 1.5, 2.5),
            f"how near to two is twice; {GRAIN}; how often a sender polls; and CMAML's rule for a request that finds"
            " the network full ([TM94])",
        )
