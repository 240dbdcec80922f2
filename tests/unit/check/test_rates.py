"""The processes of the CPUs: one that fails costs its CPU only."""

import errno
import os
import resource
import subprocess
import time

import pytest

from crosswind.check import rates
from crosswind.check.rates import Kernels

WHOLE = """echo ready; read s; echo '{"compute": [1.0]}'"""
CUT_OFF = """echo ready; read s; printf '{"compute": ['"""


@pytest.fixture
def answering(monkeypatch):
    """Have the process of each CPU run a script of the shell."""
    started = subprocess.Popen

    def use(scripts):
        def start(command, **named):
            if isinstance(script := scripts[int(command[-1])], OSError):
                raise script
            return started(["sh", "-c", script], **named)

        monkeypatch.setattr(rates.subprocess, "Popen", start)

    return use


def measured(cpus):
    until = time.monotonic() + 60.0
    with Kernels(cpus) as kernels:
        kernels.wait_until_ready(until)
        return kernels.measured(0.1, until), kernels.failed


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (OSError(errno.EAGAIN, "Resource temporarily unavailable"), "cannot be started: resource temporarily"),
        (CUT_OFF, "ended within an answer"),
    ],
)
def test_a_process_that_fails_costs_its_cpu_only(answering, broken, why):
    answering({0: WHOLE, 1: broken, 2: WHOLE})
    found, failed = measured([0, 1, 2])
    assert found == {"compute cpu 0": [1.0], "compute cpu 2": [1.0]}
    assert list(failed) == [1]
    assert why in failed[1]


def test_descriptors_beyond_1024_are_waited_for(answering):
    answering({0: WHOLE})
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 1200:
        pytest.skip("the hard limit of open files is too low")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 1200), before[1]))
    held = []
    try:
        while not held or held[-1] < 1024:
            held.append(os.dup(0))
        assert measured([0]) == ({"compute cpu 0": [1.0]}, {})
    finally:
        for one in held:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_limit_of_open_files_is_raised_meanwhile(answering):
    answering(dict.fromkeys(range(8), WHOLE))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 200:
        pytest.skip("the hard limit of open files is too low")
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, before[1]))
    try:
        found, failed = measured(range(8))
        assert (len(found), failed) == (8, {})
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (40, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
