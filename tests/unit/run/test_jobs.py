"""Jobs that share this machine: what is refused, what is simulated, and how a switch is summed up."""

import pytest

from crosswind.errors import DescriptionError
from crosswind.experiment import Experiment
from crosswind.run import jobs
from crosswind.run.quanta import Quanta
from crosswind.run.switching import Switched, summary

PROGRAM = {"kind": "program", "program": "bsp", "ranks": 2, "parameters": {"iterations": 200, "work_s": 0.002}}


def job(name="job", **more):
    document = {"schema_version": 1, "name": name, "workload": PROGRAM, "execution": {"compute": "burn"}, **more}
    return Experiment.from_dict(document)


FARM = Experiment.load("examples/fork_graph.toml")
DAEMON = {"schema_version": 1, "name": "d", "source": [{"kind": "daemon", "interval_s": 1, "duration_s": 0.1}]}


@pytest.mark.parametrize(
    ("experiments", "options", "message"),
    [
        ([job()], {}, "there is one job; at least two share the machine"),
        ([job(), FARM], {}, "is of kind farm"),
        ([job(), job(execution={"compute": "emulated"})], {}, "are emulated, so they need no processor"),
        ([job(), job(sweep={"workload.ranks": [1, 2]})], {}, "has a sweep"),
        ([job(), job(disturbance=DAEMON)], {}, "has a disturbance"),
        ([job(), job(repetitions=2)], {}, "runs 2 times, job 1 times"),
        ([job(), job()], {"schedules": ["gangs"]}, "the schedule is 'gangs'; it must be one of local, gang, block"),
        ([job(), job()], {"schedules": []}, "no schedule is named"),
        ([job(), job()], {"quantum_s": 0.0}, "it must be 0.001 to 5 s"),
        ([job()] * 4, {"quantum_s": 3.0}, "with 4 jobs it must be 0.001 to 2.5 s"),
        ([job(), job()], {"spin_s": -1.0}, "it must be 0 to 1 s"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_starts(experiments, options, message, monkeypatch):
    monkeypatch.setattr(jobs, "together", None)
    with pytest.raises(DescriptionError, match=message):
        jobs.run_jobs(experiments, **options)


def test_the_simulated_gang_costs_barriers_their_share_and_local_turns_much_more():
    points = [jobs._point_of(job(), 0)] * 2
    gang = jobs._simulated(points, ["a", "b"], "gang", Quanta.gang(2, 2, 0.1))
    opposite = jobs._simulated(points, ["a", "b"], "local", Quanta(2, 100_000_000, (0, 100_000_000)))
    assert [run.params for run in gang] == [{"job": name, "schedule": "gang", "on": "sim"} for name in "ab"]
    assert all(1.4 < run.slowdown_dedicated <= 2.3 for run in gang)  # the program starts or ends within a quantum
    assert all(run.slowdown_dedicated > 20 for run in opposite)  # one iteration a quantum
    assert all(run.slowdown == run.slowdown_dedicated / 2 for run in [*gang, *opposite])


def test_skew_is_between_ranks_of_one_switch_and_lateness_from_when_it_was_due():
    switched = [
        Switched(1_000_000, 0, 1, 1_050_000, 1_100_000),
        Switched(1_000_000, 1, 1, 1_060_000, 1_140_000),
        Switched(2_000_000, 0, 0, 2_050_000, 2_100_000),
        Switched(2_000_000, 1, 0, None, None),
    ]
    found = summary(switched, 0.001)
    assert found == pytest.approx(
        {
            "count": 2,
            "skew_mean_s": 20e-6,
            "skew_max_s": 40e-6,
            "late_mean_s": 120e-6,
            "late_max_s": 140e-6,
            "quantum_s": 0.001,
        }
    )
    assert summary([], 0.001) is None


def test_jobs_of_one_name_are_told_apart():
    assert jobs._names([job("a"), job("b"), job("a"), job("a")]) == ["a", "b", "a #2", "a #3"]


def test_a_round_trip_takes_some_time():
    assert 0 < jobs.round_trip_s() < 1
