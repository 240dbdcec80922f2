"""Which host carries which node, and what is said about a cluster that does not fit."""

import pytest

from crosswind import DescriptionError
from crosswind.cluster.client import connected, difference, own_address
from crosswind.cluster.hosts import hosts_of
from crosswind.cluster.versions import look
from crosswind.run.places import places, star


def worker(host, name, status="running"):
    return {"host": host, "name": name, "status": status, "nthreads": 1}


WORKERS = {
    "tcp://10.0.0.2:4002": worker("10.0.0.2", 10),
    "tcp://10.0.0.2:4001": worker("10.0.0.2", 9),
    "tcp://10.0.0.1:4001": worker("10.0.0.1", "left"),
    "tcp://10.0.0.3:4001": worker("10.0.0.3", 2, "closing_gracefully"),
}


def test_workers_at_one_address_are_one_host_and_those_that_close_are_none():
    hosts = hosts_of(WORKERS)
    assert [(host.name, host.worker) for host in hosts] == [
        ("10.0.0.1", "tcp://10.0.0.1:4001"),
        ("10.0.0.2", "tcp://10.0.0.2:4001"),
    ]
    assert {"10", "9", "10.0.0.2", "10.0.0.2:4002"} <= hosts[1].aliases


def test_with_per_worker_each_worker_is_one_in_the_order_of_its_number():
    hosts = hosts_of(WORKERS, "worker")
    assert [host.name for host in hosts] == ["left", "9", "10"]
    assert "10.0.0.2" not in hosts[1].aliases


def test_with_per_thread_each_thread_is_one_and_a_worker_of_one_thread_keeps_its_name():
    two = {**worker("10.0.0.3", "two"), "nthreads": 2}
    hosts = hosts_of({**WORKERS, "tcp://10.0.0.3:4002": two}, "thread")
    assert [host.name for host in hosts] == ["left", "9", "10", "two-0", "two-1"]
    assert [host.worker for host in hosts[3:]] == ["tcp://10.0.0.3:4002"] * 2
    found = places(["a", "b", "c"], hosts, {"b": "two", "c": "two"})
    assert {node: host.name for node, host in found.items()} == {"a": "left", "b": "two-0", "c": "two-1"}


def test_nodes_go_where_they_are_sent_then_by_name_then_in_order():
    hosts = hosts_of(WORKERS, "worker")
    found = places(["a", "10", "b"], hosts, {"b": "left"})
    assert {node: host.name for node, host in found.items()} == {"b": "left", "10": "10", "a": "9"}


@pytest.mark.parametrize(
    ("nodes", "given", "said", "hint"),
    [
        (["a"], {"A1": "left"}, "no node 'A1'", "there are: a"),
        (["a"], {"a": "lefd"}, "no host 'lefd'", "did you mean 'left'"),
        (["a", "b"], {"a": "9", "b": "10.0.0.2:4001"}, "carries a already", "--per worker"),
        (["a", "b", "c", "d"], {}, "4 nodes below its root, and the cluster has 3 hosts", "add workers"),
    ],
)
def test_a_place_that_cannot_be_is_refused_with_what_would_mend_it(nodes, given, said, hint):
    with pytest.raises(DescriptionError) as refused:
        places(nodes, hosts_of(WORKERS, "worker"), given)
    assert said in str(refused.value)
    assert hint in refused.value.hint


def test_without_a_platform_all_hosts_are_alike_below_a_root_that_only_hands_out():
    root, first, second = star("s", ["x", "y"]).nodes
    assert root["compute_per_s"] == 0.0
    assert {**first, "name": ""} == {**second, "name": ""}


OURS = {"python": "3.12", "crosswind": "1.0", "protocol": 2, "cloudpickle": "3.1"}


@pytest.mark.parametrize(
    ("theirs", "said", "hint"),
    [
        ({"python": "3.11"}, "Python is 3.11 there and 3.12 here", "same minor version"),
        ({"crosswind": None, "error": "No module named 'crosswind'"}, "No module named 'crosswind'", "pip install"),
        ({"crosswind": "0.9"}, "Crosswind is 0.9 there and 1.0 here", "same version"),
        ({"protocol": 1}, "protocol is 1 there and 2 here", "same version"),
        ({"cloudpickle": "2.2"}, "cloudpickle is 2.2 there and 3.1 here", "same version"),
    ],
)
def test_a_worker_that_does_not_fit_is_told_apart_by_what_differs(theirs, said, hint):
    message, mend = difference(OURS, {**OURS, **theirs})
    assert said in message
    assert hint in mend


def test_a_worker_that_is_like_us_fits():
    assert difference(look(), look()) is None


def test_the_root_listens_where_the_hosts_reach_it():
    assert own_address(hosts_of({"tcp://127.0.0.1:1": worker("127.0.0.1", 0)})) == "127.0.0.1"
    assert own_address(hosts_of(WORKERS)) != "127.0.0.1"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("foo", "must be a host and a port"),
        ("tcp://foo", "must be a host and a port"),
        ("tcp://foo:8786/status", "must be a host and a port"),
        ("tcp://foo:abc", "'abc'"),
        ("tcp://foo:99999", "out of range 0-65535"),
        ("http://foo:8787", "known schemes"),
        ("tls://foo:8786", "names no certificates"),
    ],
)
def test_what_is_no_address_of_a_scheduler_is_said_at_once(address, said):
    pytest.importorskip("distributed")
    with pytest.raises(DescriptionError, match=said), connected(address):
        pass


def test_certificates_that_cannot_be_read_are_no_absent_scheduler():
    dask = pytest.importorskip("dask")
    pytest.importorskip("distributed")
    named = {f"distributed.comm.tls.{file}": "/none" for file in ("ca-file", "client.cert", "client.key")}
    with (
        dask.config.set(named),
        pytest.raises(DescriptionError, match="cannot be read"),
        connected("tls://foo:8786"),
    ):
        pass
