"""Grading: in a world as the paper prints it every claim holds; where a figure is changed, the claim about it falls."""

import json
from dataclasses import replace
from functools import partial

import disturbed
import pytest

from crosswind import _core, run
from crosswind.lab.papers import studies
from crosswind.lab.papers.grading import Claim
from crosswind.lab.papers.meter import Meter
from crosswind.lab.papers.scheduling_and_communication import figures, variants
from crosswind.lab.papers.scheduling_and_communication.calibration import (
    FULL,
    PROGRAMS,
    QUICK,
    Calibration,
    Filling,
    Reading,
)
from crosswind.lab.papers.scheduling_and_communication.daemons import disturbance, load
from crosswind.lab.papers.scheduling_and_communication.study import Study
from crosswind.run.results import ProgramRun, Runs

reproduce = partial(studies.reproduce, "scheduling-and-communication")


def with_makespans(figure, change):
    """Runs of all figures, those of one with other makespans."""
    runs = disturbed.study_runs()
    entries = [ProgramRun({**run.data, "makespan_s": change(run.params, run.makespan_s)}) for run in runs[figure]]
    old = runs[figure]
    return {**runs, figure: Runs(old.experiment, old.on, entries, old.digest, "program")}


@pytest.mark.parametrize("calibration", [QUICK, FULL], ids=lambda c: c.form)
def test_in_a_world_as_printed_every_claim_holds(calibration):
    study = disturbed.studied(calibration)
    assert [claim.id for claim in study.claims] == [f"D-{k}" for k in range(1, 9)]
    assert not otherwise(study), [
        (claim.id, check.text, check.found)
        for claim in study.claims
        for check in claim.checks
        if check.verdict != "holds"
    ]


def otherwise(study):
    """Return the claims of which a part does not hold, of those parts that are graded."""
    return {
        claim.id for claim in study.claims for check in claim.checks if not check.defect and check.verdict != "holds"
    }


def is_program(name):
    return lambda params: params["program"] == name


@pytest.mark.parametrize(
    ("figure", "change", "fallen"),
    [
        ("figure-4", lambda p, s: s * (3 if (p["program"], p["duration_s"]) == ("column", 0.05) else 1), {"D-1", "D-6"}),  # noqa: E501
        ("figure-4", lambda p, s: s * (0.7 if p["program"] == "em3d" else 1.0), {"D-6"}),
        ("figure-2", lambda p, s: s * (1.5 if p["quantum_s"] == 0.1 else 1.0), {"D-2"}),
        ("figure-2", lambda p, s: s * (0.05 if p["quantum_s"] == 0.5 else 1.0), {"D-3"}),
        ("figure-3", lambda p, s: s * (1.08 if p["skew_s"] > 5e-3 else 1.0), {"D-5"}),
        ("figure-5", lambda p, s: s * (0.7 if p["program"] == "em3d" and p["share"] < 1 else 1.0), {"D-7"}),
        ("figure-5", lambda p, s: s * (0.5 if p["window"] == 512 else 1.0), {"D-7"}),
        (figures.FINE_DISTURBED, lambda p, s: s * (0.5 if p["under"] == "daemons" else 1.0), {"D-6"}),
        (figures.SYNCS, lambda p, s: s * (9.0 if p["under"] == "local" else 1.0), {"D-1"}),
        (figures.SYNCS, lambda p, s: s * (1.04 if p.get("skew_s") else 1.0), {"D-5"}),
        (figures.SYNCS, lambda p, s: s * (2.0 if p["under"] == "daemons" else 1.0), {"D-1"}),
        (figures.BARRIERS, lambda p, s: 0.5 * s, {"D-1", "D-6"}),
        (figures.SKEWED_BARRIERS, lambda p, s: s * (1.02 if p["skew_s"] else 1.0), {"D-5"}),
        (variants.NAME, lambda p, s: s * (0.7 if p.get("rank") == 0 and p["program"] == "column" else 1.0), {"D-7"}),
        (figures.MORE_JOBS, lambda p, s: 0.1 * s, {"D-2"}),
        (figures.FINE_FILLING, lambda p, s: s * (3.0 if p["window"] == 1 else 1.0), {"D-8"}),
        (figures.FILLING, lambda p, s: s * (3.0 if (p["program"], p["window"]) == ("sample", 512) else 1.0), {"D-8"}),
        (figures.STAGGERED, lambda p, s: 0.5 * s, {"D-6"}),
        (figures.DISTURBED, lambda p, s: s * (0.5 if p["under"] == "daemons" and p["window"] == 512 else 1.0), {"D-6"}),
        (figures.DISTURBED, lambda p, s: s * (2.0 if p["under"] == "serial job" and p["window"] == 512 else 1.0), {"D-7"}),  # noqa: E501
        (figures.ONE_SUM, lambda p, s: s * (3.0 if p["window"] == 1 else 1.0), {"D-8"}),
        ("figure-1", lambda p, s: s * (3.0 if p["program"] == "connect" and p["window"] == 1 else 1.0), {"D-8"}),
    ],
)  # fmt: skip
def test_a_claim_falls_where_its_figure_is_otherwise(figure, change, fallen):
    study = disturbed.studied(runs=with_makespans(figure, change))
    assert otherwise(study) == fallen


