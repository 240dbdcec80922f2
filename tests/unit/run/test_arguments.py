"""Wrong arguments of `map` and `Farm` are refused by name, with what is allowed, before any agent starts."""

import math
import time

import numpy as np
import pytest
from in_process import InProcess

import crosswind
from crosswind import DescriptionError
from crosswind.run import call_run

WRONG = {
    "max_workers": ["4", 2.5, True, 0, -1, 10**9, math.nan, [2]],
    "buffer_tasks": ["x", 0, 1.5, True, 10**30],
    "retries": [-1, "a", 1.5, 10**30, True],
    "task_timeout_s": [-1, 0, math.nan, "x", math.inf, 10**400, True],
    "order": ["foo", 3, None, ["arrival"]],
    "watch": ["x", 3],
    "platform": [3, b"x"],
}
WRONG_OF_MAP = {
    "chunksize": ["a", 0, 2.5, True, -1],
    "timeout": ["x", math.nan, True, [1]],
    "progress": ["x", 3],
    "out": [3, "", "\0", [1]],
}


class NoFarm:
    def __init__(self, *args, **options):
        raise AssertionError("agents were started")


@pytest.fixture
def no_agents(monkeypatch):
    monkeypatch.setattr(call_run, "LiveFarm", NoFarm)


def cases(table):
    return [(name, value) for name, values in table.items() for value in values]


@pytest.mark.usefixtures("no_agents")
@pytest.mark.parametrize(("name", "value"), cases(WRONG))
def test_a_wrong_argument_of_a_farm_is_refused_by_name(name, value):
    with pytest.raises(DescriptionError, match=f"^{name} is .*; it must be "):
        crosswind.Farm(**{name: value})


@pytest.mark.usefixtures("no_agents")
@pytest.mark.parametrize(("name", "value"), cases({**WRONG, **WRONG_OF_MAP}))
def test_a_wrong_argument_of_map_is_refused_by_name(name, value):
    if name == "watch":
        pytest.skip("map has no page")
    with pytest.raises(DescriptionError, match=f"^{name} is .*; it must be "):
        crosswind.map(abs, [1], **{name: value})


def test_numbers_of_numpy_are_numbers(monkeypatch):
    monkeypatch.setattr(call_run, "LiveFarm", InProcess)
    numbers = {"max_workers": np.int64(2), "retries": np.uint8(1), "chunksize": np.int16(3)}
    times = {"task_timeout_s": np.float32(60), "timeout": math.inf}
    assert list(crosswind.map(abs, [-1], **numbers, **times)) == [1]
    with pytest.raises(TimeoutError):
        next(crosswind.map(time.sleep, [0.2], timeout=-1))
