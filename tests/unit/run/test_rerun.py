"""Runs made again from their file: the same to the last bit, and whatever is not the same is found."""

import json

import pytest

import crosswind
from crosswind import DescriptionError, Experiment, Runs
from crosswind.experiment import embedded
from crosswind.run import grid
from crosswind.run.rerun import run_again

NODES = [
    {"name": "r", "compute_per_s": 2.0},
    {"name": "a", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0, "ir_send_s_per_mb": 0.02},
]
PAIR = {"schema_version": 1, "name": "pair", "node": NODES}
WORK = {"distribution": "lognormal", "median": 1.0, "sigma": 0.7}
FARM = {"kind": "farm", "tasks": 50, "task_size_mb": 1.0, "task_work": WORK}
SWEEP = {"workload.task_size_mb": [0.5, 2.0], "policy.order": ["planned", "bandwidth"], "node[a].compute_per_s": [1, 9]}


@pytest.fixture
def study(tmp_path):
    """The directory of a study whose platform and tasks lie in files, and its runs."""
    (tmp_path / "pair.json").write_text(json.dumps(PAIR))
    (tmp_path / "tasks.csv").write_text("size_mb,work\n" + "".join(f"{1 + n % 3},{0.1 + n / 7}\n" for n in range(40)))
    description = {"schema_version": 1, "name": "study", "platform": "pair.json", "repetitions": 3}
    drawn = Experiment.from_dict(description | {"workload": FARM, "sweep": SWEEP}, tmp_path)
    grid.run(drawn, out=tmp_path / "drawn.json")
    listed = {"kind": "farm", "tasks_file": "tasks.csv"}
    sweep = {"policy.order": ["interference", "arrival"]}
    grid.run(
        Experiment.from_dict(description | {"workload": listed, "sweep": sweep}, tmp_path), out=tmp_path / "listed.json"
    )
    return tmp_path


@pytest.mark.parametrize("name", ["drawn.json", "listed.json"])
def test_every_number_is_the_same_without_the_files_and_from_another_directory(
    study, name, tmp_path_factory, monkeypatch
):
    (study / "pair.json").unlink()
    (study / "tasks.csv").unlink()
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    found = run_again(study / name)
    assert (found.verdict, found.differences, found.added) == ("same", [], [])
    assert found.same_version
    assert found.values > 10 * len(found.recorded) > 0
    assert found.now.summary() == Runs.load(study / name).summary()


def test_new_runs_are_the_same_bytes(study):
    run_again(study / "drawn.json", out=study / "again.json", workers=1)
    assert (study / "again.json").read_bytes() == (study / "drawn.json").read_bytes()


def edited(study, change):
    document = json.loads((study / "drawn.json").read_text())
    change(document)
    (study / "edited.json").write_text(json.dumps(document))
    return run_again(study / "edited.json")


def test_the_last_bit_of_a_number_is_noticed(study):
    def change(document):
        before = document["runs"][5]["nodes"][1]["busy_s"]
        document["runs"][5]["nodes"][1]["busy_s"] = float.fromhex(before.hex()) * (1 + 2**-52)

    found = edited(study, change)
    assert found.verdict == "different"
    ((seed, field),) = [(one.seed, one.field) for one in found.differences]
    assert (seed, field) == (found.recorded[5].seed, "nodes[1].busy_s")


def test_a_run_that_the_experiment_does_not_make_is_a_difference(study):
    def change(document):
        document["runs"][0]["seed"] = 99

    found = edited(study, change)
    assert [(one.field, one.seed, one.now) for one in found.differences] == [("run", 99, None)]


def test_a_run_that_is_there_twice_or_has_lost_a_node_is_a_difference(study):
    def twice(document):
        document["runs"].append(document["runs"][3])

    found = edited(study, twice)
    assert [(one.field, one.recorded, one.now) for one in found.differences] == [("run", "in the file again", None)]

    def fewer(document):
        del document["runs"][3]["nodes"][1]

    assert [(one.field, one.recorded, one.now) for one in edited(study, fewer).differences] == [("nodes.length", 1, 2)]


def test_a_file_without_runs_or_with_the_name_of_another_experiment_is_refused(study):
    with pytest.raises(DescriptionError, match="holds no runs"):
        edited(study, lambda document: document.update(runs=[]))
    with pytest.raises(DescriptionError, match="says that its runs are of 'other'; the experiment it holds is 'study'"):
        edited(study, lambda document: document.update(experiment="other"))


