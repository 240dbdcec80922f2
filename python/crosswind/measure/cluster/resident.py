"""On a host of a file of hosts: a farm's task that stays, and takes calls from the root until there are no more."""

from __future__ import annotations

import contextlib
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from crosswind.errors import AgentLost
from crosswind.measure.cluster.calls import answer, receive, send, unmasked
from crosswind.measure.cluster.handshake import announce
from crosswind.run import node_token
from crosswind.run.agent import NODE

_DIAL_S = 20.0
_LOOK_S = 0.2


def reside(root: tuple[str, int]) -> str:
    """Take calls from the root that sent this task; what ended it.

    Parameters
    ----------
    root : tuple
        Host and port where the root waits.
    """
    token = node_token.of_this_node()
    if token is None:
        return "this node has no token"
    try:
        line = socket.create_connection(root, _DIAL_S)
    except OSError as error:  # the root needs no more of them, or cannot be reached from here
        return f"the root was not reached: {error}"
    with line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # One thread for all calls: what a thread has started ends with it.
        calls = ThreadPoolExecutor(1, "crosswind-call")
        try:
            session = announce(line, os.environ.get(NODE, ""), token)
            line.settimeout(None)
            while True:
                send(line, _answered(calls, line, unmasked(receive(line), session.key)))
        except (AgentLost, OSError, ValueError):
            return "the root needs no more"
        finally:
            calls.shutdown(wait=False, cancel_futures=True)


def _answered(calls: ThreadPoolExecutor, line: socket.socket, asked: dict[str, Any]) -> dict[str, Any]:
    """Do what is asked for, as long as the root waits for it; what is under way then ends with this process.

    Raises
    ------
    AgentLost
        When the root waits no more: it says nothing before it has its answer, so what comes is the end.
    """
    found = calls.submit(answer, asked)
    while True:
        try:
            return found.result(_LOOK_S)
        except TimeoutError:
            with contextlib.suppress(BlockingIOError):
                line.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
                raise AgentLost("the root waits no more", "interrupted") from None
