"""What users forget to type is recognised: the hint is the line that they meant."""

import pytest

from crosswind.cli import app
from crosswind.cli.settings import set_fields, settings_of
from crosswind.errors import DescriptionError
from crosswind.experiment import Experiment

GOAL = "num_ranks 2\nrank 0 {\nl1: send 100b to 1 tag 1\n}\nrank 1 {\nl1: recv 100b from 0 tag 1\n}\n"
STUDY = {
    "schema_version": 1,
    "name": "study",
    "platform": {"schema_version": 1, "name": "one", "node": [{"name": "a", "compute_per_s": 1}]},
    "workload": {"kind": "farm", "tasks": 10, "task_size_mb": 1, "task_work": 1},
}


def refused(*words):
    with pytest.raises(DescriptionError) as error:
        app(list(words), prog_name="crosswind", standalone_mode=False)
    return str(error.value), error.value.hint


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("inject half.toml mpirun -n 2 ./job", "inject half.toml -- mpirun -n 2 ./job"),
        ("inject --pin half.toml --seed 3 ./job -x", "inject --pin half.toml --seed 3 -- ./job -x"),
        ("blame noise.toml ./job --steps=3", "blame noise.toml -- ./job --steps=3"),
        ("cost --of pid:1 ./job -n 100", "cost --of pid:1 -- ./job -n 100"),
        ("record -o app.trace mpirun -n 2 ./job", "record -o app.trace -- mpirun -n 2 ./job"),
        ("inject mpirun -n 2 ./job", "inject noise.toml -- mpirun -n 2 ./job"),
    ],
)
def test_a_command_without_dashes(typed, meant):
    """It was "No such option: -n", without a word of --."""
    _, hint = refused(*typed.split())
    assert hint.endswith(f"crosswind {meant}")


@pytest.mark.parametrize("verb", ["inject", "blame"])
def test_a_command_without_a_disturbance(verb):
    """It was "mpirun: no such file or directory"."""
    message, hint = refused(verb, "--ranks", "2", "--", "mpirun", "-n", "2", "./job")
    assert message == "the disturbance file is missing before --"
    assert f"`crosswind {verb} noise.toml --ranks 2 -- mpirun -n 2 ./job`" in hint
    assert "crosswind record" in hint


def test_a_number_without_pid():
    assert refused("cost", "--of", "1234")[1] == "--of pid:1234"


def test_no_target():
    assert refused("cost", "--", "./job")[0].startswith("no target: name the process")


def test_a_schedule_runs_with_its_network(tmp_path, capsys):
    """It was "is a GOAL schedule, not an experiment"; first "key with no value, expected `=`"."""
    (tmp_path / "ring.goal").write_text(GOAL)
    app(["run", str(tmp_path / "ring.goal"), "--network", "latency_s=0.1"], standalone_mode=False)
    shown = capsys.readouterr().out
    assert shown.startswith("The run takes 100 ms, ")
    assert "messages in packets of 16 bytes" in shown
    app(["run", str(tmp_path / "ring.goal"), "--network", "packet_bytes=1000000000"], standalone_mode=False)
    assert "packets of" not in capsys.readouterr().out
    message, _ = refused("run", str(tmp_path / "ring.goal"), "--network", "latenc_s=0.1")
    assert message.startswith("--network latenc_s=0.1: ")


def test_a_fault_on_the_command_line_is_called_one():
    study = Experiment.from_dict(STUDY)
    with pytest.raises(DescriptionError, match=r"^--set policy\.window=8: policy\.window cannot be set"):
        set_fields(study, settings_of(["policy.window=8"]))
    with pytest.raises(DescriptionError) as error:
        set_fields(study, settings_of(['policy.order=["planned","arrival"]']))
    assert error.value.hint == """several values: --set 'sweep.policy.order=["planned", "arrival"]'"""


def test_a_word_that_a_field_does_not_take_is_answered_with_those_that_it_does():
    blamed = "examples/barriers_under_daemons.toml"
    _, hint = refused("run", blamed, "--set", "policy.window=8")
    assert hint == "policy.window is fixed or follow; for a number: policy.window_packets"


def test_a_binary_schedule_is_called_one(tmp_path):
    (tmp_path / "ring.goal").write_bytes(bytes([2, 0, 0, 255]) * 20)
    message, hint = refused("run", str(tmp_path / "ring.goal"))
    assert message.endswith("is binary, and not a schedule of LogGOPSim's txt2bin")
    assert "the text" in hint


@pytest.mark.parametrize("words", [["run"], ["plan", "--task-size-mb", "1", "--task-work", "1"]])
def test_a_platform_of_another_simulator_is_called_xml(tmp_path, words):
    """It was "key with no value, expected `=`"."""
    (tmp_path / "sg.xml").write_text("<?xml version='1.0'?>\n<platform version='4.1'/>\n")
    message, hint = refused(words[0], str(tmp_path / "sg.xml"), *words[1:])
    assert "is XML, not a" in message
    assert "are not read" in hint


def test_every_field_of_a_file_can_be_set():
    given = ["repetitions=3", "name=mine", 'sweep.policy.order=["planned","arrival"]', "workload.tasks=20"]
    changed = set_fields(Experiment.from_dict(STUDY), settings_of(given))
    assert (len(changed), changed.name) == (6, "mine")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "workload.task_work=1e400",
            r"--set workload\.task_work=Infinity: workload\.task_work is inf; it must be finite",
        ),
        ("workload.task_work={distribution='exponential',mean=inf}", r"workload\.task_work\.mean is inf"),
        ("sweep.workload.task_work=[1,-1e999]", r"sweep\.workload\.task_work\[1\] is -inf"),
        ("node[b].link=3", r'node\[b\]\.receive_limit_mb_per_s is of "b", which is no node'),
    ],
)
def test_a_value_that_no_field_takes_is_refused_by_its_path(given, said):
    with pytest.raises(DescriptionError, match=said):
        set_fields(Experiment.from_dict(STUDY), settings_of([given]))


def test_tables_are_written_in_the_file():
    with pytest.raises(DescriptionError) as error:
        set_fields(Experiment.from_dict(STUDY), settings_of(['failure=[{"node":"a"}]']))
    assert error.value.hint.startswith("write [[failure]] tables in the experiment's file")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("e.toml", 'schema_version = 1\nname = "e"\n[workload]\nkind = "farm"\n', "is an experiment, not runs"),
        ("list.json", "[]", "is no JSON object; it must be runs of an experiment"),
        ("empty.json", "", "is empty; it must be runs of an experiment"),
    ],
)
def test_what_holds_no_runs_is_named(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    message, hint = refused("run", "--again", str(tmp_path / name))
    assert said in message
    assert "crosswind run" in hint


def test_a_field_that_is_set_twice_is_refused():
    with pytest.raises(DescriptionError, match="given twice"):
        settings_of(["workload.tasks=2", "workload.tasks=3"])
