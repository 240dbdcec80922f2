"""`crosswind ...` without the time that Python takes to import it: a process that has imported all forks each command.

The command is a process of its own, with its own directory, environment and streams, as one that is started anew.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

LIMIT_S = 120


def crosswind(
    *words: str,
    cwd: str | Path = ".",
    env: dict[str, str],
    text: bool = True,
    stdout: int | None = None,
    file_limit_bytes: int | None = None,
) -> subprocess.CompletedProcess[Any]:
    """Run a command to its end; what it writes comes back as text or bytes.

    Standard output goes to the descriptor `stdout`, if one is given. `file_limit_bytes` limits each file that the
    command writes; its standard error is then a pipe, which has no such limit and holds 64 KiB.
    """
    with tempfile.TemporaryFile() as out, _errors(file_limit_bytes) as (err, errors):
        request = {"words": words, "cwd": str(Path(cwd).absolute()), "env": env, "file_limit_bytes": file_limit_bytes}
        data = json.dumps(request).encode()
        server = _server()
        with Path(os.devnull).open("rb") as nothing:
            fds = [nothing.fileno(), out.fileno() if stdout is None else stdout, err]
            socket.send_fds(server, [len(data).to_bytes(8)], fds)
        server.sendall(data)
        answer = server.recv(64)
        assert answer, "the process that forks commands has ended"
        out.seek(0)
        written = [out.read(), errors()]
    return subprocess.CompletedProcess(
        ["crosswind", *words], int(answer), *(one.decode() if text else one for one in written)
    )


@contextmanager
def _errors(limited: int | None) -> Iterator[tuple[int, Callable[[], bytes]]]:
    """Where a command writes its errors, and what it has written there by its end."""
    if limited is None:
        with tempfile.TemporaryFile() as err:
            yield err.fileno(), lambda: os.pread(err.fileno(), os.fstat(err.fileno()).st_size, 0)
        return
    reading, writing = os.pipe()
    try:
        os.set_blocking(reading, False)
        yield writing, lambda: os.read(reading, 1 << 16)
    finally:
        os.close(reading)
        os.close(writing)


def import_all() -> None:
    """Import every module that a verb may need, so that a forked process has them.

    What is there by then is left out of its garbage collections: each would read, and so copy, all of it.
    """
    import crosswind as package

    for module in pkgutil.walk_packages(package.__path__, "crosswind."):
        if not re.search(r"__main__|\.run\.(agent|rank)$|watchdog|watching", module.name):
            with suppress(Exception):
                importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def perform(words: Sequence[str]) -> int:
    """Run a command in this process and return its exit code, as the command line would."""
    from crosswind.cli import main

    sys.argv = ["crosswind", *words]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return 0


def take_streams(fds: Sequence[int]) -> None:
    """Make these descriptors standard input, output and error of a process that was forked."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    modes = enumerate(("r", "w", "w"))
    sys.stdin, sys.stdout, sys.stderr = (open(number, mode, closefd=False) for number, mode in modes)  # noqa: SIM115


def leave(code: int) -> NoReturn:
    """End a forked process at once, with all written that it has written."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


@cache
def _server() -> socket.socket:
    ours, its = socket.socketpair()
    with its:
        command = [sys.executable, __file__, str(its.fileno())]
        subprocess.Popen(command, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL)  # ends with our end of the pair
    return ours


def _serve(connection: socket.socket) -> None:
    """Fork a command for each request until the other end is closed."""
    import_all()
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


def _become(request: dict[str, Any], fds: list[int]) -> NoReturn:
    """Be the command, in a process that was forked for it."""
    code = 70
    try:
        os.setsid()
        signal.alarm(LIMIT_S)
        take_streams(fds)
        for fd in fds:
            os.close(fd)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        if (limit := request["file_limit_bytes"]) is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        code = perform(request["words"])
    except BaseException:
        traceback.print_exc()
    leave(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
