"""What tests start and what ends with them: peers on free ports, freezers, processes that outlive their parents."""

import contextlib
import os
import signal
import subprocess
import sys

import pytest

import crosswind
from crosswind import _core

collect_ignore_glob = ["scripted_driver/*"]  # programs that a test starts; one is called torch


class PeerProcess:
    def __init__(self):
        command = [sys.executable, "-m", "crosswind.serve", "--listen", "127.0.0.1:0", "--end-with-parent"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        host, _, port = self.address.rpartition(":")
        self.place = (host, int(port))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.kill()
        self.process.stdout.close()


@pytest.fixture
def peer():
    process = PeerProcess()
    yield process
    process.close()


@pytest.fixture
def second_peer():
    process = PeerProcess()
    yield process
    process.close()


@pytest.fixture(scope="module")
def farm():
    """A farm of two nodes that the tests of a module share."""
    with crosswind.Farm(max_workers=2, quiet=True) as made:
        yield made


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A Dask cluster of two workers that the tests of a module share."""
    pytest.importorskip("distributed")
    from dask_clusters import two_workers

    with two_workers(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    """A client of the cluster, once both workers are there."""
    from distributed import Client

    with Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2)
        yield client


@pytest.fixture
def freezers():
    """Start processes that freeze; at the end of the test all thaw what they froze, and end."""
    started = []

    def start():
        started.append(_core.Freezer())
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def freezer(freezers):
    return freezers()


@pytest.fixture
def orphans():
    """A list of processes that end with the test, however it ends."""
    found = []
    yield found
    for pid in found:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
