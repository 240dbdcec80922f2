"""A cluster whose hosts answer with drawn checks: what is called, what is judged, what goes away."""

import signal
import threading
import time
from concurrent.futures import Future

import pytest
from checks import checked

from crosswind.check.cluster import _turns, check_cluster
from crosswind.check.cluster_result import ClusterCheck
from crosswind.errors import DescriptionError, MeasurementError


class Answering:
    """Hosts that answer at once; `memory` (1/s) of each, or None for one that fails."""

    name = "a cluster"

    def __init__(self, memory):
        self.memory = memory
        self.hosts = {host: f"10.0.0.{k}" for k, host in enumerate(memory)}

    def submit(self, host, function, *arguments):
        future = Future()
        assert function.__name__ == "checked"
        if self.memory[host] is None:
            future.set_exception(MeasurementError("no kernel runs here", "failed"))
        else:
            future.set_result(checked(memory=self.memory[host], node=host).to_dict())
        return future

    def is_alive(self, host):
        return True


def test_the_slow_host_is_named_without_a_baseline(tmp_path):
    found = check_cluster(Answering({"a": 100.0, "b": 101.0, "c": 50.0, "d": 99.0}), links=False)
    assert (found.outcome, found.exit_code) == ("sick", 1)
    assert found.sentence.startswith("sick: c memory cpu 0 is 50")
    found.save(tmp_path / "c.json")
    read = ClusterCheck.load(tmp_path / "c.json")
    assert read.to_dict() == found.to_dict()


def test_hosts_alike_are_healthy():
    found = check_cluster(Answering({"a": 100.0, "b": 101.0, "c": 99.0, "d": 99.5}), links=False)
    assert (found.outcome, found.warnings) == ("healthy", [])
    assert found.sentence == "healthy: 4 hosts and 0 links within 10 % of the others"


def test_a_host_that_cannot_be_checked_is_named_and_the_others_are_judged():
    found = check_cluster(Answering({"a": 100.0, "b": 101.0, "c": None, "d": 99.0}), links=False)
    assert (found.exit_code, list(found.checks)) == (3, ["a", "b", "d"])
    assert "c: no kernel runs here" in found.sentence
    assert {w["code"] for w in found.warnings} == {"missing"}


@pytest.mark.parametrize(
    "answer",
    [
        {"schema_version": 1},
        {},
        None,
        float("nan"),
        [1] * 3,
        "check",
        checked().document | {"load": "none"},
        checked().document | {"readings": {"noise": {"values": ["a"], "unit": "share"}}},
        checked().document | {"load": {"others": float("nan"), "steal": 0.0}},
        checked().document | {"failed": ["noise"]},
    ],
)
def test_a_host_that_answers_with_something_else_costs_that_host_only(answer, tmp_path):
    class Odd(Answering):
        def submit(self, host, function, *arguments):
            if host != "c":
                return super().submit(host, function, *arguments)
            future = Future()
            future.set_result(answer)
            return future

    found = check_cluster(Odd({"a": 100.0, "b": 101.0, "c": 100.0, "d": 99.0}), links=False)
    assert (found.exit_code, list(found.checks), list(found.document["failed"])) == (3, ["a", "b", "d"], ["c"])
    assert "the check of c" in found.document["failed"]["c"]
    found.save(tmp_path / "c.json")
    assert ClusterCheck.load(tmp_path / "c.json").outcome == "unknown"


@pytest.mark.parametrize(
    "changed",
    [
        {"readings": {}, "failed": {"noise": "too slow", "memory cpu 0": "too slow"}},
        {"failed": {"memory cpu 1": "too slow"}},
    ],
    ids=["all measures", "one CPU"],
)
def test_a_host_whose_measures_failed_is_unknown_with_the_reason(changed):
    document = check_cluster(Answering({"a": 100.0, "b": 101.0, "c": 99.0, "d": 99.5}), links=False).document
    found = ClusterCheck(document | {"checks": document["checks"] | {"c": checked(node="c", **changed).document}})
    assert (found.outcome, found.exit_code) == ("unknown", 3)
    assert {each.name for host, each in found.judged if host == "c" and each.why == "too slow"} == set(
        changed["failed"]
    )
    assert "c memory cpu" in found.sentence


@pytest.mark.parametrize("rate", [0.0, 1e-300])
def test_a_link_without_a_rate_is_unknown_or_sick_and_ends_nothing(rate):
    links = [{"from": a, "to": b, "receive_limit_mb_per_s": 100.0} for a in "abc" for b in "abc" if a != b]
    links[0]["receive_limit_mb_per_s"] = rate
    document = check_cluster(Answering({"a": 100.0, "b": 101.0, "c": 99.5}), links=False).document
    found = ClusterCheck(document | {"links": links})
    assert found.links["a", "b"].outcome == ("sick" if rate else "unknown")
    assert found.exit_code in (1, 3)
    assert len(found.links) == 6


def test_two_hosts_cannot_tell_which_is_the_odd_one():
    found = check_cluster(Answering({"a": 100.0, "b": 50.0}), links=False)
    assert found.exit_code == 3
    assert {w["code"] for w in found.warnings} == {"few-hosts"}


def test_hosts_at_one_address_take_turns():
    turns = list(_turns({"a": "1", "b": "1", "c": "2", "d": "1"}))
    assert [sorted(turn) for turn in turns] == [["a", "c"], ["b"], ["d"]]


@pytest.mark.parametrize(
    ("hosts", "named", "match"),
    [
        ({"a": 1.0}, {}, "there are 1 hosts"),
        ({"a": 1.0, "b": 1.0}, {"tolerance": 1.5}, "tolerance is 150 %"),
        ({"a": 1.0, "b": 1.0}, {"seconds": 1.0}, "seconds is 1"),
    ],
)
def test_wrong_arguments_say_what_is_permitted(hosts, named, match):
    with pytest.raises(DescriptionError, match=match):
        check_cluster(Answering(hosts), links=False, **named)


def test_ctrl_c_does_not_wait_for_checks_under_way():
    class Silent(Answering):
        def submit(self, host, function, *arguments):
            return Future()  # never answers

    timer = threading.Timer(0.3, signal.pthread_kill, [threading.get_ident(), signal.SIGINT])
    timer.start()
    found = check_cluster(Silent({"a": 1.0, "b": 1.0}))
    assert found.interrupted
    assert found.exit_code == 3
    deadline = time.monotonic() + 20.0
    while any(one.name.startswith("crosswind-check") for one in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
