"""What the paper claims about C, its testbed, its model and its principles (K-6, K-16 to K-18)."""

from __future__ import annotations

from statistics import fmean

from crosswind import Platform, plan
from crosswind.lab.engine import three_point
from crosswind.lab.papers import table_2, table_3, table_4
from crosswind.lab.papers.grading import (
    Claim,
    barred,
    check,
    check_readings,
    digits,
    excluded,
    needs_number,
    unsettled,
    word,
)
from crosswind.lab.papers.interference_aware_scheduling.calibration import Reading
from crosswind.lab.papers.interference_aware_scheduling.figures import APPLICATIONS
from crosswind.lab.papers.interference_aware_scheduling.rows import Rows
from crosswind.lab.papers.interference_in_java import measured_here
from crosswind.lab.papers.table_4 import ROOT_COMPUTE_PER_S, Leaf

RATIOS = {(2, 11): 5.0, (10, 1): 0.1}
"""Application -> its computing over its sending (section 4.3)."""
TIE = 1e-9

POINT = (9.0, (11.0, 4.8), (10.0, 6.0, 3.6))
"""A node's rates for the formulas of section 3.1: C; MR and C_r; SR, RR and C_sr."""
THREE_POINTS = {"mean": (0.012, 0.0067), "most": (0.055, 0.039)}
"""Errors inside the hull, of the plane and of three points (section 3.1)."""
OVERALL = (0.022, 0.026)
"""Mean errors over all points, of the plane and of three points."""
CONSTANT = 0.9440
"""Of the law through three points (section 3.1)."""
COUNTER_EXAMPLE = {
    "schema_version": 1,
    "name": "two children",
    "node": [
        {"name": "root", "compute_per_s": 1.0},
        {
            "name": "a",
            "parent": "root",
            "compute_per_s": 100.0,
            "receive_limit_mb_per_s": 10.0,
            "ir_send_s_per_mb": 0.5,
        },
        {
            "name": "b",
            "parent": "root",
            "compute_per_s": 100.0,
            "receive_limit_mb_per_s": 4.0,
            "ir_send_s_per_mb": 0.01,
        },
    ],
}
"""Where the derived order with one port is not the best (E0-4)."""


def claims(rows: Rows) -> list[Claim]:
    """Grade K-6 and K-16 to K-18."""
    return [_three_points(), _language(), _testbed(), _principles(rows)]


def _three_points() -> Claim:
    compute, receiving, (sent, received, left) = POINT

    def predicted(formula: str) -> float:
        ir_receive, (ir_send,) = three_point(compute, receiving, [(sent, received, left)], formula)
        return compute * (1 - ir_receive * received - ir_send * sent)

    literal = predicted("literal")
    measured = (
        "the 234 measured points; here every fit with both directions has the errors of both laws inside the hull"
        " (`crosswind fit --wide`)"
    )
    checks = [
        barred(
            check(
                "inside the hull of the three points their law errs less than the plane, on average and at most",
                all(three < plane for plane, three in THREE_POINTS.values()),
                ", ".join(f"{name} {three:.2%} and {plane:.1%}" for name, (plane, three) in THREE_POINTS.items())
                + " (printed)",
                word('"substantially better"'),
            ),
            "own figures",
            f"the errors are the claim's own figures; what settles it: {measured}",
        ),
        barred(
            check(
                "over all points it errs more",
                OVERALL[1] > OVERALL[0],
                f"{OVERALL[1]:.1%} and {OVERALL[0]:.1%} (printed)",
                word('"a worse error rate"'),
            ),
            "cannot fail",
            f"no plane is nearer to all points than the one that is fitted to them; what settles it: {measured}",
        ),
        excluded(
            check(
                "the formula for IR_s(i), as printed, meets every point that it was made of",
                abs(literal - left) < TIE,
                f"{literal:.2f} of {left}",
                word('"exactly match"'),
            ),
            "it subtracts tasks/s from MB tasks/s^2; as corrected here it does (E0-1)",
        ),
        excluded(
            check(
                "the law through three points has the constant 1",
                abs(CONSTANT - 1) < TIE,
                f"{CONSTANT} in the example",
                digits(1, 1e-4, "1, in the law"),
            ),
            "the law divides by C^n and has 1; the example divides by the highest rate (E0-3)",
        ),
    ]
    return Claim("K-6", "3.1", "Three measured points describe what a scheduler needs better than a plane", checks)


