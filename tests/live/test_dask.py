"""Farms and sweeps on a real Dask cluster on this machine: results, leftovers, workers that come and go."""

import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import cloudpickle
import farms
import pytest
from dask_clusters import clean, left_in, two_workers
from farms import Flow, agents_of, point, slowly, take, tree, value, wait_until

import crosswind
from crosswind import AgentLost, DescriptionError
from crosswind.certificates import Node, make_certificates
from crosswind.cluster import client as cluster_client
from crosswind.cluster.client import workers_of
from crosswind.links import Links
from crosswind.run.agents import Limits, LiveFarm, Task, Work
from crosswind.run.dask import OnDask
from crosswind.run.deployment import Placing

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.live

cloudpickle.register_pickle_by_value(farms)
PER_WORKER = Placing(per="worker")
THREE_LEVELS = tree("r", "a<r", "b<a")


def test_a_farm_on_a_client_answers_calls_and_leaves_the_cluster_as_it_was(client):
    before = clean(client)
    with crosswind.Farm(client) as farm:
        assert [future.result() for future in [farm.submit(pow, 2, n) for n in range(20)]] == [2**n for n in range(20)]
        assert list(farm.map(lambda x: x * x, range(20))) == [x * x for x in range(20)]
        assert {farm.submit(os.getpid).result() for _ in range(20)}.isdisjoint(client.run(os.getpid).values())
        assert left_in(client) != before
    assert len({node["name"] for node in farm.run.nodes}) == 3
    wait_until(lambda: left_in(client) == before, "the cluster as it was")


def busy():
    def here(_):  # travels by value: agents know no module of the tests
        import os
        import time

        time.sleep(0.02)
        return os.getpid()

    return here


def test_by_default_as_many_agents_compute_as_dask_has_threads(client):
    assert len(set(crosswind.map(busy(), range(20), on=client))) == 2
    assert len(set(crosswind.map(busy(), range(20), on=client, placing=Placing(per="host")))) == 1


def test_a_worker_of_several_threads_carries_as_many_agents(tmp_path):
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=3, dashboard_address=None, silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        with crosswind.Farm(client) as farm:
            assert [node["name"] for node in farm.platform.nodes] == ["root", "0-0", "0-1", "0-2"]
            assert len(set(farm.map(busy(), range(40)))) == 3
        wait_until(lambda: not any(found for found, *_ in left_in(client)[0].values()), "the agents' end")


def test_a_call_gets_the_results_of_futures_of_dask(client):
    with crosswind.Farm(client) as farm:
        assert farm.submit(pow, client.submit(pow, 2, 3, pure=False), 2).result() == 64
        with pytest.raises(ZeroDivisionError):
            farm.submit(pow, client.submit(divmod, 1, 0, pure=False), 2).result()


def test_dask_computes_its_collections_on_a_farm(client):
    dask = pytest.importorskip("dask")
    with crosswind.Farm(client) as farm:
        total = dask.delayed(sum)([dask.delayed(busy())(number) for number in range(6)])
        pids = dask.delayed(set)([dask.delayed(busy())(number) for number in range(12)])
        assert dask.compute(total, scheduler=farm)[0] > 0
        (found,) = dask.compute(pids, scheduler=farm)
    assert found.isdisjoint({os.getpid(), *client.run(os.getpid).values()})
    assert len(found) == 2


def test_a_busy_cluster_carries_a_farm_all_the_same(client):
    over = distributed.Event("over", client=client)
    busy = client.map(lambda _: distributed.Event("over").wait(60), range(2), pure=False)
    with crosswind.Farm(client, placing=PER_WORKER) as farm:
        assert farm.submit(pow, 2, 3).result() == 8
    assert not [future for future in busy if future.done()]
    over.set()
    assert client.gather(busy) == [True, True]


