"""`crosswind ...` without the time that Python takes to import it: a process that has imported all forks each command.

The command is a process of its own, with its own directory, environment and streams, as one that is started anew.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

LIMIT_S = 120


def crosswind(
    *words: str,
    cwd: str | Path | None = None,
    env: dict[str, str] | None = None,
    stdout: Any = subprocess.PIPE,
    stderr: Any = subprocess.PIPE,
    text: bool = True,
) -> subprocess.CompletedProcess[Any]:
    """Run a command to its end; what it writes to streams that were not given comes back, as text or bytes."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open("rb") as nothing:
        streams = [out if stdout == subprocess.PIPE else stdout, err if stderr == subprocess.PIPE else stderr]
        fds = [one if isinstance(one, int) else one.fileno() for one in (nothing, *streams)]
        request = {"words": words, "cwd": str(cwd or Path.cwd()), "env": {**os.environ} if env is None else env}
        server = _server()
        data = json.dumps(request).encode()
        socket.send_fds(server, [len(data).to_bytes(8)], fds)
        server.sendall(data)
        answer = server.recv(64)
        assert answer, "the process that forks commands has ended"
        written = []
        for given, file in ((stdout, out), (stderr, err)):
            file.seek(0)
            content = file.read() if given == subprocess.PIPE else None
            written.append(content.decode() if text and content is not None else content)
    return subprocess.CompletedProcess(["crosswind", *words], int(answer), *written)


@cache
def _server() -> socket.socket:
    ours, its = socket.socketpair()
    with its:
        command = [sys.executable, __file__, str(its.fileno())]
        subprocess.Popen(command, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL)  # ends with our end of the pair
    return ours


def _serve(connection: socket.socket) -> None:
    """Fork a command for each request until the other end is closed."""
    import mutants

    mutants.import_all()
    while True:
        head, fds, *_ = socket.recv_fds(connection, 8, 3)
        if not head:
            return
        data, size = b"", int.from_bytes(head)
        while len(data) < size:
            data += connection.recv(size - len(data))
        child = os.fork()
        if child == 0:
            connection.close()
            _become(json.loads(data), fds)
        for fd in fds:
            os.close(fd)
        connection.sendall(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def _become(request: dict[str, Any], fds: list[int]) -> None:
    """Be the command, in a process that was forked for it; never returns."""
    code = 70
    try:
        os.setsid()
        signal.alarm(LIMIT_S)
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
            os.close(fd)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        sys.argv = ["crosswind", *request["words"]]
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, closefd=False)  # noqa: SIM115
            for number, mode in ((0, "r"), (1, "w"), (2, "w"))
        )
        from crosswind.cli import main

        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
