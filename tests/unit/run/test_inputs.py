"""Inputs of commands: patterns match what a shell matches, and a name has one meaning."""

import glob
import io
import os
from itertools import product
from pathlib import Path

import pytest

from crosswind import DescriptionError
from crosswind.run.inputs import check_placeholders, inputs_of, listed


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


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Names that sort in another way with their directories than as a whole, links, and names that are no text."""
    tree = tmp_path / "tree"  # what a pattern finds above is the test's own, too
    tree.mkdir()
    monkeypatch.chdir(tree)
    for directory in ("a", "a.b", "a-b", "a/a", "a/a.x/b", ".hidden", "a/.hidden", os.fsdecode(b"\xff")):
        Path(directory).mkdir(parents=True)
        for name in ("a0", "a.0", ".a", "b", os.fsdecode(b"\xfe"), "[b]", "z\n"):
            Path(directory, name).write_bytes(os.fsencode(name))
    Path("b").write_text("b")
    Path("linked").symlink_to("a")
    Path("dangling").symlink_to("nothing")
    Path("a/dangling").symlink_to("nothing")
    return tree


PARTS = ["*", "**", "a", "a*", "[!a]*", ".*", "?", "*b*", "[[]b]"]
PATTERNS = [
    *PARTS,
    *("/".join(parts) for parts in product(PARTS, PARTS)),
    *("/".join(parts) for parts in product(["a", "*", "**"], ["*", "**", "a*"], ["*", "b", "**"])),
    "./*",
    "../*/*",
    "a/../*",
]


@pytest.mark.parametrize("pattern", [*PATTERNS, "/*/*"])
def test_files_of_a_pattern_are_those_of_glob_in_the_order_of_their_bytes(tree, pattern):
    pattern = str(tree) + pattern if pattern.startswith("/") else pattern
    matched = {os.fsencode(Path(file)) for file in glob.glob(pattern, recursive=True) if not Path(file).is_dir()}  # noqa: PTH207
    expected = [os.fsdecode(file) for file in sorted(matched) if os.access(file, os.R_OK)]
    if not expected:
        with pytest.raises(DescriptionError, match=r"no file matches|no such file|a directory|can be read"):
            inputs_of([pattern], [])
        return
    found = inputs_of([pattern], [])
    assert list(found.names) == expected
    assert found.bytes == sum(Path(file).stat().st_size for file in expected)
    unreadable = len(matched) - len(expected)
    assert [one["message"].split()[0] for one in found.warnings] == ([str(unreadable)] if unreadable else [])


def test_files_of_several_patterns_keep_the_order_of_the_patterns_and_stay_once(tree):
    names = list(inputs_of(["b", "a/a*", "./b", "a/*", "a/b"], []).names)
    assert names == ["b", "a/a.0", "a/a0", "a/[b]", "a/b", "a/z\n", os.fsdecode(b"a/\xfe")]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"a\nb\r\n\n c \rd", ["a", "b", " c ", "d"]),
        (b"a\nb\0\0c\0", ["a\nb", "c"]),
        (b"\xff/x\n", [os.fsdecode(b"\xff/x")]),
    ],
)
def test_names_on_standard_input_are_lines_or_end_with_a_0_byte(monkeypatch, data, found):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    given = listed(["first", "-", "last"])
    assert list(given) == ["first", *found, "last"]
    values = inputs_of([], given)
    assert list(values.names) == list(given)
    assert values.bytes == sum(len(os.fsencode(one)) for one in given)


def test_names_on_standard_input_that_are_none_are_refused(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\n\n")))
    with pytest.raises(DescriptionError, match="standard input is empty"):
        listed(["-"])