def _language() -> Claim:
    java, c = {peer.node: peer for peer in table_2.load()}, {peer.node: peer for peer in table_3.load()}
    common = [node for node in c if node in java]
    here = measured_here.load()
    checks = []
    for direction, name in (("receive", "receiving"), ("send", "sending")):
        less = [
            1 - getattr(c[node], direction).ir_s_per_mb / getattr(java[node], direction).ir_s_per_mb for node in common
        ]
        ratio = here["stream", direction]
        said = f"{min(less):.0%} to {max(less):.0%} lower in tables 2 and 3"
        measured = f"Java {ratio} times C ({measured_here.RECORD})"
        checks += [
            check_readings(
                f"{name}: C's rates are lower than Java's",
                [
                    ("tables 2 and 3, the nodes of both", min(less) > 0, said),
                    ("Socket streams beside native code, measured here", ratio.lowest > 1, measured),
                ],
                word('"marginally lower": its sign'),
            ),
            needs_number(
                f"{name}: marginally",
                f"{said}; {measured}",
                '"marginally"',
                "how much lower is marginal; errors of the rates of tables 2 and 3 would tell it from none",
            ),
        ]
    checks += [
        excluded(
            check(
                "the nodes of both are Lab0, Lab1, Campus0 and Campus2",
                common == ["Lab0", "Lab1", "Campus0", "Campus2"],
                ", ".join(common),
                word("the names"),
            ),
            "Lab0 is the node that is measured; table 3 has Lab2 (E0-9)",
        ),
        check(
            "in C receiving costs more than sending, for every node",
            all(peer.receive.ir_s_per_mb > peer.send.ir_s_per_mb for peer in c.values()),
            f"{sum(peer.receive.ir_s_per_mb > peer.send.ir_s_per_mb for peer in c.values())} of {len(c)}",
            word('"the interference rate of sending is less than that of receiving"'),
        ),
        unsettled(
            "in C a line is 2.51 % off on average",
            "the rates of single experiments; table 3 has deviations and largest errors by node",
            f"table 3: deviation {fmean(p.receive.std_dev for p in c.values()):.2%} receiving,"
            f" {fmean(p.send.std_dev for p in c.values()):.2%} sending",
        ),
    ]
    return Claim("K-16", "2.5, table 3", "C interferes as Java does, marginally less", checks)


def _testbed() -> Claim:
    leaves = table_4.load()
    java = {peer.node: peer for peer in table_2.load()}
    odd = [leaf.leaf for leaf in leaves if not leaf.consistent]
    rows_7_and_2 = all(leaf.ir_send_root_computes_s_per_mb == java[leaf.leaf].send.ir_s_per_mb for leaf in leaves)
    rates = [leaf.rate_no_compute_mb_per_s for leaf in leaves]
    speeds = {
        "the highest rate to all nodes": table_4.ROOT_SEND_LIMIT_MB_PER_S,
        "table 4's mean rate, row 5": fmean(rates),
    }

    def ratios(mb_per_s: float) -> tuple[bool, str]:
        found = {one: (work / ROOT_COMPUTE_PER_S) / (size / mb_per_s) for one, work, size in _sized()}
        near = found[2, 11] in digits(5) and 1 / found[10, 1] in digits(10)
        return near, ", ".join(f"{ratio:.1f}:1" if ratio > 1 else f"1:{1 / ratio:.1f}" for ratio in found.values())

    by_bandwidth = _without_lab5(leaves, 7, by="rate")
    checks = [
        excluded(
            check(
                "rows 8 and 9 of table 4 follow from rows 1 to 6",
                not odd,
                f"not for {', '.join(odd)}",
                digits(0, 0.002, "as far as the digits of rows 3, 4 and 6 go"),
            ),
            "rows 3, 1, 6 and 4, 2, 6 give 0.0773 and 0.2003 for Tenn; printed are Lab6's 0.0331 and 0.1300,"
            " which no rate that rounds to 0.2 MB/s gives (E0-6)",
        ),
        check(
            "row 7 of table 4 is table 2's IR of sending",
            rows_7_and_2,
            f"{len(leaves)} nodes",
            word('"taken from Table 2"'),
        ),
        excluded(
            check(
                "rows 7 to 9 are percentages (caption)",
                leaves[0].ir_send_root_computes_s_per_mb > 1,
                "fractions per MB/s",
                word('"in percent degradation"'),
            ),
            "0.0299 % for each MB/s would be 0.3 % at 10 MB/s; row 3 has 36 % less than row 1 (E0-9)",
        ),
        check_readings(
            "2 MB with 11 diagonals is around 5:1, 10 MB with 1 around 1:10",
            [(name, *ratios(speed)) for name, speed in speeds.items()],
            digits(5, words="around 5:1, around 1:10"),
            "which transfer rate is meant: the mean of table 4's row 5 gives both ratios",
        ),
        check_readings(
            "the orders of IA:Single and BWC differ in Lab5 only",
            [
                (
                    f"row {row}",
                    _without_lab5(leaves, row, by="ir") == by_bandwidth,
                    " ".join(_order(leaves, row, by="ir")),
                )
                for row in (7, 8)
            ],
            word('"differ only in"'),
            "which row has the interference of sending: this sentence says row 7 (E0-7)",
        ),
    ]
    return Claim("K-17", "4.2, 4.3, table 4", "Table 4 describes the testbed of the experiments", checks)


