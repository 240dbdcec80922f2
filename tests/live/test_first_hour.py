"""Five new users and the tutorial: what their page has them type, and what must then be on a screen of 80 columns."""

from pathlib import Path

import pytest
import typed

START = typed.ROOT / "docs" / "start"
USERS = ("engineer", "dask", "mpi", "ml", "researcher", "teacher")
HANGS_S = 600
"""A command that takes longer hangs. How long users wait for their first answer: benchmarks/first_answer.py."""
ENOUGH = 2
"""Commands after which there is a first useful answer."""
# 3: written, but not trustworthy. A peer on the same machine, or a busy one, is that. 4: above the margin, an answer.
FINE = (0, 3, 4)
FIRST = 10
"""Lines of the screen in which the answer begins."""

pytestmark = pytest.mark.live


def walk(page: Path, folder: Path) -> None:
    typed.settle(page, folder)
    commands = list(typed.commands_of(page))
    assert commands, "a page without a command teaches nothing"
    for command in commands:
        code, screen, _ = typed.type_in(command.line, folder, HANGS_S)
        assert code in FINE, f"$ {command.line}\n{screen}"
        # A terminal wraps long lines; words are compared without their breaks.
        seen = typed.plain(screen.replace("\n", " "))
        if command.shown:
            first = typed.plain(" ".join(one for one in screen.splitlines()[:FIRST]))
            begins = [line for line in command.shown if typed.plain(line) in first]
            assert begins, f"$ {command.line}\nnone of {command.shown} is in the first {FIRST} lines of\n{screen}"
        for line in command.shown:
            assert typed.plain(line) in seen, f"$ {command.line}\n{line}\nis not in\n{screen}"
        assert "…" not in screen, f"$ {command.line}\n{screen}\na value is cut"


@pytest.mark.parametrize("user", USERS)
def test_a_new_user_gets_the_answer_that_the_page_promises(user, tmp_path):
    walk(START / f"{user}.md", tmp_path)


@pytest.mark.parametrize("user", USERS)
def test_the_first_answer_needs_no_more_than_two_commands(user):
    first = list(typed.commands_of(START / f"{user}.md"))[:ENOUGH]
    assert any(command.shown for command in first), [command.line for command in first]


@pytest.mark.parametrize("guide", ["studies", "write-a-policy", "coming-from"])
def test_guides_with_files_of_their_own_run_from_top_to_bottom(guide, tmp_path):
    walk(typed.ROOT / "docs" / "guides" / f"{guide}.md", tmp_path)


def test_every_start_page_has_its_user():
    assert {page.stem for page in START.glob("*.md")} == set(USERS)


def test_the_tutorial_runs_from_top_to_bottom(tmp_path):
    walk(typed.ROOT / "docs" / "tutorial.md", tmp_path)
    results = tmp_path / "results"
    assert len(list(results.glob("*.gz"))) == len(list((tmp_path / "examples").glob("*.toml")))
    assert "</html>" in (tmp_path / "report.html").read_text()
