"""The probe and its peer, block by block: bytes counted, handshakes refused."""

import json
import socket
import struct

import pytest
import speaking

from crosswind import _core
from crosswind.errors import AgentLost, DescriptionError, MeasurementError

pytestmark = pytest.mark.live

CHUNK = 65_536
BUFFER = 1 << 20


def make_probe(address, direction, **changed):
    settings = {
        "kernel": {"name": "diagonals", "matrix": 64},
        "peers": [address],
        "channels": [{"peer": 0, "direction": direction}],
        "message_bytes": 1_000_000,
        "streams": 1,
        "wait": "event",
        "paced_by": "peer",
        "pacing_chunk_bytes": CHUNK,
        "socket_buffer_bytes": BUFFER,
        "congestion_control": None,
    }
    return _core.Probe(json.dumps(settings | changed))


@pytest.fixture
def open_probe(request):
    probes = []

    def start(*args, **kwargs):
        probes.append(make_probe(*args, **kwargs))
        return probes[-1]

    yield start
    for probe in probes:
        probe.close()


def run(probe, level, seconds=0.3, settle_s=0.0):
    probe.run_block([level], seconds, settle_s, seconds - settle_s, "ladder")
    columns = probe.take()
    return sum(columns["channel0_mb"]), sum(columns["dt_s"]), columns


@pytest.mark.alone
@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize("paced_by", ["peer", "sender", "receiver"])
@pytest.mark.parametrize("direction", ["receive", "send"])
@pytest.mark.parametrize("rate", [1.0, 30.0, 300.0])
def test_a_paced_channel_never_moves_more_than_its_rate_and_one_chunk(
    open_probe, peer, direction, rate, paced_by, streams
):
    probe = open_probe(peer.address, direction, paced_by=paced_by, streams=streams)
    probe.connect()
    run(probe, rate, 0.3)  # buffers between the ends fill once
    moved, seconds, _ = run(probe, rate, 0.3)
    in_buffers_mb = (
        0.0 if paced_by_sender(paced_by, direction) else 4 * BUFFER * 1e-6
    )  # what two buffers may hold, as the kernel counts
    assert moved <= rate * seconds * 1.001 + streams * (CHUNK * 1e-6 + in_buffers_mb)


def paced_by_sender(paced_by, direction):
    return paced_by == "sender" or (paced_by == "peer" and direction == "receive")


def test_a_received_rate_of_zero_is_silence(open_probe, peer):
    probe = open_probe(peer.address, "receive")
    probe.connect()
    run(probe, None)
    run(probe, 0.0)
    moved, _, columns = run(probe, 0.0)
    assert moved == 0.0
    assert sum(columns["work"]) > 0


def test_unpaced_traffic_is_marked_by_an_asked_rate_that_is_no_number(open_probe, peer):
    probe = open_probe(peer.address, "receive")
    probe.connect()
    moved, _, columns = run(probe, None)
    assert moved > 0
    assert all(value != value for value in columns["channel0_asked_mb_per_s"])


@pytest.mark.alone
@pytest.mark.parametrize("direction", ["receive", "send"])
def test_both_ends_count_the_same_bytes(open_probe, peer, direction):
    probe = open_probe(peer.address, direction, streams=2)
    probe.connect()
    here = sum(run(probe, level, 0.2)[0] for level in (50.0, None, 50.0, 0.0, 0.0))
    (there,) = probe.moved_there_mb()
    # Acknowledged, but not read while the peer is silent: what lies in its receive buffers, as the kernel counts them.
    in_buffers_mb = 2 * 2 * BUFFER * 1e-6 if direction == "send" else 0.0
    # A block's first reading comes after its level is in force, so a little moves between blocks.
    assert there - here <= 0.05 * there + 1.0
    # A byte: both are sums of megabytes as floating-point numbers.
    assert here - there <= in_buffers_mb + 1e-6


@pytest.mark.parametrize("direction", ["receive", "send"])
def test_a_renewed_probe_has_other_connections_and_goes_on(open_probe, peer, direction):
    probe = open_probe(peer.address, direction)
    probe.connect()
    _, _, before = run(probe, 50.0)
    assert probe.moved_there_mb()[0] > 1.0
    probe.renew()
    assert probe.moved_there_mb() == [0.0]
    moved_mb, _, after = run(probe, 50.0)
    assert moved_mb > 1.0
    assert sum(after["work"]) > 0
    assert after["t_s"][0] > before["t_s"][-1]
    peer.kill()
    with pytest.raises(AgentLost):
        probe.renew()


def test_no_traffic_is_possible_before_the_peers_are_connected(open_probe, peer):
    probe = open_probe(peer.address, "receive")
    run(probe, 0.0)
    with pytest.raises(DescriptionError, match="before the peers are connected"):
        run(probe, 1.0)


