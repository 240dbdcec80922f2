"""The report about disturbances, platforms and several traces."""

import re
from pathlib import Path

import reported

from crosswind.disturbance import Disturbance
from crosswind.report import report
from crosswind.report.figures.links import rows_of
from crosswind.report.noisy import intervals_of

EXAMPLES = Path(__file__).parents[3] / "examples"
RECORDED = {
    "kind": "recorded",
    "length_s": 10.0,
    "causes": ["timer", "cron"],
    "cpu": [{"cpu": 0, "intervals": [[1.0, 0.5, 0], [4.0, 1.0, 1]]}, {"cpu": 1, "intervals": [[2.0, 1.0, 1]]}],
}


def recorded():
    return Disturbance.from_dict({"schema_version": 1, "name": "two CPUs", "source": [RECORDED]})


def text_of(tmp_path, *items):
    page = report(items, tmp_path / "report.html").read_text()
    return page, re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", page[page.index("<main") : page.index('id="terms"')]))


def test_a_recorded_disturbance_has_its_timeline_causes_and_duty(tmp_path):
    page, text = text_of(tmp_path, recorded())
    assert "Away from computation 12 % of the time; cron takes most, 10 %" in text  # 2.5 s and 2 s of 2 times 10 s
    assert 'id="noise-1-timeline"' in page
    assert 'id="noise-1-duty"' in page


def test_the_duty_of_what_was_not_recorded_is_drawn(tmp_path):
    disturbance = Disturbance.load(EXAMPLES / "half_time.toml")
    intervals, cpus, length_s, was_recorded = intervals_of(disturbance)
    assert (cpus, was_recorded) == (1, False)
    assert abs(sum(one.duration_s for one in intervals) / length_s - 0.5) < 0.01
    assert "drawn for one rank" in text_of(tmp_path, EXAMPLES / "half_time.toml")[1]


def test_a_disturbance_plots_itself():
    assert recorded().plot("duty").to_dict(validate=False)["layer"]


def test_of_many_nodes_those_nearest_to_the_root_are_drawn_under_their_parents():
    nodes = [{"name": str(k), "parent": str((k - 1) // 2) if k else None} for k in range(100)]
    rows = rows_of(nodes, 30)
    assert {int(node["name"]) for node, _ in rows} == set(range(30))
    assert [node["name"] for node, depth in rows][:3] == ["0", "1", "3"]
    assert max(depth for _, depth in rows) == 4


def test_several_traces_share_an_axis_and_have_titles_of_their_own(tmp_path):
    page, _ = text_of(tmp_path, reported.traced(40), reported.traced(80))
    titles = re.findall(r'<h2 id="trace-\d-title">(.*?)</h2>', page)
    assert len(set(titles)) == 2
    assert len(set(re.findall(r'"domain":\[0,([\d.]+)\],"nice":false', page))) == 1
