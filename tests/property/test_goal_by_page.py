"""A few GOAL schedules by an interpreter of the documentation's rules; `benchmarks/goal_by_page.py` tries thousands."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import goal_by_page


@pytest.mark.parametrize("kind", goal_by_page.KINDS)
def test_a_schedule_ends_when_the_page_says(kind):
    drawn = [goal_by_page.schedule_of(seed, kind) for seed in range(150)]
    found = [(goal_by_page.by_page(*one), goal_by_page.simulated(*one)) for one in drawn]
    assert [pair for pair in found if pair[0] != pair[1]] == []
    assert sum(not isinstance(page[0], str) for page, _ in found) > 40
