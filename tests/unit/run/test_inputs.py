"""Inputs of commands: patterns match what a shell matches, and a name has one meaning."""

import pytest

from crosswind import DescriptionError
from crosswind.run.inputs import check_placeholders, inputs_of


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def make(*names):
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(name)

    return make


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (["in/*"], ["in/a", "in/b.txt"]),
        (["in/.*"], [".crosswind-journal", ".hidden"]),
        (["in/*", "in/.hidden"], ["in/a", "in/b.txt", ".hidden"]),
        (["in/**"], ["in/a", "in/b.txt", "c.txt", "d.txt"]),
        (["in/**/*.txt"], ["in/b.txt", "c.txt", "d.txt"]),
        (["in/[!b]*"], ["in/a"]),
        (["in/?"], ["in/a"]),
        (["./in/a", "in/*"], ["in/a", "in/b.txt"]),
    ],
)
def test_patterns_match_what_a_shell_matches(files, patterns, found):
    """`*` matches no name that begins with a dot: the journal in a run's results is no input of the next run."""
    files(
        "in/a",
        "in/b.txt",
        "in/.hidden",
        "in/.crosswind-journal",
        "in/more/c.txt",
        "in/more/.e.txt",
        "in/more/most/d.txt",
    )
    given = inputs_of(patterns, []).names
    assert len(given) == len(found)
    assert all(any(name.endswith(end) for name in given) for end in found)


def test_a_name_that_is_a_pattern_too_is_refused_unless_all_that_it_matches_are_named(files):
    files("*", "a", "b", "file[1]", "file1")
    with pytest.raises(DescriptionError, match="a file has this name, and as a pattern it matches"):
        inputs_of(["*"], [])
    assert len(inputs_of(["*", "a", "b", "file1", "file[1]"], []).names) == 5  # as a shell hands them over
    assert list(inputs_of(["[*]"], []).names) == ["*"]
    assert list(inputs_of(["file[1]"], []).names) == ["file[1]"]


def test_an_empty_name_is_refused(files):
    with pytest.raises(DescriptionError, match="--inputs is ''; it must name files"):
        inputs_of([""], [])


@pytest.mark.parametrize("word", ["{/.}", "{//}", "{#}", "{%}"])
def test_what_only_parallel_replaces_is_refused_unless_it_is_quoted(word):
    with pytest.raises(DescriptionError, match="has the unknown") as refused:
        check_placeholders(f'echo "{word}" {{}}')
    assert word in str(refused.value)
    check_placeholders(f"echo '{word}' {{}}")


def test_what_looks_like_it_in_a_shell_is_not_refused():
    check_placeholders("echo ${#} ${#name} ${name%.txt} ${name//a/b} {}")
