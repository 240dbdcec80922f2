"""On a terminal of 80 columns nothing is cut and nothing is wider; in a pipe all columns are there."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
import reported

from crosswind.cli.verbs import PARTS, VERBS

EXAMPLES = Path(__file__).parents[3] / "examples"
TASK = ["--task-size-mb", "2", "--task-work", "5"]
WORDS = [[verb] for verb in VERBS] + [[verb, part] for verb, parts in PARTS.items() for part in parts]
SEEN = {
    "plan": ["plan", str(EXAMPLES / "fork_of_table_4.toml"), *TASK],
    "plan tree": ["plan", "tree", str(EXAMPLES / "links_of_two_sites.toml"), *TASK],
    "run, many": [
        "run",
        str(EXAMPLES / "fork_graph.toml"),
        "--set=policy.ports=single",
        "--set=workload.task_size_mb=2",
    ],
    "run, program": ["run", str(EXAMPLES / "local_scheduling.toml")],
    "run, streams": ["run", str(EXAMPLES / "streams_sending_side.toml")],
    "fit": ["fit", "m.parquet"],
    "fit, trace": ["fit", "trace.parquet"],
}


def on_a_terminal(words, directory, columns=80):
    """What a command writes to a terminal, without colours and what progress rewrites."""
    own, terminal = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb"}
    with subprocess.Popen(
        [sys.executable, "-m", "crosswind.cli", *words],
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=subprocess.PIPE,
        cwd=directory,
        env=environment,
    ) as process:
        os.close(terminal)
        seen = b""
        while part := _read(own):
            seen += part
        said = process.stderr.read().decode()
    os.close(own)
    assert process.returncode in (0, 3), said
    return seen.decode().replace("\r\n", "\n"), said


def _read(own):
    try:
        return os.read(own, 1 << 16)
    except OSError:  # what a terminal says once nothing holds its other end
        return b""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    there = tmp_path_factory.mktemp("files")
    reported.measured().save(there / "m.parquet")
    reported.traced().save(there / "trace.parquet")
    return there


@pytest.mark.parametrize("verb", SEEN)
def test_what_a_verb_prints_fits_80_columns_and_is_not_cut(files, verb):
    seen, _ = on_a_terminal(SEEN[verb], files)
    assert seen.strip()
    assert "…" not in seen
    assert [line for line in seen.splitlines() if len(line) > 80] == []


def test_the_columns_that_are_left_out_are_named_and_come_with_wide(files):
    narrow, said = on_a_terminal(SEEN["plan"], files)
    assert "all gains: --wide" in said
    wide, said = on_a_terminal([*SEEN["plan"], "--wide"], files)
    assert ("gain per work/s" in narrow, "gain per work/s" in wide, "--wide" in said) == (False, True, False)


def test_a_pipe_gets_the_details_with_wide_at_any_width(files):
    done = subprocess.run(
        [sys.executable, "-m", "crosswind.cli", *SEEN["plan"], "--wide"],
        env={**os.environ, "COLUMNS": "40"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "gain per work/s" in done.stdout
    assert "--wide" not in done.stderr


def test_fit_says_in_a_sentence_what_each_direction_costs(files):
    seen, _ = on_a_terminal(SEEN["fit"], files)
    first, *rest = seen.splitlines()
    assert re.match(r"Receiving [\d.]+ .B/s costs \d+ % ± \d+ of what one CPU computes.", first), seen
    table = [line for line in rest if "IR, s/GB" in line]
    assert len(table) == 1
    assert table[0].startswith("lost at")


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_help_fits_80_columns_has_examples_first_and_at_most_eight_options_before_the_groups(
    words, capsys, monkeypatch
):
    from crosswind.cli import app

    monkeypatch.setenv("COLUMNS", "80")
    app([*words, "--help"], prog_name="crosswind", standalone_mode=False)
    told = capsys.readouterr().out
    lines = told.splitlines()
    assert [line for line in lines if len(line) > 80 and not line.startswith("  crosswind ")] == []
    assert told.index("\nExamples:\n") < told.index("\nOptions:\n")
    first = told.split("\nOptions:\n")[1].split("\n\n")[0]
    options = [line for line in first.splitlines() if line.startswith(("      --", "  -"))]
    names = {line.split("--")[1].split()[0] for line in options}
    assert len(names - {"help", "json", "wide"}) <= 8, names
