"""A watched farm of real agents: the page hears results by node, and which agent was lost."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from crosswind.experiment import Experiment
from crosswind.platform import Platform
from crosswind.run.farm import Farm
from crosswind.run.grid import run

pytest.importorskip("tornado", reason="tornado is not installed")
from crosswind.watch import Watch

pytestmark = pytest.mark.live

ROOT = {"name": "r", "compute_per_s": 0.0}
LEAF = {"parent": "r", "compute_per_s": 1.0, "receive_limit_mb_per_s": 100.0}
TREE = Platform.from_dict(
    {"schema_version": 1, "name": "t", "node": [ROOT, {"name": "a", **LEAF}, {"name": "b", **LEAF}]}
)


def until(what):
    begun = time.monotonic()
    while not (found := what()):
        assert time.monotonic() - begun < 60
        time.sleep(0.02)
    return found


def read(address, path=""):
    with urllib.request.urlopen(address + path, timeout=20) as page:
        return page.read().decode()


def test_a_farm_says_where_its_page_is_which_stays_until_the_next_one_has_ended(capsys):
    addresses = []
    for numbers in (2, 3):
        with Farm(TREE, watch=True) as farm:
            address = capsys.readouterr().err.removeprefix("watch: ").strip()
            addresses.append(address)
            assert "<title>A run, live</title>" in read(address)
            assert list(farm.map(abs, range(numbers))) == list(range(numbers))
        assert "<title>A run, live</title>" in read(address)
        last = json.loads(read(address, "events").split("\n")[0].removeprefix("data: "))
        assert (last["state"], last["done"]) == ("ended", numbers)
        assert {node["state"] for node in last["nodes"]} <= {"done", "unused"}
        assert read(address, "events").strip().endswith("event: over\ndata: {}")
    with pytest.raises(urllib.error.URLError):
        read(addresses[0])


def test_an_experiment_is_compared_with_its_plan_in_the_platforms_seconds():
    described = {
        "schema_version": 1,
        "name": "watched",
        "platform": TREE.to_dict(),
        "workload": {"kind": "farm", "tasks": 60, "task_size_mb": 0.01, "task_work": 1.0},
        "execution": {"compute": "emulated", "time_scale": 20},
    }
    with Watch() as watch:
        done = run(Experiment.from_dict(described), "local", watch=watch)[0]
        last = watch.snapshot()
    assert (last["state"], last["done"], last["total"]) == ("ended", 60, 60)
    assert last["bound_tasks_per_s"] == pytest.approx(done.bound_tasks_per_s)
    assert 0 < last["tasks_per_s"] <= 1.2 * last["bound_tasks_per_s"]
    assert {node["name"]: node["tasks"] for node in last["nodes"]} == {
        n["name"]: n["tasks"] for n in done.data["nodes"]
    }


def states(watch):
    return {node["name"]: node["state"] for node in watch.snapshot().get("nodes", [])}


def test_a_killed_agent_is_lost_and_works_again_once_it_is_back():
    with Watch() as watch, Farm(TREE, watch=watch) as farm:
        first = [farm.submit(time.sleep, 0.01) for _ in range(40)]
        until(lambda: states(watch) == {"r": "sends", "a": "works", "b": "works"})
        [future.result(60) for future in first]
        farm._run.live.processes.signal("b", signal.SIGKILL)
        # Its state is "lost" only until it is back, on a quiet host 0.2 s.
        until(lambda: any(event["code"] == "agent-lost" for event in watch.snapshot()["events"]))
        again = [farm.submit(time.sleep, 0.02) for _ in range(400)]
        until(lambda: states(watch)["b"] == "works")
        for future in again:
            future.cancel()
    assert watch.snapshot()["state"] == "ended"
    assert sum(node["tasks"] for node in watch.snapshot()["nodes"]) == watch.snapshot()["done"] >= 40


SHORT = """schema_version = 1
name = "short"
[workload]
kind = "farm"
tasks = 20
task_size_mb = 0.01
task_work = 1.0
[execution]
compute = "emulated"
time_scale = 20
[platform]
schema_version = 1
name = "alone"
[[platform.node]]
name = "r"
compute_per_s = 2.0
"""


def command_line(folder, *words):
    command = [sys.executable, "-m", "crosswind.cli", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def kept(page):
    return json.loads(re.findall(r'id="kept">(.*?)</script>', page.read_text())[0])


@pytest.mark.parametrize(
    ("words", "page", "state", "code"),
    [
        (["run", "short.toml", "--on", "local", "-o", "runs.json"], "runs.watch.html", ("ended", 20, 20), 0),
        (["run", "short.toml", "--on", "local"], "short.watch.html", ("ended", 20, 20), 0),
        (["map", "wc -l < {input}", "--inputs", "short.toml"], "results.watch.html", ("ended", 1, 1), 0),
        (
            ["map", "false {input}", "--inputs", "short.toml", "--out", ".", "--name", "{name}.out"],
            "{}.watch.html",
            ("ended", 1, 1),
            3,
        ),
    ],
)
def test_the_last_state_is_kept_in_a_file_that_the_command_names(tmp_path, words, page, state, code):
    (tmp_path / "short.toml").write_text(SHORT)
    page = page.format(tmp_path.name)
    done = command_line(tmp_path, *words, "--watch")
    assert done.returncode == code, done.stderr
    assert f"watch: {page} keeps the page's last state" in done.stderr
    found = kept(tmp_path / page)
    assert (found["state"], found["done"], found["total"]) == state
    (tmp_path / page).write_text("a letter")
    again = command_line(tmp_path, *words, "--watch")
    assert (again.returncode, f"{page}', a file of another kind" in again.stderr) == (2, True), again.stderr
    assert (tmp_path / page).read_text() == "a letter"
