"""What a token's file may hold."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from crosswind import DescriptionError
from crosswind.access import read_token


def test_space_around_a_token_counts_for_nothing(tmp_path):
    file = tmp_path / "token"
    file.write_text("  one line of some length \n\n")
    file.chmod(0o600)
    assert read_token(file) == "one line of some length"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "has 0 lines"),
        (b" \n", "has 0 lines"),
        (b"a" * 76 + b"\n" + b"b" * 12 + b"\n", "has 2 lines"),  # what base64 makes of 64 bytes
        (b"\xff" * 32, "it is no text"),
        (b"b" * 5000, "more than 4096 bytes"),
        (b"\0" * 16, "control character"),
        (b"abcdefgh\0ijklmnopq\n", "control character"),
        (b"\xef\xbb\xbf" + b"a" * 20, "byte order mark"),
        (None, "no such file"),
    ],
)
def test_what_is_no_token_is_said_with_how_to_make_one_and_not_shown(tmp_path, content, said):
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
        file.chmod(0o600)
    with pytest.raises(DescriptionError, match=said) as refused:
        read_token(file)
    assert "bbbb" not in str(refused.value)
    assert "base64 > token" in str(refused.value.hint)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o666])
def test_a_token_that_others_may_read_or_write_is_refused_unless_allowed(tmp_path, mode):
    file = tmp_path / "a token"
    file.write_text("one line of some length\n")
    file.chmod(mode)
    link = tmp_path / "link"
    link.symlink_to(file)
    for path in (file, link):
        with pytest.raises(DescriptionError, match=f"of mode {mode:04o}") as refused:
            read_token(path)
        assert refused.value.hint == f"chmod 600 {shlex.quote(str(path))}"
        assert "one line" not in str(refused.value)
        assert read_token(path, allow_loose=True) == "one line of some length"
    file.chmod(0o400)
    assert read_token(link) == "one line of some length"


def test_a_token_may_come_through_a_pipe_of_its_owner():
    read, write = os.pipe()
    os.write(write, b"one line of some length\n")
    os.close(write)
    try:
        assert read_token(Path(f"/dev/fd/{read}")) == "one line of some length"
    finally:
        os.close(read)


COMMAND = [sys.executable, "-m", "crosswind.cli"]
VERBS = [
    ["serve", "--listen", "127.0.0.1:0"],
    ["serve", "--parent", "127.0.0.1:9", "--name", "a"],
    ["measure", "--peer", "127.0.0.1:9"],
    ["doctor", "--peer", "127.0.0.1:9"],
    ["overlap", "--peer", "127.0.0.1:9"],
    ["filter", "--peer", "127.0.0.1:9", "--local", "0=127.0.0.1:9"],
    ["map", "true {input}", "--inputs", "token", "--on", "dask:tcp://127.0.0.1:9"],
]


@pytest.mark.parametrize("words", VERBS, ids=lambda words: " ".join(words[:2]))
def test_every_verb_refuses_such_a_token_before_it_does_anything(tmp_path, words):
    token = tmp_path / "token"
    token.write_text("one line of some length\n")
    token.chmod(0o644)
    asked = [*COMMAND, *words, "--token-file", "token"]
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "of mode 0644" in done.stderr
    assert done.stderr.rstrip().endswith("hint: chmod 600 token")


@pytest.mark.parametrize("verb", ["serve", "measure", "doctor", "overlap", "filter", "run"])
def test_every_verb_with_a_token_s_file_may_be_told_to_take_it(verb):
    done = subprocess.run([*COMMAND, verb, "--help"], capture_output=True, text=True, check=True, timeout=60)
    assert "--allow-loose-tok" in done.stdout
