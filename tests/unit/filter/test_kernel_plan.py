"""What a kernel filter sets, from numbers alone, and how that reads as tc and ip."""

import re
import struct

import pytest

from crosswind.errors import DescriptionError
from crosswind.filter.kernel import messages
from crosswind.filter.kernel.bpf import cgroup_program, mark_program, packed
from crosswind.filter.kernel.commands import commands, undo_commands
from crosswind.filter.kernel.messages import Traffic, default_route_devices
from crosswind.filter.kernel.netlink import attribute, attributes
from crosswind.filter.kernel.plan import (
    LOCAL,
    PARALLEL,
    Device,
    Htb,
    HtbClass,
    Ifb,
    Ingress,
    Match,
    SegmentSize,
    plan,
    segment_bytes,
)
from crosswind.filter.kernel.promise import promise
from crosswind.filter.kernel.selector import Selector, parse

ETH = Device("eth0", 2, 1500)


def planned(parallel="8001", local="", **options):
    given = {"rate_mb_per_s": 12.25, **options}
    return plan(ETH, parse([parallel], "--parallel"), parse([local] if local else [], "--local"), **given)


def classes(made, device="eth0"):
    found = [step for step in made.steps if isinstance(step, HtbClass) and step.device == device]
    return {step.minor: step for step in found}


@pytest.mark.parametrize("threshold", [1, 4, 9])
@pytest.mark.parametrize("rate", [0.5, 12.25, 122.5, 2000.0])
def test_quanta_are_the_threshold_in_largest_segments(threshold, rate):
    made = planned(rate_mb_per_s=rate, threshold=threshold)
    found = classes(made)
    assert found[PARALLEL].quantum == threshold * found[LOCAL].quantum
    assert found[LOCAL].quantum == made.segment_bytes + 14
    assert {step.ceiling for step in found.values()} == {round(rate * 1e6)}
    # Neither has a rate of its own to speak of: whatever they get is borrowed, in turn.
    assert found[PARALLEL].rate == found[LOCAL].rate <= rate * 1e6 / 100


@pytest.mark.parametrize(("rate", "segment"), [(0.5, 1500), (12.25, 3000), (122.5, 30000), (2000.0, 65536)])
def test_a_segment_takes_a_quarter_of_a_millisecond_at_most_or_is_one_packet(rate, segment):
    assert segment_bytes(ETH, rate, 65536) == segment
    sizes = [step for step in planned(rate_mb_per_s=rate).steps if isinstance(step, SegmentSize)]
    assert sizes == ([] if segment == 65536 else [SegmentSize("eth0", "gso_max_size", segment)])


def test_strict_is_by_priority_and_promises_nothing():
    found = classes(planned(queue="strict"))
    assert found[PARALLEL].priority < found[LOCAL].priority
    assert promise(planned(queue="strict"))["least_share"] == 0


def test_the_promise_is_that_of_frames_of_a_whole_segment():
    told = promise(planned(threshold=4))
    assert told["longest_wait_s"] == pytest.approx(5 * 3014 / 12.25e6)
    assert told["least_share"] == pytest.approx(0.2)


def test_what_arrives_is_shaped_on_a_device_of_its_own_made_before_it_is_redirected():
    made = planned(rate_mb_per_s=None, rate_in_mb_per_s=100.0)
    kinds = [type(step) for step in made.steps]
    assert kinds.index(Ifb) < kinds.index(Htb) < kinds.index(Ingress) == len(kinds) - 1
    assert classes(made, "eth0") == {}
    assert set(classes(made, ETH.ifb)) == {PARALLEL, LOCAL, 0x10}
    assert undo_commands(made)[:2] == ["tc qdisc del dev eth0 ingress", "ip link del cw2ifb"]


def test_local_selectors_are_asked_before_parallel_ones():
    made = planned("dscp:af41", "22")
    orders = {
        minor: {step.order for step in made.steps if isinstance(step, Match) and step.minor == minor and step.order < 9}
        for minor in (LOCAL, PARALLEL)
    }
    assert max(orders[LOCAL]) < min(orders[PARALLEL])


def ipv4(protocol, source, target, *, dscp=0, options=0, fragment=0):
    header = struct.pack(">BBHHHBBH8x", 0x45 + options, dscp << 2, 40, 1, fragment, 64, protocol, 0)
    return header + bytes(4 * options) + struct.pack(">HH", source, target)


def ipv6(protocol, source, target, *, dscp=0):
    header = struct.pack(">IHBB32x", 6 << 28 | dscp << 22, 20, protocol, 64)
    return header + struct.pack(">HH", source, target)


def class_of(made, protocol, packet):
    """What u32 does: the first filter whose keys all fit; else the default."""
    packet += bytes(64)
    for step in sorted((step for step in made.steps if isinstance(step, Match)), key=lambda one: one.order):
        words = [(struct.unpack_from(">I", packet, key.offset)[0], key) for key in step.keys]
        if step.protocol == protocol and all(word & key.mask == key.value for word, key in words):
            return step.minor
    return LOCAL


