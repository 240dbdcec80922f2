"""An option that changes nothing about what was given is refused, with the options that do."""

from __future__ import annotations

import pytest
from recorded_ranks import app_trace, write_profiles

from crosswind.cli import app
from crosswind.cli.blame import blame
from crosswind.errors import DescriptionError

EXPERIMENT = "examples/barriers_under_daemons.toml"
DAEMON = 'schema_version = 1\nname = "d"\n[[source]]\nkind = "daemon"\nduration_s = 0.001\ninterval_s = 1.0\n'


@pytest.fixture
def files(tmp_path):
    (tmp_path / "app.trace").write_bytes(app_trace()[0])
    (tmp_path / "daemon.toml").write_text(DAEMON)
    (tmp_path / "runs.json").write_text("{}")
    (tmp_path / "traces").mkdir()
    write_profiles(tmp_path / "traces", "late")
    names = {"trace": "app.trace", "traces": "traces", "disturbance": "daemon.toml", "runs": "runs.json"}
    return {kind: str(tmp_path / name) for kind, name in names.items()}


def refusal(*words):
    with pytest.raises(DescriptionError) as refused:
        app(list(words), standalone_mode=False)
    return str(refused.value), refused.value.hint


@pytest.mark.parametrize(
    "option",
    [
        ["--seeds", "5"],  # also where it is the default
        ["--set", "seed=1"],
        ["--resume"],
        ["--workers", "2"],
        ["--blocks", "5"],
        ["--cause", "cron"],
        ["--ranks", "4"],
        ["--pin"],
        ["--iterations", "re:x"],
        ["--limit-s", "9"],
    ],
)
@pytest.mark.parametrize("kind", ["trace", "traces"])
def test_blame_of_traces(files, kind, option):
    said, hint = refusal("blame", files[kind], *option)
    assert said == f"{option[0]} does not apply to traces"
    assert hint == "leave it out; these do: --out, --perfetto, --force, --json"


@pytest.mark.parametrize(
    "option",
    [["--blocks", "5"], ["--cause", "x"], ["--ranks", "2"], ["--pin"], ["--perfetto", "x"], ["--limit-s", "9"]],
)
def test_blame_of_an_experiment(option):
    assert refusal("blame", EXPERIMENT, *option)[0] == f"{option[0]} does not apply to an experiment"


@pytest.mark.parametrize(
    "option", [["--seeds", "5"], ["--set", "seed=1"], ["--resume"], ["--workers", "2"], ["--perfetto", "x"]]
)
def test_blame_of_a_command(files, option):
    said, _ = refusal("blame", files["disturbance"], *option, "--", "true")
    assert said == f"{option[0]} does not apply to a command"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dry-run", "--compare", "3"], "--compare does not apply to --dry-run"),
        (["--dry-run", "-o", "x.toml"], "--out does not apply to --dry-run"),
        (["--dry-run", "--force"], "--force does not apply to --dry-run"),
        (["--compare", "3", "-o", "x.toml"], "--out does not apply to --compare"),
        (["--compare", "3", "--keep-running"], "--keep-running does not apply to --compare"),
        (["--compare", "3", "--horizon-s", "1"], "--horizon-s does not apply to --compare"),
        (["--horizon-s", "1"], "--horizon-s does not apply to a command that is run"),
    ],
)
def test_inject(files, words, said):
    assert refusal("inject", files["disturbance"], *words, "--", "true")[0] == said


@pytest.mark.parametrize("option", [["--ranks", "4"], ["--work-per-barrier-s", "0.1"], ["--simulate"]])
def test_what_a_recording_tolerates(files, option):
    said, hint = refusal("plan", "tolerance", files["trace"], *option)
    assert said == f"{option[0]} does not apply to a recording"
    assert hint.startswith("leave it out: a recording has its own ranks and computing")


@pytest.mark.parametrize(
    "option",
    [["--time-scale", "2"], ["--retries", "1"], ["--task-timeout", "2"], ["--watch"], ["--tls", "d"], ["--by", "x"]],
)
def test_runs_made_again(files, option):
    assert refusal("run", "--again", files["runs"], *option)[0] == f"{option[0]} does not apply to --again"


def test_called_from_python_nothing_was_typed(files, tmp_path):
    import typer

    with pytest.raises(typer.Exit) as done:
        blame(tmp_path / "app.trace", None, seeds=3)
    assert done.value.exit_code == 4
