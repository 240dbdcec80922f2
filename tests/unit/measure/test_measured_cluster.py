"""A cluster of hosts whose measurements are synthetic: what each host is asked, kept, told, and made of it."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path

import pytest
import synthetic

from crosswind.errors import AgentLost, DescriptionError, MeasurementError
from crosswind.links import Links
from crosswind.measure.cluster import at_host, measure_cluster, tour
from crosswind.measure.cluster.directory import Directory
from crosswind.measure.cluster.pairs import Visit
from crosswind.measurement import Measurement
from crosswind.plan.tree import plan_tree
from crosswind.platform import Platform

COMPUTE = {"a": 4.0, "b": 8.0, "c": 12.0, "d": 16.0}
RECEIVE, SEND = 0.0002, 0.0001


class Synthetic:
    """Hosts that answer at once with what a known law gives."""

    def __init__(self, names="abc", tmp_path: Path = Path(), dying=None):
        self.name, self.hosts = "synthetic", {name: f"10.0.0.{at}" for at, name in enumerate(names, 1)}
        self.calls, self.dead, self.busy = [], set(), set()
        self.tmp_path, self.dying = tmp_path, dying
        self.peers: dict[str, str] = {}
        self.held = threading.Lock()

    def submit(self, host, function, *arguments):
        future: Future = Future()
        with self.held:
            self.calls.append((host, function.__name__))
            if host == self.dying and function is at_host.measured:
                self.dead.add(host)
            if host in self.dead:
                return future  # no answer, ever
        try:
            future.set_result(getattr(self, function.__name__)(host, *arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def is_alive(self, host):
        return host not in self.dead

    def start_peer(self, host, address, seconds, token):
        assert address == self.hosts[host]
        assert seconds > 0
        assert len(token) >= 16
        with self.held:
            assert host not in self.busy
            self.busy.add(host)
            self.peers[f"{address}:{7000 + len(self.calls)}"] = host
            return next(reversed(self.peers))

    def end_peer(self, host, peer):
        with self.held:
            self.busy.discard(self.peers.pop(peer))

    def measured(self, host, peer, arguments, seconds):
        with self.held:
            assert host not in self.busy, "no host is in two pairs at a time"
            self.busy.add(host)
        directions = {"receive": (RECEIVE, None), "send": (None, SEND), "each": (RECEIVE, SEND)}[arguments["direction"]]
        found = synthetic.measurement(
            *directions, cycles=30, compute_per_s=COMPUTE[host], peers=(peer,), host=host, loopback=False, noise=0.001,
            drift=0.0, top_mb_per_s=1000.0,
        )  # fmt: skip
        file = self.tmp_path / f"{host}{threading.get_ident()}.parquet"
        found.save(file)
        with self.held:
            self.busy.discard(host)
        return file.read_bytes()


@pytest.fixture
def hosts(tmp_path):
    def make(names="abc", **changed):
        (tmp_path / "there").mkdir(exist_ok=True)
        return Synthetic(names, tmp_path / "there", **changed)

    return make


def test_all_pairs_tell_of_every_link_in_both_directions(hosts, tmp_path):
    told = []
    found = measure_cluster(hosts("abcd"), tmp_path / "out", progress=lambda part, what: told.append((part, what)))
    assert (found.measured, found.asked, found.failed, found.lost, found.interrupted) == (12, 12, [], [], False)
    assert found.trustworthy, found.warnings
    links = Links.load(tmp_path / "out" / "links.toml")
    assert {host["name"]: host["compute_per_s"] for host in links.hosts} == pytest.approx(COMPUTE, rel=0.01)
    assert len(links.links) == 12
    for link in links.links:
        assert link["ir_receive_s_per_mb"] == pytest.approx(RECEIVE, rel=0.05)
        assert link["ir_send_s_per_mb"] == pytest.approx(SEND, rel=0.05)
        assert link["receive_limit_mb_per_s"] == pytest.approx(1050.0, rel=0.05)
        assert link["latency_s"] == pytest.approx(2.5e-5)
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 12
    assert [part for part, _ in told] == sorted(part for part, _ in told)
    assert told[-1] == (1.0, "12 of 12 measured")
    assert "round 2 of 3, 4 of 12 measured, about" in told[1][1]
    # The way on: a tree over these links.
    built = plan_tree(tmp_path / "out" / "links.toml", task_size_mb=2.0, task_work=5.0)
    assert built.data["method"] == "exact"
    assert len(built.platform) == 4


def test_a_tree_needs_its_edges_only_and_becomes_a_calibrated_platform(hosts, tmp_path):
    node = {"compute_per_s": 1.0, "receive_limit_mb_per_s": 1.0}
    nodes = [{"name": "r", "compute_per_s": 1.0}, {"name": "s", "parent": "r", **node, "receive_limit_drop": 0.5}]
    tree = Platform.from_dict(
        {"schema_version": 1, "name": "t", "node": [*nodes, {"name": "a", "parent": "s", **node}]}
    )
    cluster = hosts()
    found = measure_cluster(cluster, tmp_path / "out", platform=tree, host_of={"r": "b", "s": "c"})
    measured = [host for host, function in cluster.calls if function == "measured"]
    assert sorted(measured) == ["a", "b", "c", "c"]  # c receives from b and sends to a
    assert found.platform is not None
    root, middle, leaf = Platform.load(tmp_path / "out" / "platform.toml").nodes
    assert root["compute_per_s"] == pytest.approx(8.0, rel=0.01)
    assert (middle["parent"], middle["receive_limit_drop"]) == ("r", 0.5)
    assert middle["ir_receive_s_per_mb"] == pytest.approx(RECEIVE, rel=0.05)
    assert middle["ir_send_s_per_mb"] == pytest.approx(SEND, rel=0.05)
    assert leaf["compute_per_s"] == pytest.approx(4.0, rel=0.01)


def test_what_is_done_is_not_done_again(hosts, tmp_path):
    out = tmp_path / "out"
    measure_cluster(hosts("ab"), out)
    again = hosts("abc")
    found = measure_cluster(again, out)
    assert found.measured == 6
    assert sum(function == "measured" for _, function in again.calls) == 4  # those with c
    with pytest.raises(DescriptionError, match="matrix is None there, 64 now"):
        measure_cluster(hosts("abc"), out, matrix=64)
    anew = hosts("ab")
    measure_cluster(anew, out, matrix=64, resume=False, force=True)
    assert sum(function == "measured" for _, function in anew.calls) == 2


def test_a_host_that_dies_is_named_and_the_others_go_on(hosts, tmp_path, monkeypatch):
    monkeypatch.setattr(tour, "LOOK_S", 0.01)
    found = measure_cluster(hosts("abcd", dying="b"), tmp_path / "out")
    assert found.lost == ["b"]
    assert not found.trustworthy
    assert {one["why"] for one in found.failed} == {"b went away"}
    assert found.measured == 6  # every pair of a, c, d
    assert [w["message"] for w in found.warnings if w["code"] == "host-lost"] == ["b went away"]
    assert found.links is not None
    assert {host["name"] for host in found.links.hosts} == {"a", "c", "d"}


def test_a_measurement_that_fails_is_named_and_the_others_go_on(hosts, tmp_path):
    cluster = hosts("abc")
    measured = cluster.measured

    def refused(host, *arguments):
        if host == "c":
            raise AgentLost("no route to host")
        return measured(host, *arguments)

    cluster.measured = refused
    found = measure_cluster(cluster, tmp_path / "out", pairs="star", root="a")
    assert found.lost == []
    assert [(one["at"], one["why"]) for one in found.failed] == [("c", "no route to host")]
    assert found.links is not None
    assert {host["name"] for host in found.links.hosts} == {"a", "b"}
    cluster.measured = lambda *_: refused("c")
    with pytest.raises(MeasurementError, match="nothing could be measured: no route to host"):
        measure_cluster(cluster, tmp_path / "other")


def test_what_cannot_be_measured_is_refused(hosts, tmp_path):
    tree = Platform.from_dict({"schema_version": 1, "name": "t", "node": [{"name": "x", "compute_per_s": 1.0}]})
    for wrong, message in [
        ({"pairs": "tree"}, "no tree is given"),
        ({"pairs": "star", "root": "z"}, "root is 'z', which is no host"),
        ({"platform": tree}, "node 'x' has no host"),
        ({"platform": tree, "host_of": {"x": "a"}}, "no link to measure"),
        ({"at_once": 0}, "at_once is 0"),
        ({"pairs": "some"}, "must be one of all, star, tree"),
    ]:
        with pytest.raises(DescriptionError, match=message):
            measure_cluster(hosts(), tmp_path / "out", **wrong)
    with pytest.raises(DescriptionError, match="no link to measure among 1 hosts"):
        measure_cluster(hosts("a"), tmp_path / "out")


def test_names_of_hosts_may_have_any_characters(tmp_path):
    odd = "tcp://[::1]:80/x y"
    found = Directory.taken_up(tmp_path / "out", [], {}, [], resume=True, force=False)
    file = found.file(Visit(odd, "../a", "send"))
    assert file.parent == tmp_path / "out"
    assert file != found.file(Visit(odd, ".._a", "send"))


def test_the_measurements_that_are_kept_are_whole_measurements(hosts, tmp_path):
    measure_cluster(hosts("ab"), tmp_path / "out", quick=True)
    for file in (tmp_path / "out").glob("*.parquet"):
        assert not Measurement.load(file).partial
