"""The job log of `crosswind map`: its columns, its times, and what it does to a file that is there."""

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from crosswind import DescriptionError, MeasurementError, map_command
from crosswind.files.kinds import found_at
from crosswind.run.agents import Ran, Result
from crosswind.run.joblog import HEAD, PARALLEL, End, Job, Joblog

LINE = "run {}"


class Notice:
    """A farm that has recorded events."""

    def __init__(self, *messages):
        self.messages = messages

    def events(self, known):
        return [("task-tried-again", "n", message) for message in self.messages[known:]]


def job_of(number):
    return Job(f"run {number}", str(number), is_value=True)


def log(path, *, append=False, job_of=job_of, farm=None):
    opened = Joblog(path, append=append, line=LINE, job_of=job_of)
    opened.begin(farm or Notice())
    return opened


def failure(text):
    return f"{LINE}: {text}".encode()


def lines(path):
    return [dict(zip(HEAD.split(), line.split("\t"), strict=True)) for line in path.read_text().splitlines()[1:]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("exit status: 3; its stderr is empty", End(3, 0, "failed")),
        ("signal: 9 (SIGKILL); the end of its stderr:\nexit status: 0", End(0, 9, "killed")),
        ("signal: 11 (SIGSEGV) (core dumped); its stderr is empty", End(0, 11, "killed")),
        ("over its time of 0.2 s (--task-timeout); its stderr is empty", End(-1, 0, "over time")),
        ("over its memory of 32 MB (--task-memory); its stderr is empty", End(-1, 0, "over memory")),
        ("it left no {output}: No such file or directory (os error 2)", End(-1, 0, "no output")),
        ("it left a directory as {output}, not a regular file", End(-1, 0, "no output")),
        ("it was ended from outside; its stderr is empty", End(-1, 0, "lost")),
        ("task 3 was being computed 5 times when an agent was lost, and is given up", End(-1, 0, "lost")),
        ("No such file or directory (os error 2)", End(-1, 0, "error")),
        ("", End(-1, 0, "error")),
    ],
)
def test_the_outcome_is_what_the_failure_says(text, expected):
    assert End.of(text) == expected


def test_each_line_is_there_as_soon_as_its_result_is_taken(tmp_path):
    with log(tmp_path / "log", farm=Notice("task 1 failed, was tried 3 times and failed again")) as opened:
        assert (tmp_path / "log").read_text() == HEAD
        opened.take(Result(0, True, b"abc", "cpu0"))
        opened.take(Result(1, False, failure("exit status: 2; its stderr is empty"), "cpu1"))
        first, second = lines(tmp_path / "log")
    assert (first["Seq"], first["Host"], first["Receive"], first["Exitval"], first["Outcome"]) == (
        *("0", "cpu0", "3", "0"),
        "done",
    )
    assert (second["Exitval"], second["Signal"], second["Tries"], second["Outcome"]) == ("2", "0", "3", "failed")
    assert second["Command"] == "run 1"
    assert first["Tries"] == "1"


def test_times_are_those_that_the_node_has_measured(tmp_path, monkeypatch):
    monkeypatch.setattr("time.monotonic", lambda: 110.0)
    monkeypatch.setattr("time.time", lambda: 1e9 + 110.0)
    (tmp_path / "result").write_text("four")
    with log(tmp_path / "log") as opened:
        opened.take(Result(0, True, b"", "a", Ran(102.0, 1.5)))
        opened.take(Result(1, True, tmp_path / "result", "a", Ran(101.0, 0.25)))
        opened.take(Result(2, False, failure("task 2 was being computed 5 times when an agent was lost"), "a"))
    found = [(float(line["Starttime"]) - 1e9, float(line["JobRuntime"])) for line in lines(tmp_path / "log")]
    assert found == [(102.0, 1.5), (101.0, 0.25), (110.0, 0.0)]
    assert lines(tmp_path / "log")[1]["Receive"] == "4"


def test_odd_characters_stay_within_their_column(tmp_path):
    odd = "a\tb\nc\\d\udce9"
    with log(tmp_path / "log", job_of=lambda number: Job(f"cat '{odd}'", odd, is_value=True)) as opened:
        opened.take(Result(0, True, b"", "a"))
    head, line = (tmp_path / "log").read_bytes().splitlines()
    assert head.decode() + "\n" == HEAD
    assert line.split(b"\t")[8:10] == [b"cat 'a\\tb\\nc\\\\d\xe9'", b"a\\tb\\nc\\\\d\xe9"]


def test_an_appended_log_keeps_its_lines_and_ends_one_that_was_cut(tmp_path):
    path = tmp_path / "log"
    path.write_text(HEAD + "0\tcpu0\tcut")
    with log(path, append=True) as opened:
        opened.take(Result(4, True, b"", "a"))
    head, cut, line = path.read_text().splitlines()
    assert (head + "\n", cut) == (HEAD, "0\tcpu0\tcut")
    assert line.startswith("4\ta\t")
    log(path).__exit__()
    assert path.read_text() == HEAD


def test_a_disk_that_is_full_is_named(tmp_path, monkeypatch):
    def write(descriptor, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    with log(tmp_path / "log") as opened:
        monkeypatch.setattr(os, "write", write)
        with pytest.raises(MeasurementError, match="no space left on") as caught:
            opened.take(Result(0, True, b"", "a"))
    assert caught.value.code == "disk-full"


def test_the_columns_are_those_of_parallel_and_its_own_log_is_not_replaced(tmp_path):
    if shutil.which("parallel") is None:
        pytest.skip("GNU parallel is not installed")
    path = tmp_path / "log"
    subprocess.run(["parallel", "--joblog", path, "true", ":::", "1"], check=True, capture_output=True)
    assert path.read_text().splitlines()[0] == PARALLEL
    assert found_at(path).kind != "joblog"
    with pytest.raises(DescriptionError, match="a file of another kind; a job log would take its place"):
        map_command("true {}", values=["1"], out=tmp_path / "out", joblog=path)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("out", "a directory"),
        ("out/000000", "which the run itself writes"),
        ("out/.crosswind-journal", "which the run itself writes"),
        ("none/log", "in a directory that does not exist"),
        ("/dev/full", "a device"),
        ("-", "standard output"),
        ("text", "a file of another kind"),
    ],
)
def test_a_log_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch, name, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("mine")
    (tmp_path / "out").mkdir()
    with pytest.raises(DescriptionError, match="--joblog") as caught:
        map_command("true {}", values=["1"], out="out", joblog=name)
    assert says in str(caught.value)
    assert caught.value.hint
    assert (tmp_path / "text").read_text() == "mine"
    assert not list((tmp_path / "out").iterdir())


def test_an_input_is_no_log(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(DescriptionError, match="an input of the same command"):
        map_command("cat {}", [tmp_path / "a"], tmp_path / "out", joblog=tmp_path / "a", force=True)


def test_a_log_is_known_by_its_head(tmp_path):
    Path(tmp_path / "log").write_text(HEAD)
    assert found_at(tmp_path / "log").kind == "joblog"
