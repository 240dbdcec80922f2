"""`crosswind map`: names, placeholders, where inputs come from, and what a second try does."""

from __future__ import annotations

import os
import subprocess
import sys

import command_line
import pytest

from crosswind import DescriptionError, map_command

pytestmark = pytest.mark.live
MAP = [sys.executable, "-m", "crosswind.cli", "map"]
ODD = [
    b"a b.txt",
    b"it's.txt",
    b'q"uote.txt',
    b"$(touch x).txt",
    b"back`tick`.txt",
    b"-rf",
    b"new\nline.txt",
    b"latin\xe9.txt",
]


def run(*words, cwd, **options):
    return subprocess.run([*MAP, *words], cwd=cwd, capture_output=True, timeout=120, check=False, **options)


@pytest.fixture
def odd(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ODD:
        (tmp_path / "in" / os.fsdecode(name)).write_bytes(name)
    return tmp_path


def results(directory):
    return {
        os.fsencode(path.name): path.read_bytes() for path in directory.iterdir() if not path.name.startswith(".cross")
    }


@pytest.mark.parametrize(
    "command",
    [
        "cat {input}",
        'cat "{input}"',
        "cat {}",
        "sh -c 'cat \"$1\"' sh {input}",
        "cat \"$(printf %s. {input} | sed 's/[.]$//')\"",
        "printf %s {name}",
        'printf %s "{name}"',
        "printf %s {/}",
        "cp {input} {output}",
        'cp "{input}" "{output}"',
    ],
)
def test_any_name_of_a_file_is_one_word_however_it_is_quoted(odd, command):
    if "$(printf" in command:
        (odd / "in" / os.fsdecode(b"new\nline.txt")).unlink()
    done = run(command, "--inputs", "in/*", "-o", "out", cwd=odd)
    assert done.returncode == 0, done.stderr
    assert results(odd / "out") == {name: name for name in ODD if (odd / "in" / os.fsdecode(name)).exists()}
    assert not (odd / "x").exists()


def test_programs_that_look_at_the_name_find_it(tmp_path):
    (tmp_path / "data.txt").write_text("some words")
    subprocess.run(["gzip", "-k", "data.txt"], cwd=tmp_path, check=True)
    done = run("gzip -d {} && cat {.}", "data.txt.gz", "-o", "plain", "--name", "{stem}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "plain" / "data.txt").read_text() == "some words"
    (tmp_path / "a.c").write_text("int f(void) { return 1; }")
    if subprocess.run(["which", "gcc"], capture_output=True, check=False).returncode == 0:
        done = run("gcc -c {input} -o {output}", "a.c", "-o", "objects", "--name", "{stem}.o", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "objects" / "a.o").stat().st_size > 0


@pytest.mark.parametrize("separator", [b"\n", b"\0"])
def test_names_come_from_standard_input(odd, separator):
    names = [b"in/a b.txt", b"in/latin\xe9.txt"]
    done = run("cat {}", "--inputs", "-", "-o", "out", cwd=odd, input=separator.join(names))
    assert done.returncode == 0, done.stderr
    assert set(results(odd / "out")) == {b"a b.txt", b"latin\xe9.txt"}
    nothing = run("cat {}", "--inputs", "-", "-o", "none", cwd=odd, input=b"")
    assert nothing.returncode == 2
    assert b"standard input is empty" in nothing.stderr


def test_an_unquoted_pattern_may_stand_on_either_side_of_the_command(odd):
    for number, words in enumerate(
        (["cat {}", "in/-rf", "in/a b.txt"], ["--inputs", "in/-rf", "in/a b.txt", "cat {}"])
    ):
        done = run(*words, "-o", f"out{number}", cwd=odd)
        assert done.returncode == 0, done.stderr
        assert set(results(odd / f"out{number}")) == {b"-rf", b"a b.txt"}


def test_values_are_no_files_and_numbers_can_be_calculated_with(tmp_path):
    done = run("echo $(({} * 2)) {number}", "--values", "-", "-o", "out", cwd=tmp_path, input=b"3\n4\n")
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / "out") == {b"000000": b"6 000000\n", b"000001": b"8 000001\n"}
    runs = map_command("printf %s {name}", values=["a b", "it's", "$HOME"], out=tmp_path / "texts", max_workers=1)
    assert runs[0].data["tasks"] == 3
    assert sorted(results(tmp_path / "texts").values()) == [b"$HOME", b"a b", b"it's"]
    assert [node["name"] for node in runs[0].data["nodes"]] == ["here", "cpu0"]


def test_a_dry_run_prints_what_a_shell_would_get_and_runs_nothing(odd):
    done = run("cat {} > {output}", "in/a b.txt", "in/-rf", "-o", "out", "--dry-run", cwd=odd)
    assert done.stdout == b"cat 'in/a b.txt' > 'out/a b.txt'\ncat in/-rf > out/-rf\n"
    assert not (odd / "out").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["cat {inptu}", "in/-rf"], b"has the unknown {inptu}"),
        (["echo {} {/.}", "in/-rf"], b"has the unknown {/.}"),
        (["echo {} {//}", "in/-rf"], b"has the unknown {//}"),
        (['echo {} "{#}"', "in/-rf"], b"has the unknown {#}"),
        (["echo {} {%}", "in/-rf"], b"has the unknown {%}"),
        (["true", "in/-rf"], b"does not use its input"),
        (["cat {}", "in"], b"name the files in it: --inputs 'in/*'"),
        (["cat {}", "in/nothing*"], b"no file matches"),
        (["cat {}", "in/-rf", "--name", "{nam}"], b"there is no {nam}"),
        (["cat {}", "in/-rf", "--values", "1"], b"--inputs and --values are both given"),
        (["cat {}", "in/-rf", "-j", "2", "--platform", "p.toml"], b"--jobs is the number of nodes on this machine"),
        (["cat {}"], b"there are no inputs"),
    ],
)
def test_mistakes_are_refused_before_the_work_with_what_to_do(odd, words, says):
    done = command_line.crosswind("map", *words, "-o", "out", cwd=odd, env=dict(os.environ), text=False)
    assert done.returncode == 2
    assert says in b" ".join(done.stderr.split())
    assert b"hint:" in done.stderr


