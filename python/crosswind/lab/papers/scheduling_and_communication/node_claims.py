"""Claims about one node that is shared with a serial job (D-7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from crosswind.lab.papers.grading import (
    Check,
    Claim,
    barred,
    check_readings,
    own,
    word,
)
from crosswind.lab.papers.scheduling_and_communication import variants
from crosswind.lab.papers.scheduling_and_communication.calibration import (
    PAPERS_WINDOWS,
    PROGRAMS,
    Calibration,
)
from crosswind.lab.papers.scheduling_and_communication.figures import (
    FINE,
    FINE_DISTURBED,
    Row,
    Rows,
)
from crosswind.lab.papers.scheduling_and_communication.judge import (
    FINE_GRAIN,
    GRAIN,
    Judge,
    faster,
    listed,
    none_faster,
    percent,
    range_of,
)


def claims(rows: Rows, calibration: Calibration) -> list[Claim]:
    """Grade these claims."""
    judge = _OfOneNode(rows, calibration)
    return [judge.d7()]


class _OfOneNode(Judge):
    def d7(self) -> Claim:
        shares = [share for share in self.calibration.shares if share < 1.0]

        def of_bound(programs: Iterable[str], papers: bool) -> dict[str, float]:
            return {
                f"{p} at {percent(share)}": self.shared(p, share, papers=papers) * share
                for share in shares
                for p in programs
            }

        def to_the_rate(papers: bool) -> tuple[bool, str]:
            return True, listed(of_bound(("em3d", "column"), papers), "of 1/p")

        def polling(papers: bool) -> tuple[bool, str]:
            found = {
                f"{p} at {percent(share)}": self.shared(p, share, polls=True, papers=papers)
                / self.shared(p, share, papers=papers)
                for p in PROGRAMS
                for share in shares
            }
            return True, range_of(found)

        least = min(shares)
        smaller = ("column", "connect", "em3d")
        checks = [
            self.nearer(shares),
            self.with_windows(
                "EM3D and COLUMN are slowed down to 1/p",
                to_the_rate,
                own('"to the rate of the slowest process"'),
                "how near to 1/p is to it; the heights of figure 5 would settle it",
            ),
            barred(
                self.with_windows(
                    "SAMPLE is slowed down to 1/p",
                    lambda papers: (
                        True,
                        listed({**of_bound(("sample",), papers), **self.by_node("sample")}, "of 1/p"),
                    ),
                    word('"follows this processor"'),
                ),
                "open input",
                "whether the node that is shared is one of SAMPLE's slowest, as in the paper: on the slowest it is 1/p"
                " by arithmetic (not-built has five nodes). The shares of SAMPLE's keys, which are drawn, would settle"
                " it",
            ),
            self.with_windows(
                "whether the serial job polls has little impact",
                polling,
                own('"little impact"'),
                "how much is little; the heights of figure 5's first two graphs would settle it",
            ),
            self.helps_sample(least),
            self.helps_cholesky(least),
            self.with_windows(
                f"COLUMN, CONNECT and EM3D are no faster with a large window, at {percent(least)}",
                lambda papers: none_faster("", {p: self.shared_rows(p, least, papers) for p in smaller})[1:],
                word('"better overall performance is achieved using the smaller window sizes"'),
            ),
        ]
        text = "One shared node slows balanced programs to its rate; polling is irrelevant; large windows help some"
        return Claim("D-7", "7, figure 5", text, checks)

    def by_node(self, program: str) -> dict[str, float]:
        """Return the slowdown with the job on other nodes, at the least share, as a part of 1/p."""
        share = min(self.calibration.shares)
        where = {"program": program, "under": variants.SERIAL, "variant": variants.ELSEWHERE}
        rows = self.rows.of(variants.NAME, **where) if self.rows.has(variants.NAME) else []
        return {
            f"{program} on node {row.params['rank']}": self.rows.slowdown(variants.NAME, row) * share for row in rows
        }

    def nearer(self, shares: Sequence[float]) -> Check:
        """Ask whether EM3D and COLUMN are slowed down more nearly to 1/p than CHOLESKY and CONNECT, on each node."""
        balanced, others = ("em3d", "column"), ("cholesky", "connect")

        def answer(name: str, of_bound: Mapping[str, float]) -> tuple[str, bool, str]:
            true = min(of_bound[p] for p in balanced) > max(of_bound[p] for p in others)
            return name, true, listed(of_bound, "of 1/p")

        results = []
        for name, papers in (("windows best here", False), ("the paper's windows", True)):
            for share in shares:
                of_bound = {p: self.shared(p, share, papers=papers) * share for p in (*balanced, *others)}
                results.append(answer(f"node {self.calibration.shared_rank}, {percent(share)}, {name}", of_bound))
        for rank in self.calibration.slowed_ranks if self.rows.has(variants.NAME) else ():
            of_bound = {p: self.by_node(p)[f"{p} on node {rank}"] for p in (*balanced, *others)}
            results.append(answer(f"node {rank}, {percent(min(shares))}", of_bound))
        return check_readings(
            "EM3D and COLUMN are slowed down more nearly to 1/p than CHOLESKY and CONNECT",
            results,
            word('"this is the case for" these, "not slowed down by the same amount" those'),
            "which node is shared: always the same in the paper (footnote 1), which does not say which (not-built)."
            " Each node's part of the work would settle it",
        )

    def shared_rows(self, program: str, share: float, papers: bool) -> tuple[Row, Row]:
        """Return the rows of the dedicated and of a large window, beside a serial job that ignores the network."""
        return (
            self.shared_row(program, share, self.window(program, papers)),
            self.shared_row(program, share, self.calibration.large_window),
        )

    def shared_row(self, program: str, share: float, window: int) -> Row:
        """Return the row beside a serial job that ignores the network."""
        return self.rows.one("figure-5", program=program, share=share, polls=False, window=window)

    def helps(self, program: str, share: float, more: Mapping[str, tuple[Row, Row]], hangs_on: str) -> Check:
        pairs = {
            "windows best here": self.shared_rows(program, share, False),
            "the paper's windows": self.shared_rows(program, share, True),
            **more,
            **{one.name: self.filling_rows(program, one, "serial job") for one in self.calibration.fillings},
        }
        return check_readings(
            f"a large window helps {program.upper()}, at {percent(share)}",
            [
                (name, faster(narrow, wide), f"{narrow.makespan_s / wide.makespan_s:.3f} times")
                for name, (narrow, wide) in pairs.items()
            ],
            word('"performance is improved for two"'),
            hangs_on,
        )

    def helps_sample(self, share: float) -> Check:
        more = {}
        if self.rows.has(FINE_DISTURBED):
            wide = self.rows.one(FINE_DISTURBED, under="serial job", window=self.calibration.large_window)
            for window in sorted({self.rows.best_window("sample", FINE), PAPERS_WINDOWS["sample"]}):
                narrow = self.rows.one(FINE_DISTURBED, under="serial job", window=window)
                more[f"{FINE_GRAIN}, from window {window}"] = (narrow, wide)
        return self.helps(
            "sample", share, more, f"{GRAIN}; what a window can gain is bounded by the busy node's work, 1/p"
        )

    def helps_cholesky(self, share: float) -> Check:
        tried = self.rows.of("figure-5", program="cholesky", share=share, polls=False)
        wide = self.shared_row("cholesky", share, self.calibration.large_window)
        more = {
            f"from window {row.params['window']}": (row, wide)
            for row in tried
            if row.params["window"] in self.calibration.small_windows
        }
        hangs_on = (
            "which window CHOLESKY had: the text calls it insensitive, so any may be what the large one is beside"
        )
        return self.helps("cholesky", share, more, hangs_on)
