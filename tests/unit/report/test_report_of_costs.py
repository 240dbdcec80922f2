"""The report of `crosswind cost` and `crosswind compare`: the verdict first, estimates with intervals, their course."""

from __future__ import annotations

import html
import json
import re

import pytest
import reported
from costly import comparison, session, several

from crosswind.report import report


def page_of(tmp_path, *items):
    return report(list(items), tmp_path / "report.html").read_text()


def visible(page):
    body = page.split("<footer>")[0]
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body.split("</style>")[1])))


def spec(page: str, figure: str) -> list[dict]:
    found = json.loads(re.search(rf'id="spec-{figure}">(.*?)</script>', page).group(1))
    return [row for values in found["datasets"].values() for row in values]


def test_a_cost_says_its_verdict_first_and_how_it_became_known(tmp_path):
    page = page_of(tmp_path, session((0.02,), slower=0.005))
    text = visible(page)
    assert "exporter costs 2." in text
    assert text.index("exporter costs 2.") < text.index("The loss by each estimator")
    ways = {row["way"] for row in spec(page, "cost-1-estimates") if "way" in row}
    assert ways == {"wall", "own", "available", "exchange"}
    course = [row for row in spec(page, "cost-1-course") if "at" in row]
    widths = [row["high"] - row["low"] for row in course]
    assert len(course) > 20
    assert widths[-1] < widths[0]


def test_of_several_targets_each_has_its_row_and_its_share(tmp_path):
    text = visible(page_of(tmp_path, session((0.02, 0.01), quads=300)))
    assert "exporter + agent" in text
    assert "Shares of what they cost together" in text


def test_a_comparison_says_its_verdict_and_times(tmp_path):
    page = page_of(tmp_path, comparison(1.1))
    assert "B is slower: +" in visible(page)
    assert {row["way"] for row in spec(page, "comparison-1-estimates") if "way" in row} == {"wall", "cpu"}


def answers_of(page):
    found = re.findall(r'<p class="answer[^"]*"><b>(.*?)</b> <span>(.*?)</span></p>', page, re.DOTALL)
    return [[html.unescape(re.sub(r"<[^>]*>", "", part)).strip() for part in one] for one in found]


def test_the_fastest_of_several_commands_is_the_answer_in_large_type(tmp_path):
    first, second = answers_of(page_of(tmp_path, several(0.4, 0.3, 0.6)))
    assert first == ["B", "is the fastest: ./job 1"]
    assert re.fullmatch(r"33\.\d+ % ± 0\.\d+", second[0]), second
    assert second[1] == "more wall time for the next one, A."


def test_of_several_commands_that_are_alike_none_is_called_the_fastest(tmp_path):
    [(value, text)] = answers_of(page_of(tmp_path, several(0.3, 0.3003, 0.6, noise=0.001)))
    assert "±" in value
    assert text == "more wall time for B than for A. Up to 2.0 % counts as equal."
    assert answers_of(page_of(tmp_path, several(0.3, 0.6, rounds=3))) == []


@pytest.mark.parametrize("item", [session(quads=0), comparison(quads=0), comparison(quads=2), session(quads=4)])
def test_little_data_makes_a_section_without_figures(tmp_path, item):
    assert "Not settled" in visible(page_of(tmp_path, item))


def test_files_are_read_and_links_lead_somewhere(tmp_path):
    files = [tmp_path / "cost.json", tmp_path / "comparison.json"]
    session().save(files[0])
    comparison().save(files[1])
    page = page_of(tmp_path, *files)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)


def test_hostile_names_stay_text(tmp_path):
    hostile = session((0.02, 0.01), names=(reported.BREAKS_SCRIPT, reported.BREAKS_ATTRIBUTE))
    commands = [reported.BREAKS_SCRIPT, reported.IS_A_TEMPLATE]
    page = page_of(tmp_path, hostile, comparison(commands=commands))
    assert "<img src=x" not in page
    assert "<svg onload" not in page
