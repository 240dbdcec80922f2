"""Grading: in a world as the paper prints it every claim holds; where a figure is changed, the claim about it falls."""

from dataclasses import replace

import disturbed
import pytest

from crosswind.papers.scheduling_and_communication.calibration import FULL, QUICK
from crosswind.papers.scheduling_and_communication.daemons import disturbance, load
from crosswind.papers.scheduling_and_communication.study import Study
from crosswind.run.results import ProgramRun, Runs


def with_makespans(figure, change):
    """Runs of all figures, those of one with other makespans."""
    runs = disturbed.study_runs()
    entries = [ProgramRun({**run.data, "makespan_s": change(run.params, run.makespan_s)}) for run in runs[figure]]
    old = runs[figure]
    return {**runs, figure: Runs(old.experiment, old.on, entries, old.digest, "program")}


@pytest.mark.parametrize("calibration", [QUICK, FULL], ids=lambda c: c.form)
def test_in_a_world_as_printed_every_claim_holds(calibration):
    study = disturbed.studied(calibration)
    assert {claim.id: claim.verdict for claim in study.claims} == {f"D-{k}": "holds" for k in range(1, 9)}, [
        (claim.id, check.text, check.found)
        for claim in study.claims
        for check in claim.checks
        if check.verdict != "holds"
    ]


def is_program(name):
    return lambda params: params["program"] == name


@pytest.mark.parametrize(
    ("figure", "change", "fallen"),
    [
        ("figure-4", lambda p, s: s * (3 if (p["program"], p["duration_s"]) == ("column", 0.05) else 1), {"D-1", "D-6"}),  # noqa: E501
        ("figure-4", lambda p, s: s * (0.7 if p["program"] == "em3d" else 1.0), {"D-6"}),
        ("figure-2", lambda p, s: s * (1.5 if p["quantum_s"] == 0.1 else 1.0), {"D-2"}),
        ("figure-2", lambda p, s: s * (0.05 if p["quantum_s"] == 0.5 else 1.0), {"D-3"}),
        ("section-4", lambda p, s: 1.1 * s, {"D-4"}),
        ("figure-3", lambda p, s: s * (1.08 if p["skew_s"] > 5e-3 else 1.0), {"D-5"}),
        ("figure-5", lambda p, s: s * (1.2 if p["program"] == "em3d" and p["share"] < 1 else 1.0), {"D-7"}),
        ("figure-5", lambda p, s: s * (1.3 if p["polls"] and p["share"] < 1 else 1.0), {"D-7"}),
        ("figure-1", lambda p, s: s * (3.0 if p["program"] == "connect" and p["window"] == 1 else 1.0), {"D-8"}),
    ],
)  # fmt: skip
def test_a_claim_falls_where_its_figure_is_otherwise(figure, change, fallen):
    study = disturbed.studied(runs=with_makespans(figure, change))
    assert {claim.id for claim in study.claims if claim.verdict == "does not hold"} == fallen


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


def test_every_point_of_a_figure_is_there_once_whatever_the_windows_found_best():
    from crosswind.papers.scheduling_and_communication import figures

    for make in (figures.coscheduled, figures.local, figures.skew, figures.daemons, figures.shared_node):
        for best in (disturbed.BEST_WINDOW, dict.fromkeys(disturbed.BEST_WINDOW, QUICK.large_window)):
            settings = [str(sorted(params.items())) for params, _ in make(QUICK, best).settings]
            assert len(settings) == len(set(settings))
