"""What a command imports: what it does not need would cost every call more than a small plan takes."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer

from crosswind.cli.verbs import PARTS, VERBS

EXAMPLES = Path(__file__).parents[3] / "examples"
TASK = ["--task-size-mb", "2", "--task-work", "5"]
ONE = ["--set=platform=fork_of_table_4.toml", "--set=policy.ports=single", "--set=workload.task_size_mb=2"]
NUMERIC = {"numpy", "pyarrow", "pandas", "scipy", "polars"}
SHOWN = {"altair", "jinja2", "vl_convert", "rich.progress"}
ELSEWHERE = {"distributed", "dask", "cloudpickle", "pydantic"}
HEAVY = NUMERIC | SHOWN | ELSEWHERE
COMMANDS = {
    "help": (["--help"], HEAVY | {"rich"}),
    "version": (["--version"], HEAVY | {"rich"}),
    "plan": (["plan", str(EXAMPLES / "fork_of_table_4.toml"), *TASK], HEAVY),
    "plan, json": (["plan", str(EXAMPLES / "fork_of_table_4.toml"), *TASK, "--json"], HEAVY | {"rich"}),
    "plan, help": (["plan", "--help"], HEAVY | {"rich"}),
    "plan tree, help": (["plan", "tree", "--help"], HEAVY | {"rich"}),
    "measure, help": (["measure", "--help"], HEAVY | {"rich"}),
    "run, help": (["run", "--help"], HEAVY | {"rich"}),
    "map, help": (["map", "--help"], HEAVY | {"rich"}),
    "run": (["run", str(EXAMPLES / "fork_graph.toml"), *ONE, "--set=workload.task_work=5"], HEAVY - {"rich.progress"}),
    "schema": (["schema", "platform"], HEAVY | {"rich"}),
}


def imported(words):
    """What a command imports, and its exit code."""
    code = (
        "import sys; from crosswind.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    sys.stderr.write('\\nimported ' + ' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    return set(done.stderr.rpartition("imported ")[2].split()), done.returncode


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_imports_nothing_heavy_that_it_does_not_need(command):
    words, heavy = COMMANDS[command]
    modules, code = imported(words)
    assert code == 0
    assert not heavy & modules


@pytest.mark.parametrize(
    "words",
    [
        ["report", "nosuch"],
        ["report", "nosuch", "--x", "seed"],
        ["fit", "nosuch.parquet"],
        ["fit", "contention", "nosuch.csv"],
        ["plan", "nosuch.toml", *TASK],
        ["plan", "tree", "nosuch.toml", *TASK],
        ["plan", "overlap", "nosuch.parquet", "--kernel=triad", "--kernel-ms=2", "--traffic=h2d", "--mb=6"],
        ["run", "nosuch.toml"],
        ["blame", "nosuch.toml"],
        ["inject", "nosuch.toml", "--", "true"],
        ["compare", "nosuch.json"],
        ["check", "--baseline", "nosuch.json"],
        ["lesson", "nosuch.toml"],
        ["map", "cat {input}", "--inputs", "nosuch.txt"],
        ["cost", "--of", "1234", "--", "true"],
        ["cost", "--of", "pid:4194304", "--", "true"],
        ["cost", "--of", "name:no-such-program*", "--", "true"],
    ],
    ids=" ".join,
)
def test_a_wrong_file_name_is_answered_before_anything_heavy_is_imported(words, tmp_path, monkeypatch):
    """Importing what a report needs took 8 s on a busy host, and then the file was missing."""
    monkeypatch.chdir(tmp_path)
    modules, code = imported(words)
    assert code == 2
    assert not (HEAVY - {"rich"}) & modules


def test_a_run_of_commands_imports_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    modules, code = imported(["map", "echo {}", "--values", "one", "-j", "1", "--quiet"])
    assert (code, (tmp_path / "results" / "000000").read_text()) == (0, "one\n")
    rarely = {"concurrent.futures", "logging", "secrets", "tomllib", "html", "crosswind.host.network"}
    assert not (HEAVY | {"rich"} | rarely) & modules


def test_what_measures_and_fits_needs_no_filters_and_no_distributions_of_scipy():
    """They took half a second of each measurement's start."""
    code = "import sys, crosswind.check.cluster, crosswind.model.fit; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"scipy.signal", "scipy.stats"} & set(done.stdout.split())


def test_a_command_imports_no_other_verb():
    modules, _ = imported(["plan", "--help"])
    assert {verb for verb in VERBS if f"crosswind.cli.{verb}" in modules} == {"plan"}


def test_every_verb_in_the_list_is_a_module_that_adds_it_and_no_module_is_left_out():
    lines = {(verb,): line for verb, line in VERBS.items()}
    lines |= {(verb, part): line for verb, parts in PARTS.items() for part, line in parts.items()}
    for words, line in lines.items():
        app = typer.Typer()
        import_module(f"crosswind.cli.{'_'.join(words)}").add_to(app)
        (command,) = app.registered_commands
        assert command.name == words[-1]
        assert command.help.startswith(line)
    here = Path(import_module("crosswind.cli").__file__).parent
    verbs = {file.stem for file in here.glob("*.py") if "def add_to(" in file.read_text()}
    assert verbs == {"_".join(words) for words in lines}
