"""A send limit is of several sends at once; where one send alone would pass it, plans and runs say so."""

import pytest

import crosswind
from crosswind import Experiment, Platform, plan


def platform(limit, link=20.0):
    root = {"name": "r", "compute_per_s": 1.0, "send_limit_mb_per_s": limit}
    leaves = [
        {"name": name, "parent": "r", "compute_per_s": 100.0, "receive_limit_mb_per_s": link} for name in ("a", "b")
    ]
    return {"schema_version": 1, "name": "uplink", "node": [root, *leaves]}


def codes(found):
    return [one["code"] for one in found.warnings]


@pytest.mark.parametrize(
    ("ports", "limit", "warned"), [("single", 2.0, True), ("single", 19.0, False), ("multi", 2.0, False)]
)
def test_one_send_past_the_limit_is_named(ports, limit, warned):
    described = platform(limit)
    planned = plan(Platform.from_dict(described), task_size_mb=1.0, task_work=1.0, ports=ports)
    assert ("bound-past-send-limit" in codes(planned)) == warned
    workload = {"kind": "farm", "tasks": 50, "task_size_mb": 1.0, "task_work": 1.0}
    experiment = {"schema_version": 1, "name": "e", "platform": described, "workload": workload}
    (run,) = crosswind.run(Experiment.from_dict(experiment | {"policy": {"ports": ports}}))
    assert ("bound-past-send-limit" in codes(run)) == warned


def test_the_warning_says_which_send_and_what_to_change():
    planned = plan(Platform.from_dict(platform(2.0)), task_size_mb=1.0, task_work=1.0, ports="single")
    (found,) = [one for one in planned.warnings if one["code"] == "bound-past-send-limit"]
    assert 'to "a" goes at 20.00 MB/s' in found["message"]
    assert "receive_limit_mb_per_s" in found["hint"]
