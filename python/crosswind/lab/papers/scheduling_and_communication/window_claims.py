"""Claims about the window when nothing disturbs (D-8)."""

from __future__ import annotations

from crosswind.lab.papers.grading import (
    Band,
    Check,
    Claim,
    below,
    between,
    check_numbers,
    check_readings,
    digits,
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
    LARGE,
    NETWORK,
    ROUND_TRIP_PACKETS,
    UNLIMITED,
    AskNetwork,
    Judge,
    listed,
)

WRONG_WINDOW = {
    "sample": between(0.55, 0.85, "60 to 80 %"),
    "em3d": between(0.55, 0.85, "60 to 80 %"),
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

        insensitive = below(LARGE, 'not "sensitive"; COLUMN is, by 20%')

        def flat(network: Filling | None) -> tuple[bool, str]:
            costs = {p: max(self.costs_of_windows(p, network).values()) for p in ("cholesky", "connect")}
            return max(costs.values()) in insensitive, listed(costs, "lost")

        def flat_with_one_sum() -> tuple[str, bool, str]:
            rows = self.rows.of(ONE_SUM)
            cholesky = max(row.makespan_s for row in rows) / min(row.makespan_s for row in rows) - 1.0
            costs = {"cholesky": cholesky, "connect": max(self.costs_of_windows("connect", None).values())}
            return f"{UNLIMITED}, one sum at a time", max(costs.values()) in insensitive, listed(costs, "lost")

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
                "CHOLESKY and CONNECT are less sensitive than COLUMN's 20 %",
                [
                    (UNLIMITED, *flat(None)),
                    flat_with_one_sum(),
                    *((one.name, *flat(one)) for one in self.calibration.fillings),
                ],
                insensitive,
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
        side = "on either side" if program == "column" else "where it is too large"
        hangs_on = f"{NETWORK}; {GRAIN}" if program == "sample" else NETWORK
        return check_numbers(
            f"the wrong window costs {program.upper()} {band.words}, {side}", results, band, hangs_on, continuous=True
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
            digits(2, words="twice as fast"),
            f"{GRAIN}; how often a sender polls; and CMAML's rule for a request that finds the network full ([TM94])",
            continuous=True,
        )
