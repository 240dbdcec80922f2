"""Quadrics overlap, run again: the simulated matrix, how claims are graded, what is stored and reported."""

import html
import json
import re
from dataclasses import replace
from functools import partial

import pytest

from crosswind import _core
from crosswind.errors import DescriptionError
from crosswind.lab.papers import studies
from crosswind.lab.papers.quadrics_overlap.calibration import FULL, QUICK
from crosswind.lab.papers.quadrics_overlap.claims import claims
from crosswind.lab.papers.quadrics_overlap.matrix import Times, simulate
from crosswind.lab.papers.quadrics_overlap.study import LINGERS, PROMPT
from crosswind.lab.papers.quadrics_overlap.tables import BURN_S, CELLS, SETTINGS, load, printed
from crosswind.lab.papers.tabled_study import TabledStudy
from crosswind.report import report

reproduce = partial(studies.reproduce, "quadrics-overlap")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return reproduce(tmp_path_factory.mktemp("study"), workers=1)


def as_printed():
    """The matrix of the paper's own tables, but for the case whose variance the paper calls high (E3-1, E3-5)."""
    matrix = {}
    for row in load():
        if row.setting != "alone":
            alone = printed("alone", row.cell).ping_s
            ping_s = alone if row.setting == "event" and row.cell == (1, 64) else row.ping_s
            matrix[row.setting, row.cell] = Times(alone, BURN_S, ping_s, row.burn_s, 0.0)
    return matrix


def of(matrix, prompt=None):
    """Return the verdicts of the parts that are graded, by claim."""
    found = {}
    for claim in claims({LINGERS: matrix, PROMPT: prompt or matrix}):
        found[claim.id] = {check.verdict for check in claim.checks if not check.defect}
    return found


def test_in_a_world_as_printed_what_the_tables_contradict_is_wrong_and_the_rest_holds():
    assert of(as_printed()) == {"F-1": {"paper wrong"}, "F-2": {"paper wrong"}, "F-3": set(), "F-4": {"holds"}}


def test_a_ping_beside_events_may_be_as_fast_as_the_text_says():
    quiet = as_printed()
    for cell in CELLS:
        quiet["event", cell] = replace(quiet["event", cell], ping_s=1.005 * printed("alone", cell).ping_s)
    assert of(quiet)["F-1"] == {"holds"}


def test_burners_at_a_raised_priority_may_end_first_as_the_text_says():
    late = as_printed()
    late["burn -20", (1, 1)] = replace(late["burn -20", (1, 1)], ping_s=64.0)
    assert of(late)["F-2"] == {"holds"}


@pytest.mark.parametrize(
    ("setting", "cell", "change"),
    [
        ("poll", (6400, 1), {"ping_s": 41.0}),
        ("poll", (100, 64), {"burn_s": 64.0}),
        ("poll", (100, 64), {"ping_s": 110.0}),
    ],
)
def test_a_claim_falls_where_its_table_is_otherwise(setting, cell, change):
    matrix = as_printed()
    matrix[setting, cell] = replace(matrix[setting, cell], **change)
    assert "does not hold" in of(matrix)["F-4"]


def test_the_study_grades_all_four_claims(study):
    assert {claim.id: (claim.verdict, claim.parts) for claim in study.claims} == {
        "F-1": ("not decidable from the text", "0 of 2 parts hold"),
        "F-2": ("not decidable from the text", "0 of 2 parts hold"),
        "F-3": ("not decidable from the text", "0 of 2 parts hold"),
        "F-4": ("not decidable from the text", "2 of 7 parts hold"),
    }, [(check.text, check.found) for claim in study.claims for check in claim.checks if check.verdict != "holds"]


def test_simulated_times_are_those_of_the_tables_within_the_papers_own_scatter(study):
    """Tables 1 to 4; 15 %: means of three runs, rounded, one case "with a high variance" (E3-5)."""
    part = study.part("tables")
    assert len(part.rows) == len(SETTINGS) * len(CELLS)
    assert max(abs(row[at]) for row in part.rows for at in (4, 7)) < 15.0


