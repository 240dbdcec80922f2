"""The peer of a measurement over a long time: what one session takes is given back."""

from pathlib import Path

import pytest

from crosswind.serve import greet

pytestmark = pytest.mark.live


def resident_kib(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def descriptors_of(pid):
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def test_thousands_of_sessions_leave_no_memory_and_no_descriptor(peer):
    pid = peer.process.pid
    for _ in range(100):
        greet(peer.address)
    memory, descriptors = resident_kib(pid), descriptors_of(pid)
    for _ in range(2_000):
        greet(peer.address)
    assert resident_kib(pid) - memory < 1_000  # half a KiB a session
    assert descriptors_of(pid) <= descriptors + 2
