"""What a filter is told on the command line, and what it says for tc, Cilium and NCCL."""

import re

import pytest

from crosswind.errors import DescriptionError
from crosswind.filter import Filter, Forward, Queues
from crosswind.filter.export import check_marks, export

PEERS = ["10.0.0.2:7200", "10.0.0.3:7200"]


def test_a_forward_says_where_to_listen_what_for_and_through_which_peer():
    assert Forward.parse("8001=db:5432", "local", PEERS[:1]) == Forward("local", "127.0.0.1:8001", "db:5432", 0)
    both = Forward.parse("0.0.0.0:8001=db:5432@10.0.0.3:7200", "parallel", PEERS)
    assert both == Forward("parallel", "0.0.0.0:8001", "db:5432", 1)


@pytest.mark.parametrize(
    ("text", "peers", "said"),
    [
        ("8001", PEERS[:1], "must be PORT=HOST:PORT"),
        ("8001=db", PEERS[:1], "must be PORT=HOST:PORT"),
        ("80x=db:1", PEERS[:1], "'80x' is no port"),
        ("70000=db:1", PEERS[:1], "'70000' is no port"),
        ("8001=db:1", PEERS, "must say which"),
        ("8001=db:1@elsewhere:1", PEERS, "is no peer"),
        ("8001=db:1", [], "needs a peer"),
    ],
)
def test_a_forward_that_says_something_else_is_refused(text, peers, said):
    with pytest.raises(DescriptionError, match=re.escape(said)):
        Forward.parse(text, "local", peers)


@pytest.mark.parametrize("address", ["0.0.0.0:0", "192.0.2.7:7200", "example.org:7200"])
def test_off_loopback_there_must_be_a_token(address):
    with pytest.raises(DescriptionError, match="neither a token nor a certificate"):
        Filter(listen=address)
    with pytest.raises(DescriptionError, match="neither a token nor a certificate"):
        Filter(peers=[address])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"frame_bytes": 0}, "frame_bytes is 0"),
        ({"window_bytes": 100}, "window is 100"),
        ({"rate_mb_per_s": 0.0}, "rate is 0 MB/s"),
        ({"queues": Queues(credits="receiver", receive_threshold=17)}, "receive_threshold is 17"),
        ({"queues": Queues(queue="drrr")}, "unknown variant `drrr`"),  # type: ignore[arg-type]
        ({"forwards": [Forward("local", "127.0.0.1:0", "nowhere", 0)], "peers": ["127.0.0.1:1"]}, "target is"),
        ({"token": "short"}, "the token has 5 bytes"),
        ({"listen": None}, "peers is empty"),
    ],
)
def test_a_filter_names_the_value_that_is_wrong(options, said):
    with pytest.raises(DescriptionError, match=re.escape(said)):
        Filter(**{"listen": "127.0.0.1:0", **options})


@pytest.mark.parametrize("threshold", [1, 4, 9])
@pytest.mark.parametrize("queue", ["drr", "threshold"])
def test_tc_serves_bytes_in_the_ratio_of_the_threshold(threshold, queue):
    quanta = re.search(r"ets bands 2 quanta (\d+) (\d+)", export("tc", queue, threshold).text)
    assert int(quanta[1]) == threshold * int(quanta[2]) >= 1514
    shaped = export("tc", queue, threshold, rate_mb_per_s=10).text
    rates = [int(rate) for rate in re.findall(r"htb rate (\d+)bit", shaped)]
    assert rates[0] == 80_000_000 == rates[1] + rates[2]
    assert rates[1] / rates[2] == pytest.approx(threshold, rel=1e-6)


def test_strict_serves_parallel_packets_first():
    strict = export("tc", "strict")
    assert "ets bands 2 strict 1 quanta" in strict.text
    assert strict.given is None
    assert "--tsa ets,strict," in export("nccl", "strict").text


@pytest.mark.parametrize(("threshold", "given"), [(1, 3), (3, 3), (4, 3), (8, 9), (100, 9)])
def test_cilium_gives_the_nearest_of_its_ratios_and_says_which(threshold, given):
    described = export("cilium", "drr", threshold)
    assert described.given == (given, 1)
    assert f"{given} to 1" in described.text
    assert (f"fq weights {threshold * 65536} 65536" in described.text) == (threshold != given)


def test_nccl_packets_carry_the_mark_that_the_card_sorts_by():
    text = export("nccl", "drr", 4).text
    traffic_class = int(re.search(r"NCCL_IB_TC=(\d+)", text)[1])
    queues = re.search(r"--prio_tc (\S+)", text)[1].split(",")
    shares = [int(share) for share in re.search(r"--tcbw (\S+)", text)[1].split(",")]
    assert queues.index("1") == traffic_class >> 2 >> 3
    assert shares[:2] == [20, 80]
    assert sum(shares) == 100


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"queue": "fifo"}, "without any settings"),
        ({"threshold": 0}, "threshold is 0"),
        ({"rate_mb_per_s": -1.0}, "rate is -1"),
        ({"device": "eth0; reboot"}, "no network interface"),
    ],
)
def test_what_cannot_be_exported_is_refused(arguments, said):
    with pytest.raises(DescriptionError, match=said):
        export("tc", **arguments)


def test_marks_arrive_over_loopback_and_ciliums_cannot_be_seen():
    assert [one["arrived_dscp"] for one in check_marks("tc")] == [34, 0]
    with pytest.raises(DescriptionError, match="stay on the node"):
        check_marks("cilium")
