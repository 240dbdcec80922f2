"""Live farms that go well: replay, agreement with the simulator in the order of policies, agents started by hand."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import cloudpickle
import farms
import pytest
from farms import point, take, tree, value

import crosswind
from crosswind.experiment import Experiment
from crosswind.platform import Platform
from crosswind.run.agents import Launch, LiveFarm, Task, Work, run_farm
from crosswind.run.simulation import simulate

pytestmark = pytest.mark.live

cloudpickle.register_pickle_by_value(farms)
FORK = Platform.load(Path(__file__).parents[2] / "examples" / "fork_of_table_4.toml")


def fork_point(tasks, time_scale, **policy):
    described = {
        "schema_version": 1,
        "name": "fork",
        "platform": FORK.to_dict(),
        "workload": {"kind": "farm", "tasks": tasks, "task_size_mb": 2.0, "task_work": 5.0},
        "policy": policy,
        "execution": {"time_scale": time_scale},
    }
    return next(iter(Experiment.from_dict(described).points()))


@pytest.mark.parametrize(
    ("order", "ports"), [("interference", "single"), ("bandwidth", "multi"), ("planned", "single")]
)
def test_a_live_trace_replayed_through_a_fresh_policy_gives_the_recorded_commands(order, ports):
    run = fork_point(40, 20.0, order=order, ports=ports)
    with LiveFarm(run.platform, run.description, Work("emulated"), own_tasks=True, discard=True, trace=True) as farm:
        while not farm.ended(1.0):
            pass
        farm.close()
        replayed = farm.replay()
        # It can fail: the same events under another order.
        farm._settings["policy"]["order"] = "root-only"
        with pytest.raises(Exception, match="now gives"):
            farm.replay()
    assert set(replayed) == {node["name"] for node in FORK.to_dict()["node"]}
    assert sum(replayed.values()) > 40


@pytest.mark.alone
def test_emulated_runs_rank_policies_as_the_simulator_does():
    spans = {}
    for order in ("root-only", "interference", "planned"):
        run = fork_point(60, 20.0, order=order)
        summary, _ = run_farm(run.platform, run.description, Work("emulated"))
        spans[order] = (simulate(run, False).data["makespan_s"], summary["makespan_s"])
    for one, (simulated, lived) in spans.items():
        for other, (other_simulated, other_lived) in spans.items():
            if simulated > 1.15 * other_simulated:
                assert lived > other_lived, f"{one} against {other}: {spans}"


def test_results_come_in_any_order_each_under_its_own_number(tmp_path):
    taken = []
    source = (Task(f"{number}\n".encode(), 0.0, f"{number}.txt") for number in range(40))
    work = Work("command", command="tr 0-9 a-j < {input} > {output}")
    run_farm(tree("r", "a<r", "b<a"), point(), work, source=source, sink=taken.append, out=tmp_path)
    assert sorted(result.task for result in taken) == list(range(40))
    for result in taken:
        expected = str(result.task).translate(str.maketrans("0123456789", "abcdefghij"))
        assert Path(result.data).read_text().strip() == expected
        assert Path(result.data).name == f"{result.task}.txt"


def test_agents_started_by_hand_serve_a_farm(tmp_path):
    token = tmp_path / "token"
    token.write_text("a token of at least sixteen bytes\n")
    token.chmod(0o600)
    with LiveFarm(
        tree("r", "a<r"),
        point(),
        Work("callable", function=farms.slowly),
        launch=Launch(by_hand=True),
        token=token.read_text().strip(),
    ) as farm:
        assert not farm.wait_for_agents(0.2)
        command = [sys.executable, "-m", "crosswind.cli", "serve", "--parent", farm.address, "--name", "a"]
        agent = subprocess.Popen([*command, "--token-file", str(token)], env=os.environ, stderr=subprocess.PIPE)
        assert farm.wait_for_agents(20.0)
        for number in range(5):
            farm.submit(Task(pickle.dumps(number)))
        farm.end_of_tasks()
        assert {task: value(result) for task, result in take(farm, 5).items()} == {n: n * n for n in range(5)}
        farm.close()
        assert agent.wait(20) == 0
        agent.stderr.close()


def test_an_agent_imports_nothing_heavy():
    script = "import crosswind.run.agent, sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy = {"numpy", "pandas", "pyarrow", "scipy", "altair"}
    assert not (heavy | {"typing", "logging", "concurrent.futures", "subprocess"}) & set(json.loads(done.stdout))


@pytest.mark.alone
def test_the_last_tasks_go_to_nodes_that_are_done_with_them_in_time():
    # 31 tasks/s in all: 310 tasks take 10 s at least. The slow node has three tasks before it, 3 s of work.
    nodes = [
        {"name": "r", "compute_per_s": 0.0},
        *(
            {"name": name, "parent": "r", "compute_per_s": rate, "receive_limit_mb_per_s": 1000.0}
            for name, rate in [("slow", 1.0), ("a", 10.0), ("b", 10.0), ("c", 10.0)]
        ),
    ]
    described = {
        "schema_version": 1,
        "name": "a slow node",
        "platform": {"schema_version": 1, "name": "a slow node", "node": nodes},
        "workload": {"kind": "farm", "tasks": 310, "task_size_mb": 0.01, "task_work": 1.0},
        "policy": {"buffer_tasks": 3},
        "execution": {"time_scale": 4.0},
    }
    done = {}
    for level_end in (True, False):
        described["policy"]["level_end"] = level_end
        run = next(iter(Experiment.from_dict(described).points()))
        summary, _ = run_farm(run.platform, run.description, Work("emulated"))
        predicted = simulate(run, False).data
        slow = next(node["tasks"] for node in summary["nodes"] if node["name"] == "slow")
        done[level_end] = (slow, summary["makespan_s"], predicted["makespan_s"])
    slow, lived, predicted = zip(done[True], done[False], strict=True)
    assert slow[0] < slow[1], done
    assert lived[0] < 0.9 * lived[1], done
    assert predicted[0] < 0.9 * predicted[1], done


def test_a_node_may_be_called_as_an_option_is():
    with crosswind.Farm(tree("r", "-rf<r")) as farm:
        assert farm.submit(abs, -1).result(60) == 1
    assert [event["code"] for event in farm.run.events] == []
