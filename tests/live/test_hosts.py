"""Hosts of a file, whose agents people start themselves: typed as a user would."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
import urllib.request

import cloudpickle
import farms
import pytest
from farms import point, slowly, take, tree, value, wait_until

from crosswind.certificates import Node, make_certificates
from crosswind.errors import AgentLost, CrosswindError, DescriptionError, MeasurementError
from crosswind.measure.cluster import at_host, calls, handshake, on_hosts
from crosswind.measure.cluster.on_hosts import HostsCluster
from crosswind.run.agents import Launch, Limits, LiveFarm, Task, Work
from crosswind.run.deployment import Placing
from crosswind.run.deployments import deployed
from crosswind.run.hosts import OnHosts
from crosswind.serve import greet

pytestmark = pytest.mark.live

cloudpickle.register_pickle_by_value(farms)
CROSSWIND = [sys.executable, "-m", "crosswind.cli"]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "token").write_text("the token of these hosts\n")
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "hosts.toml").write_text(
        f'schema_version = 1\n[[host]]\nname = "head"\nlisten = "127.0.0.1:{free_port()}"\n'
        f'[[host]]\nname = "a"\nparent = "head"\nlisten = "127.0.0.1:{free_port()}"\n'
        '[[host]]\nname = "b"\nparent = "a"\n'
    )
    for number in range(20):
        (tmp_path / f"{number:02}.in").write_text("x" * number)
    return tmp_path


def is_open(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def shown(by, name):
    return ["--token-file", "token"] if by == "token" else ["--tls", f"certs/{name}"]


def serving(files, name, by="token", *more):
    command = [*CROSSWIND, "serve", "--hosts", "hosts.toml", "--name", name, *shown(by, name), *more]
    return subprocess.Popen(command, cwd=files, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("by", ["token", "certificates"])
def test_a_command_runs_on_the_hosts_of_a_file_which_end_with_it(files, by):
    make_certificates(files / "certs", [Node("head", parent=True), Node("a", parent=True), Node("b")])
    served = [serving(files, "b", by), serving(files, "a", by)]  # the first one waits
    command = [*CROSSWIND, "map", "wc -c < {input}", "--inputs", "*.in", "--out", "out", "--json"]
    done = subprocess.run(
        [*command, "--on", "hosts:hosts.toml", *shown(by, "head")],
        cwd=files,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["on"] == "hosts"
    assert [(files / "out" / f"{n:02}.in").read_text().strip() for n in range(20)] == [str(n) for n in range(20)]
    for process in served:
        _, said = process.communicate(timeout=20)
        assert process.returncode == 0, said


def states(page):
    """What a page's events say, one after the other."""
    with urllib.request.urlopen(f"{page}events", timeout=60) as events:
        for line in events:
            if line.startswith(b"data: {") and len(line) > len(b"data: {}\n"):
                yield json.loads(line.removeprefix(b"data: "))


def test_a_node_in_the_middle_shows_what_comes_through_it(files):
    pytest.importorskip("tornado", reason="tornado is not installed")
    served = [serving(files, "b"), serving(files, "a", "token", "--watch")]
    page = served[1].stderr.readline().removeprefix("watch: ").strip()
    command = [*CROSSWIND, "map", "sleep 0.3; wc -c < {input}", "--inputs", "*.in", "--out", "out", "--json"]
    root = subprocess.Popen(
        [*command, "--on", "hosts:hosts.toml", "--token-file", "token"], cwd=files, stdout=subprocess.PIPE
    )
    seen = list(states(page))  # until the run is over
    root.communicate(timeout=60)
    for process in served:
        assert process.wait(20) == 0
    assert root.returncode == 0
    assert seen[-1]["state"] == "ended"
    assert [node["name"] for node in seen[-1]["nodes"]] == ["a", "b"]
    assert sum(node["tasks"] for node in seen[-1]["nodes"]) == 20
    assert all(node["tasks"] > 0 for node in seen[-1]["nodes"])
    assert any(0 < state.get("done", 0) < seen[-1]["done"] for state in seen), "it was there before the end"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_host_that_is_asked_to_end_hands_its_tasks_back_and_the_others_go_on(number, tmp_path):
    file = tmp_path / "token"
    file.write_text("the token of this farm\n")
    file.chmod(0o600)
    limits = Limits(start_s=20.0, silence_s=2.0)
    launch = Launch(by_hand=True)
    work = Work("callable", function=slowly)
    with LiveFarm(tree("r", "a<r", "b<r"), point(), work, launch=launch, limits=limits, token=file.read_text()) as farm:
        command = [*CROSSWIND, "serve", "--parent", farm.address, "--token-file", str(file), "--name"]
        a, b = (subprocess.Popen([*command, name], stderr=subprocess.PIPE) for name in "ab")
        for task in range(200):
            farm.submit(Task(str(task).encode().join([b"I", b"\n."])))  # a pickled int
        farm.end_of_tasks()
        taken = take(farm, 10)
        a.send_signal(number)
        taken |= take(farm, 200 - len(taken))  # several may come at a time
        assert a.wait(20) == 0
        summary, _ = farm.close()
        assert b.wait(20) == 0
    assert {task: value(result) for task, result in taken.items()} == {n: n * n for n in range(200)}
    (event,) = summary["events"]
    assert (event["code"], event["node"]) == ("agent-left", "a")
    assert event["tasks"] > 0
    busy = {node["name"]: node["busy_s"] for node in summary["nodes"]}
    assert busy["a"] > 0, "it told what it did before it went"


