"""Grading messages that meet: in a world as printed every claim holds; where a figure is otherwise, its claim falls."""

import copy
import json
from functools import partial

import interacting
import pytest

from crosswind import _core
from crosswind.errors import DescriptionError
from crosswind.lab.papers import studies
from crosswind.lab.papers.communication_interactions.calibration import (
    FLOWS,
    FULL,
    PROGRAMS,
    QUICK,
    Calibration,
    FlowReading,
    StreamReading,
    message_s,
)
from crosswind.lab.papers.communication_interactions.figures import all_figures
from crosswind.lab.papers.tabled_study import TabledStudy
from crosswind.report.sections.study import studied_section
from crosswind.run.results import Runs

reproduce = partial(studies.reproduce, "communication-interactions")


def changed(figure, change):
    """Runs of all figures, those of one changed."""
    runs = interacting.study_runs()
    old = runs[figure]
    entries = []
    for run in old:
        data = copy.deepcopy(dict(run.data))
        change(run.params, data)
        entries.append(type(run)(data))
    return {**runs, figure: Runs(old.experiment, old.on, entries, old.digest, "streams")}


def otherwise(study):
    """Return the claims of which a part does not hold, of those parts that are graded."""
    graded = [(claim.id, check) for claim in study.claims for check in claim.checks if not check.defect]
    return {claim for claim, check in graded if check.verdict != "holds"}


def test_in_a_world_as_printed_every_claim_holds():
    study = interacting.studied()
    assert not otherwise(study), [
        (claim.id, check.text, check.found)
        for claim in study.claims
        for check in claim.checks
        if check.verdict != "holds" and not check.defect
    ]


def lose_more(params, data):
    data["streams"][0]["latency_s"]["fifo"]["mean"] *= 1.2


def slow_the_job(program):
    def change(params, data):
        if params["program"] == program:
            data["jobs"][0]["fifo_s"] *= 2.0

    return change


def leave_two_queues_as_slow_as_one(params, data):
    data["streams"][0]["slowdown_queued"] = data["streams"][0]["slowdown_fifo"]


def slow_the_local_stream(params, data):
    data["streams"][1]["slowdown_queued"] = 4.0


def hurry_the_local_stream(params, data):
    data["streams"][1]["latency_s"]["fifo"]["mean"] *= 0.5


def spare_the_local_stream(params, data):
    data["streams"][1]["slowdown_queued"] = 1.0


@pytest.mark.parametrize(
    ("figure", "change", "fallen"),
    [
        ("figure-2", lose_more, {"N-1"}),
        ("table-2", lose_more, {"N-1"}),
        ("figures-3-4", slow_the_job("is"), {"N-2"}),
        ("figures-3-4", slow_the_job("mg"), {"N-2"}),
        ("figure-8", leave_two_queues_as_slow_as_one, {"N-3"}),
        ("figure-9", leave_two_queues_as_slow_as_one, {"N-3"}),
        ("figure-8", slow_the_local_stream, {"N-4"}),
        ("figure-10", hurry_the_local_stream, {"N-4"}),
    ],
)
def test_a_claim_falls_where_its_figure_is_otherwise(figure, change, fallen):
    study = interacting.studied(runs=changed(figure, change))
    assert otherwise(study) == fallen


def test_a_claim_on_which_readings_disagree_is_not_decidable_and_says_under_which_it_holds():
    def only_one_at_a_time(params, data):
        if params.get("batch") == 24:
            spare_the_local_stream(params, data)

    claim = interacting.studied(runs=changed("figure-8", only_one_at_a_time)).claims[3]
    assert (claim.id, claim.verdict) == ("N-4", "not decidable from the text")
    reading = next(one for one in QUICK.streams if one.batch == 24)
    assert f"{reading.name}: 0.83 times as slow as with one (does not)" in claim.checks[0].found


def test_a_study_is_read_back_as_it_was_written(tmp_path):
    study = interacting.studied()
    study.save(tmp_path / "study.json")
    assert TabledStudy.load(tmp_path / "study.json").summary() == study.summary()