POLLING = replace(QUICK, polls=(True, False), filling_disturbed=PROGRAMS)


@pytest.mark.parametrize(
    ("figure", "change", "opened"),
    [
        (
            "figure-4",
            lambda p, s: s * (0.7 if p["program"] == "sample" and p["polls"] and p["duration_s"] == 0.05 else 1),
            {"SAMPLE is slowed"},
        ),
        ("figure-4", lambda p, s: s * (1.1 if p["program"] == "column" and not p["polls"] else 1), {"COLUMN below"}),
        (figures.LONGER, lambda p, s: s * (1.1 if p["duration_s"] == 0.01 else 1), {"10 ms every 5 s"}),
        (figures.LONGER, lambda p, s: s * (2 if "gets_per_sync" in p else 1), {"EM3D is slowed down most"}),
        (figures.LONGER, lambda p, s: s * (0.7 if "operation_s" in p else 1), {"SAMPLE is slowed"}),
        (
            figures.DISTURBED,
            lambda p, s: s * (1.1 if p["program"] == "column" and p["under"] == "daemons" else 1),
            {"COLUMN below"},
        ),
    ],
)
def test_each_way_in_which_a_daemon_may_poll_can_turn_what_is_claimed_of_daemons_that_poll(figure, change, opened):
    runs = disturbed.study_runs(POLLING)
    entries = [ProgramRun({**run.data, "makespan_s": change(run.params, run.makespan_s)}) for run in runs[figure]]
    runs[figure] = Runs(runs[figure].experiment, "sim", entries, "digest", "program")
    claims = disturbed.studied(POLLING, runs).claims
    turned = [
        check.text
        for claim in claims
        for check in claim.checks
        if not check.defect and check.verdict != "holds" and "poll" in check.text
    ]
    assert turned
    assert all(any(part in text for part in opened) for text in turned), turned


def test_a_daemon_that_polls_changes_nothing_where_credits_return_when_packets_are_handled():
    calibration = replace(SMALL, parameters=TINY | {"em3d": {"nodes_per_rank": 10, "steps": 500}})
    made = {}
    for credit in ("handled", "extracted"):
        for polls in (True, False):
            daemon = figures.described("daemon", interval_s=0.02, duration_s=0.005, polls=polls)
            setting = ({"program": "em3d", "window": 1, "credit": credit, "polls": polls}, daemon)
            grid = figures.FigureGrid(figures.Figure("daemons", "polling", [setting]), calibration)
            made[credit, polls] = [one.makespan_s for one in run(grid, workers=1)]
    assert made["handled", True] == made["handled", False]
    assert made["extracted", True] != made["extracted", False]


def test_what_the_text_does_not_say_about_daemons_is_named():
    study = disturbed.studied(runs=with_makespans("figure-4", lambda p, s: s * (0.7 if p["program"] == "em3d" else 1)))
    (d6,) = [claim for claim in study.claims if claim.id == "D-6"]
    assert d6.verdict == "not decidable from the text"
    assert "1.90 on average, one after the other 2.78" in d6.hangs_on
    assert Claim.from_dict(d6.summary()) == d6


def test_a_claim_on_which_readings_disagree_is_not_decidable_and_says_under_which_it_holds():
    def only_drifting(params, makespan_s):
        return makespan_s * (4.0 if params["phases"] == "spread" and params["quantum_s"] == 0.1 else 1.0)

    claim = disturbed.studied(runs=with_makespans("figure-2", only_drifting)).claims[1]
    assert (claim.id, claim.verdict) == ("D-2", "not decidable from the text")
    found = claim.checks[0].found
    assert "phases spread, credit back when handled: em3d 28.00 (does not)" in found
    assert "phases drifting, credit back when handled: em3d 7.00 (holds)" in found


def test_a_study_is_read_back_as_it_was_written(tmp_path):
    study = disturbed.studied()
    study.save(tmp_path / "study.json")
    assert Study.load(tmp_path / "study.json") == replace(study, claims=study.claims)


def test_table_1_as_a_disturbance_has_the_rates_of_the_table():
    sources = disturbance()["source"]
    assert [source["cause"] for source in sources] == [one.daemon for one in load()]
    means = [source["interval_s"]["mean"] for source in sources]
    assert means == [60, 30, 25, 25, 200]


def all_figures(calibration, best):
    tried = figures.Rows(disturbed.study_runs(calibration))
    for_best = (figures.coscheduled, figures.local_windows, figures.skew, figures.daemons, figures.shared_node)
    made = [make(calibration, best) for make in (*for_best, variants.not_built)]
    return [figures.windows(calibration), figures.local(calibration, best, tried), *made]


