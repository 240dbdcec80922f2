"""The action for pull requests: its file, and its steps as a runner calls them, beside a stand-in for `gh`."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest
import yaml

ACTION = Path(__file__).parents[2] / "packaging" / "github"
DOCUMENT = yaml.safe_load((ACTION / "action.yml").read_text())
STEPS = DOCUMENT["runs"]["steps"]
MARK = "<!-- crosswind compare -->"
ANSWER = "**equivalent within 2 %**\n\n|  | command |\n| :-- | :-- |\n| A | `./run-base` |\n"


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/usr/bin/env bash\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def runner(tmp_path):
    """A runner's directories, and a pull request of a repository whose head differs in one file."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path / "work")]
    (tmp_path / "work").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "temp").mkdir()
    subprocess.run([*git, "init", "-q"], check=True)
    shas = []
    for text in ("before", "after"):
        (tmp_path / "work" / "version").write_text(text)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", text], check=True)
        shas.append(
            subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
        )
    event = {"pull_request": {"number": 7, "base": {"sha": shas[0]}, "head": {"sha": shas[1]}}}
    (tmp_path / "event.json").write_text(json.dumps(event))
    program(
        tmp_path / "bin" / "gh",
        f'printf "%s\\n" "$*" >>{tmp_path}/gh; [ "$2" = --paginate ] && cat {tmp_path}/known || true',
    )
    (tmp_path / "known").write_text("")
    return tmp_path


def environment(runner: Path, **others: str) -> dict[str, str]:
    return {
        "PATH": f"{runner / 'bin'}:{os.environ['PATH']}",
        "HOME": str(runner),
        "GITHUB_EVENT_PATH": str(runner / "event.json"),
        "GITHUB_OUTPUT": str(runner / "output"),
        "GITHUB_STEP_SUMMARY": str(runner / "summary"),
        "GITHUB_REPOSITORY": "a/b",
        "RUNNER_TEMP": str(runner / "temp"),
        **others,
    }


def step(runner: Path, name: str, **others: str) -> subprocess.CompletedProcess[str]:
    """Run a step in the checkout, as a runner does."""
    env = environment(runner, **others)
    return subprocess.run([ACTION / name], cwd=runner / "work", env=env, capture_output=True, text=True, check=False)


def outputs(runner: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (runner / "output").read_text().splitlines())


def compared(runner: Path, status: int, outcome: str, **others: str) -> subprocess.CompletedProcess[str]:
    """Run the step that compares, with a stand-in for `crosswind` that ends with this status."""
    found = json.dumps({"result": {"outcome": outcome}})
    program(
        runner / "bin" / "crosswind",
        f"printf '%s\\n' \"$@\" >{runner}/asked; ./run-base >{runner}/A; ./run-head >{runner}/B\n"
        f"printf '%s' '{found}' >crosswind-comparison.json; printf '%s' '{ANSWER}'; exit {status}",
    )
    assert step(runner, "versions.sh").returncode == 0
    versions = {"BASE": outputs(runner)["base"], "HEAD": outputs(runner)["head"]}
    asked = {"BUILD": "cp version built", "COMMAND": "cat built # as built", "MARGIN": "5%", "BY": "cpu"}
    return step(runner, "compare.sh", **(versions | asked | {"SECONDS_LIMIT": "9"} | others))


def test_each_step_is_there_and_gets_what_it_reads():
    assert DOCUMENT["runs"]["using"] == "composite"
    given = re.findall(r"inputs\.([\w-]+)", (ACTION / "action.yml").read_text())
    assert set(given) == set(DOCUMENT["inputs"])
    produced = {one["id"] for one in STEPS if "id" in one}
    assert {used for used, _ in re.findall(r"steps\.([\w-]+)\.outputs\.([\w-]+)", str(DOCUMENT))} <= produced
    for one in STEPS:
        assert one["shell"] == "bash"
        script = ACTION / re.fullmatch(r'"\$GITHUB_ACTION_PATH"/(\S+)', one["run"])[1]
        assert os.access(script, os.X_OK)
        text = script.read_text()
        from_runner = {"GITHUB_EVENT_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_REPOSITORY", "RUNNER_TEMP"}
        assert set(re.findall(r"\$\{?([A-Z_]{2,})", text)) <= set(one.get("env", {})) | from_runner
        assert set(one.get("env", {})) <= set(re.findall(r"\$\{?([A-Z_]{2,})", text)) | {"GH_TOKEN"}


def test_both_versions_are_built_and_run_in_their_own_directories(runner):
    assert compared(runner, 0, "equivalent").returncode == 0
    assert [(runner / one).read_text() for one in "AB"] == ["before", "after"]
    asked = (runner / "asked").read_text().split("\n")
    assert asked[:3] == ["compare", "./run-base", "./run-head"]
    assert outputs(runner)["outcome"] == "equivalent"
    assert Path(outputs(runner)["answer"]).read_text() == ANSWER


def test_an_event_without_a_pull_request_is_refused(runner):
    (runner / "event.json").write_text('{"ref": "refs/heads/main"}')
    found = step(runner, "versions.sh")
    assert found.returncode == 2
    assert "::error::crosswind compare is for pull requests" in found.stdout


def test_a_build_that_fails_ends_the_step(runner):
    assert compared(runner, 0, "equivalent", BUILD="exit 5").returncode == 5


@pytest.mark.parametrize(("status", "ends"), [(0, 0), (3, 0), (4, 0), (1, 1), (2, 2), (130, 130)])
def test_only_an_answer_goes_on(runner, status, ends):
    assert compared(runner, status, "slower").returncode == ends


@pytest.mark.parametrize(
    ("outcome", "fails", "ends"), [("slower", "true", 1), ("slower", "false", 0), ("unknown", "true", 0)]
)
def test_the_answer_is_one_comment_and_only_a_slower_version_fails(runner, outcome, fails, ends):
    (runner / "answer.md").write_text(ANSWER)
    told = {"ANSWER": str(runner / "answer.md"), "OUTCOME": outcome, "FAIL_ON_SLOWER": fails, "GH_TOKEN": "t"}
    told |= {"COMMAND": "./bench\n./bench 2"}
    assert step(runner, "comment.sh", **told).returncode == ends
    assert "--method POST repos/a/b/issues/7/comments" in (runner / "gh").read_text()
    written = (runner / "temp" / "crosswind-comment.md").read_text()
    assert written.startswith(f"{MARK}\n")
    assert ANSWER in written
    assert "    ./bench\n    ./bench 2\n" in written
    assert (runner / "summary").read_text() == written
    (runner / "known").write_text("31\n")
    (runner / "gh").unlink()
    step(runner, "comment.sh", **told)
    assert "--method PATCH repos/a/b/issues/comments/31" in (runner / "gh").read_text()
    assert "POST" not in (runner / "gh").read_text()


def test_without_a_token_or_with_one_that_may_not_comment_the_summary_is_all(runner):
    (runner / "answer.md").write_text(ANSWER)
    told = {"ANSWER": str(runner / "answer.md"), "OUTCOME": "faster", "FAIL_ON_SLOWER": "true", "COMMAND": "a"}
    assert step(runner, "comment.sh", **told, GH_TOKEN="").returncode == 0
    assert not (runner / "gh").exists()
    program(runner / "bin" / "gh", "exit 1")
    found = step(runner, "comment.sh", **told, GH_TOKEN="read-only")
    assert found.returncode == 0
    assert "::notice::no comment" in found.stdout