def test_buffering_leaves_the_burners_more_than_polling_does(study):
    rows = {(row[0], row[1], row[2]): row for row in study.part("waits").rows}
    for scheduler in ("decay", "fair"):
        for cell in ("6400 x 1 MiB", "100 x 64 MiB"):
            assert rows[scheduler, "buffered", cell][5] < rows[scheduler, "poll", cell][5]


def test_a_study_is_read_back_as_it_was_written(study, tmp_path):
    study.save(tmp_path / "study.json")
    found = studies.load(tmp_path / "study.json")
    assert isinstance(found, TabledStudy)
    assert found.summary() == study.summary()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"kind": "study", "parts": []}', "schema-version"),
        ('{"kind": "study", "schema_version": 1, "parts": [{"id": 1}]}', "shape"),
        ('{"parts": []}', "no-study"),
        ("{", "no-study"),
    ],
)
def test_a_damaged_study_is_refused(tmp_path, text, code):
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(DescriptionError) as caught:
        studies.load(tmp_path / "study.json")
    assert caught.value.code == code


def test_the_report_holds_claims_tables_and_figures(study, tmp_path):
    study.save(tmp_path / "study.json")
    page = report(tmp_path / "study.json", tmp_path / "report.html").read_text()
    text = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.split("<footer>")[0])))
    assert "0 of 4 claims of the paper hold; 4 cannot be decided (F-1, F-2, F-3, F-4)." in text
    assert "Buffered coscheduling beside the other waits" in text
    assert len(re.findall(r'id="spec-study-1-', page)) == 4 + 3  # of the figures, and of the claims with a graded part
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)


def test_workers_change_nothing_and_progress_ends_at_1(study, tmp_path):
    told = []
    again = reproduce(tmp_path / "new" / "study", workers=3, progress=lambda part, _: told.append(part))
    assert again.summary() == study.summary()
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_a_directory_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DescriptionError, match="not a directory"):
        reproduce(tmp_path / "file" / "study")


def test_the_full_form_has_more_runs():
    assert FULL.repetitions > QUICK.repetitions > 3


def test_an_impossible_setting_is_refused_by_its_field():
    with pytest.raises(DescriptionError, match=r"cells\[0\].burn_nice is 20; it must be -20 to 19"):
        simulate(QUICK, {"burn +20": ("event", 20)}, cells=[(1, 1)])
    with pytest.raises(DescriptionError, match="sheduler"):
        _core.simulate_overlap('{"sheduler": "fair"}')


def test_what_is_raised_while_it_simulates_ends_it():
    def stop(_):
        raise KeyboardInterrupt

    cells = [{"wait": "poll", "burn_nice": 0, "messages": 1_000_000, "message_bytes": 64}]
    asked = {"cpus": 1, "burners": 1, "burn_s": 100.0, "cells": cells}
    with pytest.raises(KeyboardInterrupt):
        _core.simulate_overlap(json.dumps(asked), progress=stop)


def test_the_contract_with_crosswind_overlap():
    cell = {"wait": "spin-block", "burn_nice": 19, "messages": 10, "message_bytes": 1024}
    asked = {"scheduler": "fair", "cpus": 2, "burners": 2, "burn_s": 0.5, "cells": [cell], "network": {"mb_per_s": 100}}
    found = json.loads(_core.simulate_overlap(json.dumps(asked)))
    assert (found["on"], found["cpus"], found["burners"], found["scheduler"]) == ("sim", 2, 2, "fair")
    assert found["network"]["mb_per_s"] == 100
    assert {key: found["cells"][0][key] for key in cell} == cell
    times = ("ping_alone_s", "burn_alone_s", "ping_s", "burn_s", "ping_cpu_s")
    assert all(found["cells"][0][name] > 0 for name in times)
