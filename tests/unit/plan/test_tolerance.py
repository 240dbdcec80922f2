"""Limits that the simulator finds stand where the slowdown passes the stated one."""

import pytest
from typer.testing import CliRunner

from crosswind.cli import app
from crosswind.cli.answer import show
from crosswind.cli.plan_tolerance import _answer
from crosswind.disturbance import Disturbance
from crosswind.errors import DescriptionError
from crosswind.plan.tolerance import plan_tolerance

ASKED = {"ranks": 16, "work_per_barrier_s": 0.005, "slowdown": 1.2}


def found(source, **more):
    disturbance = Disturbance.from_dict({"schema_version": 1, "name": "d", "source": [source]})
    return {
        limit["field"]: limit for limit in plan_tolerance(disturbance, **ASKED, simulate=True, seeds=3, **more).limits
    }


def test_a_daemon_whose_union_hardly_overlaps_may_be_what_the_closed_form_says():
    daemon = {"kind": "daemon", "cause": "c", "duration_s": 0.001}
    limits = found(daemon | {"interval_s": {"distribution": "exponential", "mean": 1.0}})
    for limit in limits.values():
        assert limit["simulated_low"] <= limit["simulated"] <= limit["simulated_high"]
    # Barriers wait for every daemon on its own where these are rare: the form is nearly sharp.
    assert limits["source[0].duration_s"]["simulated"] == pytest.approx(
        limits["source[0].duration_s"]["limit"], rel=0.2
    )
    # With more ranks two strike between the same barriers, and cost once: the form is safe, and no longer sharp.
    assert limits["ranks"]["simulated"] > 0.9 * limits["ranks"]["limit"]


def test_limits_that_are_safe_by_far_are_found_to_be():
    # Daemons that strike many times between two barriers cost each rank alike, and a barrier little more.
    daemon = {"kind": "daemon", "cause": "c", "interval_s": 0.0002, "duration_s": 0.000005}
    limit = found(daemon)["source[0].duration_s"]
    assert limit["at_limit"] < 1.1
    assert limit["simulated"] > 2 * limit["limit"]
    # All ranks are away for 1 - 1/1.2 of the time, whatever else: no slowdown of 1.2 before that.
    assert limit["simulated"] == pytest.approx(0.0002 * (1 - 1 / 1.2), rel=0.1)


def test_the_saw_of_local_scheduling_has_its_first_tooth_where_the_form_says():
    limits = found({"kind": "local", "cause": "j", "quantum_s": 0.02})
    # With three turns between barriers 3 Q = (2 * 1.2 - 1) * 5 ms; one turn would allow 7 ms, but then 5 ms cost 1.4.
    assert limits["source[0].quantum_s"]["limit"] == pytest.approx(1.4 * 0.005 / 3)
    assert limits["source[0].quantum_s"]["simulated"] == pytest.approx(limits["source[0].quantum_s"]["limit"], rel=0.1)


def test_a_field_that_does_not_matter_has_no_simulated_limit():
    limits = found({"kind": "coscheduled", "cause": "g", "quantum_s": 0.05, "jobs": 2})
    assert limits["source[0].quantum_s"]["limit"] == 0.0
    assert limits["source[0].quantum_s"]["simulated"] is None


def test_the_same_seeds_find_the_same():
    source = {"kind": "coscheduled", "cause": "g", "quantum_s": 0.05, "jobs": 2, "skew_s": 0.001}
    assert found(source) == found(source)


def test_what_cannot_be_simulated_is_refused_before_the_work():
    disturbance = Disturbance.from_dict(
        {"schema_version": 1, "name": "d", "source": [{"kind": "local", "quantum_s": 0.1}]}
    )
    with pytest.raises(DescriptionError, match="at most 1 s"):
        plan_tolerance(disturbance, ranks=4, work_per_barrier_s=2.0, simulate=True)
    with pytest.raises(DescriptionError, match="seeds is 0"):
        plan_tolerance(disturbance, ranks=4, work_per_barrier_s=0.1, simulate=True, seeds=0)


