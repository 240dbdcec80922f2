"""A peer for the tests: a process of its own on a free port, ended with the test."""

import subprocess
import sys

import pytest


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
