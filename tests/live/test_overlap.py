"""Overlap live: burners and pings as processes, resumed, interrupted, with peers that leave; what the machine does."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

import pytest
import speaking

from crosswind.errors import AgentLost, DescriptionError, MeasurementError
from crosswind.host import priority
from crosswind.overlap import live, overlap
from crosswind.overlap.programs import run_together
from crosswind.overlap.result import Overlap

pytestmark = pytest.mark.live

SMALL = {"waits": ["event"], "nices": [0], "pings": [(20, 1000)], "burn_s": 0.05, "repetitions": 1}


def burner(iterations=100_000, nice=0):
    return {"program": "burn", "iterations": iterations, "nice": nice, "cpus": []}


def pinger(address, **spec):
    usual = {"messages": 10, "message_bytes": 1000, "wait": "event", "spin_ns": 20_000, "burn": None}
    return {"program": "ping", "peer": address, "cpus": [], "spec": usual | spec}


def run(*programs, limit_s=60.0):
    return run_together(programs, limit_s)


def test_programs_begin_at_one_moment_and_tell_their_own_ends(peer):
    told = run(burner(), burner(200_000, nice=5), pinger(peer.address))
    assert len({one["start_ns"] for one in told}) == 1
    assert all(one["start_ns"] <= one["began_ns"] < one["ended_ns"] and one["cpu_ns"] > 0 for one in told)
    assert told[2]["there"]["burn_ns"] == []


def test_every_way_to_wait_makes_a_whole_matrix(peer, tmp_path):
    out = tmp_path / "overlap.json"
    waits = ["event", "poll", "spin-block"]
    found = overlap(**SMALL | {"waits": waits, "nices": [0, 19]}, peer=peer.address, out=out)
    assert len(found) == 6
    assert {cell["wait"] for cell in found} == set(waits)
    assert all(cell[f"{what}_s"] > 0 for cell in found for what in ("ping", "burn", "ping_alone", "burn_alone"))
    assert live.SPIN_S[0] <= found.summary["spin_s"] <= live.SPIN_S[1]
    assert Overlap.load(out).summary == found.summary
    assert "overlap-loopback" in {warning["code"] for warning in found.warnings}


def test_a_peer_on_another_machine_computes_too(peer, monkeypatch):
    # It is this machine after all, but is taken for another one.
    monkeypatch.setattr(live, "greet", lambda *_: {"host": "there", "loopback": False, "rtt_s": 1e-4})
    found = overlap(**SMALL, peer=peer.address)
    assert found.cells[0]["burn_there_s"] > 0
    assert [run["what"] for run in found.summary["runs"] if "burn_there_s" not in run] == ["ping-alone"]
    assert found.summary["peer"]["host"] == "there"
    assert "overlap-loopback" not in {warning["code"] for warning in found.warnings}


def test_a_matrix_is_taken_up_where_it_was_left(peer, tmp_path, monkeypatch):
    out, made = tmp_path / "overlap.json", []
    perform = live._Bench.perform

    def until_the_second(bench, step, tick=lambda: None):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(step)
        return perform(bench, step, tick)

    monkeypatch.setattr(live._Bench, "perform", until_the_second)
    with pytest.raises(KeyboardInterrupt):
        overlap(**SMALL, peer=peer.address, out=out)
    there = Overlap.load(out).summary
    assert len(there["runs"]) == 2
    assert there["cells"] == []
    monkeypatch.setattr(live._Bench, "perform", perform)
    found = overlap(**SMALL, peer=peer.address, out=out, resume=True)
    assert found.summary["runs"][:2] == there["runs"]
    assert len(found.summary["runs"]) == 3
    assert found.summary["iterations"] == there["iterations"]
    assert len(found) == 1
    more = overlap(**SMALL | {"repetitions": 2}, peer=peer.address, out=out, resume=True)
    assert more.summary["runs"][:3] == found.summary["runs"]
    assert len(more.summary["runs"]) == 6
    with pytest.raises(DescriptionError, match=r"holds another matrix: burn_s is 0.05 there, 0.06 now"):
        overlap(**SMALL | {"burn_s": 0.06}, peer=peer.address, out=out, resume=True)
    before = out.read_bytes()
    with pytest.raises(DescriptionError, match=r"an overlap matrix \(on live\), but made with other settings"):
        overlap(**SMALL | {"burn_s": 0.06}, peer=peer.address, out=out)
    made.clear()
    monkeypatch.setattr(live._Bench, "perform", until_the_second)
    with pytest.raises(KeyboardInterrupt):
        overlap(**SMALL | {"repetitions": 2}, peer=peer.address, out=out)
    assert out.read_bytes() == before  # until as many runs are there again
    monkeypatch.setattr(live._Bench, "perform", perform)
    overlap(**SMALL | {"burn_s": 0.06}, peer=peer.address, out=out, force=True)
    assert Overlap.load(out).summary["asked_burn_s"] == 0.06


def test_a_run_that_takes_too_long_is_ended_and_leaves_no_process():
    before = children()
    with pytest.raises(MeasurementError, match="the programs were not done after 0 s"):
        run(burner(1_000_000_000_000), burner(1_000_000_000_000, nice=19), limit_s=0.2)
    assert children() == before


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:  # noqa: PTH123
        return file.read().split()


def test_a_peer_that_is_not_there_is_named():
    with pytest.raises(MeasurementError, match=r"127.0.0.1:1: cannot be reached"):
        overlap(**SMALL, peer="127.0.0.1:1")


def test_a_peer_that_leaves_is_named_and_the_burners_end():
    before = children()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def leave():
            control, _ = server.accept()
            speaking.be_met(control)
            connection, _ = server.accept()
            with control, connection:
                speaking.be_met(connection)
                speaking.hear(connection)
                speaking.say(connection, {"type": "done"})
                connection.recv(1)

        thread = threading.Thread(target=leave)
        thread.start()
        with pytest.raises(AgentLost, match=f"{address}: the peer was lost: it closed the connection"):
            run(pinger(address), burner(1_000_000_000_000))
        thread.join()
    assert children() == before


def handshake(peer, spec):
    """Ask a peer for a ping without a token; return its reply, or b"" when it hung up."""
    connection = socket.create_connection(peer.place, timeout=20)
    with socket.create_connection(peer.place, timeout=20) as control:
        key = speaking.control(control)
        speaking.belong(connection, speaking.PING, speaking.open_session(control), 0, key)
        assert speaking.hear(connection) == {"type": "done"}
    speaking.say(connection, spec)
    head = connection.recv(4, socket.MSG_WAITALL)
    reply = connection.recv(struct.unpack(">I", head)[0], socket.MSG_WAITALL) if len(head) == 4 else b""
    return connection, reply


SPEC = {"messages": 1, "message_bytes": 10, "wait": "poll", "spin_ns": 0, "burn": None}


@pytest.mark.parametrize(
    "spec",
    [
        SPEC | {"message_bytes": 2**40},
        SPEC | {"messages": 2**63},
        SPEC | {"burn": {"iterations": 2**62, "nice": 0}},
        SPEC | {"burn": {"iterations": 1, "nice": -21}},
    ],
)
def test_a_caller_that_asks_for_too_much_is_refused_with_the_range_and_others_go_on(peer, spec):
    connection, reply = handshake(peer, spec)
    with connection:
        assert json.loads(reply)["type"] == "refused"
        assert b"must be" in reply
    run(pinger(peer.address))


@pytest.mark.parametrize("spec", [b"{", b'{"messages": 1}', b"\xff" * 100, SPEC | {"shell": "rm"}])
def test_a_caller_that_talks_nonsense_is_dropped_and_others_go_on(peer, spec):
    connection, reply = handshake(peer, spec)
    with connection:
        assert reply == b""
    run(pinger(peer.address))


def test_a_caller_that_leaves_within_a_message_frees_the_peer(peer):
    connection, reply = handshake(peer, SPEC | {"burn": {"iterations": 10**12, "nice": 19}})
    assert json.loads(reply) == {"type": "done"}
    refused, why = handshake(peer, SPEC)
    with refused:
        assert json.loads(why)["why"] == "it answers another ping at the moment"
    with connection:
        connection.sendall(b"\0" + b"12345")
    while True:  # until the peer has noticed
        again, reply = handshake(peer, SPEC)
        with again:
            if json.loads(reply)["type"] == "done":
                break
    assert json.loads(reply) == {"type": "done"}


def crosswind(*arguments):
    command = [sys.executable, "-m", "crosswind.cli", "overlap", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_command_line_prints_one_document_and_keeps_it(tmp_path):
    out = tmp_path / "overlap.json"
    arguments = ["--wait", "event", "--nice", "0", "--ping", "20x1KB", "--burn-s", "0.05", "--repetitions", "1"]
    process = crosswind(*arguments, "--json", "-o", str(out))
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode in (0, 3), stderr
    assert json.loads(stdout) == json.loads(out.read_text())


def test_ctrl_c_keeps_the_runs_that_were_made_and_says_how_to_go_on(tmp_path):
    out = tmp_path / "overlap.json"
    process = crosswind(
        *("--wait", "event", "--nice", "0", "--ping", "1x1KB", "--burn-s", "0.05"), "--repetitions=1000", "-o", str(out)
    )
    while not out.exists():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--resume continues with them" in stderr
    assert len(Overlap.load(out).summary["runs"]) >= 1


def of_this_machine(by, **changed):
    """Return the cells of one kind of messages beside burners on all processors, by what is varied, and the matrix."""
    found = overlap(**{"nices": [0], "pings": [(300, 1_000_000)], "burn_s": 0.5, "repetitions": 3, **changed})
    return {cell[by]: cell for cell in found}, found


def is_seen_now_and_then(look):
    """What else runs on the machine moves a run of half a second, but not every time. A look gives None meanwhile.

    On one host polling messages were early or late by turns, whatever the burners did: six of ten looks saw no cost.
    """
    seen = []
    while len(seen) < 12 and True not in seen:
        seen.append(look())
    if set(seen) == {None}:
        pytest.skip("others compute meanwhile")
    return True in seen


def is_quiet(found):
    return all(warning["code"] != "overlap-not-quiet" for warning in found.warnings)


@pytest.mark.alone
def test_polling_beside_burners_costs_both_more_than_waiting_for_events():
    def look():
        cells, found = of_this_machine("wait", waits=["event", "poll"])
        polled, waited = cells["poll"], cells["event"]
        costs_both = polled["ping_s"] > waited["ping_s"] and polled["burn_s"] > waited["burn_s"]
        return costs_both if is_quiet(found) else None

    assert is_seen_now_and_then(look)


@pytest.mark.alone
@pytest.mark.skipif(priority.lowest_nice() > -20, reason="a lower nice level is not permitted")
def test_raising_the_priority_of_the_burners_costs_the_messages_and_does_not_speed_the_burners_up():
    def look():
        cells, found = of_this_machine("burn_nice", waits=["event"], nices=[-20, 0])
        high, even = cells[-20], cells[0]
        gained_s, lost_s = even["burn_s"] - high["burn_s"], high["ping_s"] - even["ping_s"]
        # They had their processors all the same.
        holds = gained_s < lost_s and lost_s > 0 and high["burn_s"] > 0.9 * even["burn_alone_s"]
        return holds if is_quiet(found) else None

    assert is_seen_now_and_then(look)
