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
from crosswind.run.agents import Launch, Limits
from crosswind.run.deployment import Placing
from crosswind.run.hosts import OnHosts
from crosswind.run.this_machine import here

pytestmark = pytest.mark.live

SOON = Limits(start_s=1.0, silence_s=1.0)


def forever(_):
    time.sleep(3600)


def pids_of(farm):
    return [farm._run.live.processes.pid(node["name"]) for node in farm.platform.nodes[1:]]


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
        farm._run.reader.join(60)
        assert not farm._run.reader.is_alive()
        with pytest.raises(AgentLost, match="the farm's run is over: all agents are lost"):
            farm.submit(abs, 1)


def test_calls_that_end_their_agent_fail_alone():
    def ends(status):
        os._exit(status)

    with crosswind.Farm(here(1)) as farm:
        bad = [farm.submit(ends, status) for status in (0, 1)]
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
from crosswind.run.agents import Launch, Limits
from crosswind.run.call_run import CallRun
made = []
def run(calls_of, **options):
    limits = Limits(start_s=1.0, silence_s=1.0)
    made.append(CallRun(calls_of, **options | {"on": None, "launch": Launch(again=False), "limits": limits}))
    return made[-1]
mapping.CallRun = run
results = crosswind.map(abs, iter(int, 1))
next(results)
for node in made[0].platform.nodes[1:]:
    os.kill(made[0].live.processes.pid(node["name"]), signal.SIGKILL)
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


class Hosts:
    """A file of two hosts on loopback, and `crosswind serve` for each."""

    def __init__(self, folder):
        self.token, self.file, port = folder / "token", folder / "hosts.toml", free_port()
        self.token.write_text("0123456789abcdef0123456789abcdef\n")
        self.token.chmod(0o600)
        self.file.write_text(
            f'schema_version = 1\n[[host]]\nname = "head"\nlisten = "127.0.0.1:{port}"\n'
            '[[host]]\nname = "a"\nparent = "head"\n[[host]]\nname = "b"\nparent = "head"\n'
        )
        self.servers = [self._serve(name) for name in "ab"]

    def _serve(self, name):
        words = ["--hosts", str(self.file), "--token-file", str(self.token), "--name", name]
        command = [sys.executable, "-m", "crosswind.cli", "serve", *words]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def farm(self, **limits):
        launch = OnHosts.load(self.file, Placing(token_file=self.token))
        return crosswind.Farm(launch=launch, limits=Limits(silence_s=1.0, **limits))

    def end(self):
        for server in self.servers:
            if server.poll() is None:
                server.kill()
            server.wait()
            server.stderr.close()


@pytest.fixture
def hosts(tmp_path):
    found = Hosts(tmp_path)
    yield found
    found.end()


def test_when_every_host_of_a_file_is_killed_the_run_ends_and_says_so(hosts):
    with hosts.farm(start_s=5.0) as farm:
        assert farm.submit(abs, -1).result(timeout=60) == 1
        calls = [farm.submit(forever, k) for k in range(10)]
        wait_until(calls[0].running, "the first call")
        for server in hosts.servers:
            server.kill()
        fails_with_cause(farm, calls, "all agents are lost, and .* are not done")


def test_hosts_whose_agents_a_task_ends_stay_in_the_farm(hosts):
    def deadly(number):
        if number == 2:
            os._exit(0)
        return number

    with hosts.farm() as farm:
        calls = [farm.submit(deadly, number) for number in range(30)]
        for number, call in enumerate(calls):
            if number == 2:
                with pytest.raises(crosswind.CallError, match="computed 5 times when an agent was lost"):
                    call.result(timeout=120)
            else:
                assert call.result(timeout=120) == number
    for server in hosts.servers:
        try:
            status = server.wait(timeout=5)
        except subprocess.TimeoutExpired:  # being started again when the run ended, it still looks for its parent
            server.terminate()
            status = server.wait(timeout=30)
        assert status == 0
    assert "the agent ended with status" in "".join(server.stderr.read() for server in hosts.servers)


def free_port():
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]
