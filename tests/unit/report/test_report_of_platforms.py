"""The report about platforms and several traces."""

import re

import reported

from crosswind.report import report
from crosswind.report.figures.links import rows_of


def test_of_many_nodes_those_nearest_to_the_root_are_drawn_under_their_parents():
    nodes = [{"name": str(k), "parent": str((k - 1) // 2) if k else None} for k in range(100)]
    rows = rows_of(nodes, 30)
    assert {int(node["name"]) for node, _ in rows} == set(range(30))
    assert [node["name"] for node, depth in rows][:3] == ["0", "1", "3"]
    assert max(depth for _, depth in rows) == 4


def test_several_traces_share_an_axis_and_have_titles_of_their_own(tmp_path):
    page = report([reported.traced(40), reported.traced(80)], tmp_path / "report.html").read_text()
    titles = re.findall(r'<h2 id="trace-\d-title"[^>]*>(.*?)</h2>', page)
    assert len(set(titles)) == 2
    assert len(set(re.findall(r'"domain":\[0,([\d.]+)\],"nice":false', page))) == 1
