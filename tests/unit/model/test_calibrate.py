"""Measured rates take the place of guessed ones, and what stays a guess is told."""

import pytest
import synthetic

from crosswind.errors import DescriptionError
from crosswind.model.calibrate import calibrate, platform_of
from crosswind.model.fit import fit
from crosswind.plan import Plan, plan
from crosswind.platform import Platform, link_mb_per_s
from crosswind.report import report

QUIET = {"noise": 0.0, "drift": 0.0, "loopback": False}


def measured(host, peers, receive=0.00016, send=0.0001, **law):
    ir = [(rate,) * len(peers) if rate is not None else None for rate in (receive, send)]
    addresses = tuple(f"{p}:7117" for p in peers)
    return fit(synthetic.measurement(*ir, cycles=4, host=host, peers=addresses, **(QUIET | law)))


def test_a_measured_host_becomes_the_root_of_a_platform():
    found = platform_of(measured("north", ["east", "west"]))
    root, east, west = found.platform.nodes
    assert (root["name"], east["name"], west["name"]) == ("north", "east", "west")
    assert root["compute_per_s"] == pytest.approx(9.0)
    assert root["send_limit_mb_per_s"] == pytest.approx(2625.0, rel=0.05)
    assert east["parent"] == west["parent"] == "north"
    assert east["ir_send_s_per_mb"] == pytest.approx(0.0001)
    assert east["ir_receive_s_per_mb"] == pytest.approx(0.00016)  # north's own, for want of a better
    assert [w["code"] for w in found.warnings] == ["peer-not-measured"] * 2


def test_a_peer_that_was_measured_itself_brings_its_own_rates():
    here = measured("north", ["east"])
    there = measured("east", ["north"], receive=0.0003, send=None, compute_per_s=4.0)
    found = calibrate([here, there])
    _, east = found.platform.nodes
    assert east["compute_per_s"] == pytest.approx(4.0)
    assert east["ir_receive_s_per_mb"] == pytest.approx(0.0003)
    assert east["ir_send_s_per_mb"] == pytest.approx(0.0001)
    assert found.warnings == []


def test_measurements_of_parents_and_children_make_a_tree():
    found = calibrate([measured("a", ["b"]), measured("b", ["a", "c"]), measured("c", ["b"])])
    assert [(n["name"], n.get("parent")) for n in found.platform.nodes] == [("a", None), ("b", "a"), ("c", "b")]
    assert found.warnings == []
    with pytest.raises(DescriptionError, match="no tree"):
        calibrate([measured("a", ["b"]), measured("x", ["y"])])


def test_a_loopback_peer_is_named_apart_and_told():
    found = platform_of(measured("north", ["127.0.0.1"], loopback=True))
    assert found.platform.nodes[1]["name"] == "north (peer)"
    assert "this same machine" in found.warnings[0]["message"]


def test_sending_that_was_not_measured_is_told():
    found = platform_of(measured("north", ["east"], send=None))
    assert "send-not-measured" in {w["code"] for w in found.warnings}
    assert found.platform.nodes[1]["ir_send_s_per_mb"] == 0.0


def test_noise_below_zero_is_no_negative_rate():
    here = measured("north", ["east"], receive=-0.00002, send=-0.00001)
    assert here.channels[0].ir_s_per_mb < 0
    assert all(n.get("ir_send_s_per_mb", 0.0) >= 0 for n in platform_of(here).platform.nodes)


