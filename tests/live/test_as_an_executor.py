"""Scripts for an executor: with a farm in its place, the same comes out."""

from __future__ import annotations

import itertools
import sys
from concurrent.futures import ProcessPoolExecutor

import pytest
from executor_cases import CASES
from farms import PATIENCE_S

import crosswind
from crosswind.run import open_calls

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def executor():
    with ProcessPoolExecutor(2) as made:
        yield made


@pytest.mark.parametrize("case", CASES)
def test_a_farm_does_what_an_executor_does(case, executor, farm):
    assert CASES[case](farm) == CASES[case](executor)


def test_a_signal_handler_may_wait_for_a_call_whatever_it_interrupts():
    """It runs before each line of a submit and of a wait in turn: no lock is held there that an answer needs."""
    with crosswind.Farm(max_workers=1) as farm:

        def interrupted(at):
            """A call, interrupted before a line by its place; whether there is such a line."""
            seen, found = 0, []

            def traced(frame, event, _):
                nonlocal seen
                if frame.f_code.co_filename != open_calls.__file__:
                    return None
                if event == "line":
                    seen += 1
                    if seen == at:
                        sys.settrace(None)
                        found.append(farm.submit(abs, -at).result(PATIENCE_S))
                return traced

            sys.settrace(traced)
            try:
                assert farm.submit(abs, -1000).result(PATIENCE_S) == 1000
            finally:
                sys.settrace(None)
            assert found in ([], [at])
            return bool(found)

        assert next(at for at in itertools.count(1) if not interrupted(at)) > 10
