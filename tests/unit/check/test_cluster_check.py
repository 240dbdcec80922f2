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
    assert found.sentence.startswith("sick: c memory cpu 0 -50 % (")
    found.save(tmp_path / "c.json")
    read = ClusterCheck.load(tmp_path / "c.json")
    assert read.to_dict() == found.to_dict()


def test_hosts_alike_are_healthy():
    found = check_cluster(Answering({"a": 100.0, "b": 101.0, "c": 99.0, "d": 99.5}), links=False)
    assert (found.outcome, found.warnings) == ("healthy", [])


def test_a_host_that_cannot_be_checked_is_named_and_the_others_are_judged():
    found = check_cluster(Answering({"a": 100.0, "b": 101.0, "c": None, "d": 99.0}), links=False)
    assert (found.exit_code, list(found.checks)) == (3, ["a", "b", "d"])
    assert "c: no kernel runs here" in found.sentence
    assert {w["code"] for w in found.warnings} == {"missing"}


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