def recorded(causes):
    intervals = [[0.1 * k, 0.001 * (1 + k % causes), k % causes] for k in range(90)]
    source = {"kind": "recorded", "length_s": 10.0, "causes": [f"thread {k}" for k in range(causes)], "aligned": False}
    source["cpu"] = [{"cpu": 0, "intervals": intervals}]
    return Disturbance.from_dict({"schema_version": 1, "name": "recorded", "source": [source]})


def with_a_daemon_before(recording):
    """Return a recording as the second source of a disturbance."""
    description = recording.to_dict()
    daemon = {"kind": "daemon", "cause": "agent", "interval_s": 1.0, "duration_s": 0.001}
    return Disturbance.from_dict({**description, "source": [daemon, *description["source"]]})


def test_the_limit_of_a_recorded_cause_names_the_source_as_the_file_has_it():
    alone = plan_tolerance(recorded(3), ranks=16, work_per_barrier_s=0.01)
    found = plan_tolerance(with_a_daemon_before(recorded(3)), ranks=16, work_per_barrier_s=0.01)
    own = [limit for limit in found.limits if limit["source"] == 1]
    assert [limit | {"source": 0} for limit in own] == alone.limits
    assert {limit["cause"] for limit in found.limits if limit["source"] == 0} == {"agent"}


def test_a_recorded_cause_is_simulated_alone_wherever_its_source_stands():
    asked = {"ranks": 16, "work_per_barrier_s": 0.01, "simulate": True, "seeds": 1}
    alone = plan_tolerance(recorded(2), **asked)
    found = plan_tolerance(with_a_daemon_before(recorded(2)), **asked)
    assert [limit | {"source": 0} for limit in found.limits if limit["source"] == 1] == alone.limits


def test_a_recording_is_gone_through_once_however_many_causes_it_has(monkeypatch):
    read = []
    from_dict = Disturbance.from_dict

    def counted(description):
        read.append(sum(len(cpu["intervals"]) for source in description["source"] for cpu in source["cpu"]))
        return from_dict(description)

    many = recorded(45)
    monkeypatch.setattr(Disturbance, "from_dict", counted)
    monkeypatch.setattr(Disturbance, "keeping", None)
    plan_tolerance(many, ranks=16, work_per_barrier_s=0.01)
    assert sum(read) == 90


@pytest.mark.parametrize("ranks", [1, 64, 1024, 100_000])
def test_a_recording_has_a_limit_for_each_cause_and_is_printed_at_every_number_of_ranks(ranks, tmp_path):
    found = plan_tolerance(recorded(4), ranks=ranks, work_per_barrier_s=0.01)
    assert sorted(limit["cause"] for limit in found.limits) == [f"thread {k}" for k in range(4)]
    limits = [limit["limit"] for limit in found.limits]
    assert limits == sorted(limits)
    (tmp_path / "noise.toml").write_text(recorded(4).to_toml())
    typed = ["plan", "tolerance", str(tmp_path / "noise.toml"), "--ranks", str(ranks), "--work-per-barrier-s", "0.01"]
    done = CliRunner().invoke(app, typed)
    assert done.exception is None
    assert "thread 3" in done.stdout


def test_the_limit_is_shown_at_80_columns_however_long_the_causes_are(capsys, monkeypatch):
    monkeypatch.setattr("crosswind.cli.console.narrow_width", lambda: 80)
    monkeypatch.setattr("crosswind.cli.plan_tolerance.narrow_width", lambda: 80)
    data = recorded(2).to_dict()
    data["source"][0]["causes"] = ["a thread with a long name " * 4, "another thread " * 9]
    show(_answer(plan_tolerance(Disturbance.from_dict(data), ranks=64, work_per_barrier_s=0.01)))
    said = capsys.readouterr()
    assert "may be" in said.out
    assert "more columns" not in said.err
