"""The report of recorded noise: the numbers are those of the intervals, whatever the stretches cut."""

import numpy as np
import pytest
from disturbed import recorded

from crosswind.disturbance import Disturbance
from crosswind.errors import DescriptionError
from crosswind.report import report
from crosswind.report.figures.absences import Lane, taken
from crosswind.report.sections.noise import duties, recorded_section

CAUSES = ["cron", "<b>irq</b>"]


def lane(starts, durations, causes=None):
    causes = np.zeros(len(starts), dtype=int) if causes is None else np.array(causes)
    return Lane(0, np.array(starts, dtype=float), np.array(durations, dtype=float), causes)


def values_of(spec):
    return spec["datasets"][spec["data"]["name"]]


def test_an_interval_across_an_edge_counts_on_both_sides():
    assert taken(lane([0.5], [1.0]), 10.0, 10) == pytest.approx([0.5, 0.5] + [0.0] * 8)


def test_an_interval_longer_than_a_stretch_fills_those_that_it_covers():
    assert taken(lane([1.5], [3.0]), 5.0, 5) == pytest.approx([0, 0.5, 1, 1, 0.5])


def test_stretches_sum_to_what_was_taken_and_no_interval_is_no_time():
    found = taken(lane([0.1, 2.2, 7.0], [0.3, 4.0, 2.9]), 10.0, 37)
    assert found.sum() * 10.0 / 37 == pytest.approx(7.2)
    assert not taken(lane([], []), 10.0, 5).any()


def test_duty_is_the_mean_of_all_cpus_and_the_worst_cause_comes_first():
    lanes = [lane([0.5, 3.0], [1.0, 0.5], [0, 1]), lane([9.0], [0.5], [1])]
    found = duties(lanes, CAUSES, 10.0)
    assert [row["cause"] for row in found] == ["<b>irq</b>", "cron"]  # equal shares: by name
    assert [row["share"] for row in found] == pytest.approx([0.05, 0.05])
    assert [row["count"] for row in found] == [2, 1]


def test_the_section_says_how_much_was_taken_and_by_what():
    section = recorded_section(recorded(), 1)
    assert section.headline == "CPUs are away for 10 % of the time. <b>irq</b> takes most: 5.0 %."
    assert section.where == "10.0 s on 2 CPUs, 3 intervals"
    assert [row[0] for row in section.table.rows] == ["<b>irq</b>", "cron"]
    drawn = values_of(section.timeline.spec)
    # Bars of a CPU are stacked from its row upwards: CPU 0 in row 1, CPU 4 in row 0.
    assert {row["cpu"] for row in drawn if row["high"] <= 1} == {"CPU 4"}
    assert sum(row["share"] * (row["to"] - row["from"]) for row in drawn) == pytest.approx(2.0, rel=1e-4)


def test_a_page_escapes_what_causes_are_called(tmp_path):
    text = report(recorded(), tmp_path / "noise.html").read_text()
    assert "&lt;b&gt;irq" in text
    assert "<b>irq" not in text


def test_a_disturbance_without_a_recording_is_refused(tmp_path):
    cron = {"kind": "daemon", "cause": "cron", "interval_s": 60, "duration_s": 0.005}
    described = Disturbance.from_dict({"schema_version": 1, "name": "quiet", "source": [cron]})
    with pytest.raises(DescriptionError, match="without a recorded source") as refused:
        report(described, tmp_path / "noise.html")
    assert "crosswind record" in refused.value.hint
    assert not (tmp_path / "noise.html").exists()


class Recording:
    """A recording that says what was wrong with it."""

    name = "noise"

    def __init__(self, causes, told):
        data = recorded().to_dict()
        data["source"][0] |= {"causes": causes, "warnings": told}
        self.to_dict = lambda: data


def test_what_was_wrong_with_a_recording_stands_before_its_figures_and_unknown_is_no_culprit():
    told = "the kernel could not keep 279228 events: some causes are wrong or unknown"
    section = recorded_section(Recording(["unknown", "zsh"], [told]), 1)
    assert [one["message"] for one in section.warnings] == [told]
    assert "unknown takes most" not in section.headline
    assert "The cause of the largest part, 5.0 %, is unknown." in section.headline
    assert "hypervisor (unknown)" not in str(section.terms)
