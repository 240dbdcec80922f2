"""Programs under disturbances, from the file to the figures: examples, laws, refusals."""

import dataclasses
import json
from pathlib import Path

import pytest

import crosswind
from crosswind import DescriptionError, Disturbance, Experiment, Runs
from crosswind.lab.papers.scheduling_and_communication.daemons import disturbance as table_1

EXAMPLES = Path(__file__).parents[3] / "examples"
BARRIERS = {"iterations": 40, "work_s": 0.0071, "dimensions": 0, "allreduce": "none", "barrier": True}
LOCAL = {"kind": "local", "cause": "other", "quantum_s": 0.1, "jobs": 2}
CRON = {"kind": "daemon", "cause": "cron", "interval_s": 0.5, "duration_s": 0.01}
UPDATE = {"kind": "daemon", "cause": "update", "interval_s": 0.3, "duration_s": 0.005}


def described(*sources, ranks=8, parameters=BARRIERS, **other):
    workload = {"kind": "program", "program": "bsp", "ranks": ranks, "parameters": parameters}
    disturbance = {"disturbance": {"schema_version": 1, "name": "d", "source": list(sources)}} if sources else {}
    return Experiment.from_dict({"schema_version": 1, "name": "e", "workload": workload, **disturbance, **other})


def test_the_example_of_local_scheduling_is_what_the_closed_form_says():
    runs = crosswind.run(EXAMPLES / "local_scheduling.toml")
    assert len(runs) == 24
    for run in runs:
        quantum = run.params["disturbance.source[0].quantum_s"]
        if run.params["disturbance.source[0].phases"] == "aligned":
            assert 0.9 < run.slowdown <= 1.0
        elif quantum > 0.02:
            assert run.slowdown == pytest.approx((quantum + 0.0071) / (2 * 0.0071), rel=0.03)


@pytest.mark.parametrize("name", ["em3d_under_daemons", "barriers_under_daemons"])
def test_an_example_under_the_daemons_of_table_1_runs(name):
    length = {"steps": 3} if name.startswith("em3d") else {"iterations": 50}
    (path, value), *_ = [(f"workload.parameters.{key}", value) for key, value in length.items()]
    runs = crosswind.run(Experiment.load(EXAMPLES / f"{name}.toml").fixed({path: value}))
    assert len(runs) == 5
    # A daemon may happen to spare a rank a wait for a credit: never much.
    assert all(run.slowdown > 0.999 and run.data["disturbance"] == "daemons of table 1" for run in runs)


def test_the_example_file_of_table_1_is_the_table():
    assert (
        Disturbance.load(EXAMPLES / "daemons_of_table_1.toml").to_dict() == Disturbance.from_dict(table_1()).to_dict()
    )


def test_the_result_is_the_same_whatever_the_number_of_workers_and_is_read_back(tmp_path):
    experiment = described(LOCAL, repetitions=3, sweep={"disturbance.source[0].quantum_s": [0.01, 0.05, 0.1]})
    files = []
    for workers in (1, 2, 5):
        files.append(tmp_path / f"{workers}.json")
        crosswind.run(experiment, workers=workers, out=files[-1])
    assert files[0].read_bytes() == files[1].read_bytes() == files[2].read_bytes()
    runs = Runs.load(files[0])
    assert runs.kind == "program"
    assert [len(alike) for alike in runs.by_point()] == [3, 3, 3]
    assert runs.to_pandas()["slowdown"].min() > 1.0


def test_what_was_run_is_not_run_again(tmp_path, monkeypatch):
    from crosswind.run import program

    experiment = described(LOCAL, repetitions=4)
    whole = crosswind.run(experiment, out=tmp_path / "runs.json")
    document = json.loads((tmp_path / "runs.json").read_text())
    (tmp_path / "runs.json").write_text(json.dumps({**document, "runs": document["runs"][:3]}))
    asked = []
    read = program.run_of
    monkeypatch.setattr(program, "run_of", lambda point, *found: asked.append(point.seed) or read(point, *found))
    again = crosswind.run(experiment, out=tmp_path / "runs.json", resume=True)
    assert asked == [4]
    assert again.summary() == whole.summary()


class Pair:
    """One program, undisturbed and disturbed: a grid that no sweep describes."""

    name, kind = "pair", "program"

    def __init__(self, iterations):
        length = {"parameters": {**BARRIERS, "iterations": iterations}}
        self.of = [described(**length), described(LOCAL, **length)]

    def __len__(self):
        return 2

    def points(self):
        for number, experiment in enumerate(self.of):
            yield dataclasses.replace(experiment.point(0), number=number, params={"disturbed": bool(number)})

    def digest(self, on):
        return on + self.name


def test_points_that_no_sweep_describes_run_and_a_resumed_one_that_nothing_disturbs_is_what_others_are_held_against(
    tmp_path,
):
    whole = crosswind.run(Pair(40), workers=1)
    assert [run.params["disturbed"] for run in whole] == [False, True]
    assert whole[1].dedicated_s == whole[0].makespan_s
    # Of a length that this process has not simulated; the file says that it took twice as long.
    grid, out = Pair(41), tmp_path / "runs.json"
    kept = whole[0].summary()
    kept |= {name: 2.0 * kept[name] for name in ("makespan_s", "dedicated_s")}
    Runs(grid.name, "sim", [crosswind.ProgramRun(kept)], grid.digest("sim"), grid.kind).save(out)
    resumed = crosswind.run(grid, workers=1, out=out, resume=True)
    assert resumed[1].dedicated_s == 2.0 * whole[0].makespan_s


def test_nothing_that_disturbs_is_dedicated():
    (run,) = crosswind.run(described())
    assert run.makespan_s == run.dedicated_s
    assert (run.slowdown, run.data["disturbance"], run.data["away_s"]["max"]) == (1.0, None, 0.0)


