"""What `run --beside` says of schedules: the fastest only where chance does not explain it."""

import pytest

from crosswind.cli.jobs import answer_of
from crosswind.run.results import ProgramRun, Runs

ALONE_S = {"a": 2.0, "b": 1.0}


def runs(lasts):
    """Return jobs a and b of which a is done last, at `lasts` by schedule and repetition."""
    made = []
    for schedule, seconds in {"alone": [2.0] * len(next(iter(lasts.values()))), **lasts}.items():
        for job, alone_s in ALONE_S.items():
            for seed, last in enumerate(seconds):
                took = last if job == "a" else last - alone_s
                about = {"job": job, "schedule": schedule, "on": "local"}
                entry = {"params": about, "seed": seed, "makespan_s": took, "slowdown_dedicated": took / alone_s}
                made.append(ProgramRun(entry))
    return Runs("a beside b", "local", made, kind="program")


def test_one_run_each_names_no_schedule():
    lines = answer_of(runs({"gang": [4.0], "block": [3.0]})).lines
    assert lines == [
        "All 2 jobs together took 3.00 s under block, 4.00 s under gang, each in a single run.",
        "Which schedule is the fastest is not known from one run each: --set repetitions=5 tells.",
        "One after the other, each alone, they take 3.00 s.",
    ]


def test_the_fastest_schedule_is_named_where_all_others_are_behind_it_for_sure():
    lines = answer_of(runs({"gang": [4.0, 4.1, 4.05], "block": [3.0, 3.1, 3.0], "local": [9.0, 9.2, 9.1]})).lines
    assert lines[0].startswith("block is the fastest: all 2 jobs together take 3.03 s ±")


@pytest.mark.parametrize("gang", [[3.0, 3.2, 2.9], [2.0, 4.5, 3.1]])
def test_schedules_that_chance_may_have_ordered_are_not_ranked(gang):
    lines = answer_of(runs({"gang": gang, "block": [2.9, 3.0, 3.1]})).lines
    assert not any("fastest" in line for line in lines)
    assert lines[1].endswith("may be chance in 3 repetitions.")


def test_one_schedule_has_its_time_and_interval():
    lines = answer_of(runs({"gang": [4.0, 4.2]})).lines
    assert lines[0] == "All 2 jobs together take 4.1 s ± 1.3 under gang."