def test_another_experiment_in_the_file_gives_other_numbers(study):
    found = edited(
        study, lambda document: document["provenance"]["platforms"]["pair.json"]["node"][0].update(compute_per_s=3.0)
    )
    assert found.verdict == "different"
    assert {one.field for one in found.differences} >= {"makespan_s", "throughput_tasks_per_s"}


def test_words_of_warnings_may_change_and_new_fields_are_named(study):
    def change(document):
        for entry in document["runs"]:
            entry["warnings"] = [{"code": "odd", "message": "in other words", "hint": "none"}]
            del entry["bound_tasks_per_s"]

    document = json.loads((study / "drawn.json").read_text())
    change(document)
    (study / "edited.json").write_text(
        json.dumps(document | {"runs": [e | {"bound_tasks_per_s": None} for e in document["runs"]]})
    )
    found = run_again(study / "edited.json")
    assert {one.field for one in found.differences} == {"bound_tasks_per_s"}


def test_only_recorded_points_run_again_and_the_rest_is_counted(study):
    found = edited(study, lambda document: document.update(runs=document["runs"][:5]))
    assert (found.verdict, len(found.now), found.points) == ("same", 5, 24)


def test_the_version_of_then_is_kept_and_told(study):
    found = edited(study, lambda document: document["provenance"].update(versions=["0.1.9"]))
    assert (found.verdict, found.versions, found.same_version) == ("same", ["0.1.9"], False)
    assert found.to_dict()["version"] == crosswind.__version__


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"repetitions": 4}, "repetitions is 3 there, 4 now"),
        (
            {"sweep": SWEEP | {"workload.task_size_mb": [0.5, 3.0]}},
            r"sweep.workload.task_size_mb\[1\] is 2.0 there, 3.0 now",
        ),
        ({"platform": PAIR | {"name": "other"}}, "platform is"),
    ],
)
def test_resuming_another_study_names_what_differs(study, change, said):
    same = {"schema_version": 1, "name": "study", "platform": "pair.json", "repetitions": 3, "workload": FARM}
    other = Experiment.from_dict(same | {"sweep": SWEEP} | change, study)
    with pytest.raises(DescriptionError, match=said):
        grid.run(other, out=study / "drawn.json", resume=True)


def test_resumed_runs_name_both_versions(study):
    document = json.loads((study / "drawn.json").read_text())
    document["provenance"]["versions"], document["runs"] = ["0.1.9"], document["runs"][:3]
    (study / "part.json").write_text(json.dumps(document))
    experiment = Experiment.from_provenance(document["provenance"])
    done = grid.run(experiment, out=study / "part.json", resume=True)
    assert done.provenance["versions"] == ["0.1.9", crosswind.__version__]
    assert run_again(study / "part.json").verdict == "same"


def test_runs_that_were_not_simulated_and_files_without_an_experiment_are_refused(study):
    with pytest.raises(DescriptionError, match="measurements never repeat exactly"):
        edited(study, lambda document: document.update(on="local"))
    with pytest.raises(DescriptionError, match="holds no experiment"):
        edited(study, lambda document: document.pop("provenance"))


def test_a_damaged_file_inside_is_refused(study):
    document = json.loads((study / "listed.json").read_text())
    entry = document["provenance"]["files"]["tasks.csv"]
    other = embedded.embedded(b"size_mb,work\n1,1\n")
    for content in ("AAAA", "not base64!", other["content"]):
        entry["content"] = content
        (study / "edited.json").write_text(json.dumps(document))
        with pytest.raises(DescriptionError, match=r"tasks\.csv.*damaged"):
            run_again(study / "edited.json")


def test_a_file_too_large_to_keep_must_be_the_one_of_then(study, monkeypatch):
    monkeypatch.setattr(embedded, "MOST_BYTES", 10)
    monkeypatch.setattr(embedded.embedded, "__defaults__", (10,))
    listed = {"kind": "farm", "tasks_file": "tasks.csv"}
    description = {"schema_version": 1, "name": "study", "platform": "pair.json", "workload": listed}
    grid.run(Experiment.from_dict(description, study), out=study / "large.json")
    assert "content" not in json.loads((study / "large.json").read_text())["provenance"]["files"]["tasks.csv"]
    assert run_again(study / "large.json").verdict == "same"
    with (study / "tasks.csv").open("a") as file:
        file.write("1,1\n")
    with pytest.raises(DescriptionError, match="not the file that the runs were made from"):
        run_again(study / "large.json")
    (study / "tasks.csv").unlink()
    with pytest.raises(DescriptionError, match=r"tasks\.csv"):
        run_again(study / "large.json")
