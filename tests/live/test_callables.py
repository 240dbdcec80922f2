"""What a call leaves in an object or in a module of a script: as in a process pool."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest
from executor_cases import Counter
from farms import PATIENCE_S

import crosswind

pytestmark = pytest.mark.live

SCRIPT = """
import functools, json, os
import crosswind

model = None

class Counter:
    def __init__(self):
        self.count = 0

    def add(self, number):
        self.count += number
        return self.count

def loads_once(items, number):
    global model
    is_first = model is None
    model = "loaded"
    items.append(number)
    return is_first, os.getpid(), len(items)

with crosswind.Farm(max_workers=2) as farm:
    counter = Counter()
    calls = [farm.submit(counter.add, 1) for _ in range(100)]
    counted = [call.result() for call in calls]
    loads = [farm.submit(functools.partial(loads_once, [0] * (number % 3)), number) for number in range(60)]
    loaded = [call.result() for call in loads]
mapped = list(crosswind.map(functools.partial(loads_once, []), range(60), max_workers=2))
print(json.dumps([counted, loaded, mapped, list(crosswind.map(counter.add, [1] * 100, max_workers=2))]))
"""


def test_objects_of_a_script_are_copies_and_its_globals_stay(tmp_path):
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=2 * PATIENCE_S
    )
    counted, loaded, mapped, counted_by_map = json.loads(done.stdout)
    assert counted == counted_by_map == [1] * 100
    assert [size for _, _, size in loaded] == [number % 3 + 1 for number in range(60)]
    assert {size for _, _, size in mapped} == {1}
    for outcomes in (loaded, mapped):
        firsts = [process for is_first, process, _ in outcomes if is_first]
        assert sorted(firsts) == sorted({process for _, process, _ in outcomes})


@pytest.mark.parametrize("function", [Counter().add, Counter()], ids=["method", "instance"])
def test_each_call_of_a_map_has_a_copy(function):
    assert list(crosswind.map(function, [1] * 500, max_workers=2)) == [(1, 1)] * 500