@pytest.mark.parametrize("calibration", [QUICK, FULL], ids=lambda c: c.form)
def test_every_point_of_a_figure_is_there_once_for_each_seed(calibration):
    for figure in all_figures(calibration):
        settings = [json.dumps(params, sort_keys=True) for params, _ in figure.settings]
        assert len(settings) == len(set(settings)), figure.id
        points = list(figure.points())
        assert [point.number for point in points] == list(range(len(figure)))
        seeds = {point.seed for point in points}
        assert len(seeds) == figure.repetitions


def test_the_report_has_a_table_for_every_part_and_draws_each_reading():
    study = interacting.studied()
    section = studied_section(study, 1)
    assert [heading for heading, _, _ in section.parts] == [part.title for part in study.parts]
    drawn = {part.id: len(part.drawings) for part in study.parts}
    assert drawn == {
        "figure-2": 3, "table-2": 0, "section-4.3": 0, "figure-3": 5, "figure-4": 5,
        "figure-8": 4, "figure-9": 4, "figure-10": 4,
    }  # fmt: skip
    assert "Of 4 claims 2 hold (N-3, N-4); 2 cannot be decided (N-1, N-2)." in section.headline


def test_skeletons_are_told_with_their_totals_and_refuse_what_is_no_kernel():
    mg = json.loads(_core.skeleton("mg", 4))
    assert (mg["messages"], mg["supersteps"], round(mg["bytes"] / 2**20, 1)) == (816, 68, 24.5)
    assert json.loads(_core.skeleton("mg", 8, '{"partners": "all"}'))["messages"] == 3264
    with pytest.raises(DescriptionError, match='program is "lu"; it must be one of mg, ft, ep, is'):
        _core.skeleton("lu", 4)
    with pytest.raises(DescriptionError, match=r"parameters\.iterations is 0; it must be a whole number from 1"):
        _core.skeleton("ft", 4, '{"iterations": 0}')


SMALL = Calibration(
    "quick",
    repetitions=1,
    flows=(1, 2),
    alphas=(100, 2000),
    program_hosts=(2, 4),
    programs=(
        ("mg", {"side_log2": 4, "cycles": 1}),
        ("ft", {"points_log2": 10, "iterations": 1}),
        *((name, {"operation_s": 1e-9}) for name in PROGRAMS[2:]),
    ),
    local_kib=(2, 16),
    messages=20,
    streams=(StreamReading(1),),
    variants=(),
    stream_repetitions=1,
    flow_arrivals=(FlowReading("closed"),),
)


def test_a_study_that_was_stopped_goes_on_with_what_it_has_and_comes_to_the_same(tmp_path, monkeypatch):
    class StoppedError(Exception):
        pass

    whole = reproduce(tmp_path / "whole", calibration=SMALL)
    assert [claim.id for claim in whole.claims] == ["N-1", "N-2", "N-3", "N-4"]
    run = []
    simulate = _core.simulate_streams

    def counted(*args, **kwargs):
        run.append(args)
        return simulate(*args, **kwargs)

    def stop(part, text):
        if part > 0.5:
            raise StoppedError

    monkeypatch.setattr(_core, "simulate_streams", counted)
    with pytest.raises(StoppedError):
        reproduce(tmp_path / "parts", calibration=SMALL, workers=1, progress=stop)
    before = len(run)
    assert reproduce(tmp_path / "parts", calibration=SMALL, workers=1).summary() == whole.summary()
    assert 0 < len(run) - before < before / 0.5
    run.clear()
    assert reproduce(tmp_path / "parts", calibration=SMALL).summary() == whole.summary()
    assert not run


def test_a_message_takes_alone_what_the_rates_of_flows_suppose(tmp_path):
    reproduce(tmp_path, calibration=SMALL)
    for run in Runs.load(tmp_path / "figure-2.json"):
        alone = run.data["streams"][0]["latency_s"]["alone"]["mean"]
        assert alone == pytest.approx(message_s(FLOWS[run.params["type"]]), rel=1e-3)


def test_one_queue_slows_the_small_stream_by_what_the_closed_form_says(tmp_path):
    # 1 + L_local / L_test in frames: a frame of A waits for the frames of one local message.
    reproduce(tmp_path, calibration=SMALL)
    for run in Runs.load(tmp_path / "figure-8.json"):
        if run.params["stream"] == "A":
            slow = run.data["streams"][0]["slowdown_fifo"]
            assert slow == pytest.approx(1.0 + run.params["local_kib"], rel=0.25), run.params