def test_the_command_line_runs_an_experiment_on_a_cluster_along_the_tree(client, tmp_path):
    platform = tmp_path / "platform.toml"
    platform.write_text(THREE_LEVELS.to_toml())
    experiment = tmp_path / "experiment.toml"
    experiment.write_text(
        'schema_version = 1\nname = "three levels"\nplatform = "platform.toml"\n[workload]\nkind = "farm"\ntasks = 30\n'
        'task_size_mb = 0.1\ntask_work = 1\n[execution]\ncompute = "emulated"\ntime_scale = 50\n'
    )
    on = f"dask:{client.scheduler.address}"
    done = typed("run", experiment, "--on", on, "--per", "worker", "--node", "a=1", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["on"] == "dask"
    assert {node["name"]: node["tasks"] > 0 for node in said["runs"][0]["nodes"]} == {"r": False, "a": True, "b": True}
    refused = typed("run", experiment, "--on", on, "--per", "worker", "--node", "c=1")
    assert (refused.returncode, "no node 'c'" in refused.stderr) == (2, True)


def typed(*words, **variables):
    command = [sys.executable, "-m", "crosswind.cli", *map(str, words)]
    environment = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment)


def test_a_sweep_on_a_cluster_gives_the_bytes_that_it_gives_here(client, tmp_path):
    workload = {"kind": "farm", "tasks": 50, "task_size_mb": 1.0, "task_work": 1.0}
    sweep = {"policy.order": ["interference", "arrival"], "workload.task_work": [1.0, 2.0, 3.0]}
    description = {"schema_version": 1, "name": "s", "platform": THREE_LEVELS.to_dict(), "workload": workload}
    experiment = crosswind.Experiment.from_dict({**description, "sweep": sweep, "repetitions": 2})
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    crosswind.run(experiment, workers=2, out=here)
    crosswind.run(experiment, workers=client, out=there)
    assert there.read_bytes() == here.read_bytes()
    half = json.loads(here.read_text())
    half["runs"] = half["runs"][::2]
    there.write_text(json.dumps(half))
    crosswind.run(experiment, workers=client, out=there, resume=True)
    assert there.read_bytes() == here.read_bytes()
    wait_until(lambda: not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)), "no task left")


def test_small_simulations_share_a_task_of_dask(client, monkeypatch):
    workload = {
        "kind": "farm",
        "tasks": 50,
        "task_size_mb": 1.0,
        "task_work": {"distribution": "uniform", "low": 0.5, "high": 1.5},
    }
    description = {"schema_version": 1, "name": "s", "platform": THREE_LEVELS.to_dict(), "workload": workload}
    experiment = crosswind.Experiment.from_dict({**description, "repetitions": 300})
    submitted, submit = [], client.submit
    monkeypatch.setattr(client, "submit", lambda *words, **options: submitted.append(1) or submit(*words, **options))
    assert [run.seed for run in crosswind.run(experiment, workers=client)] == [
        run.seed for run in crosswind.run(experiment)
    ]
    assert 4 <= len(submitted) < 300


def lasting(seconds):
    def square(number):
        import time

        time.sleep(seconds)
        return number * number

    return square


def farm_on(launch, platform, function=slowly, **policy):
    limits = Limits(start_s=30.0, silence_s=2.0)
    return LiveFarm(platform, point(**policy), Work("callable", function=function), launch=launch, limits=limits)


def codes(summary):
    return [event["code"] for event in summary["events"]]


def test_a_worker_that_joins_gets_tasks_and_one_that_is_retired_hands_its_own_back(cluster, client):
    first, _ = sorted(client.scheduler_info(n_workers=-1)["workers"])
    # Tasks that take longer than the worker needs to close: it waits for the one that its agent computes.
    with farm_on(OnDask(client, PER_WORKER), tree("r", "a<r", "b<r"), lasting(0.4)) as farm:
        count = 24
        for number in range(count):
            farm.submit(Task(pickle.dumps(number)))
        farm.end_of_tasks()
        taken = take(farm, 3)
        client.retire_workers([first])
        cluster.scale(3)  # one more, in its place
        taken |= take(farm, count - len(taken))
        summary, _ = farm.close()
    assert {task: value(result) for task, result in taken.items()} == {n: n * n for n in range(count)}
    assert codes(summary).count("agent-left") == 1, summary["events"]
    assert codes(summary).count("agent-joined") == 1, summary["events"]
    assert "agent-lost" not in codes(summary)


def test_a_worker_whose_lifetime_ends_hands_its_tasks_back_and_finishes_what_it_computes(cluster, client, tmp_path):
    command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address, "--name", "short"]
    command += ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--lifetime", "6s", "--local-directory", tmp_path]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as worker:
        client.wait_for_workers(3)
        placing = Placing(per="worker", nodes={"c": "short"})
        with farm_on(OnDask(client, placing), tree("r", "a<r", "b<r", "c<r"), lasting(0.2)) as farm:
            flow = Flow(farm)
            flow.until(lambda result: result.node == "c", "a result of the worker that will go", ahead=12)
            flow.until(lambda _: worker.poll() is not None, "its end", ahead=12)
            summary = flow.end()
        assert worker.returncode == 0
    assert [event["node"] for event in summary["events"] if event["code"] == "agent-left"] == ["c"], summary["events"]
    assert "agent-lost" not in codes(summary)


