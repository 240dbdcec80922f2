"""Every `crosswind ...` in a code block of a page is a command that this version takes."""

import re
import shlex
from pathlib import Path

import pytest
import typed
from typer.exceptions import TyperException
from typer.main import get_command

from crosswind.cli import app

ROOT = Path(__file__).parents[2]
# The papers' and the decisions' pages tell of the past as well; the changelog only does.
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


def words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;<>&")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    found = []
    for word in lexer:
        if set(word) <= set("|;<>&"):
            break
        found.append(word)
    return found


def taken(line: str) -> None:
    """Parse a command as the command line does, and run nothing."""
    command = get_command(app)
    context = command.context_class(command, info_name="crosswind", resilient_parsing=True)
    rest = words(line)[1:]
    while rest and hasattr(command, "list_commands"):
        if rest[0] not in command.list_commands(context):
            assert context.parent is not None, f"crosswind has no verb {rest[0]}"
            break
        name, command, rest = command.resolve_command(context, rest)
        context = command.context_class(command, info_name=name, parent=context, resilient_parsing=True)
    command.parse_args(command.context_class(command, info_name="crosswind", parent=None), list(rest))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_commands_that_are_there(page):
    for line in typed.lines_of(page):
        if "..." in line or re.search(r"\bVERB\b", line):
            continue
        try:
            taken(line)
        except TyperException as error:
            pytest.fail(f"{line}\n{error.format_message()}")


def items(page: Path) -> list[list[str]]:
    """Return the cells of the table of a paper: item, where, command, verdict."""
    _, _, table = page.read_text().partition("| item | where | command | verdict |\n")
    rows = table.split("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


PAPERS = [page for page in PAGES if items(page)]


@pytest.mark.parametrize("page", PAPERS, ids=lambda page: page.name)
def test_every_item_of_a_paper_has_a_command_or_a_reason(page):
    short = re.findall(r"`(\w)` stands for `(crosswind [\w -]+)`", page.read_text())
    for cells in items(page):
        item, _, command, verdict = [cell.strip() for cell in cells]
        if not command:
            assert re.fullmatch(r"not built: .{20,}", verdict), item
            continue
        (line,) = re.findall(r"`([^`]+)`", command)
        for name, whole in short:
            line = re.sub(rf"^{name}\b", whole, line)
        line = line.replace(" E/", " examples/")
        program, *rest = words(line)
        for file in (word for word in rest if word.startswith("examples/")):
            assert (ROOT / file).exists(), file
        if program == "python":
            compile(rest[1], item, "exec")
        else:
            taken(line)


def test_all_papers_have_a_table():
    assert {page.stem for page in PAPERS} == {
        "interference-aware-scheduling-runs",
        "interference-in-java",
        "scheduling-and-communication",
        "quadrics-overlap",
        "communication-interactions",
    }


def test_the_guides_have_commands():
    assert sum(len(typed.lines_of(page)) for page in PAGES) > 100


@pytest.mark.parametrize(
    "line", ["crosswind no-such-verb", "crosswind plan --no-such-option 1", "crosswind report --out"], ids=str
)
def test_a_command_that_is_not_there_is_found(line):
    with pytest.raises((TyperException, AssertionError)):
        taken(line)
