"""Ctrl-C: each verb says so, and names a file of results only where that file holds some."""

import os
import signal
import subprocess
import sys

import pytest

from crosswind.cli.interruption import tells_what_is_kept


def interrupted(out, write=lambda: None):
    def work():
        with tells_what_is_kept(out):
            write()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()


def test_a_file_that_was_not_written_is_not_promised(tmp_path, capsys):
    interrupted(tmp_path / "blame.json")
    assert "blame.json was not written" in capsys.readouterr().err.replace("\n", "")


def test_a_file_of_before_is_told_apart_from_one_that_was_written(tmp_path, capsys):
    out = tmp_path / "blame.json"
    out.write_text("of before")
    interrupted(out)
    assert "blame.json is as it was" in capsys.readouterr().err.replace("\n", "")

    def replace():
        (tmp_path / "part").write_text("of now")
        (tmp_path / "part").replace(out)

    interrupted(out, replace)
    assert "holds the runs that were finished; --resume" in capsys.readouterr().err.replace("\n", " ")


def test_a_directory_of_results_is_promised_once_something_is_in_it(tmp_path, capsys):
    interrupted(tmp_path)
    assert "is as it was" in capsys.readouterr().err
    interrupted(tmp_path, lambda: (tmp_path / "runs.json").write_text("of now"))
    assert "holds the runs" in capsys.readouterr().err


def test_without_a_file_nothing_is_said_of_one(capsys):
    interrupted(None)
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_every_verb_says_that_it_was_interrupted(tmp_path):
    waits = tmp_path / "platform.toml"
    os.mkfifo(waits)  # until it is written to, the verb waits for it
    command = [sys.executable, "-m", "crosswind.cli", "plan", str(waits), "--task-size-mb", "1", "--task-work", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        writer = os.open(waits, os.O_WRONLY)  # opened once the verb reads
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        os.close(writer)
    assert (process.returncode, said) == (130, "error: interrupted\n")
