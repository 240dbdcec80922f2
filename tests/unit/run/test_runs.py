"""Runs: the grid spread over threads, kept in a file, taken up again; and what can be done with them."""

import json

import pytest
import reported

from crosswind import DescriptionError, Experiment, InfeasibleError, Runs
from crosswind.run import grid, simulation

ROOT = {"schema_version": 1, "name": "p", "node": [{"name": "r", "compute_per_s": 2.0}]}
FARM = {"kind": "farm", "tasks": 10, "task_size_mb": 1.0, "task_work": 1.0}


def experiment(works=tuple(range(1, 13)), **other):
    sweep = {"workload.task_work": list(works), "policy.order": ["planned", "root-only"]}
    return Experiment.from_dict(
        {"schema_version": 1, "name": "e", "platform": ROOT, "workload": FARM, "sweep": sweep} | other
    )


@pytest.fixture
def simulator(monkeypatch):
    """Stand behind the simulator: notes which points are done, and may stop at one as ctrl-C does."""

    class Simulator:
        def __init__(self):
            self.asked = []
            self.fail_at = None
            self.read = simulation.run_of

        def __call__(self, point, text, columns):
            self.asked.append(point.number)
            if self.fail_at == point.number:
                raise KeyboardInterrupt
            return self.read(point, text, columns)

    found = Simulator()
    monkeypatch.setattr(simulation, "run_of", found)
    return found


def test_the_result_is_the_same_whatever_the_number_of_workers(simulator, tmp_path):
    files = []
    for workers in (1, 2, 7):
        out = tmp_path / f"{workers}.json"
        grid.run(experiment(), workers=workers, out=out)
        files.append(out.read_bytes())
    assert files[0] == files[1] == files[2]
    assert [run["params"]["workload.task_work"] for run in json.loads(files[0])["runs"]][:4] == [1, 1, 2, 2]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_point_that_cannot_be_simulated_is_named_whichever_thread_finds_it(workers):
    """The description is right: only in its course does a run turn out to last for thousands of years."""
    with pytest.raises(InfeasibleError):
        grid.run(experiment((1, 1e12)), workers=workers)


@pytest.mark.parametrize("workers", [1, 3])
def test_what_was_finished_before_ctrl_c_is_kept_and_not_done_again(simulator, tmp_path, workers):
    out, whole = tmp_path / "runs.json", tmp_path / "whole.json"
    simulator.fail_at = 9
    with pytest.raises(KeyboardInterrupt):
        grid.run(experiment(), workers=workers, out=out)
    kept = Runs.load(out)
    assert 0 < len(kept) < 24
    simulator.fail_at, simulator.asked = None, []
    resumed = grid.run(experiment(), workers=workers, out=out, resume=True)
    assert len(simulator.asked) == 24 - len(kept)
    grid.run(experiment(), out=whole)
    assert out.read_bytes() == whole.read_bytes()
    assert len(resumed) == 24


def test_runs_of_another_experiment_are_not_taken_up(simulator, tmp_path):
    out = tmp_path / "runs.json"
    grid.run(experiment((1,)), out=out)
    before = out.read_bytes()
    with pytest.raises(DescriptionError, match="holds runs of another experiment"):
        grid.run(experiment((1, 2)), out=out, resume=True)
    assert out.read_bytes() == before


def test_runs_of_another_experiment_are_replaced_only_when_forced(simulator, tmp_path):
    out = tmp_path / "runs.json"
    grid.run(experiment((1,)), out=out)
    before = out.read_bytes()
    simulator.asked = []
    with pytest.raises(DescriptionError, match=r"runs of an experiment .*, but made with other settings or files"):
        grid.run(experiment((1, 2)), out=out)
    with pytest.raises(DescriptionError, match="but of another: 'e', on sim"):
        grid.run(experiment((1,), name="f"), out=out)
    assert (simulator.asked, out.read_bytes()) == ([], before)
    assert len(grid.run(experiment((1, 2)), out=out, force=True)) == len(Runs.load(out)) == 4