def test_a_level_too_many_or_below_zero_is_refused(open_probe, peer):
    probe = open_probe(peer.address, "receive")
    probe.connect()
    with pytest.raises(DescriptionError, match="one level for each of 1 channels"):
        probe.run_block([1.0, 2.0], 0.1, 0.0, 0.1, "ladder")
    with pytest.raises(MeasurementError, match="at least 0 MB/s"):
        run(probe, -1.0)


def test_an_unknown_congestion_control_is_refused(open_probe, peer):
    probe = open_probe(peer.address, "receive", congestion_control="pigeon")
    with pytest.raises(MeasurementError, match="pigeon"):
        probe.connect()


@pytest.mark.alone
def test_interval_amounts_add_up_to_the_block(open_probe, peer):
    probe = open_probe(peer.address, "receive")
    probe.run_block([0.0], 0.4, 0.1, 0.1, "ladder")
    columns = probe.take()
    assert columns["settling"] == [True, False, False, False]
    assert set(columns["block"]) == {0}
    starts, lengths = columns["t_s"], columns["dt_s"]
    for start, length, after in zip(starts, lengths, starts[1:], strict=False):
        assert start + length == pytest.approx(after, abs=1e-9)


def heard(connection):
    """All that comes until the other end hangs up."""
    connection.settimeout(20)
    parts = []
    while True:
        try:
            part = connection.recv(4096)
        except ConnectionResetError:
            return b"".join(parts)
        if not part:
            return b"".join(parts)
        parts.append(part)


def test_garbage_lying_lengths_and_wrong_versions_are_refused_and_disturb_no_other(open_probe, peer):
    probe = open_probe(peer.address, "receive")
    probe.connect()
    refused = []
    for attack in (
        lambda c: c.sendall(b"GET / HTTP/1.1\r\n\r\n"),
        lambda c: c.sendall(speaking.greeting(version=9)),
        lambda c: c.sendall(speaking.greeting(77)),
        lambda c: (c.sendall(speaking.greeting()), c.sendall(b"\xff\xff\xff\xff{")),
        lambda c: (c.sendall(speaking.greeting()), c.sendall(struct.pack(">I", 3) + b"[1]")),
        lambda c: (c.sendall(speaking.greeting()), c.sendall(struct.pack(">I", 2) + b"\xff\xff")),
    ):
        with socket.create_connection(peer.place) as connection:
            attack(connection)
            refused.append(heard(connection))
        blocks = (run(probe, 20.0)[0] for _ in range(100))  # a busy host may leave the peer no CPU for a whole block
        assert any(moved_mb > 0 for moved_mb in blocks), "the other session continues"
    assert refused[0] == b""
    assert refused[1][:8] == speaking.HEAD.pack(b"XWND", speaking.VERSION, 0), "a wrong version is told the right one"
    assert peer.process.poll() is None


def test_a_stranger_cannot_join_a_session_or_open_an_absurd_one(open_probe, peer):
    def ask(message):
        with socket.create_connection(peer.place) as connection:
            speaking.control(connection)
            speaking.say(connection, message)
            connection.shutdown(socket.SHUT_WR)
            return heard(connection)

    def join(role, session, channel, key):
        with socket.create_connection(peer.place) as connection:
            speaking.belong(connection, role, session, channel, key)
            return heard(connection)

    with socket.create_connection(peer.place) as control:
        key = speaking.control(control)
        session = speaking.open_session(control)
        assert b"no session here" in join(speaking.DATA, session + 1, 0, key)
        for role in (speaking.DATA, speaking.LOAD, speaking.PING):
            assert b"no session here" in join(role, session, 0, bytes(32)), "the number alone is nothing"
        assert b"no such channel" in join(speaking.DATA, session, 0, key), "it was opened without one"
    channel = {
        "direction": "receive",
        "streams": 1,
        "message_bytes": 1_000_000,
        "pacing_chunk_bytes": CHUNK,
        "paced_there": True,
        "socket_buffer_bytes": None,
        "congestion_control": None,
    }
    assert b"message_bytes" in ask({"type": "open", "channels": [channel | {"message_bytes": 1 << 60}]})
    assert b"at most 16" in ask({"type": "open", "channels": [channel] * 17})
    assert b"no session" in ask({"type": "levels", "rates": [1.0]})
    assert b"at most 64" in ask({"type": "load", "target": peer.address, "streams": 1000})


def test_only_a_server_that_answers_the_handshake_can_be_loaded(peer):
    with socket.create_server(("127.0.0.1", 0)) as victim, socket.create_connection(peer.place) as connection:
        speaking.control(connection)
        target = f"127.0.0.1:{victim.getsockname()[1]}"
        speaking.say(connection, {"type": "load", "target": target, "streams": 1})
        attacked, _ = victim.accept()
        with attacked:
            greeting = speaking.HEAD.pack(b"XWND", speaking.VERSION, speaking.CONTROL)
            assert attacked.recv(100)[:8] == greeting, "a greeting, no more"
            attacked.sendall(b"NOT US!!")
            assert heard(attacked) == b""
        connection.shutdown(socket.SHUT_WR)
        assert b"refused" in heard(connection)
