"""A task of which too few runs fit into the time limit is refused after one run."""

from __future__ import annotations

import time

import pytest

from crosswind.errors import MeasurementError
from crosswind.measure import task
from crosswind.measure.task import fewest_runs, for_probe, refuse_slow


def test_a_slow_command_is_refused_with_the_time_of_a_run():
    """Before, a task of 4 s made `--max-seconds 20` take 236 s."""
    with pytest.raises(MeasurementError, match=r"one run of --task takes 0\.\d+ s; a measurement takes at least 365"):
        refuse_slow("sleep 0.3", 2, 20.0)
    with pytest.raises(MeasurementError, match=r"takes over 0\.2 s"):
        refuse_slow("sleep 300", 2, 0.2)


def test_a_slow_call_is_refused():
    with pytest.raises(MeasurementError, match="one run of --task"):
        refuse_slow(lambda: time.sleep(0.1), 1, 1.0)


def test_a_short_task_is_taken():
    refuse_slow(lambda: None, 2, 60.0)


@pytest.mark.parametrize("first_s", [0.01, 0.06, 1.0])
def test_a_first_run_that_was_slow_is_done_again(monkeypatch, first_s):
    """It may have read a file from a disk, or have compiled something."""
    times = iter([first_s, 0.001])
    monkeypatch.setattr(task, "_timed", lambda *_: next(times))
    refuse_slow("true", 1, 60.0)
    assert list(times) == ([] if first_s > 60.0 / fewest_runs(1) else [0.001])


def test_what_is_for_a_shell_is_run_by_one_whatever_it_holds():
    """The probe has a shell run a line that holds a character of a shell's; a builtin alone has none."""
    assert for_probe("ulimit -n", shell=True) == "ulimit -n\n"


@pytest.mark.parametrize("text", ["true 'a b'", 'true "it\'s"', "true a=b"])
def test_the_probe_gets_the_same_words(text):
    import shlex

    given = for_probe(text)
    assert shlex.split(given.removeprefix("exec ")) == shlex.split(text)