def test_an_existing_platform_keeps_what_was_not_measured():
    platform = Platform.from_dict(
        {
            "schema_version": 1,
            "name": "cluster",
            "node": [
                {"name": "north", "compute_per_s": 1.0, "send_limit_mb_per_s": 100.0},
                {"name": "east", "parent": "north", "compute_per_s": 2.0, "receive_limit_mb_per_s": 50.0},
                {"name": "south", "parent": "north", "compute_per_s": 3.0, "receive_limit_mb_per_s": 60.0},
            ],
        }
    )
    found = calibrate([measured("north", ["east"])], platform)
    north, east, south = found.platform.nodes
    assert found.platform.name == "cluster"
    assert north["compute_per_s"] == pytest.approx(9.0)
    assert east["compute_per_s"] == 2.0  # only east itself can tell
    assert east["ir_send_s_per_mb"] == pytest.approx(0.0001)
    assert east["receive_limit_mb_per_s"] == pytest.approx(2625.0, rel=0.05)
    assert south == platform.nodes[2]
    assert "south" in found.warnings[0]["message"]
    both = calibrate([measured("north", ["east"]), measured("east", ["north"], compute_per_s=5.0)], platform)
    assert both.platform.nodes[1]["compute_per_s"] == pytest.approx(5.0)
    assert both.platform.nodes[1]["ir_receive_s_per_mb"] == pytest.approx(0.00016)


def test_a_platform_without_any_measured_name_is_refused():
    platform = Platform.from_dict({"schema_version": 1, "name": "p", "node": [{"name": "z", "compute_per_s": 1.0}]})
    with pytest.raises(DescriptionError, match="east, north"):
        calibrate([measured("north", ["east"])], platform)


def test_nothing_measured_is_refused():
    with pytest.raises(DescriptionError):
        calibrate([])


def test_what_a_platform_was_warned_of_is_told_by_its_file_its_plan_and_the_report(tmp_path):
    platform_of(measured("north", ["127.0.0.1"], loopback=True)).platform.save(tmp_path / "platform.toml")
    kept = Platform.load(tmp_path / "platform.toml")
    assert {"loopback", "same-machine"} <= {w["code"] for w in kept.warnings}
    plan(kept, task_size_mb=1.0, task_work=1.0).save(tmp_path / "plan.json")
    planned = Plan.load(tmp_path / "plan.json")
    assert any("north (peer) is this same machine" in w["message"] for w in planned.warnings)
    for item in (kept, planned):
        page = report(item, tmp_path / "report.html").read_text()
        assert "north (peer) is this same machine" in page
    assert "Not reachable as planned: north (peer) is this same machine" in page


def test_what_was_known_against_figures_that_are_all_replaced_is_dropped():
    old = platform_of(measured("north", ["east"])).platform
    assert "peer-not-measured" in {w["code"] for w in old.warnings}
    both = [measured("north", ["east"]), measured("east", ["north"], send=None)]
    assert "peer-not-measured" not in {w["code"] for w in calibrate(both, old).platform.warnings}
    assert "peer-not-measured" in {w["code"] for w in calibrate(both[:1], with_one_more(old)).platform.warnings}


def with_one_more(platform):
    nodes = [*platform.nodes, {"name": "far", "parent": "east", "compute_per_s": 1.0, "receive_limit_mb_per_s": 1.0}]
    return Platform.from_dict(platform.to_dict() | {"node": nodes})


def test_several_peers_at_once_give_the_send_limit_that_one_does_not_reach():
    one = measured("north", ["east", "west"], receive=None, together_cycles=0)
    both = measured("north", ["east", "west"], receive=None, together_cycles=12)
    (together,) = both.additive
    root, *children = platform_of(both).platform.nodes
    assert one.additive is None
    assert (
        root["send_limit_mb_per_s"]
        == together.total_max_mb_per_s
        > platform_of(one).platform.nodes[0]["send_limit_mb_per_s"]
    )
    assert all(child["receive_limit_mb_per_s"] < root["send_limit_mb_per_s"] for child in children)


def test_a_node_that_several_senders_fill_has_the_share_that_its_parent_reaches():
    here = measured("north", ["east"])
    there = measured("east", ["north", "west"], send=None, together_cycles=12)
    (together,) = there.additive
    link = platform_of(here).platform.nodes[1]["receive_limit_mb_per_s"]
    _, east, _ = calibrate([here, there]).platform.nodes
    assert east["receive_limit_mb_per_s"] == together.total_max_mb_per_s > link
    assert link_mb_per_s(east) == pytest.approx(link, rel=1e-12)
    again = calibrate([here], calibrate([here, there]).platform).platform.nodes[1]
    assert (again["receive_limit_mb_per_s"], again.get("one_sender_share")) == (link, None)