def test_adaptive_scaling_takes_no_worker_that_carries_an_agent_until_the_farm_is_closed(tmp_path):
    with two_workers(tmp_path) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2)
        with crosswind.Farm(client, placing=PER_WORKER) as farm:
            # Looks so often that it would have taken an idle worker long before the last result.
            cluster.adapt(minimum=1, maximum=3, interval="50ms", wait_count=2)
            assert list(farm.map(lasting(0.1), range(40))) == [n * n for n in range(40)]
            assert len(workers_of(client)) == 2
        assert not {"agent-left", "agent-lost"} & {event["code"] for event in farm.run.events}
        wait_until(lambda: len(workers_of(client)) == 1, "a worker less")


def joining(tmp_path, links, adapt=False):
    """A farm r, a<r, b<a that a third worker, "2", joins: whose child it becomes, and the summary."""
    with two_workers(tmp_path) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2)
        links.save(tmp_path / "links.toml")
        placing = Placing(per="worker", links=tmp_path / "links.toml")
        with farm_on(OnDask(client, placing), THREE_LEVELS, lasting(0.05), adapt=adapt) as farm:
            flow = Flow(farm)
            flow.until(lambda _: True, "a first result")
            cluster.scale(3)
            flow.until(lambda result: result.node == "2", "a result of the worker that joined")
            parent = farm.processes.parent("2")
            summary = flow.end()
    joined = next(event for event in summary["events"] if event["code"] == "agent-joined")
    assert joined["node"] == "2"
    return parent, summary


def links_to(host, rates):
    hosts = [{"name": name, "compute_per_s": 5.0} for name in (*rates, host)]
    link = [{"from": name, "to": host, "receive_limit_mb_per_s": rate} for name, rate in rates.items()]
    return Links.from_dict({"schema_version": 1, "name": "l", "host": hosts, "link": link})


@pytest.mark.parametrize(("adapt", "carrier_of_a"), [(False, "a"), (True, "0")], ids=["node", "host"])
def test_a_worker_that_joins_is_put_below_the_parent_with_which_the_bound_is_highest(tmp_path, adapt, carrier_of_a):
    parent, summary = joining(tmp_path, links_to("2", {"r": 0.001, carrier_of_a: 100.0}), adapt)
    assert parent == "a"
    assert "host-unmeasured" not in {warning["code"] for warning in summary["warnings"]}


def test_a_worker_that_joins_and_that_the_links_do_not_know_is_warned_about(tmp_path):
    _, summary = joining(tmp_path, links_to("elsewhere", {"r": 0.001, "a": 100.0}))
    (warning,) = (warning for warning in summary["warnings"] if warning["code"] == "host-unmeasured")
    assert "host 2 joined, and the links know no link to it from any of r, a;" in warning["message"]


def test_an_agent_that_dies_is_seen_by_dask_and_by_the_tree_and_comes_again(client):
    client.wait_for_workers(2)
    with farm_on(OnDask(client, PER_WORKER), tree("r", "a<r", "b<r")) as farm:
        count = 400
        for number in range(count):
            farm.submit(Task(pickle.dumps(number)))
        farm.end_of_tasks()
        taken = take(farm, 10)
        task = farm.processes.tasks["a"]
        os.kill(agent_pid(client, "a"), signal.SIGKILL)
        wait_until(task.done, "the task's end")
        assert "ended with -9" in str(task.exception())
        taken |= take(farm, count - len(taken))
        summary, _ = farm.close()
    assert {task: value(result) for task, result in taken.items()} == {n: n * n for n in range(count)}
    assert codes(summary)[:2] == ["agent-lost", "agent-joined"]


def agent_pid(client, name):
    """The process of a node's agent below this cluster's workers: other tests have agents of the same name."""
    for worker in client.run(os.getpid).values():
        for pid in agents_of(worker):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[words.index(b"--name") + 1] == name.encode():
                return pid
    raise AssertionError(f"no agent {name}")