def test_braces_of_other_programs_stay_as_they_are(tmp_path):
    (tmp_path / "a").write_text("1 2\n")
    done = run(
        "awk '{print}' {input} | awk '{ s = ${HOME:+1} } END { print NR }'".replace("${HOME:+1}", "1"),
        "a",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "results" / "a").read_text() == "1\n"


def test_a_first_try_that_failed_does_not_block_the_second(odd):
    wrong = run("nosuchprogram {}", "in/a b.txt", "in/-rf", cwd=odd)
    assert wrong.returncode == 3
    right = run("cat {}", "in/a b.txt", "in/-rf", cwd=odd)
    assert right.returncode == 0, right.stderr
    assert b"2 made again (failed before 2)" in right.stderr
    assert set(results(odd / "results")) == {b"a b.txt", b"-rf"}
    other = run("echo other {}", "in/a b.txt", "in/-rf", cwd=odd)  # what failed is done by now
    assert other.returncode == 2
    assert b"an earlier run wrote its results here" in b" ".join(other.stderr.split())
    assert results(odd / "results")[b"-rf"] == b"-rf"


def test_a_run_that_is_complete_is_replaced_only_with_force(odd):
    assert run("cat {}", "in/-rf", cwd=odd).returncode == 0
    again = run("echo other {}", "in/-rf", cwd=odd)
    assert again.returncode == 2
    assert b"--force runs everything again" in b" ".join(again.stderr.split())
    forced = run("printf other; : {}", "in/-rf", "--force", cwd=odd)
    assert forced.returncode == 0, forced.stderr
    assert results(odd / "results") == {b"-rf": b"other"}


def test_inputs_of_a_pattern_that_cannot_be_read_are_counted_and_left_out(tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    readable = os.access

    def access(path, mode, **how):
        return not os.fsdecode(path).endswith(("/b", "/c")) and readable(path, mode, **how)

    monkeypatch.setattr(os, "access", access)
    runs = map_command("cat {}", [tmp_path / "[abc]"], tmp_path / "out")
    (warning,) = [one for one in runs.warnings if one["code"] == "inputs-unreadable"]
    assert warning["message"].startswith("2 inputs cannot be read and were left out")
    assert results(tmp_path / "out") == {b"a": b"a"}
    with pytest.raises(DescriptionError, match="none of 2 inputs can be read"):
        map_command("cat {}", [tmp_path / "[bc]"], tmp_path / "none")


def test_what_commands_print_on_stderr_is_shown_with_the_input_unless_quiet(odd):
    done = run("echo noted >&2; cat {}", "in/-rf", "-o", "out", "-j", "1", cwd=odd)
    assert b"[cpu0] -rf: noted" in done.stderr
    quiet = run("echo noted >&2; cat {}", "in/-rf", "-o", "quiet", "-q", cwd=odd)
    assert b"noted" not in quiet.stderr.replace(b"echo noted", b"")


def test_a_command_that_removes_its_input_and_fails_is_tried_again(tmp_path):
    (tmp_path / "a").write_text("words")
    command = (
        f"cat {{input}} && rm {{input}} && mkdir {tmp_path}/second 2>/dev/null && exit 1; test -e {tmp_path}/second"
    )
    done = run(command, "a", "--retries", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / "results") == {b"a": b"words"}


@pytest.mark.parametrize("halt", ["2", "soon,fail=2"])
def test_after_so_many_failures_no_more_commands_begin_and_resume_runs_the_rest(tmp_path, halt):
    values = [word for number in range(40) for word in ("--values", str(number))]
    command = "echo {} >> begun; sleep 0.1; test {} -ne 1 && test {} -ne 3 && echo {}"
    command = f"cd {tmp_path}; {command}"
    done = run(command, *values, "-j", "1", "--halt", halt, cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    begun = len((tmp_path / "begun").read_text().split())
    assert 4 <= begun < 30
    assert f"2 commands failed, and {40 - begun} inputs were not begun (--halt 2)" in done.stderr.decode()
    assert len(results(tmp_path / "results")) == begun - 2
    (tmp_path / "begun").unlink()
    again = run(command, *values, "-j", "2", "--resume", cwd=tmp_path)
    assert again.returncode == 3
    assert len((tmp_path / "begun").read_text().split()) == 40 - (begun - 2)
    assert len(results(tmp_path / "results")) == 38


@pytest.mark.parametrize("halt", ["0", "-1", "now,fail=1", "soon,fail=0", "soon,fail=", "fail=1", "1.5", ""])
def test_what_halt_does_not_know_is_refused(tmp_path, halt):
    words = ["map", "true {}", "--values", "1", f"--halt={halt}"]
    done = command_line.crosswind(*words, cwd=tmp_path, env=dict(os.environ), text=False)
    assert done.returncode == 2
    assert b"a number of failures" in done.stderr
    assert not (tmp_path / "results").exists()
    with pytest.raises(DescriptionError, match="at least 1"):
        map_command("true {}", values=["1"], out=tmp_path / "out", halt=0)
