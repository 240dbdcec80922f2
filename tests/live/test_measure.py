"""Whole measurements on loopback: short ones, of which only what must hold at any speed is asserted."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from crosswind import _core
from crosswind.errors import AgentLost, DescriptionError, MeasurementError
from crosswind.measure import measure, stopping
from crosswind.measurement import Measurement

pytestmark = pytest.mark.live

BRIEF = {"matrix": 64, "max_seconds": 4.0}


def used(measurement):
    samples = measurement.samples.to_pandas()
    return samples[~samples["settling"]]


def check_sound(measurement, tmp_path):
    """What every measurement must fulfil."""
    measurement.save(tmp_path / "m.parquet")  # the header is checked against the schema
    assert Measurement.load(tmp_path / "m.parquet").header["ended"] == measurement.header["ended"]
    samples = measurement.samples.to_pandas()
    assert (samples["dt_s"] > 0).all()
    assert (np.diff(samples["t_s"]) > 0).all()
    ends = (samples["t_s"] + samples["dt_s"]).to_numpy()
    assert (ends[:-1] <= samples["t_s"].to_numpy()[1:] + 1e-9).all(), "no instant is counted twice"
    assert samples[samples["phase"] == "bare"]["work"].sum() > 0
    for index in range(len(measurement.header["channels"])):
        asked = used(measurement)[f"channel{index}_asked_mb_per_s"]
        moved = used(measurement)[f"channel{index}_mb"]
        assert moved[asked.isna() | (asked > 0)].sum() > 0
    return samples


@pytest.mark.parametrize("direction", ["receive", "send"])
@pytest.mark.parametrize("kernel", ["diagonals", "burn", "triad"])
def test_every_kernel_is_measured_in_both_directions(kernel, direction, tmp_path):
    for _ in range(3):  # on a crowded host finding the rate may leave no time for a cycle
        found = measure(kernel=kernel, direction=direction, **BRIEF)
        samples = check_sound(found, tmp_path)
        if "ladder" in set(samples["phase"]):
            break
    assert {"warm-up", "bare", "calibrate", "ladder"} <= set(samples["phase"])
    assert found.header["kernel"]["name"] == kernel
    assert [c["direction"] for c in found.header["channels"]] == [direction]


@pytest.mark.parametrize("direction", ["receive", "send"])
def test_a_command_is_work_and_its_cpu_time_is_counted(direction, tmp_path):
    loop = "i=0; while [ $i -lt 300 ]; do i=$((i+1)); done"
    found = measure(task=loop, shell=True, direction=direction, max_seconds=8)
    samples = check_sound(found, tmp_path)
    assert found.header["kernel"]["name"] == "command"
    assert found.header["kernel"]["task"] == loop
    work = used(found)["work"]
    assert (work == work.round()).all(), "blocks end when a unit ends, so each holds whole units"
    assert samples["compute_cpu_s"].sum() > 0


def test_a_python_callable_is_work(tmp_path):
    def add_up():
        return sum(range(20_000))

    found = measure(task=add_up, direction="receive", max_seconds=6)
    assert found.samples["t_s"][-1].as_py() < 2 * 6  # the measurement gets Python, too
    check_sound(found, tmp_path)
    assert found.header["kernel"]["name"] == "callable"
    assert "add_up" in found.header["kernel"]["task"]


def test_a_failing_task_is_an_error_that_says_how_it_failed():
    with pytest.raises(MeasurementError, match="exit status 7") as caught:
        measure(task="false; exit 7", shell=True, max_seconds=300)  # it ends at the first run
    assert caught.value.code == "task"

    def divide():
        return 1 / 0

    with pytest.raises(MeasurementError, match="ZeroDivisionError"):
        measure(task=divide, max_seconds=300)


@pytest.mark.parametrize(
    "settings",
    [
        {"wait": "poll", "direction": "receive"},
        {"wait": "poll", "direction": "send"},
        {"streams": 3, "direction": "receive", "message_bytes": 1_000},
        {"paced_by": "sender", "direction": "send"},
        {"paced_by": "receiver", "direction": "receive"},
        {"placement": "free", "direction": "receive"},
        {"socket_buffer_bytes": 0, "direction": "send", "message_bytes": 8_000_000},
    ],
    ids=lambda settings: " ".join(f"{value}" for value in settings.values()),
)
def test_every_way_to_move_bytes_moves_them(settings, tmp_path):
    check_sound(measure(**settings, **BRIEF), tmp_path)


def test_each_cycle_has_memory_and_connections_of_its_own(monkeypatch):
    renewed = []

    class Watched:
        def __init__(self, *arguments):
            self.probe = probe_of_the_core(*arguments)

        def __getattr__(self, name):
            return getattr(self.probe, name)

        def renew(self):
            renewed.append(json.loads(self.probe.header())["elapsed_s"])
            self.probe.renew()

    probe_of_the_core = _core.Probe
    monkeypatch.setattr(_core, "Probe", Watched)
    samples = measure(direction="receive", **BRIEF).samples.to_pandas()
    begun = samples[samples["cycle"] >= 0].groupby("cycle")["t_s"].min()
    assert len(renewed) == len(begun) > 1
    assert all(at < start for at, start in zip(renewed, begun, strict=True))


def test_both_directions_alone_take_turns_and_come_together_at_last(tmp_path, monkeypatch):
    monkeypatch.setattr(stopping, "LEAST_CYCLES", 4)
    found = measure(matrix=64, max_seconds=45, target=10.0, loss_target=1.0)
    samples = check_sound(found, tmp_path)
    assert found.header["ended"] == "settled"
    ladder = samples[samples["phase"] == "ladder"]
    asked = ladder.groupby("cycle")[["channel0_asked_mb_per_s", "channel1_asked_mb_per_s"]].max()
    assert ((asked > 0).sum(axis=1) == 1).all(), "a cycle belongs to one channel"
    assert list((asked["channel0_asked_mb_per_s"] > 0)[:4]) == [True, False, True, False]
    together = samples[samples["phase"] == "together"]
    assert ((together["channel0_asked_mb_per_s"] > 0) == (together["channel1_asked_mb_per_s"] > 0)).all()
    assert (together["channel0_asked_mb_per_s"] > 0).any()


def test_both_measures_them_only_together(tmp_path):
    found = measure(direction="both", matrix=64, max_seconds=8.0)
    phases = set(check_sound(found, tmp_path)["phase"])
    assert "together" in phases
    assert "ladder" not in phases


def test_several_peers_are_measured_at_once(peer, second_peer, tmp_path):
    found = measure(peer=[peer.address, second_peer.address], direction="receive", matrix=64, max_seconds=8)
    check_sound(found, tmp_path)
    assert [p["address"] for p in found.header["peers"]] == [peer.address, second_peer.address]
    assert [c["peer"] for c in found.header["channels"]] == [0, 1]


@pytest.mark.parametrize("named", [False, True], ids=["the peer loads itself", "another server loads it"])
def test_contention_lets_others_load_the_peer(named, peer, second_peer, tmp_path):
    loaders = [second_peer.address] if named else []
    found = measure(
        peer=peer.address, direction="send", variation="contention", loaders=loaders, matrix=64, max_seconds=6
    )
    samples = check_sound(found, tmp_path)
    contended = samples[samples["phase"] == "contention"]
    assert contended["channel0_asked_mb_per_s"].isna().any()
    assert (contended["channel0_asked_mb_per_s"] == 0).any()


def test_an_explicit_placement_is_kept_and_the_callers_is_given_back(tmp_path):
    before = os.sched_getaffinity(0)
    cpu = max(before)
    found = measure(placement="explicit", compute_cpus=[cpu], traffic_cpus=[cpu], direction="receive", **BRIEF)
    check_sound(found, tmp_path)
    assert found.header["placement"]["compute_cpus"] == [cpu]
    assert os.sched_getaffinity(0) == before


def test_ctrl_c_keeps_what_was_sampled(tmp_path):
    def press(fraction, message):
        if "left" in message:
            signal.raise_signal(signal.SIGINT)

    found = measure(direction="receive", matrix=64, max_seconds=30, progress=press)
    samples = check_sound(found, tmp_path)
    assert found.header["ended"] == "interrupted"
    assert found.partial
    assert (samples["phase"] == "ladder").any()


def test_a_peer_killed_in_mid_run_leaves_a_partial_measurement(peer, tmp_path):
    calls = []

    def kill_later(fraction, message):
        calls.append(message)
        if sum("left" in call for call in calls) == 3:
            peer.kill()

    found = measure(peer=peer.address, direction="receive", matrix=64, max_seconds=30, progress=kill_later)
    check_sound(found, tmp_path)
    assert found.header["ended"] == "peer-lost"
    assert peer.address in found.warnings[0]["message"]


def test_a_peer_killed_before_anything_was_learnt_is_an_error(peer):
    def kill_at_once(fraction, message):
        if "finding the rate" in message:
            peer.kill()

    with pytest.raises(AgentLost, match=peer.address):
        measure(peer=peer.address, direction="receive", matrix=64, max_seconds=30, progress=kill_at_once)


SOMEBODY_ELSE = r"""
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
caller, _ = server.accept()
caller.sendall(b"SSH-2.0-x\r\n")
caller.recv(100)
"""


def test_no_listener_and_another_listener_are_told_apart():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(MeasurementError) as caught:
            measure(peer=address, **BRIEF)
    assert caught.value.code == "unreachable"
    assert address in str(caught.value)

    with subprocess.Popen([sys.executable, "-c", SOMEBODY_ELSE], stdout=subprocess.PIPE, text=True) as process:
        address = f"127.0.0.1:{process.stdout.readline().strip()}"
        with pytest.raises(MeasurementError, match="is no Crosswind") as caught:
            measure(peer=address, **BRIEF)
        process.kill()
    assert caught.value.code == "refused"


def children_of(process):
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


TALKATIVE = """
from crosswind.measure import measure
measure(matrix=64, max_seconds=60, progress=lambda fraction, message: print(message, flush=True))
"""


def test_killing_a_measurement_leaves_no_peer_behind():
    with subprocess.Popen([sys.executable, "-c", TALKATIVE], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if "finding the rate" in line:
                break
        (own_peer,) = children_of(process.pid)
        process.kill()
    deadline = time.monotonic() + 30
    while Path(f"/proc/{own_peer}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{own_peer}").exists()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"kernel": "quake"}, "kernel is 'quake'; it must be one of diagonals, burn, triad"),
        ({"matrix": 7}, "matrix is 7 rows; it must be 8 to 4096 rows"),
        ({"diagonals": 0}, "diagonals is 0"),
        ({"message_bytes": 999}, "message_bytes is 999 bytes; it must be 1000 to 64000000 bytes"),
        ({"message_bytes": 64_000_001}, "message_bytes is 64000001 bytes"),
        ({"streams": 0}, "streams is 0 connections; it must be 1 to 64 connections"),
        ({"wait": "spin"}, "wait is 'spin'"),
        ({"direction": "up"}, "direction is 'up'"),
        ({"pacing_chunk_bytes": 1}, "pacing_chunk_bytes is 1 bytes"),
        ({"socket_buffer_bytes": 1}, "socket_buffer_bytes is 1 bytes"),
        ({"nice": 20}, "nice is 20; it must be -20 to 19"),
        ({"target": 0.0}, "target is 0.0"),
        ({"loss_target": float("nan")}, "loss_target is nan"),
        ({"max_seconds": 0.5}, "max_seconds is 0.5 s; it must be at least 1 s"),
        ({"top_mb_per_s": -1.0}, "top_mb_per_s is -1.0 MB/s"),
        ({"placement": "left"}, "placement is 'left'"),
        ({"placement": "explicit"}, "compute_cpus is missing"),
        ({"placement": "explicit", "compute_cpus": [99999], "traffic_cpus": [0]}, "compute_cpus names CPU 99999"),
        ({"compute_cpus": [0]}, "compute_cpus is [0] with placement 'same-core'"),
        ({"task": "  "}, "--task is empty"),
        ({"peer": []}, "peer is []; it must be HOST:PORT, or several"),
        ({"peer": "nowhere:0"}, "peer is 'nowhere:0'"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_a_wrong_value_is_named_with_its_range_before_anything_runs(wrong, named):
    with pytest.raises(DescriptionError) as caught:
        measure(**{"max_seconds": 3.0, **wrong})
    assert named in str(caught.value)


def test_a_measurement_interrupted_at_its_start_leaves_its_samples_or_says_that_there_are_none(tmp_path):
    out = tmp_path / "m.parquet"
    command = [sys.executable, "-m", "crosswind.cli", "measure", "--matrix", "64", "-o", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not children_of(process.pid):
            time.sleep(0.001)  # its peer is started before anything is sampled
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (f"Wrote {out}" if out.exists() else f"{out} was not written") in said
    assert "Traceback" not in said