def test_the_token_stands_in_no_command_line_and_may_stay_at_home(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the workers are elsewhere
    file = Path("token")
    file.write_text("the token of this test, in a file\n")
    file.chmod(0o600)
    with farm_on(OnDask(client, Placing(per="worker", token_file=file)), tree("r", "a<r", "b<r")) as farm:
        lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if os.access(path, os.R_OK)]
        assert not [line for line in lines if b"the token of this test" in line]
        farm.submit(Task(pickle.dumps(3)))
        farm.end_of_tasks()
        assert value(take(farm, 1)[0]) == 9
        farm.close()


def test_a_host_without_the_tokens_file_is_named(client, tmp_path):
    file = tmp_path / "token"
    file.write_text("the token of this test, in a file\n")
    file.chmod(0o600)
    before = clean(client)
    deployment = OnDask(client, Placing(per="worker", token_file=file))
    file.rename(tmp_path / "taken away")
    with (
        pytest.raises(AgentLost, match=r"agent a on tcp://127\.0\.0\.1.* did not start.*no such file") as refused,
        farm_on(deployment, tree("r", "a<r")),
    ):
        pass
    assert "token" in refused.value.hint
    wait_until(lambda: left_in(client) == before, "the cluster as it was")


def test_with_certificates_each_agent_shows_its_own(client, tmp_path):
    make_certificates(tmp_path, [Node("r", parent=True), Node("a", parent=True), Node("b")])
    with farm_on(OnDask(client, Placing(per="worker", tls=tmp_path / "r")), tree("r", "a<r", "b<a")) as farm:
        for number in range(6):
            farm.submit(Task(pickle.dumps(number)))
        farm.end_of_tasks()
        assert {task: value(result) for task, result in take(farm, 6).items()} == {n: n * n for n in range(6)}
        farm.close()


def test_a_cluster_that_speaks_tls_is_reached_with_the_certificates_of_dasks_configuration(tmp_path):
    make_certificates(tmp_path, [Node("here", ("127.0.0.1",))])
    (tmp_path / "task").write_text("7\n")
    files = {kind: str(tmp_path / "here" / f"{kind}.pem") for kind in ("ca", "cert", "key")}
    sides = {
        f"tls_{side}_{kind}": files[kind] for side in ("scheduler", "worker", "client") for kind in ("cert", "key")
    }
    security = distributed.Security(tls_ca_file=files["ca"], require_encryption=True, **sides)
    words = ("map", "cat {input}", "--inputs", tmp_path / "task", "--out", tmp_path / "out", "--on")
    configured = {
        "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": files["ca"],
        "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT": files["cert"],
        "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY": files["key"],
    }
    with distributed.LocalCluster(
        n_workers=1, processes=True, protocol="tls://", security=security, dashboard_address=":0", silence_logs=50
    ) as cluster:
        on = f"dask:{cluster.scheduler_address}"
        assert on.startswith("dask:tls://")
        bare = typed(*words, on)
        assert (bare.returncode, "names no certificates" in bare.stderr) == (2, True)
        plain = typed(*words, on.replace("tls://", "tcp://"))
        assert (plain.returncode, "neither" in plain.stderr) == (1, True)
        done = typed(*words, on, **configured)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "task").read_text() == "7\n"


def test_a_worker_of_another_version_is_refused_before_anything_runs(client, monkeypatch):
    look = cluster_client.versions.look
    other = {**look(), "crosswind": "9.9"}
    monkeypatch.setattr(cluster_client, "running_here", lambda: other)
    with pytest.raises(DescriptionError, match=r"127\.0\.0\.1 .*: Crosswind is .* there and 9\.9 here") as refused:
        crosswind.Farm(client)
    assert refused.value.hint == "install the same version on every host"


def test_an_agent_of_a_dead_client_ends(cluster, tmp_path):
    script = (
        "import sys, os, time, distributed, crosswind\n"
        "from crosswind.run.deployment import Placing\n"
        "client = distributed.Client(sys.argv[1], set_as_default=False)\n"
        "farm = crosswind.Farm(client, placing=Placing(per='worker'))\n"
        "farm.submit(pow, 2, 3).result()\n"
        "print('up', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-c", script, cluster.scheduler_address]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"up\n"
        process.kill()
    with distributed.Client(cluster, set_as_default=False) as client:
        wait_until(lambda: not [found for found, *_ in left_in(client)[0].values() if found], "the agents' end")
