"""Why processors did not compute: gaps of a trace, each with its reason."""

import itertools
import json
import re

import pytest
import reported

from crosswind.report import report
from crosswind.report.figures.idle import REASONS, idle_spans


@pytest.fixture(scope="module")
def trace():
    return reported.traced(6)


def test_gaps_and_tasks_fill_the_whole_run(trace):
    nodes = [node["name"] for node in trace.nodes]
    end = trace.run["makespan_s"]
    table = trace.of_kind("compute").to_pylist()
    for name in nodes:
        gaps = [span for of, _, span in idle_spans(trace, [name])]
        computed = [(row["start_s"], row["end_s"]) for row in table if row["node"] == name]
        spans = sorted([*gaps, *computed])
        assert spans[0][0] == 0.0
        assert spans[-1][1] == pytest.approx(end)
        for (_, over), (begin, _) in itertools.pairwise(spans):
            assert begin == pytest.approx(over)


def test_a_gap_has_the_reason_that_the_activities_tell(trace):
    first = [node["name"] for node in trace.nodes][1]
    found = list(idle_spans(trace, [first]))
    # Its first task comes from 0 to 0.4 s; then it computes to 1.5 s, when its next one is on the way until 1.9 s.
    assert found[0] == (first, "its task is on the way", (0.0, pytest.approx(0.4)))
    assert found[1][1:] == ("its task is on the way", (pytest.approx(1.5), pytest.approx(1.9)))
    assert found[-1][1] == "no work left"
    second = [node["name"] for node in trace.nodes][2]
    assert min(idle_spans(trace, [second]), key=lambda one: one[2])[1:] == (
        "its parent sends to others",
        (0.0, pytest.approx(0.4)),
    )


def test_the_figure_shows_the_reasons_of_a_short_trace_only(tmp_path, trace):
    def words(found):
        page = report([found], tmp_path / "report.html").read_text()
        spec = json.loads(re.search(r'id="spec-trace-1-lanes">(.*?)</script>', page).group(1))
        return {row["what"] for rows in spec["datasets"].values() for row in rows} & set(REASONS)

    assert {"its task is on the way", "no work left"} <= words(trace)
    assert words(reported.traced(5000)) == set()