@pytest.mark.parametrize(
    ("protocol", "packet", "wanted"),
    [
        (0x800, ipv4(6, 8001, 50000), PARALLEL),
        (0x800, ipv4(17, 50000, 8001), PARALLEL),
        (0x800, ipv4(6, 50000, 8002), LOCAL),
        (0x800, ipv4(1, 8001, 8001), LOCAL),  # ICMP has no ports
        (0x800, ipv4(6, 8001, 50000, options=1), LOCAL),
        (0x800, ipv4(6, 8001, 50000, fragment=100), LOCAL),
        (0x800, ipv4(6, 8001, 22), LOCAL),  # named by --local
        (0x800, ipv4(6, 1, 2, dscp=34), PARALLEL),
        (0x86DD, ipv6(6, 8001, 50000), PARALLEL),
        (0x86DD, ipv6(17, 50000, 8001), PARALLEL),
        (0x86DD, ipv6(6, 50000, 8002), LOCAL),
        (0x86DD, ipv6(58, 8001, 8001), LOCAL),
        (0x86DD, ipv6(6, 1, 2, dscp=34), PARALLEL),
        (0x806, bytes(28), PARALLEL),
    ],
)
def test_packets_belong_to_the_class_that_a_selector_names(protocol, packet, wanted):
    assert class_of(planned("8001,dscp:34", "22"), protocol, packet) == wanted


def test_commands_say_every_step_and_name_nothing_else():
    made = planned("8001,dscp:34", rate_in_mb_per_s=100.0)
    lines = commands(made)
    assert len(lines) == len(made.steps) + 2  # IFB and ingress are two commands each
    assert all(
        re.match(r"(tc (qdisc|class|filter) (add|replace) dev|ip link (add|set dev)) (eth0|cw2ifb) ", line)
        for line in lines
    )


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"rate_mb_per_s": None}, "neither --rate nor --rate-in"),
        ({"rate_mb_per_s": 0.01}, "rate is 0.01 MB/s; it must be 0.1 to 100000"),
        ({"queue": "fifo"}, "queue is 'fifo'"),
        ({"queue": "threshold"}, "queue is 'threshold'"),
        ({"threshold": 0}, "threshold is 0"),
        ({"local": "8001"}, "8001 is given to both classes"),
        ({"parallel": "mark:7", "rate_in_mb_per_s": 10.0}, "mark:7 is not known of packets that arrive"),
    ],
)
def test_a_plan_names_the_value_that_is_wrong(option, said):
    with pytest.raises(DescriptionError, match=re.escape(said)):
        planned(**option)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0", "port must be 1 to 65535"),
        ("65536", "port must be 1 to 65535"),
        ("dscp:64", "dscp must be 0 to 63"),
        ("dscp:af55", "dscp must be 0 to 63"),
        ("mark:0", "mark must be 1"),
        ("colour:red", "it must be PORT, dscp:N, mark:N or cgroup:PATH"),
        ("cgroup:no/such/group", "control group"),
        (",".join(map(str, range(1, 34))), "names 33 ports; at most 32"),
    ],
)
def test_a_selector_that_says_something_else_is_refused(text, said):
    with pytest.raises(DescriptionError, match=re.escape(said)):
        parse([text], "--parallel")


def test_selectors_are_read_in_every_form():
    found = parse(["8001,dscp:ef", "mark:0x10", "dscp:cs1"], "--parallel")
    assert found == [
        Selector("port", 8001, "8001"),
        Selector("dscp", 46, "dscp:ef"),
        Selector("mark", 16, "mark:0x10"),
        Selector("dscp", 8, "dscp:cs1"),
    ]


def test_attributes_are_padded_and_read_back():
    both = attribute(1, "htb") + attribute(2, 7) + attribute(3, b"abc")
    assert len(both) % 4 == 0
    assert attributes(both) == {1: b"htb\0", 2: struct.pack("=I", 7), 3: b"abc"}


def test_a_body_is_read_back_as_it_was_made():
    one = Traffic.read(messages.traffic(3, 0xC50000, 1, "htb", b"1234", 9))
    assert (one.index, one.handle, one.parent, one.info, one.kind, one.options) == (3, 0xC50000, 1, 9, "htb", b"1234")
    assert Traffic.read(one.packed()) == one


@pytest.mark.parametrize(("prefix", "kind", "found"), [(0, 1, [5]), (24, 1, []), (0, 7, [])])
def test_a_default_route_is_one_to_everywhere_that_goes_somewhere(prefix, kind, found):
    body = struct.pack("=8BI", 2, prefix, 0, 0, 254, 3, 0, kind, 0) + attribute(4, 5)
    assert default_route_devices(body) == found


def test_a_default_route_of_several_hops_names_all_devices():
    hops = struct.pack("=HBBI", 8, 0, 0, 5) + struct.pack("=HBBI", 8, 0, 0, 6)
    assert default_route_devices(struct.pack("=8BI", 2, 0, 0, 0, 254, 3, 0, 1, 0) + attribute(9, hops)) == [5, 6]


def test_programs_have_whole_instructions():
    assert len(packed(mark_program(7))) == 4 * 8
    assert len(cgroup_program(1 << 40 | 5, 3)) == 9 * 8
