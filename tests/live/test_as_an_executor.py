"""Scripts for an executor: with a farm in its place, the same comes out."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import pytest
from executor_cases import CASES

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def executor():
    with ProcessPoolExecutor(2) as made:
        yield made


@pytest.mark.parametrize("case", CASES)
def test_a_farm_does_what_an_executor_does(case, executor, farm):
    assert CASES[case](farm) == CASES[case](executor)
