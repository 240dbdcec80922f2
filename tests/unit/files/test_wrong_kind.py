"""A file that was given to the wrong verb is named, with the command that takes it."""

from pathlib import Path

import pytest
import reported

from crosswind import Disturbance, Experiment, Links, Measurement, Platform, fit_contention
from crosswind.errors import DescriptionError

EXAMPLES = Path(__file__).parents[3] / "examples"
TREE, STUDY, DAEMONS = (EXAMPLES / f"{name}.toml" for name in ("fork_of_table_4", "fork_graph", "daemons_of_table_1"))


@pytest.mark.parametrize(
    ("read", "file", "told", "command"),
    [
        (Experiment.load, TREE, "is a platform, not an experiment", "crosswind plan"),
        (Platform.load, STUDY, "is an experiment, not a platform", "crosswind run"),
        (Experiment.load, DAEMONS, "is a disturbance, not an experiment", "crosswind inject"),
        (Disturbance.load, TREE, "is a platform, not a disturbance", "crosswind plan"),
        (Measurement.load, STUDY, "is an experiment, not a measurement", "crosswind run"),
        (Links.load, TREE, "is a platform, not links of a cluster", "crosswind plan"),
        (lambda file: fit_contention([file]), TREE, "is a platform, not a table of flows", "crosswind plan"),
    ],
)
def test_a_file_of_another_kind_is_named_with_the_command_that_takes_it(read, file, told, command):
    with pytest.raises(DescriptionError) as caught:
        read(file)
    assert str(caught.value) == f"{file} {told}"
    assert f"`{command} " in caught.value.hint
    assert str(file) in caught.value.hint


def test_a_measurement_given_as_a_platform_says_that_it_is_fitted_first(tmp_path):
    file = tmp_path / "m.parquet"
    reported.measured().save(file)
    with pytest.raises(DescriptionError) as caught:
        Platform.load(file)
    assert f"run `crosswind fit {file} -o platform.toml` first" in caught.value.hint


def test_a_file_of_the_right_kind_keeps_its_own_error(tmp_path):
    file = tmp_path / "p.toml"
    file.write_text('schema_version = 1\nname = "t"\n[[node]]\nname = "a"\ncompute_per_s = -1\n')
    with pytest.raises(DescriptionError, match="compute_per_s is -1"):
        Platform.load(file)


@pytest.mark.parametrize("text", ["num_ranks 2\n", "// made by hand\n/* two\nranks */\nnum_ranks 2\nrank 0 {\n}\n"])
def test_a_goal_schedule_is_run_by_an_experiment_that_names_it(tmp_path, text):
    file = tmp_path / "ring.goal"
    file.write_text(text)
    with pytest.raises(DescriptionError) as caught:
        Experiment.load(file)
    assert str(caught.value) == f"{file} is a GOAL schedule, not an experiment"
    assert f'`parameters = {{ file = "{file}" }}`' in caught.value.hint


def test_a_file_of_blanks_and_comments_is_told_apart_at_once(tmp_path):
    file = tmp_path / "blank.toml"
    file.write_text("/* */ " * 2000 + " " * 20_000 + "x")
    with pytest.raises(DescriptionError, match="blank"):
        Experiment.load(file)
