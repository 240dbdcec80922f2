"""Claims about tasks, messages, nodes and threads (K-7, K-8, K-11 to K-15)."""

from __future__ import annotations

from statistics import fmean

from crosswind.lab.papers import table_2
from crosswind.lab.papers.grading import Claim, check, check_readings, excluded, unsettled
from crosswind.lab.papers.interference_in_java import printed
from crosswind.lab.papers.interference_in_java.linearity import SEVERAL_PEERS, mean_ir
from crosswind.lab.papers.table_2 import Peer

HALF = (0.4, 0.7)
"""Part of IR that is left where it falls "to about half" (K-7)."""
SAME = 0.10
"""Part by which IR may differ with the size of messages and show "no significant variation" (K-8)."""
AROUND = 0.05
"""Part by which MB/s of several nodes may miss the highest rate ("roughly", "around")."""
THIRD = (0.25, 0.42)
"""Part by which Solaris' rates are below Linux' ("about a third")."""
LINUX, SOLARIS = ("Lab1", "Lab2", "Lab3", "Lab6"), ("Lab4", "Lab5")
REMOTE = ("Tenn", "France", "Brazil")


def claims() -> list[Claim]:
    """Grade K-7, K-8 and K-11 to K-15."""
    return [_footprint(), _messages(), _distance(), _one_sender(), _near_and_remote(), _software(), _threads()]


def _of(*nodes: str) -> list[Peer]:
    return [peer for peer in table_2.load() if peer.node in nodes]


def _groups() -> dict[str, list[Peer]]:
    """Return the peers by distance: Lab, Campus, Santa Barbara, and each remote one."""
    near = {name: [p for p in table_2.load() if p.node.startswith(name)] for name in ("Lab", "Campus", "SB")}
    return near | {name: _of(name) for name in REMOTE}


def _footprint() -> Claim:
    large, small = printed.FOOTPRINT
    low, high = HALF
    checks = [
        check(
            f"a matrix of 8 x 8: {low:g} to {high:g} of the IR of receiving with 1024 x 1024",
            low <= small / large <= high,
            f"{small / large:.2f} (printed: {large}, {small})",
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
        check(
            f"8 MB to 128 KB, {word}: IR differs by at most {SAME:.0%} of Lab3's",
            parts[way] <= SAME,
            f"{parts[way]:.1%} ({printed.MESSAGES[way]} of {base[way]})",
        )
        for way, word in (("receive", "receiving"), ("send", "sending"))
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
        ),
        check(
            "sending: the same, but for Campus above Santa Barbara",
            sent["Lab"] < sent["SB"] < min(sent["Campus"], *(sent[name] for name in REMOTE))
            and sent["Campus"] > sent["SB"],
            ", ".join(f"{name} {rate:.4f}" for name, rate in sent.items()),
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
            "what is compared: remote with near nodes, or all nodes; the rates of single nodes are in table 2",
        ),
    ]
    return Claim("K-11", "3.1, 3.2", "More remote nodes cost more, above all when receiving from them", checks)


def _one_sender() -> Claim:
    low, high = printed.ONE_SENDER
    checks = [
        unsettled(f"receiving from one near node reaches {low:.0%} to {high:.0%} of the highest rate", SEVERAL_PEERS),
        unsettled("receiving from several near nodes reaches the highest rate", SEVERAL_PEERS),
        check(
            "the highest rate of sending is slightly below that of receiving",
            0.9 < printed.SENT_MB_PER_S / printed.RECEIVED_MB_PER_S < 1,
            f"{printed.SENT_MB_PER_S} and {printed.RECEIVED_MB_PER_S:g} MB/s (printed)",
        ),
    ]
    return Claim("K-12", "3.1, 3.2", "One sender does not fill a link that several fill", checks)


