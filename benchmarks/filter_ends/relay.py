"""The least that a proxy can do: hands on what comes, as it comes, without frames, classes or queues.

python relay.py HOST:PORT       prints its own port; each connection to it goes on to HOST:PORT
"""

from __future__ import annotations

import socket
import sys
import threading
from contextlib import suppress

ROOM = 1 << 20


def hand_on(source: socket.socket, sink: socket.socket) -> None:
    room = memoryview(bytearray(ROOM))
    with suppress(OSError):
        while got := source.recv_into(room):
            sink.sendall(room[:got])
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def main() -> None:
    host, _, port = sys.argv[1].rpartition(":")
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        while True:
            near, _ = server.accept()
            far = socket.create_connection((host, int(port)))
            for connection in (near, far):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for pair in ((near, far), (far, near)):
                threading.Thread(target=hand_on, args=pair, daemon=True).start()


if __name__ == "__main__":
    main()
