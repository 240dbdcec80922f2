"""Two commands: the verdict, what a stored result may be compared with, and what CI reads."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from costly import HOST, comparison

from crosswind.compare import compare
from crosswind.compare.junit import junit
from crosswind.compare.result import Comparison
from crosswind.compare.runs import Pairs, judge, slowdown
from crosswind.errors import DescriptionError, MeasurementError
from crosswind.files.kinds import found_at
from crosswind.statistics.jackknife import Estimate
from crosswind.statistics.quads import order_of_quad


@pytest.mark.parametrize(
    ("value", "error", "outcome"),
    [
        (0.0, 0.002, "equivalent"),
        (0.005, 0.001, "equivalent"),
        (0.05, 0.002, "slower"),
        (-0.05, 0.002, "faster"),
        (-0.01, 0.007, "not-slower"),
        (0.015, 0.005, "unknown"),
        (0.0, 0.05, "unknown"),
    ],
)
def test_the_interval_against_the_margin_decides(value, error, outcome):
    judged = judge(Estimate(value, error, 40), 0.02, 0.05, 40)
    assert judged.outcome == outcome
    assert (judged.more_quads > 0) == (outcome in ("unknown", "not-slower"))


def test_exit_codes_are_those_of_a_gate():
    assert [comparison(ratio).exit_code for ratio in (1.0, 1.1, 0.9)] == [0, 4, 0]
    assert comparison(1.0, noise=0.2).exit_code == 3
    assert comparison(quads=0).exit_code == 3


def test_identical_commands_on_a_drifting_host_are_not_called_slower():
    """Drift of some percent a run: A's then B's raise many alarms by a t-test, quads few."""
    alarms = 0
    for seed in range(200):
        draw = np.random.default_rng(seed)
        drift = 1.0 + 0.003 * np.cumsum(draw.standard_normal(160))
        times = drift * (1 + 0.01 * draw.standard_normal(160))
        sums = np.zeros((40, 2))
        for quad in range(40):
            for place, label in enumerate(order_of_quad(draw)):
                sums[quad, label] += times[4 * quad + place]
        found = slowdown(Pairs(sums, sums), "wall")
        alarms += abs(found.value) > found.half_width()
    assert alarms <= 20  # 5 % is 10 +- 3.1


def test_a_stored_ratio_is_compared_and_times_are_not():
    base, now = comparison(1.0), comparison(1.1, seed=2)
    against = Comparison(now.document, base).against_base
    assert against is not None
    assert against.outcome == "slower"
    assert Comparison(now.document, base).exit_code == 4
    slow_host = comparison(1.0, seed=3)
    slow_host.document["wall_s"] = (3 * np.array(slow_host.document["wall_s"])).tolist()
    assert Comparison(slow_host.document, base).exit_code == 0


def test_a_stored_comparison_is_run_by_a_shell_only_where_it_was():
    with pytest.raises(DescriptionError, match="without a shell"):
        compare(base=comparison(), shell=True)


def test_what_differs_between_two_sessions_is_said():
    other = HOST | {"name": "there", "settings": {"huge_pages": "never", "load_average": "9"}}
    found = Comparison(comparison(host=other).document, comparison())
    said = {one["code"]: one["message"] for one in found.warnings}
    assert set(said) == {"only-ratios", "other-host", "other-settings"}
    assert "huge_pages: madvise -> never" in said["other-settings"]
    assert "load" not in said["other-settings"]


def test_the_other_clock_is_named_where_it_knows():
    found = comparison(1.0, noise=0.2)
    found.document["cpu_s"] = comparison(1.0).document["cpu_s"]
    assert "other-clock" in {one["code"] for one in Comparison(found.document).warnings}


@pytest.mark.parametrize(
    ("ratio", "noise", "inside"), [(1.1, 0.01, "failure"), (1.0, 0.2, "skipped"), (1.0, 0.01, None)]
)
def test_junit_fails_where_b_is_slower_and_skips_what_is_not_known(ratio, noise, inside):
    found = comparison(ratio, noise=noise, commands=["./a <in", "./b & c"])
    case = ElementTree.fromstring(junit(found).encode()).find("testcase")
    assert case is not None
    assert case.get("name") == "./a <in | ./b & c"
    assert {one.tag for one in case} == {"system-out"} | ({inside} if inside else set())


def test_a_file_gives_the_same_figures_again(tmp_path):
    file = tmp_path / "comparison.json"
    comparison(1.05).save(file)
    assert Comparison.load(file).to_dict() == comparison(1.05).to_dict()
    assert found_at(file).kind == "comparison"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"a": "true"}, "two commands"),
        ({"a": "true", "b": "no-such-program"}, "B is 'no-such-program'; there is no such program"),
        ({"a": "true 'x", "b": "true"}, "A is"),
        ({"a": "true", "b": "true", "margin": 1.0}, "margin is 100 %"),
        ({"a": "true", "b": "true", "seconds": 0.0}, "seconds is 0 s"),
        ({"a": "true", "b": "true", "by": "steps"}, "by is 'steps'"),
        ({"a": "true", "b": "true", "base": comparison()}, "no others"),
    ],
)
def test_a_wrong_request_is_refused(arguments, said):
    with pytest.raises(DescriptionError, match=said):
        compare(**arguments)


def test_a_command_that_fails_is_not_timed():
    with pytest.raises(MeasurementError, match="false ended with status 1"):
        compare("true", "false", seconds=1.0)
