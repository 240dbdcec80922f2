"""Claims about one direction: the line, what receiving and sending cost, what is lost at the full rate (K-1 to K-4)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from crosswind.lab.papers import table_2, table_3
from crosswind.lab.papers.grading import Claim, check, unsettled
from crosswind.lab.papers.interference_in_java import printed
from crosswind.lab.papers.table_2 import Line, Peer

MARGINAL = 0.02
"""Part of the full rate by which a quadratic may be nearer, at its worst point, and gain only marginally (K-1)."""
ALIKE = 0.10
"""Part by which a mean of table 2 may differ from that of the text, whose experiments are not all in the table."""
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
    for direction, word in (("receive", "receiving"), ("send", "sending")):
        own, text, bent = lines(peers, direction), printed.LINEAR[direction], printed.QUADRATIC[direction]
        most, mean, sd = (
            max(line.max_error for line in own),
            fmean(line.max_error for line in own),
            fmean(line.std_dev for line in own),
        )
        checks += [
            check(
                f"{word}: no peer's mean largest error in table 2 exceeds {text.most:.1%}",
                most <= text.most,
                f"{most:.1%}",
            ),
            check(
                f"{word}: table 2's mean largest error is {text.mean:.1%}, deviation {text.std_dev:.2%} ({ALIKE:.0%})",
                abs(mean / text.mean - 1) <= ALIKE and abs(sd / text.std_dev - 1) <= ALIKE,
                f"{mean:.1%}, {sd:.2%}",
            ),
            check(
                f"{word}: a quadratic is nearer by less than {MARGINAL:.0%} of the full rate at its worst point",
                text.most - bent.most < MARGINAL and text.mean - bent.mean < MARGINAL,
                f"at most {text.most:.1%} and {bent.most:.1%}, mean {text.mean:.1%} and {bent.mean:.1%} (printed)",
            ),
        ]
    return Claim("K-1", "3.1, 3.2", "The compute rate falls linearly; a quadratic gains little", checks)


def _receiving_costs_more() -> Claim:
    java, c = table_2.load(), table_3.load()
    checks = []
    for name, peers in (("table 2 (Java)", java), ("table 3 (C)", c)):
        ratios = [peer.receive.ir_s_per_mb / peer.send.ir_s_per_mb for peer in peers]
        more = sum(ratio > 1 for ratio in ratios)
        checks.append(
            check(
                f"{name}: receiving from a node costs more than sending to it, for every node",
                more == len(peers),
                f"{more} of {len(peers)}, {min(ratios):.2f} to {max(ratios):.2f} times",
            )
        )
    for direction, word, mean, least, most, left in (
        ("receive", "receiving", 0.052, 0.0452, 0.0891, 0.48),
        ("send", "sending", 0.034, 0.0199, 0.0638, 0.66),
    ):
        found = mean_ir(java, direction)
        rates = [line.ir_s_per_mb for line in lines(java, direction)]
        checks.append(
            check(
                f"{word}: {mean} s/MB on average, {least} to {most}; {left:.0%} is left at 10 MB/s",
                round(found, 3) == mean
                and (min(rates), max(rates)) == (least, most)
                and round(1 - 10 * found, 2) == left,
                f"{found:.4f}, {min(rates)} to {max(rates)}, {1 - 10 * found:.0%}",
            )
        )
    return Claim("K-2", "3.1, 3.2", "Receiving costs more than sending", checks)


def _half_is_lost() -> Claim:
    near = [peer for peer in table_2.load() if peer.node.startswith(("Lab", "Campus"))]
    top = printed.RECEIVED_MB_PER_S
    lost = fmean(1 - peer.receive.intercept + top * peer.receive.ir_s_per_mb for peer in near)
    threads = (
        "no rates by number of threads are printed; `crosswind measure --streams 4` on two hosts whose link is full"
        " settles it here"
    )
    checks = [
        check(
            f"near nodes: more than half is lost at {top:g} MB/s received (table 2's lines)", lost > 0.5, f"{lost:.1%}"
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
