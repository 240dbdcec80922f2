"""Large values between the processes of this machine: each comes once, whatever happens to the agent that keeps it."""

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import crosswind
from crosswind import Farm

MB = 1_000_000


def memory_kept(farm):
    """Return the bytes that the agents of a farm keep for the root."""
    found = 0
    for node in farm.platform.nodes[1:]:
        for path in Path(f"/proc/{farm._run.live.processes.pid(node['name'])}/fd").iterdir():
            with suppress(FileNotFoundError):  # it was closed meanwhile
                found += path.stat().st_size if "crosswind-value" in str(path.readlink()) else 0
    return found


def array(number):
    return np.full(2 * MB, number, "u1")


def test_values_come_in_their_order_and_no_memory_is_kept_of_those_that_are_read():
    for at, value in enumerate(crosswind.map(array, range(40), max_workers=2)):
        assert (value[0], value[-1], len(value)) == (at, at, 2 * MB)
        value[0] = 255
    with Farm(max_workers=2) as farm:
        futures = [farm.submit(array, number) for number in range(40)]
        assert [int(future.result()[7]) for future in futures] == list(range(40))
        until = time.monotonic() + 30
        while memory_kept(farm) and time.monotonic() < until:  # until the agents have seen that it is read
            time.sleep(0.02)
        assert memory_kept(farm) == 0


def ends_soon(seconds, marker):
    """Return a large value; the first time, the agent ends soon after: before, while or after it is read."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return b"x" * 60 * MB
    threading.Timer(seconds, os._exit, [1]).start()
    return b"x" * 60 * MB


@pytest.mark.parametrize("seconds", [0.0, 0.003, 0.01, 0.02, 0.03, 0.05, 0.2])
def test_a_value_whose_agent_ends_is_made_again(seconds, tmp_path):
    with Farm(max_workers=1, quiet=True) as farm:
        future = farm.submit(ends_soon, seconds, str(tmp_path / "farm"))
        farm.shutdown(wait=False)
        assert len(future.result(60)) == 60 * MB
    [value] = crosswind.map(ends_soon, [seconds], [str(tmp_path / "map")], max_workers=1, quiet=True)
    assert len(value) == 60 * MB


def test_a_function_that_holds_much_is_sent_once_to_each_node_and_again_when_it_changes():
    held = np.ones(3 * MB)
    with Farm(max_workers=2) as farm:
        assert {farm.submit(lambda at: held[at] + at, at).result() for at in range(20)} == set(range(1, 21))
        held[5] = 10.0
        assert farm.submit(lambda at: held[at], 5).result() == 10.0
        os.kill(farm._run.live.processes.pid("cpu0"), signal.SIGKILL)
        assert [farm.submit(lambda at: held[at] + at, 5).result() for _ in range(8)] == [15.0] * 8