@pytest.mark.parametrize("forced", [False, True])
def test_a_finished_file_stays_until_the_same_experiment_has_as_many_runs_again(simulator, tmp_path, forced):
    out = tmp_path / "runs.json"
    whole = grid.run(experiment(), out=out)
    simulator.fail_at = 9
    with pytest.raises(KeyboardInterrupt):
        grid.run(experiment(), workers=1, out=out, force=forced)
    assert Runs.load(out).summary() == whole.summary()
    simulator.fail_at = 0
    with pytest.raises(KeyboardInterrupt):
        grid.run(experiment((1,)), workers=1, out=out, force=True)  # another experiment, of which there is nothing yet
    assert Runs.load(out).summary() == whole.summary()


def test_an_error_of_one_point_ends_the_run_and_keeps_the_others(simulator, tmp_path, monkeypatch):
    def failing(point, text, columns):
        if point.number == 5:
            raise DescriptionError("no", "odd")
        return simulator(point, text, columns)

    monkeypatch.setattr(simulation, "run_of", failing)
    out = tmp_path / "runs.json"
    with pytest.raises(DescriptionError, match="no"):
        grid.run(experiment(), workers=1, out=out)
    assert len(Runs.load(out)) == 5


def test_progress_says_how_far_it_is(simulator):
    told = []
    grid.run(experiment((1, 2)), workers=2, progress=lambda fraction, message: told.append((fraction, message)))
    assert [fraction for fraction, _ in told] == [0.25, 0.5, 0.75, 1.0]
    assert told[-1][1] == "4 of 4 runs"


@pytest.mark.parametrize(("wrong", "says"), [({"on": "dask"}, "on is 'dask'"), ({"workers": 0}, "workers is 0")])
def test_a_wrong_argument_is_named(simulator, wrong, says):
    with pytest.raises(DescriptionError, match=says):
        grid.run(experiment(), **wrong)


def test_resume_without_a_file_is_refused(simulator):
    with pytest.raises(DescriptionError, match="resume is given without out"):
        grid.run(experiment(), resume=True)


def test_runs_are_read_back_as_they_were_written(tmp_path):
    runs = reported.ran()
    runs.save(tmp_path / "runs.json")
    again = Runs.load(tmp_path / "runs.json")
    assert again.summary() == runs.summary()
    assert again.to_pandas().equals(runs.to_pandas())


def test_runs_are_a_table_with_what_was_swept(tmp_path):
    table = reported.ran().to_pandas()
    assert list(table.columns[:2]) == ["workload.task_work", "policy.order"]
    assert table["of_root_only"].iloc[0] == pytest.approx(table["makespan_s"].iloc[0] * 1.81 / 1000)
    assert reported.ran().to_polars().height == len(table)


def test_hostile_names_stay_text_in_a_notebook():
    assert "<img" not in reported.ran(hostile=True)._repr_html_()


@pytest.mark.parametrize(
    "broken",
    ["", "[]", "{", '{"schema_version": 2, "experiment": "e", "on": "sim", "runs": []}', '{"runs": 7}'],
)
def test_a_file_that_holds_no_runs_says_what_is_wrong(tmp_path, broken):
    path = tmp_path / "runs.json"
    path.write_text(broken)
    with pytest.raises(DescriptionError, match=r"runs\.json"):
        Runs.load(path)


def test_a_farm_whose_tasks_are_not_drawn_is_simulated_once():
    same = _farm_with(task_work=5.0)
    drawn = _farm_with(task_work={"distribution": "uniform", "low": 3.0, "high": 7.0})
    assert (same.is_drawn, len(same), len(grid.run(same))) == (False, 4, 1)
    assert (drawn.is_drawn, len(grid.run(drawn))) == (True, 4)
    swept = Experiment.from_dict({**same.to_dict(), "sweep": {"workload.task_work": [1.0, 2.0]}})
    assert len(grid.run(swept)) == 2


def _farm_with(task_work):
    root = {"name": "r", "compute_per_s": 2.0}
    pair = {"schema_version": 1, "name": "pair", "node": [root]}
    farm = {"kind": "farm", "tasks": 20, "task_size_mb": 1.0, "task_work": task_work}
    described = {"schema_version": 1, "name": "four", "platform": pair, "workload": farm, "repetitions": 4}
    return Experiment.from_dict(described)
