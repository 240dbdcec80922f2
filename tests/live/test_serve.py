"""The peer of a measurement over a long time: what one session takes is given back."""

import os
from pathlib import Path

import pytest

from crosswind.serve import greet

pytestmark = pytest.mark.live


def resident_kib(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def test_thousands_of_sessions_leave_no_memory_and_no_descriptor(peer):
    pid = peer.process.pid
    for _ in range(100):
        greet(peer.address)
    memory, descriptors = resident_kib(pid), len(os.listdir(f"/proc/{pid}/fd"))
    for _ in range(2_000):
        greet(peer.address)
    assert resident_kib(pid) - memory < 1_000  # half a KiB a session
    assert len(os.listdir(f"/proc/{pid}/fd")) <= descriptors + 2
