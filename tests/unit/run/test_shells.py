"""The shell that a command is handed to."""

import os
import shutil
import subprocess

import pytest

from crosswind import DescriptionError, _core, map_command
from crosswind.run.shells import handed_to, words_of

NAMES = ["a b", "it's", 'q"uote', "$(touch x)", "`touch x`", "-rf", "new\nline", "a\\b\\\\c", "!x", "~", "*", "\udce9"]


def filled(command, shell, value):
    line = handed_to(command, words_of(shell, must_exist=True))
    return os.fsdecode(_core.command_line(line, os.fsencode(value), b"/out", b"", 0))


def run(line, **options):
    return subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize(
    "template", ["printf %s {}", 'printf %s "{}"', 'printf %s "$(printf %s {})"', "printf %s {input}"]
)
@pytest.mark.parametrize("value", NAMES)
def test_a_value_is_one_word_in_another_shell_too(template, value):
    shown = run(filled(template, "bash", value), errors="surrogateescape")
    assert shown.stdout == value, shown.stderr


@pytest.mark.parametrize(
    ("shell", "command", "expected"),
    [
        ("bash", "[[ {} == 7 ]] && echo ${BASH_VERSION:+bash}", (0, "bash\n")),
        ("bash -eo pipefail", "false | true; echo {}", (1, "")),
        ("bash", 'echo "$0 $#" {}; case x in x) echo {};; esac # it\'s', (0, "bash 0 7\n7\n")),
        ("sh -eu", "echo $unknown {}", (2, "")),
        ("dash", "cat <<END\n{}\nEND", (0, "7\n")),
    ],
)
def test_a_command_means_what_it_means_to_that_shell_alone(shell, command, expected):
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"{shell.split()[0]} is not installed")
    done = run(filled(command, shell, "7"))
    assert (done.returncode, done.stdout) == expected


def test_a_command_has_no_more_descriptors_and_variables_than_without(monkeypatch):
    monkeypatch.setenv("line", "mine")
    command = "{ true <&3; } 2>/dev/null && echo open; echo $line $1 {input}"
    assert run(filled(command, "bash", "7")).stdout == "mine 7\n"


def test_a_node_without_the_shell_says_which(tmp_path):
    done = run(filled("echo {}", "bash", "7").replace("bash", "nosuchsh"))
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == "this node has no shell nosuchsh (--shell)\n"


@pytest.mark.parametrize(
    ("shell", "says"),
    [
        ("fish", "it must be one of: sh, bash"),
        ("", "it must be one of"),
        ("bash 'x", "it must be one of"),
        ("python3", "it must be one of"),
        ("/nowhere/bash", "this machine has no /nowhere/bash"),
    ],
)
def test_other_shells_are_refused_before_the_work(tmp_path, shell, says):
    with pytest.raises(DescriptionError, match="--shell is") as caught:
        map_command("echo {}", values=["1"], out=tmp_path / "out", shell=shell)
    assert says in str(caught.value)
    assert caught.value.hint
    assert not (tmp_path / "out").exists()


def test_a_shell_that_only_nodes_elsewhere_need_is_not_looked_for_here():
    assert words_of("/nowhere/zsh -f", must_exist=False) == ["/nowhere/zsh", "-f"]
