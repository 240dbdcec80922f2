"""Authentication: tokens, certificates, impostors, and connections that only hold a place."""

import contextlib
import json
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import cloudpickle
import farms
import pytest
import speaking
from farms import point, take, tree, value

from crosswind._core import AGENT_PROTOCOL
from crosswind.certificates import Node, make_certificates, show_certificates
from crosswind.errors import AgentLost, DescriptionError, MeasurementError
from crosswind.filter import Filter, Forward
from crosswind.measure import measure
from crosswind.overlap import overlap
from crosswind.run.agents import Launch, LiveFarm, Task, Work
from crosswind.run.farm import Farm
from crosswind.run.plain_data import NotPlainError
from crosswind.serve import greet

pytestmark = pytest.mark.live
cloudpickle.register_pickle_by_value(farms)
TOKEN = "a secret not to be shown"
CLI = [sys.executable, "-m", "crosswind.cli"]


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("security") / "certs"
    make_certificates(directory, [Node("r", parent=True), Node("a", parent=True), Node("b")], days=1)
    return directory


class Serving:
    """A `crosswind serve` on loopback, ended with its block."""

    def __init__(self, *words):
        command = [*CLI, "serve", "--listen", "127.0.0.1:0", *map(str, words)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stderr.readline().split("listening on ")[1].split(";")[0]
        host, _, port = self.address.rpartition(":")
        self.place = (host, int(port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=20)


@pytest.fixture
def token_file(tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o600)
    return file


def test_off_loopback_there_must_be_a_token_or_a_certificate():
    for words in (["serve", "--listen", "0.0.0.0:0"], ["measure", "--peer", "192.0.2.7:7117", "--max-seconds", "1"]):
        done = subprocess.run([*CLI, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2, done.stderr
        assert "is not on loopback, and there is neither a token nor a certificate" in done.stderr
        assert "--token-file FILE" in done.stderr
        assert "--tls DIR" in done.stderr
    with pytest.raises(DescriptionError, match="not on loopback"):
        overlap(peer="192.0.2.7:7117", waits=["event"], nices=[0], pings=[(1, 1)])


def test_only_a_process_that_knows_the_token_may_measure(token_file):
    with Serving("--token-file", token_file) as peer:
        assert greet(peer.address, token=TOKEN)["loopback"]
        for wrong in (None, "another token of some length"):
            with pytest.raises(MeasurementError, match="does not know the token"):
                greet(peer.address, token=wrong)
        done = overlap(peer=peer.address, token=TOKEN, waits=["event"], nices=[0], pings=[(5, 1000)], burn_s=0.05)
        assert TOKEN not in json.dumps(done.summary)


def test_a_measurement_with_certificates_is_controlled_sealed_and_measures_plain_bytes(certs, tmp_path):
    make_certificates(tmp_path / "others", [Node("r", parent=True)], days=1)
    with Serving("--tls", certs / "b") as peer:
        found = measure(peer.address, tls=certs / "r", matrix=64, direction="receive", max_seconds=3)
        assert found.samples.num_rows > 5
        assert "speaks TLS" in refusal(peer.address)
        assert "certificate" in refusal(peer.address, tls=tmp_path / "others" / "r")
        with socket.create_connection(peer.place) as plain:
            nonces = speaking.met(plain, speaking.CONTROL)
            assert nonces
            assert "speaks TLS" in speaking.hear(plain)["why"]


def refusal(address, **shown):
    with pytest.raises(MeasurementError) as refused:
        greet(address, **shown)
    return str(refused.value)


def test_unauthenticated_connections_are_closed_and_others_are_served(token_file):
    with Serving("--token-file", token_file) as peer:
        for bogus in (b"\x16\x03\x01\xff\xff" + bytes(300), b"\x00" * 100, speaking.greeting()[:20]):
            for _ in range(300):
                with socket.create_connection(peer.place) as stranger:
                    stranger.sendall(bogus)
        silent = [socket.create_connection(peer.place) for _ in range(50)]
        dripping = socket.create_connection(peer.place)
        began = time.monotonic()
        assert greet(peer.address, token=TOKEN)["loopback"]
        silent[-1].setblocking(False)
        with contextlib.suppress(BlockingIOError):
            assert silent[-1].recv(100) != b""  # the others are served before these are put out
        dripped = 0
        with contextlib.suppress(OSError):  # put out
            for byte in speaking.greeting():
                dripping.sendall(bytes([byte]))
                dripped += 1
                time.sleep(0.25)
        assert time.monotonic() - began > 4.0
        assert dripped < len(speaking.greeting())
        for stranger in [*silent, dripping]:
            with stranger:
                stranger.settimeout(5.0)
                with contextlib.suppress(ConnectionResetError):
                    assert stranger.recv(100)[40:] == b""
        assert peer.process.poll() is None


@pytest.mark.parametrize("sealed", [False, True])
def test_a_farm_does_not_show_its_secrets(sealed, certs, tmp_path):
    launch = Launch(logs=tmp_path, tls=(lambda node: str(certs / node)) if sealed else None)
    with LiveFarm(
        tree("r", "a<r", "b<a"),
        point(),
        Work("callable", function=farms.slowly),
        launch=launch,
        token=None if sealed else TOKEN,
    ) as farm:
        for number in range(20):
            farm.submit(Task(pickle.dumps(number)))
        farm.submit(Task(pickle.dumps(3)))
        assert {task: value(result) for task, result in take(farm, 21).items()}[19] == 361
        secret = (certs / "b" / "key.pem").read_text() if sealed else TOKEN
        for node in ("a", "b"):
            for file in ("cmdline", "environ"):
                assert secret.encode() not in Path(f"/proc/{farm.processes.pid(node)}/{file}").read_bytes()
        assert secret not in repr(vars(farm)["_launch"])
        farm.end_of_tasks()
        summary, _ = farm.close()
    assert secret not in json.dumps(summary)
    assert all(secret not in path.read_text() for path in tmp_path.glob("*.log"))


class Owned:
    """A pickle that acts when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("shown", ["token", "certificate"])
def test_code_of_an_impostor_is_never_unpickled(shown, certs, token_file, tmp_path):
    mark = tmp_path / "owned"
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        words = ["--token-file", token_file] if shown == "token" else ["--tls", certs / "b"]
        address = f"127.0.0.1:{server.getsockname()[1]}"
        command = [*CLI, "serve", "--parent", address, "--name", "b", *map(str, words)]
        agent = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        connection, _ = server.accept()
        with connection:
            settings = json.dumps({"run": {}, "code": True}).encode()
            connection.sendall(b"XWFM" + AGENT_PROTOCOL.to_bytes(2) + b"\x00\x00" + bytes(32))
            connection.sendall(struct.pack(">IB", 33 + len(settings), 2) + bytes(32) + settings)
            code = pickle.dumps(Owned(str(mark)))
            with contextlib.suppress(ConnectionError):  # it may have hung up already
                connection.sendall(struct.pack(">IBB", 2 + len(code), 4, 1) + code)
            _, said = agent.communicate(timeout=30)
    assert agent.returncode == 1
    assert ("does not know the token" if shown == "token" else "speaks no TLS") in said
    assert not mark.exists()


def test_an_agent_takes_no_parent_whose_certificate_is_a_leafs(certs):
    # The root shows the leaf's certificate: it belongs to the set, and may not send code.
    launch = Launch(by_hand=True, tls=lambda node: str(certs / "b"))
    with LiveFarm(tree("r", "b<r"), point(), Work("noop"), launch=launch) as farm:
        from crosswind.run.agent import be_agent

        with pytest.raises(AgentLost, match="is not a parent's"):
            be_agent(farm.address, "b", None, tls=str(certs / "b"), patience_s=3.0)
        farm.interrupt()


def test_filters_with_certificates_carry_bytes_both_ways(certs):
    sent = os.urandom(3_000_000)
    with socket.create_server(("127.0.0.1", 0)) as target, Filter(listen="127.0.0.1:0", tls=certs / "b") as there:
        forward = Forward("local", "127.0.0.1:0", f"127.0.0.1:{target.getsockname()[1]}")
        with Filter([forward], [there.address], tls=certs / "a", frame_bytes=65_536) as here:
            assert here.wait_for_peers(10.0)
            host, _, port = here.ports[0].rpartition(":")
            with socket.create_connection((host, int(port))) as near:
                far, _ = target.accept()
                with far:
                    for source, sink in ((near, far), (far, near)):
                        source.setblocking(False)
                        sink.settimeout(20)
                        assert carried(source, sink, sent) == sent
                        source.setblocking(True)
            assert here.counters()["local"]["sent_bytes"] >= len(sent)
        with Filter([forward], [there.address]) as plain:
            assert not plain.wait_for_peers(1.0)


def carried(source, sink, sent):
    """What comes of bytes, written as room is and read as they come."""
    got, at = bytearray(), 0
    while len(got) < len(sent):
        with contextlib.suppress(BlockingIOError):
            at += source.send(sent[at : at + 100_000]) if at < len(sent) else 0
        sink.settimeout(0.05 if at < len(sent) else 20)
        try:
            part = sink.recv(200_000)
            assert part
            got += part
        except TimeoutError:
            pass
    return bytes(got)


def test_certificates_are_made_added_to_shown_and_never_overwritten(tmp_path):
    def cert(*words):
        return subprocess.run([*CLI, "cert", *map(str, words)], capture_output=True, text=True, check=False)

    out = tmp_path / "certs"
    made = cert("--out", out, "Lab0=10.0.0.1,lab0.example.org", "Lab3", "--parent", "Lab0", "--json")
    assert made.returncode == 0, made.stderr
    shown = json.loads(made.stdout)["certificates"]
    assert [(one["name"], one["parent"], one["problem"]) for one in shown] == [
        ("ca", False, None),
        ("Lab0", True, None),
        ("Lab3", False, None),
    ]
    assert shown[1]["names"][:3] == ["Lab0", "10.0.0.1", "lab0.example.org"]
    assert 363 <= shown[2]["days_left"] <= 365
    assert {path.stat().st_mode & 0o777 for path in out.glob("*/key.pem")} == {0o600}
    key = (out / "Lab3" / "key.pem").read_bytes()
    again = cert("--out", out, "Lab3")
    assert (again.returncode, "is there already" in again.stderr) == (2, True)
    assert (out / "Lab3" / "key.pem").read_bytes() == key
    make_certificates(out, [Node("Lab4")], days=7)
    assert 6 <= show_certificates(out)[3]["days_left"] <= 7
    make_certificates(tmp_path / "others", [Node("Lab3")], days=1)
    (out / "Lab3" / "cert.pem").write_bytes((tmp_path / "others" / "Lab3" / "cert.pem").read_bytes())
    assert cert("--show", out).returncode == 3


LEAF_THAT_SENDS_CODE = """
import itertools, pickle, sys
from crosswind.run import agent

class Code:
    def __reduce__(self):
        return open, ({path!r}, "w")

raised = b"\\xff"
code, within = pickle.dumps(Code()), pickle.dumps((Code(), ""))
answers = [(True, code), (False, raised + code), (False, raised + within)]
outcomes = [(code,), (raised + code, None), (raised + within, None)]
turns = itertools.count()

def load(_):
    def call(data, early=None, function=None):
        given = pickle.loads(data)
        if early is None:
            return answers[pickle.loads(given[1])[0][0] % 3]
        open({path!r} + ".batch", "w").close()
        early(code)
        said = pickle.dumps(((outcomes * len(given[2]))[: len(given[2])], 0, 0.001))
        return True, [code, said][next(turns) % 2]
    return call

agent.load = load
agent.be_agent({address!r}, "a", {token!r}, patience_s=5.0)
"""


def test_a_leaf_of_another_host_runs_no_code_in_the_root(tmp_path):
    marker = tmp_path / "code-of-the-leaf-ran"
    with Farm(tree("r", "a<r"), launch=Launch(by_hand=True)) as farm:
        live = farm._run.live
        code = LEAF_THAT_SENDS_CODE.format(path=str(marker), address=live.address, token=live._token)
        leaf = subprocess.Popen([sys.executable, "-c", code])
        calls = [farm.submit(abs, number) for number in range(300)]
        for call in calls:
            with pytest.raises(NotPlainError):
                call.result(60)
    leaf.wait(20)
    assert not marker.exists()
    assert (tmp_path / "code-of-the-leaf-ran.batch").exists()  # some calls went in batches
