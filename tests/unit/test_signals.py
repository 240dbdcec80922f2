"""Signals that ask for an end, heard where compiled code looks."""

import os
import signal

from crosswind.signals import told_at


def test_sigterm_counts_once_and_ctrl_c_each_time_and_what_they_did_before_is_put_back():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with told_at([signal.SIGTERM, signal.SIGINT]) as descriptor:
        heard = b""
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
        while len(heard) < 3:
            heard += os.read(descriptor, 1)
        os.set_blocking(descriptor, False)
        assert list(heard) == [signal.SIGTERM, signal.SIGINT, signal.SIGINT]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