def _sized() -> list[tuple[tuple[int, int], int, int]]:
    return [((size, work), work, size) for size, work in RATIOS]


def _order(leaves: list[Leaf], row: int, by: str) -> list[str]:
    def key(leaf: Leaf) -> float:
        if by == "rate":
            return -leaf.rate_no_compute_mb_per_s
        return leaf.ir_send_root_computes_s_per_mb if row == 7 else leaf.ir_send_both_compute_s_per_mb

    return [leaf.leaf for leaf in sorted(leaves, key=key)]


def _without_lab5(leaves: list[Leaf], row: int, by: str) -> list[str]:
    return [name for name in _order(leaves, row, by) if name != "Lab5"]


def _principles(rows: Rows) -> Claim:
    readings = rows.calibration.readings

    def optimal(reading: Reading) -> tuple[bool, str]:
        gaps = [
            plan(reading.checked, task_size_mb=size, task_work=work, ports="multi", method="greedy").gap_to_exact
            for size, work in APPLICATIONS
        ]
        return max(gaps) < TIE, f"gap to the bound at most {max(gaps):.1%}"

    reached = [f"{one.name}: {rows.of_bound(one):.1%} or more of it with 1000 tasks" for one in readings]
    two = Platform.from_dict(COUNTER_EXAMPLE)
    greedy, exact = (
        plan(two, task_size_mb=1.0, task_work=1.0, ports="single", method=method).throughput_tasks_per_s
        for method in ("greedy", "exact")
    )
    links = "what a reading says of links, which changes the optimum and not whether it is one"
    checks = [
        check_readings(
            "several ports: children in order of IR_s reach the bound, in all applications",
            [(one.name, *optimal(one)) for one in readings],
            word('"is maximized"'),
            links,
        ),
        excluded(
            check(
                "one port: children in order of B (1 - IR_s Z C) are the best",
                greedy >= exact * (1 - TIE),
                f"{greedy:.2f} tasks/s; {exact:.2f} are possible",
                word('"is maximized"'),
            ),
            "with C = 1, B = 10 and 4 tasks/s, IR_s Z = 0.5 and 0.01 the root's own computation runs out first (E0-4)",
        ),
        needs_number(
            "a schedule reaches the bound after its start",
            "; ".join(reached),
            '"can be achieved after a fixed-length startup period": how much may be missing of 1000 tasks',
            "runs of 2,000 and 4,000 tasks: the same time must be missing of each (`crosswind run --sweep"
            " workload.tasks=1000,2000,4000`)",
        ),
        excluded(
            check(
                "mutual exclusion is an IR of 1/Z",
                False,
                "1/Z is per MB, an IR is s/MB",
                word('"1/Z"'),
            ),
            "1/b, b the link's MB/s: only then does IR Z C >= 1 mean that a send takes longer than the task (E0-2)",
        ),
    ]
    return Claim("K-18", "3, 3.2", "Two orders of service are the best, and a bound says what they reach", checks)
