"""The report of `crosswind check`: a node, its course, and a cluster's hosts and links."""

from __future__ import annotations

import html
import json
import re

import pytest
import synthetic
from checks import checked, of_a_cluster

from crosswind.report import report


def page_of(tmp_path, *items):
    return report(list(items), tmp_path / "report.html").read_text()


def visible(page):
    body = page.split("<footer>")[0]
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body.split("</style>")[1])))


def rows(page: str, figure: str) -> list[dict]:
    found = json.loads(re.search(rf'id="spec-{figure}">(.*?)</script>', page).group(1))
    return [row for values in found["datasets"].values() for row in values]


def test_a_check_says_its_verdict_first(tmp_path):
    text = visible(page_of(tmp_path, checked(memory=50.0, base=checked())))
    assert "Sick memory cpu 0 is 50" in text
    assert text.index("Sick memory cpu 0") < text.index("Against the baseline")


def test_the_checks_of_a_node_are_one_section_with_their_course(tmp_path):
    several = [checked(memory=100.0 - 10 * k, at=f"2026-01-0{k + 1}T00:00:00Z") for k in range(3)]
    page = page_of(tmp_path, *several, checked(node="node2"))
    course = [row for row in rows(page, "check-1-trend") if row.get("of") == "memory"]
    assert [round(row["value"], 1) for row in course] == [-11.1, 0.0, 11.1]
    assert "Is node2 as fast as it should be?" in visible(page)
    assert "spec-check-2-trend" not in page


def test_each_measure_of_a_check_stands_against_its_own_threshold(tmp_path):
    """Noise that grows by 6 points is over its 5 points, and memory that loses 8 % is within its 10 %."""
    several = [
        checked(memory=100.0 - 8 * (k == 2), noise=0.01 + 0.06 * (k == 2), at=f"2026-01-0{k + 1}T00:00:00Z")
        for k in range(3)
    ]
    page = page_of(tmp_path, *several)
    last = {row["of"]: row for row in rows(page, "check-1-trend") if str(row.get("at", "")).startswith("2026-01-03")}
    assert last["noise"]["multiple"] == pytest.approx(6 / 5)
    assert last["memory"]["multiple"] == pytest.approx(8 / 10)
    assert "memory: 10 %; noise: 5 points" in page


def test_a_cluster_has_a_map_of_its_links_and_the_odd_ones_first(tmp_path):
    found = of_a_cluster(rates={"ca": 30.0})
    assert found.sentence.startswith("sick: rate c to a is 70")
    found.save(tmp_path / "cluster.json")
    page = page_of(tmp_path, tmp_path / "cluster.json")
    cells = [row for row in rows(page, "cluster-check-1-links") if "rate" in row]
    assert {(row["from"], row["to"]) for row in cells if row["sick"]} == {("c", "a")}
    assert len(cells) == 6
    assert visible(page).index("rate c to a") < visible(page).index("memory cpu 0")


def test_measurements_of_one_host_have_their_course_in_the_last_section(tmp_path):
    several = [synthetic.measurement(seed=seed, cycles=12) for seed in range(3)]
    for day, one in enumerate(several):
        one.header["started"] = f"2026-01-0{day + 1}T00:00:00Z"
    page = page_of(tmp_path, *several)
    course = [row for row in rows(page, "measured-3-course") if "value" in row]
    assert len(course) == 6
    assert all(row["low"] < row["value"] < row["high"] for row in course)
    assert "spec-measured-2-course" not in page
    assert "course" not in page_of(tmp_path, several[0])
