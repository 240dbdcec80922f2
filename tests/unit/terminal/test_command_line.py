"""Commands as they are typed: what only a shell understands is refused, not passed on as an argument."""

from __future__ import annotations

import pytest

from crosswind.compare import compare
from crosswind.errors import DescriptionError
from crosswind.measure import measure
from crosswind.terminal.command_line import shell_syntax, words_of

FOR_A_SHELL = [
    ("true | cat", "|"),
    ("true > /dev/null", ">"),
    ("cat < in", "<"),
    ("true && true", "&"),
    ("true || true", "|"),
    ("true; true", ";"),
    ("true $HOME", "$"),
    ('true "$HOME"', "$"),
    ("true `id`", "`"),
    ("true &", "&"),
    ("true *.txt", "*"),
    ("true ~/file", "~"),
    ("true # a comment", "#"),
    ("true\ntrue", "\n"),
]
PLAIN = [
    "true",
    "true 'a | b' \"c > d; e\" f\\|g",
    "python3 -c 'print(1); x = [1] # $y'",
    'true "a\'b" a#b a~b 1=2',
    "true 'it'\\''s'",
]


@pytest.mark.parametrize(("text", "letter"), FOR_A_SHELL)
def test_unquoted_shell_syntax_is_refused_with_the_fix(text, letter):
    assert shell_syntax(text) == letter
    with pytest.raises(DescriptionError, match="is shell syntax, and no shell runs it") as error:
        words_of(text, "A")
    assert error.value.hint.startswith("--shell runs it in a shell")
    assert words_of(text, "A", shell=True) == ["/bin/sh", "-c", text]


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_quoted_is_passed_on(text):
    assert shell_syntax(text) is None
    assert words_of(text, "A")


@pytest.mark.parametrize("text", ["true | cat", "true > /dev/null", "true $HOME"])
def test_compare_and_measure_have_one_rule(text):
    with pytest.raises(DescriptionError, match=r"A is .* is shell syntax"):
        compare(text, "true")
    with pytest.raises(DescriptionError, match=r"B is .* is shell syntax"):
        compare("true", text)
    with pytest.raises(DescriptionError, match=r"--task is .* is shell syntax"):
        measure(task=text)
    with pytest.raises(DescriptionError, match="shell is given without a command"):
        measure(shell=True)