def test_a_host_that_waits_for_its_parent_ends_when_it_is_asked_to(files):
    process = serving(files, "a")
    assert "children connect to" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 0, said


@pytest.fixture
def cluster(files):
    """The hosts of the file as a cluster, and the processes that serve there."""
    served = {name: serving(files, name) for name in "ab"}
    with HostsCluster.load(files / "hosts.toml", files / "token") as hosts:
        yield hosts, served
    for process in served.values():
        process.communicate(timeout=20)


def test_functions_are_called_on_every_host_and_each_ends_with_the_measurement(cluster):
    hosts, served = cluster
    assert dict(hosts.hosts) == {"head": "127.0.0.1", "a": "127.0.0.1", "b": "127.0.0.1"}
    told = {host: hosts.submit(host, at_host.look) for host in hosts.hosts}
    assert {future.result(20)["name"] for future in told.values()} == {socket.gethostname()}
    peer = hosts.submit("b", at_host.start_peer, "127.0.0.1", 60.0, "a token for one pair").result(20)
    assert greet(peer, "a token for one pair")["loopback"]
    hosts.submit("b", at_host.end_peer, peer).result(20)
    with pytest.raises(MeasurementError, match="cannot be reached"):
        hosts.submit("a", at_host.measured, "127.0.0.1:9", {"max_seconds": 1.0}, 20.0).result(30)
    with pytest.raises(CrosswindError, match="not one of the functions that may be called"):
        hosts.submit("a", socket.gethostname).result(20)
    assert [process.poll() for process in served.values()] == [None, None]


def test_what_is_under_way_is_not_waited_for(files):
    served = [serving(files, name) for name in "ab"]
    with HostsCluster.load(files / "hosts.toml", files / "token") as hosts:
        under_way = hosts.submit("b", at_host.measured, f"127.0.0.1:{free_port()}", {"max_seconds": 30.0}, 60.0)
        peer = hosts.submit("a", at_host.start_peer, "127.0.0.1", 60.0, "a token for one pair").result(20)
        begun = time.monotonic()
    assert time.monotonic() - begun < 10
    with pytest.raises(CrosswindError):
        under_way.result(10)
    for process in served:
        assert process.wait(10) == 0
    with pytest.raises(MeasurementError):
        greet(peer, "a token for one pair")


def test_without_any_other_host_it_is_said_and_ctrl_c_does_not_wait(files):
    alone = HostsCluster(OnHosts.load(files / "hosts.toml", Placing(token_file=files / "token")), gather_s=1.0)
    begun = time.monotonic()
    with pytest.raises(AgentLost, match="no other host was there within 1 s"):
        alone.__enter__()
    command = [*CROSSWIND, "check", "--on", "hosts:hosts.toml", "--token-file", "token"]
    check = subprocess.Popen(command, cwd=files, stderr=subprocess.PIPE, text=True)
    assert time.monotonic() - begun < 10
    port = tomllib.loads((files / "hosts.toml").read_text())["host"][0]["listen"].rpartition(":")[2]
    wait_until(lambda: is_open(int(port)), "the listener")
    check.send_signal(signal.SIGINT)
    _, said = check.communicate(timeout=10)
    assert check.returncode == 130, said


def test_a_host_that_goes_away_is_told_and_the_others_still_answer(cluster):
    hosts, served = cluster
    waiting = hosts.submit("b", at_host.measured, "127.0.0.1:9", {"max_seconds": 1.0}, 20.0)
    served["b"].kill()
    with pytest.raises(CrosswindError):
        waiting.result(20)
    wait_until(lambda: not lives(hosts, "b"), "the end of b")
    assert hosts.submit("a", at_host.look).result(20)["name"] == socket.gethostname()
    with pytest.raises(AgentLost, match="b went away"):
        hosts.submit("b", at_host.look).result(20)


