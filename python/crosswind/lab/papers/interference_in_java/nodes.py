"""Claims about tasks, messages, nodes and threads (K-7, K-8, K-11 to K-15)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from statistics import fmean

from crosswind.lab.papers import table_2
from crosswind.lab.papers.grading import (
    Claim,
    above,
    barred,
    between,
    check,
    check_readings,
    digits,
    excluded,
    needs_number,
    unsettled,
    word,
)
from crosswind.lab.papers.interference_in_java import printed
from crosswind.lab.papers.interference_in_java.linearity import SEVERAL_PEERS, mean_ir
from crosswind.lab.papers.table_2 import Peer

LINUX, SOLARIS = ("Lab1", "Lab2", "Lab3", "Lab6"), ("Lab4", "Lab5")
REMOTE = ("Tenn", "France", "Brazil")


def claims() -> list[Claim]:
    """Grade K-7, K-8 and K-11 to K-15."""
    return [_footprint(), _messages(), _distance(), _one_sender(), _near_and_remote(), _software(), _threads()]


def _listed(rates: Iterable[float]) -> str:
    return ", ".join(f"{rate:.4f}" for rate in rates)


def _of(*nodes: str) -> list[Peer]:
    return [peer for peer in table_2.load() if peer.node in nodes]


def _groups() -> dict[str, list[Peer]]:
    """Return the peers by distance: Lab, Campus, Santa Barbara, and each remote one."""
    near = {name: [p for p in table_2.load() if p.node.startswith(name)] for name in ("Lab", "Campus", "SB")}
    return near | {name: _of(name) for name in REMOTE}


def _footprint() -> Claim:
    large, small = printed.FOOTPRINT
    checks = [
        barred(
            check(
                "with a matrix of 8 x 8 the IR of receiving is lower than with 1024 x 1024, about half of it",
                small < large,
                f"{small / large:.2f} of it ({large} and {small}, printed)",
                word('"decreases"; "about half" in the other paper'),
            ),
            "own figures",
            "both rates are the claim's own figures, and \"about half\" is the other paper's word for them; `crosswind"
            " measure sweep footprint` on two hosts of their own settles it",
        ),
        unsettled(
            "the same for sending", "`crosswind measure sweep footprint --direction send` on two hosts of their own"
        ),
    ]
    return Claim("K-7", "3.4", "With the data footprint of the task, interference falls to half", checks)


def _messages() -> Claim:
    base = {way: getattr(_of("Lab3")[0], way).ir_s_per_mb for way in printed.MESSAGES}
    parts = {way: printed.MESSAGES[way] / base[way] for way in base}
    checks = [
        needs_number(
            f"8 MB to 128 KB, {name}: IR shows no significant variation",
            f"it differs by at most {parts[way]:.1%} ({printed.MESSAGES[way]} of Lab3's {base[way]})",
            '"no significant variation"',
            "by how much IR differs between experiments that are alike, which is not printed; here `crosswind measure"
            " sweep message-size` gives each size its interval",
        )
        for way, name in (("receive", "receiving"), ("send", "sending"))
    ]
    return Claim("K-8", "3.5", "Interference does not depend on the size of messages", checks)


def _distance() -> Claim:
    groups = _groups()
    received, sent = ({name: mean_ir(peers, way) for name, peers in groups.items()} for way in ("receive", "send"))
    remote = _of(*REMOTE)
    grows = {way: mean_ir(remote, way) / mean_ir(groups["Lab"], way) for way in ("receive", "send")}
    linux = mean_ir(remote, "send") / mean_ir(_of(*LINUX), "send")
    ranges = {}
    for way in ("receive", "send"):
        rates = [getattr(peer, way).ir_s_per_mb for peer in table_2.load()]
        ranges[way] = max(rates) / min(rates)
    rising = list(received.values())[:4]
    checks = [
        check(
            "receiving: Lab, Campus, Santa Barbara, remote nodes, in this order",
            rising == sorted(rising) and min(received[name] for name in REMOTE) > received["SB"],
            ", ".join(f"{name} {rate:.4f}" for name, rate in received.items()),
            word('"increases with distance"'),
        ),
        check(
            "sending: the same, but for Campus above Santa Barbara",
            sent["Lab"] < sent["SB"] < min(sent["Campus"], *(sent[name] for name in REMOTE))
            and sent["Campus"] > sent["SB"],
            ", ".join(f"{name} {rate:.4f}" for name, rate in sent.items()),
            word('"the greater the distance ... an exception"'),
        ),
        check_readings(
            "sending grows less with distance than receiving",
            [
                ("remote over Lab", grows["send"] < grows["receive"], f"{grows['send']:.2f}, {grows['receive']:.2f}"),
                ("remote over Lab's Linux nodes", linux < grows["receive"], f"{linux:.2f}, {grows['receive']:.2f}"),
                (
                    "highest over lowest",
                    ranges["send"] < ranges["receive"],
                    f"{ranges['send']:.2f}, {ranges['receive']:.2f}",
                ),
            ],
            word('"not as much as" receiving, in the other paper'),
            "what is compared: remote with near nodes, or all nodes; the rates of single nodes are in table 2",
        ),
    ]
    return Claim("K-11", "3.1, 3.2", "More remote nodes cost more, above all when receiving from them", checks)


def _one_sender() -> Claim:
    low, high = printed.ONE_SENDER
    checks = [
        unsettled(f"receiving from one near node reaches {low:.0%} to {high:.0%} of the highest rate", SEVERAL_PEERS),
        unsettled("receiving from several near nodes reaches the highest rate", SEVERAL_PEERS),
        barred(
            check(
                "the highest rate of sending is slightly less than that of receiving",
                printed.SENT_MB_PER_S < printed.RECEIVED_MB_PER_S,
                f"{printed.SENT_MB_PER_S} and {printed.RECEIVED_MB_PER_S:g} MB/s (printed)",
                word('"slightly less"'),
            ),
            "own figures",
            f"both rates are the claim's own figures; what settles it: {SEVERAL_PEERS}",
        ),
    ]
    return Claim("K-12", "3.1, 3.2", "One sender does not fill a link that several fill", checks)


def _near_and_remote() -> Claim:
    groups = _groups()
    near = mean_ir([*groups["Lab"], *groups["Campus"]], "receive")
    top = printed.RECEIVED_MB_PER_S
    single = printed.ONE_SENDER[1] * top
    lost = {"near": near * top, "SB": mean_ir(groups["SB"], "receive") * printed.SB_MB_PER_S}
    remote = max(mean_ir(groups[name], "receive") for name in REMOTE)
    least = min(groups[name][0].receive.ir_s_per_mb for name in REMOTE)
    most = max(peer.receive.ir_s_per_mb for name in ("Lab", "Campus", "SB") for peer in groups[name])
    half = between(0, printed.NEAR_LOSS, "as much as 50%")
    checks = [
        check_readings(
            f"near nodes take as much as {printed.NEAR_LOSS:.0%}",
            [
                (f"at the highest rate, {top:g} MB/s", lost["near"] in half, f"{lost['near']:.1%}"),
                (
                    f"at the most that one sender reaches, {single:.4g} MB/s",
                    near * single in half,
                    f"{near * single:.1%}",
                ),
            ],
            half,
            "at which rate: several near nodes together reach the highest, one of them 85 to 95 % of it; section 1 has"
            " over 50 %",
        ),
        check(
            f"Santa Barbara at {printed.SB_MB_PER_S:g} MB/s takes less than near nodes do",
            lost["SB"] < lost["near"],
            f"{lost['SB']:.1%} and {lost['near']:.1%}",
            word('"smaller actual impact"'),
        ),
        barred(
            check(
                f"remote nodes take at most {printed.REMOTE_LOSS:.1%}",
                remote * printed.TENN_MB_PER_S <= printed.REMOTE_LOSS,
                f"{remote * printed.TENN_MB_PER_S:.1%} at the {printed.TENN_MB_PER_S} MB/s that are *sent* to Tenn,"
                f" {remote:.1%} at 1 MB/s",
                between(0, printed.REMOTE_LOSS, "at most 7.5%"),
            ),
            "unlike",
            'rates of sending to Tenn are printed, those of receiving from remote nodes are not ("well below 1 MB/s");'
            " they would settle it",
        ),
        check(
            "for the same amount of data every remote node takes more than any other",
            least > most,
            f"{least} s/MB or more, {most} or less",
            word('"a higher overall impact"'),
        ),
        excluded(
            check(
                "near nodes have an IR of receiving around 0.50",
                near in digits(0.50, 0.01),
                f"{near:.4f}",
                digits(0.50, 0.01, "around 0.50"),
            ),
            "table 2: 0.05 (E1-2)",
        ),
        excluded(
            check(
                "remote nodes have an IR of receiving over 0.075", least > 0.075, f"{least}", above(0.075, "over 0.075")
            ),
            "table 2: Tenn has 0.0743 (E1-3)",
        ),
    ]
    return Claim("K-13", "3.6", "Near nodes take more at once, remote nodes more for the same data", checks)


def _software() -> Claim:
    linux, solaris = _of(*LINUX), _of(*SOLARIS)
    campus = [peer for peer in _groups()["Campus"] if peer.node != "Campus9"]
    named, found = _of("Campus6")[0].send.ir_s_per_mb, _of("Campus9")[0].send.ir_s_per_mb
    rate, others = mean_ir(solaris, "send"), mean_ir(linux, "send")
    near_20, around_30 = digits(0.020, 0.001), digits(0.030, 0.001)
    apart = {name: [peer.send.ir_s_per_mb for peer in peers] for name, peers in (("S", solaris), ("L", linux))}
    every_solaris, every_linux = [*solaris, *_of("Campus9")], [*linux, *campus]
    lower = {
        "means of the lab": 1 - rate / others,
        "on campus": 1 - found / mean_ir(campus, "send"),
        "means of both": 1 - mean_ir(every_solaris, "send") / mean_ir(every_linux, "send"),
    }

    def worse(own: list[Peer], beside: list[Peer]) -> float:
        return fmean(p.receive.std_dev for p in own) / fmean(p.receive.std_dev for p in beside)

    lab, on_campus = worse(solaris, linux), worse(_of("Campus9"), campus)
    shares = {way: printed.SHARES[way] for way in ("receiving", "sending")}
    checks = [
        check_readings(
            "sending in the lab: to Solaris near 0.020, to Linux around 0.030",
            [
                ("means", rate in near_20 and others in around_30, f"{rate:.4f} and {others:.4f}"),
                (
                    "each node",
                    all(one in near_20 for one in apart["S"]) and all(one in around_30 for one in apart["L"]),
                    f"{_listed(apart['S'])} and {_listed(apart['L'])}",
                ),
            ],
            replace(around_30, words="around 0.030, near 0.020"),
            'what has "values near" them: the mean, which is between two roundings for Solaris, or each node; rates of'
            " single experiments would settle it",
        ),
        needs_number(
            "sending to Solaris costs about a third less than to Linux",
            ", ".join(f"{name} {part:.1%}" for name, part in lower.items()),
            '"about a third lower", in the other paper',
            "how near a third is about one, and which nodes; rates of single experiments would settle it",
        ),
        check(
            "sending on campus: 0.0237 to Solaris; the others are closer to 0.0370",
            found == 0.0237
            and all(abs(p.send.ir_s_per_mb - 0.0370) < abs(p.send.ir_s_per_mb - 0.0237) for p in campus),
            f"{found}; {min(p.send.ir_s_per_mb for p in campus)} to {max(p.send.ir_s_per_mb for p in campus)}",
            word('"closer to 0.0370"'),
        ),
        excluded(
            check(
                "the Solaris node on campus is Campus6",
                named == 0.0237,
                f"Campus6 has {named}, Campus9 {found}",
                digits(0.0237, 0.0001),
            ),
            "tables 1 and 2: it is Campus9 (E1-1)",
        ),
        barred(
            check(
                f"fits with Solaris nodes in the lab are about {printed.SOLARIS_ERRORS:g} times as far off",
                lab in digits(printed.SOLARIS_ERRORS),
                f"single nodes, receiving: {lab:.1f} times in the lab, {on_campus:.1f} on campus",
                digits(printed.SOLARIS_ERRORS, words="roughly by a factor 4"),
            ),
            "unlike",
            "the sentence is about experiments with four nodes at once, of which no errors are printed; table 2 has"
            " those with one. Errors of the four would settle it",
        ),
        barred(
            check(
                "a Solaris node gets less of what is sent than a Linux node, and the same of what is received",
                shares["sending"][0] < shares["sending"][1] and shares["receiving"][0] == shares["receiving"][1],
                f"{shares['sending'][0]} and {shares['sending'][1]} MB/s, {shares['receiving'][0]} each (printed)",
                word('"a smaller portion"'),
            ),
            "own figures",
            "the shares are the claim's own figures; `crosswind measure` with two peers of each system settles it here",
        ),
    ]
    return Claim("K-14", "3.7", "The operating system of the other node counts, above all when sending to it", checks)


def _threads() -> Claim:
    settles = (
        "`crosswind measure --runtime 'java threads=virtual'` with one carrier and with two: on one no byte moved in a"
        " trial with JDK 25, which has no record"
    )
    checks = [unsettled("green threads preclude any overlap of communication and computation", settles)]
    return Claim("K-15", "3.7", "Java's threads decide whether anything overlaps", checks)
