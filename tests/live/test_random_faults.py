"""Faults by lot: whatever happens, each task is answered once."""

import os
import pickle
import random
import signal
import subprocess
import sys
from pathlib import Path

import cloudpickle
import farms
import pytest
from farms import point, take, tree, value, wait_until

from crosswind.run.agents import LiveFarm, Task, Work

pytestmark = pytest.mark.live

cloudpickle.register_pickle_by_value(farms)
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import soak  # noqa: E402

COUNT = 300
RAISES, KILLS_ONCE, KILLS = 0.05, 0.01, 0.004


def fate(seed, number):
    drawn = random.Random(f"{seed} {number}").random()
    for what, part in (("kills", KILLS), ("kills once", KILLS_ONCE), ("raises", RAISES)):
        if drawn < part:
            return what
        drawn -= part
    return "is done"


@pytest.mark.parametrize("seed", [1, 7])
def test_where_one_task_in_twenty_fails_all_others_are_answered_once(seed, tmp_path):
    fates = [fate(seed, number) for number in range(COUNT)]
    assert {"kills", "kills once", "raises"} < set(fates), "the seed draws something of each"

    def work(number):
        if fates[number] == "raises":
            raise ValueError(number)
        mark = tmp_path / str(number)
        if fates[number] == "kills" or (fates[number] == "kills once" and not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number * number

    with LiveFarm(tree("r", "a<r", "b<r", "c<a"), point(), Work("callable", function=work)) as farm:
        for number in range(COUNT):
            farm.submit(Task(pickle.dumps(number)))
        farm.end_of_tasks()
        taken = take(farm, COUNT)
        summary, _ = farm.close()
    for number, what in enumerate(fates):
        result = taken[number]
        if what in {"is done", "kills once"}:
            assert value(result) == number * number
        else:
            assert not result.ok
            assert ("is given up" if what == "kills" else f"ValueError: {number}") in result.data.decode()
    assert summary["tasks"] == COUNT


@pytest.mark.parametrize(
    ("part", "seconds"), [("tree", 25), ("roots", 40), ("pool", 60), ("cluster", 5), ("cluster", 200)]
)
def test_a_short_soak_accounts_for_every_task_once_and_leaves_nothing(part, seconds):
    if part == "cluster":
        pytest.importorskip("distributed")
    found = soak.soak(seconds, 3, (part,), on_testbed=soak.missing() is None)
    assert soak.faults_of(found) == []
    assert found[part]["tasks"] > 100


def test_the_schedule_is_the_seeds_and_has_each_kind():
    kinds = soak.tree.kinds_of(on_testbed=True)
    faults = soak.tree.schedule(3, 600.0, kinds)
    assert faults == soak.tree.schedule(3, 600.0, kinds)
    assert {fault.kind for fault in faults} == set(kinds)


def test_what_is_left_behind_is_counted_and_then_taken_away(monkeypatch):
    monkeypatch.setattr(soak.left, "PATIENCE_S", 0.0)
    with soak.left.Ground(disk=False) as ground:
        stray = subprocess.Popen(["sleep", "601"])
        wait_until((Path("/proc") / str(stray.pid) / "environ").read_bytes, "its environment")
        (ground.path / "crosswind-1-00").mkdir()
        left = ground.left()
        assert (len(left["processes"]), len(left["spools"])) == (1, 1)
    assert stray.wait(10) == -signal.SIGKILL
    assert not ground.path.exists()