def lives(hosts, name):
    with contextlib.suppress(AgentLost):
        hosts.submit(name, at_host.look).result(20)
    return hosts.is_alive(name)


def test_unauthenticated_peers_at_the_listener_hold_nobody_up(files, monkeypatch, capfd):
    """Silent, slow, lying and noisy ones, more than there may be at a time; hosts come all the same."""
    monkeypatch.setattr(handshake, "PATIENCE_S", 1.0)
    doors = []
    opened = on_hosts._open_door
    monkeypatch.setattr(on_hosts, "_open_door", lambda place: doors.append(opened(place)) or doors[-1])
    hosts = HostsCluster.load(files / "hosts.toml", files / "token")
    gathering = threading.Thread(target=hosts.__enter__)
    gathering.start()
    wait_until(lambda: doors, "the listener")
    address = doors[0].getsockname()

    def greetings():
        return sum(thread.name == "crosswind-greeting" for thread in threading.enumerate())

    silent = [socket.create_connection(address) for _ in range(100)]
    wait_until(lambda: greetings() == handshake.UNAUTHENTICATED, "as many as there may be")
    slow, over = silent[0], threading.Event()

    def drip():
        with contextlib.suppress(OSError):
            while not over.wait(0.1):
                slow.sendall(b"C")

    dripping = threading.Thread(target=drip)
    dripping.start()
    with contextlib.suppress(ConnectionResetError):  # it closes with bytes unread
        assert slow.recv(1) == b""  # its time is over, however slowly bytes come
    over.set()
    dripping.join()
    for words in (b"[" * 4000, b"\xff" * 64, handshake._HEAD.pack(handshake._MAGIC, b"0" * 32, 1) + b"a" + b"0" * 32):
        with socket.create_connection(address) as liar:
            liar.sendall(words)
            with contextlib.suppress(ConnectionResetError):  # it closes with bytes unread
                while liar.recv(1000):
                    pass
    served = [serving(files, name) for name in "ab"]
    gathering.join(30)
    assert greetings() <= handshake.UNAUTHENTICATED
    assert {name: hosts.is_alive(name) for name in hosts.hosts} == {"head": True, "a": True, "b": True}
    hosts.__exit__(None, None, None)
    for one in silent:
        one.close()
    for process in served:
        process.communicate(timeout=20)
        assert process.returncode == 0
    assert "Traceback" not in capfd.readouterr().err


def test_no_token_and_no_key_is_read_on_the_way(files, monkeypatch):
    """What the root and a host say to each other, as a reader of the network hears it."""
    heard, greeted = [], []
    receive, greeting = calls._exactly, handshake._exactly
    monkeypatch.setattr(calls, "_exactly", lambda line, count: heard.append(receive(line, count)) or heard[-1])
    monkeypatch.setattr(handshake, "_exactly", lambda line, *how: greeted.append(greeting(line, *how)) or greeted[-1])
    sendall, token = calls.send, (files / "token").read_bytes().strip()
    monkeypatch.setattr(
        on_hosts, "send", lambda line, said: heard.append(json.dumps(said).encode()) or sendall(line, said)
    )
    served = [serving(files, name) for name in "ab"]
    with HostsCluster.load(files / "hosts.toml", files / "token") as hosts:
        of_visit = hosts.secret("0123456789abcdef0123456789abcdef")
        peer = hosts.submit("b", at_host.start_peer, "127.0.0.1", 60.0, of_visit).result(20)
        assert greet(peer, of_visit)["loopback"]
        hosts.submit("b", at_host.end_peer, peer).result(20)
    for process in served:
        process.communicate(timeout=20)
    assert len(heard) > 4
    assert len(greeted) >= 6  # head, name and proof of each host
    assert not any(secret in said for said in heard + greeted for secret in (token, of_visit.encode()))


def test_what_does_not_fit_to_the_file_is_refused(files):
    with (
        pytest.raises(DescriptionError, match="--token-file or --tls is missing"),
        deployed(f"hosts:{files}/hosts.toml"),
    ):
        pass
    for words, said in (
        (["serve", "--hosts", "hosts.toml", "--name", "head", "--token-file", "token"], "head has no parent"),
        (["serve", "--hosts", "hosts.toml", "--name", "c", "--token-file", "token"], "has no 'c'"),
        (["serve", "--hosts", "hosts.toml", "--name", "a", "--parent", "x:1"], "--parent does not go with --hosts"),
    ):
        done = subprocess.run([*CROSSWIND, *words], cwd=files, capture_output=True, text=True, check=False, timeout=30)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
