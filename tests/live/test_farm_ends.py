"""Whatever ends a farm's run, every future ends, the block is left, and a later call says why the run is over."""

import os
import signal
import subprocess
import sys
import time

import pytest
from farms import wait_until

import crosswind
from crosswind.errors import AgentLost
from crosswind.run.here import here
from crosswind.run.local import Launch, Limits

pytestmark = pytest.mark.live

SOON = Limits(start_s=1.0, silence_s=1.0)


def forever(_):
    time.sleep(3600)


def pids_of(farm):
    return [farm._live.processes.pid(node["name"]) for node in farm.platform.nodes[1:]]


def fails_with_cause(farm, calls, says):
    for call in calls:
        with pytest.raises(AgentLost, match=says):
            call.result(timeout=60)
    with pytest.raises(AgentLost, match=f"the farm's run is over: .*{says}"):
        farm.submit(abs, 1)


def test_when_all_agents_are_gone_every_future_ends_with_what_became_of_them():
    with crosswind.Farm(here(2), launch=Launch(again=False), limits=SOON) as farm:
        calls = [farm.submit(forever, k) for k in range(200)]
        wait_until(calls[0].running, "the first call")
        for pid in pids_of(farm):
            os.kill(pid, signal.SIGKILL)
        fails_with_cause(farm, calls, "all agents are lost, and .* are not done: cpu0 ended with signal 9")


def test_a_farm_that_loses_its_agents_while_nothing_is_to_do_says_so_to_the_next_call():
    with crosswind.Farm(here(1), launch=Launch(again=False), limits=SOON) as farm:
        assert farm.submit(abs, -1).result(timeout=60) == 1
        os.kill(pids_of(farm)[0], signal.SIGKILL)
        farm._reader.join(60)
        assert not farm._reader.is_alive()
        with pytest.raises(AgentLost, match="the farm's run is over: all agents are lost"):
            farm.submit(abs, 1)


def test_calls_that_end_their_agent_fail_alone():
    def ends(status):
        os._exit(status)

    with crosswind.Farm(here(1)) as farm:
        bad = [farm.submit(ends, status) for status in (0, 1, 3)]
        good = [farm.submit(pow, 2, k) for k in range(20)]
        assert [call.result(timeout=120) for call in good] == [2**k for k in range(20)]
        for call in bad:
            with pytest.raises(crosswind.CallError, match="computed 5 times when an agent was lost"):
                call.result(timeout=120)


def test_a_map_whose_agents_are_gone_ends_with_the_cause(tmp_path):
    code = """
import os, signal, sys
import crosswind
from crosswind.run import mapping
from crosswind.run.local import Launch, Limits
from crosswind.run.farm import Farm
made = []
def farm(**options):
    made.append(Farm(**options | {"launch": Launch(again=False), "limits": Limits(start_s=1.0, silence_s=1.0)}))
    return made[-1]
mapping.Farm = farm
results = crosswind.map(abs, iter(int, 1))
next(results)
for node in made[0].platform.nodes[1:]:
    os.kill(made[0]._live.processes.pid(node["name"]), signal.SIGKILL)
try:
    for _ in results:
        pass
except crosswind.AgentLost as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "all agents are lost" in done.stdout


def test_a_root_that_waits_takes_hardly_any_time():
    with crosswind.Farm(here(1)) as farm:
        call = farm.submit(time.sleep, 3.0)
        wait_until(call.running, "the call")
        begun, used = time.monotonic(), time.process_time()
        call.result(timeout=60)
        part = (time.process_time() - used) / (time.monotonic() - begun)
    assert part < 0.02, f"{100 * part:.1f} % of a core"


def test_when_every_host_of_a_file_is_killed_the_run_ends_and_says_so(tmp_path):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123456789abcdef\n")
    token.chmod(0o600)
    port = free_port()
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(
        f'schema_version = 1\n[[host]]\nname = "head"\nlisten = "127.0.0.1:{port}"\n'
        '[[host]]\nname = "a"\nparent = "head"\n[[host]]\nname = "b"\nparent = "head"\n'
    )
    serve = [sys.executable, "-m", "crosswind.cli", "serve", "--hosts", str(hosts), "--token-file", str(token)]
    servers = [subprocess.Popen([*serve, "--name", name], start_new_session=True) for name in "ab"]
    code = f"""
import time, crosswind
from pathlib import Path
from crosswind.run.deployment import Placing
from crosswind.run.hosts import OnHosts
from crosswind.run.local import Limits
launch = OnHosts.load({str(hosts)!r}, Placing(token_file=Path({str(token)!r})))
with crosswind.Farm(launch=launch, limits=Limits(start_s=5.0, silence_s=1.0)) as farm:
    print(farm.submit(abs, -1).result(timeout=60), flush=True)
    calls = [farm.submit(time.sleep, 3600) for _ in range(10)]
    for call in calls:
        try:
            call.result()
        except crosswind.AgentLost as error:
            print(error, flush=True)
"""
    root = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert root.stdout.readline() == "1\n"
        for server in servers:
            os.killpg(server.pid, signal.SIGKILL)
        out, _ = root.communicate(timeout=90)
        assert root.returncode == 0
        assert out.count("all agents are lost") == 10
    finally:
        for process in (root, *servers):
            if process.poll() is None:
                process.kill()
            process.wait()


def free_port():
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]
