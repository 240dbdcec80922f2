"""All papers in one command: a study and a report each, a table of the verdicts, and what an interrupted run leaves."""

from __future__ import annotations

import json

import pytest

from crosswind.cli import reproduce_all as module
from crosswind.cli.reproduce_all import VERDICTS, reproduce_all
from crosswind.errors import DescriptionError
from crosswind.lab.papers import studies

SHORT = ["interference-in-java"]
"""Takes a second."""


def run(papers, out, **options):
    reproduce_all(papers, "quick", out, options.pop("figures", None), workers=1, force=False, json=True, **options)


def test_each_paper_has_a_study_a_report_and_a_line(tmp_path, capsys):
    run(SHORT, tmp_path / "all")
    [paper] = json.loads(capsys.readouterr().out)["papers"]
    claims = studies.load(paper["study"]).claims
    assert paper["claims"] == len(claims) == sum(paper["verdicts"].values())
    assert set(paper["verdicts"]) == set(VERDICTS.values())
    assert paper["verdicts"]["holds"] == sum(claim.verdict == "holds" for claim in claims)
    assert "<html" in (tmp_path / "all" / SHORT[0] / "report.html").read_text()


def test_it_is_run_again_over_its_own_files(tmp_path, capsys):
    run(SHORT, tmp_path / "all")
    first = capsys.readouterr().out
    run(SHORT, tmp_path / "all")
    assert capsys.readouterr().out == first


def test_ctrl_c_keeps_the_papers_that_were_done(tmp_path, capsys, monkeypatch):
    ask = studies.reproduce

    def interrupted(paper, *args, **options):
        if paper == "quadrics-overlap":
            raise KeyboardInterrupt
        return ask(paper, *args, **options)

    monkeypatch.setattr(studies, "reproduce", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run([*SHORT, "quadrics-overlap"], tmp_path / "all")
    assert (tmp_path / "all" / SHORT[0] / "study.json").exists()
    assert (tmp_path / "all" / SHORT[0] / "report.html").exists()
    assert not (tmp_path / "all" / "quadrics-overlap" / "study.json").exists()


def test_another_study_in_a_directory_is_refused_before_anything_runs(tmp_path, monkeypatch):
    place = tmp_path / "all" / "quadrics-overlap"
    place.mkdir(parents=True)
    (place / "study.json").write_text("a file of the reader's")
    monkeypatch.setattr(studies, "reproduce", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(DescriptionError, match="quadrics-overlap"):
        run([*SHORT, "quadrics-overlap"], tmp_path / "all")


def test_the_table_counts_the_claims_of_each_paper(tmp_path, capsys):
    reproduce_all(SHORT, "quick", tmp_path / "all", None, workers=1, force=False, json=False)
    lines = capsys.readouterr().out.splitlines()
    claims = studies.load(tmp_path / "all" / SHORT[0] / "study.json").claims
    [row] = [line.split() for line in lines if line.startswith(SHORT[0])]
    assert [int(word) for word in row[1:6]] == [
        len(claims),
        *(sum(claim.verdict == verdict for claim in claims) for verdict in module.VERDICTS.values()),
    ]
