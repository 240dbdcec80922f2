"""Longest first against all assignments tried one by one, its bound, and the verb."""

import itertools
import json
import math
import xml.etree.ElementTree as xml

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from crosswind.cli import app
from crosswind.errors import DescriptionError
from crosswind.lab.lpt import longest_first, tight, write_figure

SVG = "{http://www.w3.org/2000/svg}"


def makespan(times, assignment, machines):
    return max(sum(t for t, m in zip(times, assignment, strict=True) if m == machine) for machine in range(machines))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 3))
def test_the_optimum_is_that_of_all_assignments_tried_one_by_one(times, machines):
    found = longest_first(times, machines)
    every = itertools.product(range(machines), repeat=len(times))
    assert found.least == min(makespan(times, one, machines) for one in every)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=12), st.integers(1, 5))
def test_both_schedules_hold_every_job_once_and_end_when_they_say(times, machines):
    found = longest_first(times, machines)
    for schedule, last in ((found.longest_first, found.makespan), (found.optimum, found.least)):
        assert len(schedule) == machines
        assert sorted(job for jobs in schedule for job in jobs) == sorted(times)
        assert max(map(sum, schedule)) == last
    assert 1.0 <= found.ratio <= found.guarantee * (1 + 1e-12)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(1, 4))
def test_each_job_goes_to_a_machine_that_is_free_first(times, machines):
    """The rule itself, written again: the longest job that is left goes to a machine with the least to do."""
    loads = [0] * machines
    for job in sorted(times, reverse=True):
        loads[loads.index(min(loads))] += job
    assert sorted(map(sum, longest_first(times, machines).longest_first)) == sorted(loads)


@pytest.mark.parametrize("machines", [2, 3, 5])
def test_the_tight_jobs_reach_the_bound(machines):
    found = longest_first(tight(machines), machines)
    assert found.ratio == pytest.approx(4 / 3 - 1 / (3 * machines), rel=1e-12)


def test_an_optimum_that_is_not_proven_is_none_and_the_bound_holds():
    """`at most` is then said of a ratio to the mean load, which no schedule is below."""
    times = [float(job) for job in range(10, 61)]
    found = longest_first(times, 7)
    assert found.optimum is None
    assert found.least == math.fsum(times) / 7
    assert found.ratio > 1.0


@pytest.mark.parametrize(
    ("times", "machines", "said"),
    [
        ([], 2, "there are 0 jobs; there must be 1 to 1000"),
        ([1.0] * 1001, 2, "there are 1001 jobs"),
        ([1.0, 0.0], 2, "a job is 0; it must be greater than 0"),
        ([1.0, math.nan], 2, "a job is nan"),
        ([1.0, math.inf], 2, "a job is inf"),
        ([1.0], 0, "machines is 0; it must be a whole number from 1 to 100"),
        ([1.0], 101, "machines is 101"),
        ([1.0], True, "machines is True"),
    ],
)
def test_what_cannot_be_scheduled_is_refused_with_the_range(times, machines, said):
    with pytest.raises(DescriptionError, match=said):
        longest_first(times, machines)


def test_the_picture_has_each_job_of_both_schedules(tmp_path):
    out = tmp_path / "lpt.svg"
    write_figure(longest_first(tight(3), 3), out)
    svg = xml.fromstring(out.read_text())
    words = ["".join(text.itertext()) for text in svg.iter(f"{SVG}text")]
    assert [words.count(job) for job in ("5", "4", "3")] == [4, 4, 6]
    assert "longest first: the last job ends at 11" in words
    assert "1.222 times the optimum; at most 1.222 on 3 machines (4/3 - 1/(3m))" in words


def test_the_verb_prints_the_ratio_and_writes_the_picture(tmp_path):
    out = tmp_path / "lpt.png"
    done = CliRunner().invoke(app, ["lpt", "5", "5", "4", "4", "3", "3", "3", "-m", "3", "-o", str(out)])
    assert done.exit_code == 0
    assert done.output.startswith("Longest first ends at 11, 1.222 times the optimum, 9.\n")
    assert "These jobs reach it." in done.output
    assert out.read_bytes().startswith(b"\x89PNG")
    as_json = json.loads(CliRunner().invoke(app, ["lpt", "--tight", "-m", "3", "--json"]).output)
    assert (as_json["makespan"], as_json["least"]) == (11.0, 9.0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lpt"], "lpt takes the lengths of the jobs, or --tight"),
        (["lpt", "1", "--tight"], "lpt takes the lengths of the jobs, or --tight"),
        (["lpt", "1", "-o", "x.gif"], "its suffix must be one of .svg, .png, .pdf"),
    ],
)
def test_wrong_arguments_are_refused_before_the_work(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DescriptionError, match=said):
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []
