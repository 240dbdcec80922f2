"""Parallel programs by real ranks on this machine: right results, what the file says, and an end whatever happens."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from crosswind.errors import AgentLost, DescriptionError
from crosswind.experiment import Experiment
from crosswind.run import ranks as live
from crosswind.run.grid import run
from crosswind.run.rank_processes import RankProcesses
from crosswind.run.results import Runs

pytestmark = pytest.mark.live

EM3D = {"nodes_per_rank": 40, "edges_per_node": 4, "remote": 0.3, "steps": 20}
GANG = {"schema_version": 1, "name": "half", "source": [{"kind": "coscheduled", "quantum_s": 0.02, "jobs": 2}]}


def experiment(program="em3d", ranks=2, parameters=None, **more):
    workload = {"kind": "program", "program": program, "ranks": ranks, "parameters": parameters or EM3D}
    return Experiment.from_dict({"schema_version": 1, "name": "here", "workload": workload, **more})


def supersteps(iterations, work_s, **more):
    return experiment("bsp", parameters={"iterations": iterations, "work_s": work_s}, **more)


def waits_until(true, seconds=30.0):
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
    return found


def is_there(pid):
    """Whether a process is there and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("compute", ["emulated", "burn"])
def test_a_program_run_here_is_right_and_says_what_computed(ranks, compute, tmp_path):
    file = tmp_path / "runs.json"
    policy = {"window_packets": 2}
    runs = run(experiment(ranks=ranks, execution={"compute": compute}, policy=policy), "local", out=file)
    (one,) = runs
    assert (one.data["compute"], one.data["ranks"], runs.on, runs.kind) == (compute, ranks, "local", "program")
    assert one.data["messages"] > 0
    assert one.data["packets"] >= one.data["messages"]
    assert one.slowdown == one.slowdown_dedicated == 1.0
    assert one.data["busy_s"]["mean"] > 0
    assert Runs.load(file).summary() == runs.summary()
    shared = [warning["code"] for warning in one.warnings]
    assert ("ranks-share-cpus" in shared) == (compute == "burn" and ranks > len(os.sched_getaffinity(0)))


def test_the_same_ranks_send_the_same_messages_here_and_in_virtual_time():
    for program, parameters in {
        "em3d": EM3D,
        "column": {"keys_per_rank": 200},
        "bsp": {"iterations": 20, "work_s": 1e-4},
    }.items():
        one = experiment(program, 4, parameters)
        (here,), (simulated,) = run(one, "local"), run(one, "sim")
        assert (here.data["messages"], here.data["packets"]) == (simulated.data["messages"], simulated.data["packets"])


@pytest.mark.alone
def test_a_local_run_under_a_disturbance_stands_beside_the_same_undisturbed():
    (one,) = run(supersteps(40, 0.005, disturbance=GANG), "local")
    # 0.2 s of work, and every second 20 ms of the processor.
    assert one.makespan_s >= 2 * 0.2 - 0.04
    assert one.dedicated_s >= 0.2
    assert one.data["coscheduled_s"] == 2 * one.dedicated_s
    assert one.data["away_s"]["min"] >= 0.16
    assert one.data["disturbance"] == "half"


@pytest.mark.alone
def test_into_burning_ranks_the_disturbance_is_injected():
    (one,) = run(supersteps(40, 0.005, disturbance=GANG, execution={"compute": "burn"}), "local")
    assert one.data["compute"] == "burn"
    assert one.data["busy_s"]["min"] >= 0.2
    assert one.data["away_s"]["min"] > 0.02
    assert {"no-rank", "not-injected"}.isdisjoint(warning["code"] for warning in one.warnings)


@pytest.mark.alone
def test_what_is_injected_counts_from_the_programs_start_not_from_the_launchers():
    # By the time that a launcher and two ranks have started and met, this would be over.
    once = {"kind": "recorded", "length_s": 1000, "causes": ["once"], "aligned": True}
    once["cpu"] = [{"cpu": 0, "intervals": [[0.01, 1.0, 0]]}]
    disturbance = {"schema_version": 1, "name": "once", "source": [once]}
    (one,) = run(supersteps(4, 0.05, disturbance=disturbance, execution={"compute": "burn"}), "local")
    assert one.makespan_s >= 0.2 + 0.8


@pytest.mark.parametrize("compute", ["emulated", "burn"])
def test_a_rank_that_is_killed_ends_the_run_and_leaves_no_process(compute, monkeypatch):
    started = []

    class Seen(RankProcesses):
        def start(self, ranks, conductor):
            super().start(ranks, conductor)
            started.extend(self.pid(rank) for rank in range(3))

    monkeypatch.setattr(live, "RankProcesses", Seen)
    killer = threading.Thread(target=lambda: os.kill(waits_until(lambda: started and started[1]), signal.SIGKILL))
    killer.start()
    with pytest.raises(AgentLost, match="rank 1"):
        run(experiment("bsp", 3, {"iterations": 100_000, "work_s": 0.001}, execution={"compute": compute}), "local")
    killer.join()
    assert len(started) == 3
    assert not any(is_there(pid) for pid in started)


def children(pid):
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_rank_outlives_the_process_that_started_it(how, tmp_path):
    file = tmp_path / "experiment.json"
    file.write_text(json.dumps(supersteps(1_000_000, 0.001).to_dict()))
    script = f"import json; from crosswind.run.grid import run; from crosswind.experiment import Experiment;\
        run(Experiment.from_dict(json.load(open({str(file)!r}))), 'local')"
    with (tmp_path / "log").open("w") as log:
        starter = subprocess.Popen([sys.executable, "-c", script], stdout=log, stderr=log)
    ranks = waits_until(lambda: len(children(starter.pid)) == 2 and children(starter.pid))
    starter.send_signal(how)
    assert starter.wait(30) != 0
    waits_until(lambda: not any(is_there(pid) for pid in ranks))


def test_what_only_a_simulation_can_do_is_refused_here():
    with pytest.raises(DescriptionError, match=r"policy.away is \"discard\""):
        run(experiment(policy={"window_packets": 2, "away": "discard"}), "local")
    with pytest.raises(DescriptionError, match="ranks is 65; it must be between 1 and 64"):
        run(experiment("bsp", 65, {"iterations": 1}), "local")
    with pytest.raises(DescriptionError, match=r"execution\.compute"):
        experiment(execution={"compute": "diagonals"})
