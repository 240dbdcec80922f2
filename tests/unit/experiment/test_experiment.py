"""Experiments: the files that they name, the grid that they make, and what a wrong one is told."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind import DescriptionError, Disturbance, Experiment, Platform, _core

PLATFORM = 'schema_version = 1\nname = "p"\n[[node]]\nname = "r"\ncompute_per_s = 2.0\n'
HEAD = 'schema_version = 1\nname = "e"\nplatform = "p.toml"\n'
FARM = '[workload]\nkind = "farm"\ntasks = 3\ntask_size_mb = 2.0\ntask_work = 5.0\n'


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "p.toml").write_text(PLATFORM)
    (tmp_path / "q.toml").write_text(PLATFORM.replace('"p"', '"q"'))
    (tmp_path / "tasks.csv").write_text("size_mb,work\n1,2\n3,4\n")
    return tmp_path


def written(directory, text):
    path = directory / "e.toml"
    path.write_text(text)
    return path


def test_paths_count_from_the_file_that_names_them(directory, monkeypatch, tmp_path_factory):
    path = written(directory, HEAD + '[workload]\nkind = "farm"\ntasks_file = "tasks.csv"\n')
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    point = next(Experiment.load(path).points())
    assert point.platform.name == "p"
    assert point.tasks_csv == (directory / "tasks.csv").read_bytes()
    assert point.description["workload"]["tasks_file"] == str(directory / "tasks.csv")


@pytest.mark.parametrize("kind", [Platform, Disturbance, Experiment])
def test_what_is_described_is_read_as_json_where_the_name_of_its_file_says_so(directory, kind):
    described = {
        Platform: PLATFORM,
        Disturbance: 'schema_version = 1\nname = "d"\n[[source]]\nkind = "coscheduled"\nquantum_s = 0.1\n',
        Experiment: HEAD + FARM,
    }[kind]
    whole = kind.from_toml(described).to_dict()
    (directory / "same.json").write_text(json.dumps(whole))
    assert kind.load(directory / "same.json").to_dict() == whole
    (directory / "other.json").write_text(described)
    with pytest.raises(DescriptionError, match=r"other\.json"):
        kind.load(directory / "other.json")


def test_a_sweep_over_platforms_reads_each(directory):
    path = written(directory, HEAD + FARM + '[sweep]\nplatform = ["p.toml", "q.toml"]\n"policy.order" = ["planned"]\n')
    points = list(Experiment.load(path).points())
    assert [point.platform.name for point in points] == ["p", "q"]
    assert [point.params for point in points] == [
        {"platform": name, "policy.order": "planned"} for name in ("p.toml", "q.toml")
    ]


@pytest.mark.parametrize("missing", ["p.toml", "q.toml", "tasks.csv"])
def test_a_missing_file_is_found_before_anything_runs(directory, missing):
    source = FARM if missing != "tasks.csv" else '[workload]\nkind = "farm"\ntasks_file = "tasks.csv"\n'
    path = written(directory, HEAD + source + '[sweep]\nplatform = ["p.toml", "q.toml"]\n')
    (directory / missing).unlink()
    with pytest.raises(DescriptionError, match=f"{missing}: no such file"):
        Experiment.load(path).check_files()


@pytest.mark.parametrize(
    "change",
    [
        lambda d: written(d, (d / "e.toml").read_text() + "[policy]\nbuffer_tasks = 3\n"),
        lambda d: (d / "p.toml").write_text(PLATFORM.replace("2.0", "3.0")),
        lambda d: (d / "tasks.csv").write_text("size_mb,work\n1,2\n3,5\n"),
    ],
)
def test_the_digest_tells_any_change_of_any_file(directory, change):
    path = written(directory, HEAD + '[workload]\nkind = "farm"\ntasks_file = "tasks.csv"\n')
    before = Experiment.load(path).digest("sim")
    assert Experiment.load(path).digest("sim") == before
    assert Experiment.load(path).digest("local") != before
    change(directory)
    assert Experiment.load(path).digest("sim") != before


def test_what_is_fixed_is_no_longer_swept(directory):
    path = written(directory, HEAD + FARM + '[sweep]\n"policy.order" = ["planned", "arrival"]\nseed = [1, 2]\n')
    fixed = Experiment.load(path).fixed({"policy.order": "compute", "workload.task_work": 7})
    points = list(fixed.points())
    assert [point.description["policy"]["order"] for point in points] == ["compute", "compute"]
    assert {point.description["workload"]["task_work"] for point in points} == {7.0}
    with pytest.raises(DescriptionError, match=r"policy.ordr cannot be set; the nearest that can is `policy.order`"):
        fixed.fixed({"policy.ordr": 1})


def test_repetitions_are_set_as_any_other_field(directory):
    path = written(directory, "repetitions = 3\n" + HEAD + FARM + '[sweep]\n"policy.order" = ["planned", "arrival"]\n')
    experiment = Experiment.load(path)
    assert (len(experiment), len(experiment.fixed({"repetitions": 1})), len(experiment.fixed({"repetitions": 5}))) == (
        6,
        2,
        10,
    )
    for value in (0, -1, 1.5, "many"):
        with pytest.raises(DescriptionError, match=r"^repetitions "):
            experiment.fixed({"repetitions": value})


@pytest.mark.parametrize(
    ("field", "value", "message", "hint"),
    [
        ("policy.order", ["planned", "arrival"], 'policy.order cannot be ["planned","arrival"]', "[sweep]"),
        ("repetitions", [1, 2], "repetitions cannot be [1,2]", "set one value"),
        ("policy.order", 7, "policy.order ", ""),
        ("workload.arrival_rate", 3, "workload.arrival_rate cannot be set", "these can be set"),
        ("workload.task", 3, "the nearest that can is `workload.tasks`", "these can be set"),
    ],
)
def test_a_value_that_cannot_be_set_is_refused_in_terms_of_the_setting_and_not_of_the_file(
    directory, field, value, message, hint
):
    experiment = Experiment.load(written(directory, HEAD + FARM))
    with pytest.raises(DescriptionError) as refused:
        experiment.fixed({field: value})
    assert message in str(refused.value)
    assert hint in (refused.value.hint or "")
    assert "TOML" not in (refused.value.hint or "")
    assert "tasks_file`" not in str(refused.value)


def test_an_experiment_shows_itself_in_a_notebook(directory):
    path = written(directory, HEAD.replace('"e"', '"<b>"') + FARM + '[sweep]\n"policy.order" = ["planned"]\n')
    shown = Experiment.load(path)._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "workload.tasks" in shown


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ["tasks", "task_size_mb", "task_work", "tasks_file", "result_size_mb", "order", "ports", "buffer_tasks"]
PATHS = ["seed", "platform", *(f"{s}.{f}" for s in ("workload", "policy", "execution") for f in FIELDS)]


def accepted(description):
    """Return the experiment, or None when it was refused with a place."""
    refused = []
    with contextlib.suppress(DescriptionError):
        try:
            return Experiment.from_dict(description)
        except DescriptionError as error:
            refused.append(str(error))
            raise
    assert refused[0].startswith("experiment")
    return None


@given(st.sampled_from(["workload", "policy", "execution", "sweep", "seed", "platform", "extra"]), VALUES)
def test_any_value_in_any_place_is_answered(place, value):
    description = json.loads(
        '{"schema_version": 1, "name": "e", "platform": "p.toml", '
        '"workload": {"kind": "farm", "tasks": 3, "task_size_mb": 2, "task_work": 5}}'
    )
    description[place] = value
    experiment = accepted(description)
    if experiment is not None:
        assert Experiment.from_dict(experiment.to_dict()).to_dict() == experiment.to_dict()


@given(st.sampled_from(PATHS), st.lists(VALUES, max_size=3))
def test_any_sweep_is_answered_before_anything_runs(path, values):
    farm = {"kind": "farm", "tasks": 3, "task_size_mb": 2, "task_work": 5}
    root = {"schema_version": 1, "name": "p", "node": [{"name": "r", "compute_per_s": 1}]}
    description = {"schema_version": 1, "name": "e", "platform": root, "workload": farm, "sweep": {path: values}}
    experiment = accepted(description)
    if experiment is not None:
        assert len(experiment) == len(values)


PROCESSOR = """schema_version = 1
name = "pp"
[network]
link_mb_per_s = 100.0
[network.processor]
platform = "platform.toml"
{node}
[workload]
kind = "streams"
hosts = 2
[[workload.stream]]
name = "a"
class = "local"
from = 0
to = 1
message_bytes = 8192
"""
MEASURED = """schema_version = 1
name = "two"
[[node]]
name = "here"
compute_per_s = 1.0
[[node]]
name = "there"
parent = "here"
compute_per_s = 1.0
receive_limit_mb_per_s = 100.0
ir_receive_s_per_mb = 0.02
ir_send_s_per_mb = 0.01
"""


def with_processor(tmp_path, node="", platform=MEASURED):
    (tmp_path / "platform.toml").write_text(platform)
    (tmp_path / "experiment.toml").write_text(PROCESSOR.format(node=node))
    return Experiment.load(tmp_path / "experiment.toml")


@pytest.mark.parametrize("node", ["", 'node = "there"'])
def test_what_a_message_takes_of_a_processor_comes_from_a_measured_platform(tmp_path, node):
    experiment = with_processor(tmp_path, node)
    experiment.check_files()
    assert tmp_path / "platform.toml" in experiment.files
    (point,) = experiment.points()
    processor = point.description["network"]["processor"]
    assert (processor["ir_send_s_per_mb"], processor["ir_receive_s_per_mb"]) == (0.01, 0.02)
    # 8 frames through processors that take 10 and 20 ms for a MB, the first of them alone, the others behind it.
    sent, received = 1024e-6 * 0.01, 8192e-6 * 0.02
    (stream,) = json.loads(_core.simulate_streams(json.dumps(point.description)))["streams"]
    assert stream["alone_s"] / 100 > sent + received


@pytest.mark.parametrize(
    ("node", "platform", "said"),
    [
        ('node = "nowhere"', MEASURED, 'network.processor.node is "nowhere"; platform.toml has there below its root'),
        (
            "",
            MEASURED + MEASURED.split("[[node]]", 2)[2].join(["[[node]]", ""]).replace('"there"', '"third"'),
            "missing",
        ),
    ],
)
def test_a_node_that_the_platform_does_not_have_is_refused_before_anything_runs(tmp_path, node, platform, said):
    with pytest.raises(DescriptionError, match=said):
        with_processor(tmp_path, node, platform).check_files()