def test_a_trace_of_a_program_is_refused():
    with pytest.raises(DescriptionError, match="trace is of the nodes of a farm"):
        crosswind.run(described(LOCAL), trace=True)


def test_a_rank_that_is_not_there_is_named():
    job = {"kind": "job", "ranks": [8], "share": 0.5, "slice_s": 0.1}
    with pytest.raises(DescriptionError, match=r"ranks\[0\] is 8"):
        crosswind.run(described(job))


def test_a_missing_disturbance_says_which_file_named_it(tmp_path):
    (tmp_path / "e.toml").write_text(
        'schema_version = 1\nname = "e"\ndisturbance = "d.toml"\n'
        '[workload]\nkind = "program"\nprogram = "em3d"\nranks = 4\n'
    )
    with pytest.raises(DescriptionError, match="no such file") as caught:
        crosswind.run(tmp_path / "e.toml")
    assert "names it as disturbance" in caught.value.hint


def test_blame_shares_out_the_whole_cost_and_a_cause_costs_what_its_rate_says(tmp_path):
    found = crosswind.blame(described(CRON, UPDATE), seeds=4, out=tmp_path / "blame.json")
    assert sum(one.part for one in found.by_cause) == pytest.approx(1.0)
    assert found.cost.mean > 0
    assert found.aligned_cost.mean < found.cost.mean
    by_hand = [
        crosswind.run(described(*sources, seed=seed))[0].makespan_s
        for sources in ((CRON, UPDATE), (UPDATE,))
        for seed in (1, 2, 3, 4)
    ]
    removed = sum(by_hand[:4]) / 4 - sum(by_hand[4:]) / 4
    assert found.by_cause[0].removed.mean == pytest.approx(removed, rel=1e-9, abs=1e-12)


def test_blame_goes_on_where_it_was_stopped_and_takes_more_seeds(tmp_path):
    experiment, out = described(CRON, UPDATE), tmp_path / "blame.json"
    crosswind.blame(experiment, seeds=2, out=out)
    more = crosswind.blame(experiment, seeds=3, out=out, resume=True)
    assert more.seeds == [1, 2, 3]
    assert more.summary() == crosswind.blame(experiment, seeds=3, workers=1).summary()
    with pytest.raises(DescriptionError, match="holds runs of another experiment"):
        crosswind.blame(described(CRON), seeds=2, out=out, resume=True)


FARM = {
    "schema_version": 1,
    "name": "farm",
    "platform": {"schema_version": 1, "name": "p", "node": [{"name": "r", "compute_per_s": 2.0}]},
    "workload": {"kind": "farm", "tasks": 10, "task_size_mb": 1.0, "task_work": 1.0},
}


@pytest.mark.parametrize(
    ("experiment", "says"),
    [
        (Experiment.from_dict(FARM), "is of kind farm; blame is of a program"),
        (described(), "has no disturbance"),
        (described(CRON, sweep={"seed": [1, 2]}), "blame is of one point; the sweep of 'e' makes 2"),
    ],
    ids=["farm", "undisturbed", "sweep"],
)
def test_blame_says_why_there_is_nothing_to_blame(experiment, says):
    with pytest.raises(DescriptionError, match=says):
        crosswind.blame(experiment)


def test_blame_of_no_seed_is_refused():
    with pytest.raises(DescriptionError, match="seeds is 0"):
        crosswind.blame(described(CRON), seeds=0)


def sorted_by(packets, local=LOCAL, *, workload=None, **policy):
    keys = {"kind": "program", "program": "sample", "ranks": 8, "parameters": {"keys_per_rank": 512}}
    policy = {"window_packets": packets, **policy}
    disturbance = {"schema_version": 1, "name": "d", "source": [local]} if local else {}
    return Experiment.from_dict(
        {
            "schema_version": 1,
            "name": "e",
            "workload": {**keys, **(workload or {})},
            "policy": policy,
            **({"disturbance": disturbance} if local else {}),
            "sweep": {"seed": [1, 2, 3]},
        }
    )


def test_the_seed_of_the_data_keeps_them_while_the_disturbance_is_drawn_anew():
    alone = [run.makespan_s for run in crosswind.run(sorted_by(8, None, workload={"seed": 5}))]
    others = [run.makespan_s for run in crosswind.run(sorted_by(8, None))]
    assert alone[0] == alone[1] == alone[2]
    assert len(set(others)) == 3
    runs = crosswind.run(sorted_by(8, workload={"seed": 5}))
    assert [run.dedicated_s for run in runs] == alone
    assert [run.seed for run in runs] == [1, 2, 3]
    assert len({run.makespan_s for run in runs}) == 3
    (known,) = {run.makespan_s for run in crosswind.run(sorted_by(8, None, workload={"seed": 1}))}
    assert known == others[0]


def stalled(experiment):
    return sum(run.data["stalled_s"] for run in crosswind.run(experiment))


def test_a_daemon_that_takes_packets_off_the_network_spares_senders_the_wait():
    quick = {**LOCAL, "quantum_s": 0.005}
    waits = stalled(sorted_by(1, quick))
    assert stalled(sorted_by(1, quick, credit="extracted")) > 0.5 * waits
    assert stalled(sorted_by(1, {**quick, "polls": True}, credit="extracted")) < 0.1 * waits


def test_a_window_that_opens_for_a_rank_that_is_away_spares_senders_the_wait():
    quick = {**LOCAL, "quantum_s": 0.005}
    waits = stalled(sorted_by(1, quick))
    assert stalled(sorted_by(1, quick, window="follow", away_packets=512)) < 0.5 * waits
