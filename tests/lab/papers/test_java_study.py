"""Interference in Java: what table 2 and the text say, asked of each other; how verdicts turn with the figures."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.lab.papers import studies, table_2
from crosswind.lab.papers.grading import OPEN
from crosswind.lab.papers.interference_in_java import both_directions, measured_here, printed
from crosswind.lab.papers.interference_in_java.study import claims
from crosswind.lab.papers.tabled_study import TabledStudy
from crosswind.report import report

RECORD = Path(__file__).parents[3] / measured_here.RECORD


def verdicts():
    return {claim.id: claim.verdict for claim in claims()}


def test_every_claim_is_graded():
    assert verdicts() == {
        "K-1": OPEN,
        "K-2": "holds",
        "K-3": OPEN,
        "K-4": OPEN,
        "K-5": OPEN,
        "K-7": OPEN,
        "K-8": OPEN,
        "K-11": OPEN,
        "K-12": OPEN,
        "K-13": OPEN,
        "K-14": OPEN,
        "K-15": OPEN,
    }


def test_what_is_not_decided_says_what_would_settle_it():
    undecided = [check for claim in claims() for check in claim.checks if check.verdict != "holds"]
    assert len(undecided) > 10
    assert all(check.hangs_on for check in undecided)


@pytest.mark.parametrize(
    ("node", "direction", "change", "fallen"),
    [
        ("Tenn", "receive", {"ir_s_per_mb": 0.06}, "K-2"),
        ("Campus9", "send", {"ir_s_per_mb": 0.037}, "K-14"),
        ("France", "receive", {"ir_s_per_mb": 0.0500}, "K-13"),
        ("SB0", "receive", {"ir_s_per_mb": 0.25}, "K-11"),
    ],
)
def test_a_claim_falls_where_the_table_is_otherwise(monkeypatch, node, direction, change, fallen):
    def changed(table=2, load=table_2.load):
        peers = load(table)
        return [
            replace(p, **{direction: replace(getattr(p, direction), **change)}) if p.node == node else p for p in peers
        ]

    monkeypatch.setattr(table_2, "load", changed)
    assert verdicts()[fallen] == "does not hold"


def test_the_printed_plane_gives_the_printed_points_by_one_metric_only():
    off = {corner: both_directions.planned(*corner) - rate for corner, rate in printed.CORNERS.items()}
    assert max(abs(one) for one in off.values()) == pytest.approx(0.059, abs=5e-4)
    (synergy,) = both_directions.claims()
    (check,) = [check for check in synergy.checks if "four printed points" in check.text]
    assert [answer.holds for answer in check.answers] == [False, True]


def test_what_was_measured_here_is_what_the_record_has():
    parts = json.loads(RECORD.read_text())["parts"]
    for (io, direction), ratio in measured_here.load().items():
        found = parts["streams" if io == "stream" else io][direction]["ratio"]
        assert (ratio.lowest, ratio.median, ratio.highest) == tuple(
            round(found[name], 4) for name in ("low", "median", "high")
        )


def test_the_study_is_written_read_back_and_reported(tmp_path):
    study = studies.reproduce("interference-in-java", tmp_path)
    assert isinstance(studies.load(tmp_path / "study.json"), TabledStudy)
    assert studies.load(tmp_path / "study.json").summary() == study.summary()
    page = report(tmp_path / "study.json", tmp_path / "report.html").read_text()
    assert "Table 2: what Lab0 loses by node" in page