def _near_and_remote() -> Claim:
    groups = _groups()
    near = mean_ir([*groups["Lab"], *groups["Campus"]], "receive")
    lost = {"near": near * printed.RECEIVED_MB_PER_S, "SB": mean_ir(groups["SB"], "receive") * printed.SB_MB_PER_S}
    remote = max(mean_ir(groups[name], "receive") for name in REMOTE) * printed.TENN_MB_PER_S
    least = min(groups[name][0].receive.ir_s_per_mb for name in REMOTE)
    most = max(peer.receive.ir_s_per_mb for name in ("Lab", "Campus", "SB") for peer in groups[name])
    checks = [
        check(
            f"near nodes at {printed.RECEIVED_MB_PER_S:g} MB/s take about {printed.NEAR_LOSS:.0%}",
            abs(lost["near"] / printed.NEAR_LOSS - 1) <= SAME,
            f"{lost['near']:.1%}",
        ),
        check(
            f"Santa Barbara at {printed.SB_MB_PER_S:g} MB/s takes less than near nodes do",
            lost["SB"] < lost["near"],
            f"{lost['SB']:.1%}",
        ),
        check(
            f"remote nodes take at most {printed.REMOTE_LOSS:.1%} at {printed.TENN_MB_PER_S} MB/s (Tenn in table 4)",
            remote <= printed.REMOTE_LOSS,
            f"{remote:.1%}",
        ),
        check(
            "for the same amount of data every remote node takes more than any other",
            least > most,
            f"{least} s/MB or more, {most} or less",
        ),
        excluded(
            check("near nodes have an IR of receiving around 0.50", abs(near / 0.50 - 1) <= SAME, f"{near:.4f}"),
            "table 2: 0.05 (E1-2)",
        ),
        excluded(
            check("remote nodes have an IR of receiving over 0.075", least > 0.075, f"{least}"),
            "table 2: Tenn has 0.0743 (E1-3)",
        ),
    ]
    return Claim("K-13", "3.6", "Near nodes take more at once, remote nodes more for the same data", checks)


def _software() -> Claim:
    linux, solaris = _of(*LINUX), _of(*SOLARIS)
    campus = [peer for peer in _groups()["Campus"] if peer.node != "Campus9"]
    named, found = _of("Campus6")[0].send.ir_s_per_mb, _of("Campus9")[0].send.ir_s_per_mb
    below = 1 - mean_ir(solaris, "send") / mean_ir(linux, "send")
    rate, others = mean_ir(solaris, "send"), mean_ir(linux, "send")

    def worse(own: list[Peer], beside: list[Peer]) -> float:
        return fmean(p.receive.std_dev for p in own) / fmean(p.receive.std_dev for p in beside)

    lab, on_campus = worse(solaris, linux), worse(_of("Campus9"), campus)
    all_received, all_sent = (2 * sum(printed.SHARES[way]) for way in ("receiving", "sending"))
    low, high = THIRD
    checks = [
        check(
            "sending to Solaris in the lab: about 0.020, to Linux about 0.030, a third less",
            (round(rate, 2), round(others, 2)) == (0.02, 0.03) and low <= below <= high,
            f"{rate:.4f} and {others:.4f}, {below:.0%} less",
        ),
        check(
            "sending to Solaris on campus: 0.0237, to the other nodes about 0.0370",
            found == 0.0237 and abs(mean_ir(campus, "send") / 0.037 - 1) <= AROUND,
            f"{found} and {mean_ir(campus, 'send'):.4f}",
        ),
        excluded(
            check("the Solaris node on campus is Campus6", named == 0.0237, f"Campus6 has {named}, Campus9 {found}"),
            "tables 1 and 2: it is Campus9 (E1-1)",
        ),
        check_readings(
            f"fits with Solaris nodes are about {printed.SOLARIS_ERRORS:g} times as far off (3 to 5)",
            [
                ("receiving in the lab, table 2", 3 <= lab <= 5, f"{lab:.1f}"),
                ("receiving on campus, table 2", 3 <= on_campus <= 5, f"{on_campus:.1f}"),
            ],
            "which experiments are meant; those of one node are in table 2, those of several are not printed",
        ),
        check(
            f"four nodes at once receive what the text has as the highest rates ({AROUND:.0%})",
            abs(all_received / printed.RECEIVED_MB_PER_S - 1) <= AROUND
            and abs(all_sent / printed.SENT_MB_PER_S - 1) <= AROUND,
            f"{all_received:.1f} of {printed.RECEIVED_MB_PER_S:g}, {all_sent:.1f} of {printed.SENT_MB_PER_S} MB/s",
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
