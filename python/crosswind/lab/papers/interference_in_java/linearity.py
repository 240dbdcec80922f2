"""Claims about one direction: the line, what receiving and sending cost, what is lost at the full rate (K-1 to K-4)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from crosswind.lab.papers import table_2
from crosswind.lab.papers.grading import (
    Band,
    Claim,
    above,
    barred,
    between,
    check,
    check_readings,
    digits,
    needs_number,
    unsettled,
    word,
)
from crosswind.lab.papers.interference_in_java import printed
from crosswind.lab.papers.table_2 import Line, Peer

EXPERIMENTS = (
    "the errors of each of the 117 and 118 experiments: table 2 has means by node, and does not say of how many"
    " experiments each; [10] may have them"
)
SEVERAL_PEERS = (
    "no rates of single experiments are printed; `crosswind measure --peer A --peer B --peer C --peer D` on hosts of"
    " their own settles it here (`additive` of the fit)"
)


def claims() -> list[Claim]:
    """Grade K-1 to K-4."""
    return [_linear(), _receiving_costs_more(), _half_is_lost(), _additive()]


def lines(peers: Sequence[Peer], direction: str) -> list[Line]:
    """Return the lines of one direction, one per peer."""
    return [getattr(peer, direction) for peer in peers]


def mean_ir(peers: Sequence[Peer], direction: str) -> float:
    """Return the mean interference rate of one direction, s/MB.

    Examples
    --------
    >>> round(mean_ir(table_2.load(), "receive"), 4)
    0.0523
    """
    return fmean(line.ir_s_per_mb for line in lines(peers, direction))


def _linear() -> Claim:
    peers = table_2.load()
    checks = []
    for direction, name in (("receive", "receiving"), ("send", "sending")):
        every, text, bent = lines(peers, direction), printed.LINEAR[direction], printed.QUADRATIC[direction]
        most, mean, sd = (
            max(line.max_error for line in every),
            fmean(line.max_error for line in every),
            fmean(line.std_dev for line in every),
        )
        checks += [
            barred(
                check(
                    f"{name}: a line errs by at most {text.most:.1%} in any experiment",
                    most <= text.most,
                    f"{most:.1%}, the largest of table 2's means by node",
                    between(0, text.most, f"at most {text.most:.1%}"),
                ),
                "unlike",
                f"a node's mean is never above the largest single experiment; what settles it: {EXPERIMENTS}",
            ),
            barred(
                check(
                    f"{name}: the mean largest error is {text.mean:.1%}, the deviation {text.std_dev:.2%}",
                    mean in digits(text.mean, 0.001) and sd in digits(text.std_dev, 0.0001),
                    f"{mean:.2%} and {sd:.2%}, the means of table 2's nodes",
                    digits(text.mean, 0.001, f"average max error {text.mean:.1%}"),
                ),
                "unlike",
                f"a mean over nodes is not one over experiments; what settles it: {EXPERIMENTS}",
            ),
            needs_number(
                f"{name}: a quadratic is only marginally nearer",
                f"at most {text.most:.1%} and {bent.most:.1%}, mean {text.mean:.1%} and {bent.mean:.1%} (printed)",
                '"marginal", "almost as good"',
                f"what gain is not marginal, and {EXPERIMENTS}; here each fit has its own (`crosswind fit --wide`)",
            ),
        ]
    return Claim("K-1", "3.1, 3.2", "The compute rate falls linearly; a quadratic gains little", checks)


def _receiving_costs_more() -> Claim:
    java = table_2.load()
    ratios = [peer.receive.ir_s_per_mb / peer.send.ir_s_per_mb for peer in java]
    more = sum(ratio > 1 for ratio in ratios)
    checks = [
        check(
            "table 2: receiving from a node costs more than sending to it, for every node",
            more == len(java),
            f"{more} of {len(java)}, {min(ratios):.2f} to {max(ratios):.2f} times",
            word('"generally larger"; asked of every node'),
        )
    ]
    for direction, name, mean, least, most, left in (
        ("receive", "receiving", 0.052, 0.0452, 0.0891, 0.48),
        ("send", "sending", 0.034, 0.0199, 0.0638, 0.66),
    ):
        found = mean_ir(java, direction)
        rates = [line.ir_s_per_mb for line in lines(java, direction)]
        checks.append(
            check(
                f"{name}: {mean} s/MB on average, {least} to {most}; {left:.0%} is left at 10 MB/s",
                found in digits(mean, 0.001)
                and (min(rates), max(rates)) == (least, most)
                and 1 - 10 * found in digits(left, 0.01),
                f"{found:.4f}, {min(rates)} to {max(rates)}, {1 - 10 * found:.0%}",
                digits(mean, 0.001, f"approximately {mean}, varies between {least} and {most}"),
            )
        )
    return Claim("K-2", "3.1, 3.2, table 2", "Receiving costs more than sending", checks)


def _half_is_lost() -> Claim:
    near = [peer for peer in table_2.load() if peer.node.startswith(("Lab", "Campus"))]
    top = printed.RECEIVED_MB_PER_S
    slope = fmean(top * peer.receive.ir_s_per_mb for peer in near)
    whole = fmean(1 - peer.receive.intercept + top * peer.receive.ir_s_per_mb for peer in near)
    threads = (
        "no rates by number of threads are printed; `crosswind measure --streams 4` on two hosts whose link is full"
        " settles it here"
    )
    half: Band = above(0.5, "over 50%")
    checks = [
        check_readings(
            f"near nodes: more than half is lost at {top:g} MB/s received (table 2's lines)",
            [
                ("by the slope alone, as the text reckons", slope in half, f"{slope:.1%}"),
                ("with the constant", whole in half, f"{whole:.1%}"),
            ],
            half,
        ),
        unsettled("at the highest rate the loss is the same for one thread and for several", threads),
    ]
    return Claim(
        "K-3", "1, 3.1", "Over half of the compute rate is lost at the highest rate, with any number of threads", checks
    )


def _additive() -> Claim:
    checks = [
        unsettled(f"{what}: 1 - sum IR(i) TR(i) is {error:.2%} off on average", SEVERAL_PEERS)
        for what, error in printed.TOGETHER.items()
    ]
    return Claim("K-4", "3.1, 3.2", "What several nodes cost together is the sum of what each costs", checks)
