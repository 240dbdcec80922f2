"""Bulk over several connections: the rates of some are not those of all."""

import socket
import threading

import pytest

from crosswind.errors import AgentLost
from crosswind.filter.kernel.traffic import Job, Mark, bulk


def test_a_far_end_that_answers_nonsense_is_an_error_and_no_missing_rate():
    job = Job("take", "127.0.0.1", 1, None, Mark(), 2, 0.0, 0.1, ())
    pairs = [socket.socketpair() for _ in range(2)]

    def answer(connection, text):
        connection.recv(1)
        connection.sendall(text)
        while connection.recv(1 << 16):
            pass

    texts = [b'{"bytes": 5000000, "seconds": 1.0}\n', b"nonsense\n"]
    far = [threading.Thread(target=answer, args=(there, text)) for (_, there), text in zip(pairs, texts, strict=True)]
    for thread in far:
        thread.start()
    with pytest.raises(AgentLost, match="bulk"):
        bulk(job, [here for here, _ in pairs])
    for thread, ends in zip(far, pairs, strict=True):
        ends[0].close()
        thread.join()
        ends[1].close()