@pytest.mark.parametrize("calibration", [QUICK, FULL], ids=lambda c: c.form)
def test_every_point_of_a_figure_is_there_once_whatever_the_windows_found_best(calibration):
    for best in (disturbed.BEST_WINDOW, dict.fromkeys(disturbed.BEST_WINDOW, calibration.large_window)):
        for figure in all_figures(calibration, best):
            settings = [str(sorted(params.items(), key=str)) for params, _ in figure.settings]
            assert len(settings) == len(set(settings)), figure.id


def test_what_is_drawn_is_run_for_every_seed_on_the_same_data_and_what_is_not_once():
    for figure in all_figures(FULL, disturbed.BEST_WINDOW):
        grid = figures.FigureGrid(figure, FULL)
        points = list(grid.points())
        assert sorted(point.number for point in points) == list(range(len(grid)))
        assert {point.description["workload"]["seed"] for point in points} == {FULL.seed}
        seeds = {}
        for point in points:
            seeds.setdefault(json.dumps(point.params, sort_keys=True), []).append(point.seed)
        for params, other in figure.settings:
            drawn = figures.is_drawn(other)
            assert sorted(seeds[json.dumps(params, sort_keys=True)]) == ([1, 2, 3, 4, 5] if drawn else [1])


def test_programs_take_turns_so_that_the_pace_so_far_is_that_of_all():
    points = figures.FigureGrid(figures.windows(FULL), FULL).points()
    assert [next(points).params["program"] for _ in range(2 * len(PROGRAMS))] == [*PROGRAMS, *PROGRAMS]


def test_figure_2_has_the_window_that_is_best_dedicated_and_the_fastest_of_those_tried():
    runs = disturbed.study_runs(FULL)
    for claimed in figures.Rows(runs).of("figure-2", quantum_s=0.5):
        own = {key: claimed.params[key] for key in ("program", "phases", "credit", "quantum_s")}
        tried = figures.Rows(runs).of("figure-2-windows", **own)
        fastest = min(tried, key=lambda row: (row.makespan_s, row.params["window"])).params["window"]
        found = {row.params["window"] for row in figures.Rows(runs).of("figure-2", **own)}
        assert found == {disturbed.BEST_WINDOW[own["program"]], fastest}


def test_time_left_is_at_the_pace_of_what_was_run_now_and_knows_what_stood_in_files():
    now, told = [0.0], []
    meter = Meter({"a": 100, "b": 300}, lambda part, text: told.append((part, text)), clock=lambda: now[0])
    first = meter.within("a", 100, kept=90)
    now[0] = 20.0
    first(1.0, "")
    assert told[-1] == (0.25, "100 of about 400 runs, about 10 min left")
    second = meter.within("b", 200, kept=0)
    now[0] = 40.0
    second(0.05, "")
    assert told[-1] == (110 / 300, "110 of about 300 runs, about 6 min left")


TINY = {
    "cholesky": {"grid_length": 16, "matrices": 2},
    "connect": {"vertices_per_rank": 64},
    "column": {"keys_per_rank": 64},
    "em3d": {"nodes_per_rank": 10, "steps": 5},
    "sample": {"keys_per_rank": 64},
}
SMALL = Calibration(
    "quick",
    ranks=4,
    repetitions=2,
    variant_repetitions=1,
    parameters=TINY,
    windows=(1, 8),
    coscheduled_windows=(8,),
    local_windows=(8,),
    local_quanta_s=(0.1, 0.5),
    skews_s=(1e-2,),
    daemon_intervals_s=(5.0, 10.0),
    shares=(0.2, 0.5, 1.0),
    shared_rank=1,
    slowed_ranks=(0, 2),
    readings=(Reading("spread", "handled"), Reading("spread", "extracted")),
    fillings=(Filling(2, 1),),
    filling_windows=(1, 8),
    filling_parameters=TINY,
    filling_disturbed=("sample", "cholesky"),
)


def test_a_study_that_was_stopped_goes_on_with_what_it_has_and_comes_to_the_same(tmp_path, monkeypatch):
    class StoppedError(Exception):
        pass

    whole = reproduce(tmp_path / "whole", calibration=SMALL)
    run = []
    simulate = _core.simulate_program

    def counted(*args, **kwargs):
        run.append(args)
        return simulate(*args, **kwargs)

    def stop(part, text):
        if part > 0.5:
            raise StoppedError

    monkeypatch.setattr(_core, "simulate_program", counted)
    with pytest.raises(StoppedError):
        reproduce(tmp_path / "parts", calibration=SMALL, workers=1, progress=stop)
    before = len(run)
    again = reproduce(tmp_path / "parts", calibration=SMALL, workers=1)
    assert again == whole
    assert 0 < len(run) - before < 0.7 * before / 0.5
    run.clear()
    assert reproduce(tmp_path / "parts", calibration=SMALL) == whole
    assert not run


def test_other_daemons_give_credits_back_early_so_that_polling_can_change_something():
    for params, daemon in figures.daemons(FULL, disturbed.BEST_WINDOW).settings:
        assert (params["credit"] == "extracted") == params["polls"] == daemon["source"][0]["polls"]
