"""Sources and sinks of messages, as programs: what an application at each end of a filter does.

    python ends.py sink HOST PORT BYTES             answers each message of so many bytes with one byte
    python ends.py source HOST:PORT BYTES COUNT     sends the next message when the former was answered

A source begins when a line comes on its input, says how long its first COUNT messages took, and goes on until its
input ends.
"""

from __future__ import annotations

import select
import socket
import statistics
import sys
import time


def received(connection: socket.socket, count: int) -> bool:
    """Read so many bytes; False where the connection ends before."""
    while count:
        got = connection.recv(min(count, 1 << 20))
        if not got:
            return False
        count -= len(got)
    return True


def sink(host: str, port: int, count: int) -> None:
    with socket.create_server((host, port)) as server:
        print(server.getsockname()[1], flush=True)
        while True:
            connection, _ = server.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while received(connection, count):
                connection.sendall(b"a")


def source(address: str, size: int, count: int) -> None:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        message = bytes(size)
        connection.sendall(message)
        received(connection, 1)  # the way through is there
        print("ready", flush=True)
        sys.stdin.readline()
        begin = last = time.monotonic()
        latencies = []
        while True:
            connection.sendall(message)
            if not received(connection, 1):
                return
            now = time.monotonic()
            latencies.append(now - last)
            last = now
            if len(latencies) == count:
                print(f"{now - begin} {statistics.median(latencies)}", flush=True)
            if len(latencies) >= count and select.select([sys.stdin], [], [], 0)[0]:
                return


if __name__ == "__main__":
    role, *rest = sys.argv[1:]
    if role == "sink":
        sink(rest[0], int(rest[1]), int(rest[2]))
    else:
        source(rest[0], int(rest[1]), int(rest[2]))
