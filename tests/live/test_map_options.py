"""`crosswind map --joblog`, `--shell`, and results in directories."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from crosswind import DescriptionError, map_command
from crosswind.run.joblog import HEAD

pytestmark = pytest.mark.live
MAP = [sys.executable, "-m", "crosswind.cli", "map"]


def run(*words, cwd):
    return subprocess.run([*MAP, *words], cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def logged(path):
    head, *rest = path.read_text().splitlines()
    assert head + "\n" == HEAD
    return [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in rest]


def results(directory):
    found = (path for path in directory.rglob("*") if path.is_file() and not path.name.startswith(".cross"))
    return {str(path.relative_to(directory)): path.read_text() for path in found}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a/x.txt", "b/x.txt", "b/c/x.txt", "x.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def test_a_job_log_has_a_line_for_each_command_and_how_it_ended(tmp_path):
    command = "case {} in 1) exit 7;; 2) kill -9 $$;; 3) sleep 60;; *) printf abc;; esac"
    done = run(
        *(command, "--values", "0", "--values", "1", "--values", "2", "--values", "3"),
        *("--joblog", "log", "--task-timeout", "4", "--grace", "0.1"),  # long for the others on a busy host
        cwd=tmp_path,
    )
    assert done.returncode == 3, done.stderr
    found = {line["Seq"]: line for line in logged(tmp_path / "log")}
    ends = {seq: (line["Exitval"], line["Signal"], line["Outcome"]) for seq, line in found.items()}
    assert ends == {
        "0": ("0", "0", "done"),
        "1": ("7", "0", "failed"),
        "2": ("0", "9", "killed"),
        "3": ("-1", "0", "over time"),
    }
    assert all(float(line["JobRuntime"]) >= 0.0 for line in found.values())
    assert (found["0"]["Receive"], found["0"]["Input"], found["0"]["Command"]) == ("3", "0", command.replace("{}", "0"))


def test_a_job_log_says_how_often_a_command_was_tried(tmp_path):
    command = f"echo {{}} >> {tmp_path}/tries; test $(wc -l < {tmp_path}/tries) -eq 3"
    map_command(command, values=["1"], out=tmp_path / "out", retries=3, joblog=tmp_path / "log")
    (line,) = logged(tmp_path / "log")
    assert (line["Tries"], line["Outcome"]) == ("3", "done")


@contextmanager
def _opened_once_read(fifo, process):
    """Hold a FIFO open for writing, from when a command of the process reads it."""
    descriptor = None
    while descriptor is None:
        assert process.poll() is None
        with suppress(OSError):
            descriptor = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.01)
    try:
        yield
    finally:
        os.close(descriptor)


def test_a_job_log_grows_while_the_run_goes_on_and_stays_after_ctrl_c(tmp_path):
    os.mkfifo(tmp_path / "held")
    command = f"test {{}} = a || cat {tmp_path}/held"  # the second one ends only with the run
    words = ["--values", "a", "--values", "b", "-j", "1", "--joblog", "log", "--grace", "0"]
    log = tmp_path / "log"
    with (
        subprocess.Popen([*MAP, command, *words], cwd=tmp_path, stderr=subprocess.DEVNULL) as process,
        _opened_once_read(tmp_path / "held", process),
    ):
        while not (log.exists() and "\n0\t" in log.read_text()):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert [line["Seq"] for line in logged(log)] == ["0"]
    map_command("echo {}", values=["a", "b"], out=tmp_path / "results", resume=True, joblog=log, max_workers=1)
    assert [line["Input"] for line in logged(log)] == ["a", "a", "b"]


def test_a_corrected_command_adds_to_the_job_log_and_a_new_run_begins_it_anew(tmp_path):
    given = {"values": ["1", "2"], "out": tmp_path / "out", "joblog": tmp_path / "log"}
    map_command("test {} = 1", **given)
    map_command("true {}", **given)
    assert [line["Outcome"] for line in logged(tmp_path / "log")].count("failed") == 1
    assert len(logged(tmp_path / "log")) == 4
    map_command("true {}", **given, force=True)
    assert [line["Outcome"] for line in logged(tmp_path / "log")] == ["done", "done"]
    map_command("true {}", **given, resume=True)
    assert len(logged(tmp_path / "log")) == 2


def test_a_command_is_interpreted_by_the_shell_that_is_named(tmp_path):
    words = ["[[ {} == [ab] ]] && cat < <(echo {})", "--values", "a", "--values", "c", "--shell", "bash"]
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert results(tmp_path / "results") == {"000000": "a\n"}
    assert "c: failed on" in done.stderr
    assert "exit status: 1; its stderr is empty" in done.stderr
    assert "CROSSWIND-" not in done.stderr


def test_another_shell_makes_results_again(tmp_path):
    given = {"values": ["1"], "out": tmp_path, "resume": True}
    for shell, again in ((None, {}), ("bash", {"command or --name changed": 1}), ("bash", {})):
        runs = map_command("echo {}", shell=shell, **given)
        assert runs[0].data["resumed"]["again"] == again


def test_results_keep_the_directories_of_their_inputs(tree):
    inputs = ["a/x.txt", "./b/x.txt", "b/c/x.txt", "x.txt"]
    map_command("basename {output} > {output}; cat {input} >> {output}", inputs, "out", name="{dir}/{stem}.up")
    expected = {name.removesuffix("x.txt") + "x.up": f"x.up\n{name}" for name in ("a/x.txt", "b/x.txt", "x.txt")}
    assert results(tree / "out") == expected | {"b/c/x.up": "x.up\nb/c/x.txt"}
    (tree / "out/b/c/x.up").unlink()
    runs = map_command(
        "basename {output} > {output}; cat {input} >> {output}", inputs, "out", name="{dir}/{stem}.up", resume=True
    )
    assert runs[0].data["resumed"] == {"done": 3, "again": {"result is missing": 1}, "new": 0, "gone": 0}
    assert len(results(tree / "out")) == 4
    assert list((tree / "out").rglob("*.part")) == []


def test_directories_of_absolute_inputs_lie_below_out(tree):
    map_command("cat {}", [tree / "a/x.txt", tree / "b/x.txt"], tree / "out", name="{dir}/{name}")
    below = str(tree).lstrip("/")
    assert results(tree / "out") == {f"{below}/a/x.txt": "a/x.txt", f"{below}/b/x.txt": "b/x.txt"}


def test_names_may_be_sorted_into_directories(tmp_path):
    map_command("echo {}", values=["1", "2"], out=tmp_path / "out", name="by/{name}/stdout")
    assert results(tmp_path / "out") == {"by/1/stdout": "1\n", "by/2/stdout": "2\n"}


@pytest.mark.parametrize(
    ("name", "says", "hint"),
    [
        (None, "would both become 'x.txt'", "'{dir}/{name}' keeps them apart"),
        ("{stem}.o", "would both become 'x.o'", "'{dir}/{stem}.o' keeps them apart"),
        ("{dir}/same", "", None),
        ("../{dir}-{name}", "outside of --out", "change to a directory above all inputs"),
        ("/tmp/{dir}/{name}", "outside of --out", None),
        ("{dir}/", "no name of a file", None),
        ("{dir}/.crosswind-journal", "no name of a file", None),
        ("{directory}/{name}", "there is no {directory}", "{dir}"),
    ],
)
def test_names_that_leave_out_or_meet_are_refused(tree, name, says, hint):
    if says:
        with pytest.raises(DescriptionError) as caught:
            map_command("cat {}", ["a/x.txt", "b/x.txt"], "out", name=name)
        assert says in str(caught.value)
        assert (hint or "") in (caught.value.hint or "")
        assert not Path("out").exists()
    else:
        map_command("cat {}", ["a/x.txt", "b/x.txt"], "out", name=name)


def test_a_result_is_no_directory_of_another_and_no_file_stands_in_the_way(tree):
    with pytest.raises(DescriptionError, match="which is a directory of other results"):
        map_command("cat {}", ["b/x.txt", "b/c/x.txt"], "out", name="{dir}")
    (tree / "full").mkdir()
    (tree / "full/a").write_text("mine")
    with pytest.raises(DescriptionError, match="full/a: file exists"):
        map_command("cat {}", ["a/x.txt"], "full", name="{dir}/{name}", force=True)
    with pytest.raises(DescriptionError, match="would replace an input"):
        map_command("cat {}", ["a/x.txt"], ".", name="{dir}/{name}", force=True)
    assert (tree / "full/a").read_text() == "mine"


def test_what_a_pattern_matches_and_cannot_be_read_is_not_left_out_in_silence(tree):
    (tree / "a" / "link").symlink_to("nowhere")
    os.mkfifo(tree / "a" / "fifo")
    (tree / "a" / "directory").mkdir()
    done = run("cat {}", "--inputs", "a/*", cwd=tree)
    assert done.returncode == 3
    assert "1 input cannot be read and was left out: a/link" in " ".join(done.stderr.split())
    assert "a/fifo: it is a FIFO, not a regular file" in done.stderr
    assert done.stdout.startswith("1 of 2 files in ")
    assert ", 1 failed. Results: results/" in done.stdout
    assert results(tree / "results") == {"x.txt": "a/x.txt"}


def test_what_commands_print_on_stderr_is_shown_from_python_too(tmp_path, capfd):
    for quiet in (False, True):
        map_command("echo noted >&2; echo {}", values=["1"], out=tmp_path / str(quiet), max_workers=1, quiet=quiet)
        assert ("[cpu0] 1: noted" in capfd.readouterr().err) is not quiet
