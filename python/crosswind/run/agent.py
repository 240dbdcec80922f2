"""One node of a live farm as a process: `python -m crosswind.run.agent`.

Started by `crosswind.run.agents`, or by hand as `crosswind serve --parent HOST:PORT --name NODE --token-file FILE`.
Imports nothing but the compiled half, so that a tree of many nodes starts at once.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence

from crosswind import _core
from crosswind.terminal.signals import told_at

TYPE_CHECKING = False  # `typing` is slow to import (crosswind/__init__.py)
if TYPE_CHECKING:
    from typing import Any

OVER_TIME, DISK_FULL = 75, 76
"""Exit statuses of an agent that is to be started again: a task over its time ended it, or a disk without room."""
STATUSES = {"over-time": OVER_TIME, "disk-full": DISK_FULL}
"""Exit status by code of error; 1 for others."""

MARK = "CROSSWIND_AGENT"
"""By which the processes of an agent's tasks are known, in the environment (crates/live, task_processes/marked.rs)."""

NODE = "CROSSWIND_NODE"
"""Where tasks find the name of their node, in the environment."""

_is_own_process = False
"""Whether this process is an agent and nothing else."""
_STACK = 1 << 20
"""Bytes of the stack of a thread that is an agent among others; they are taken as they are used."""

Early = Callable[[bytes], None]
Call = Callable[["memoryview | str", "Early | None", "_core.Function | None"], "tuple[bool, bytes]"]


def load(code: bytes) -> Call:
    """Return what computes a task: from the pickled input, or its file, to the pickled value, or an error's text.

    For a batch of calls there is also what takes the first outcomes early, and where the called function travels once
    to each node, that function: further arguments.
    A value that has `is_failure` set is a failure too, which may be tried again. One with `is_raw` is not pickled: its
    `data` are what is sent. A function with `reads` set gets the input's bytes.

    `code` is a pickled function. It comes from a parent that has shown the token, and with certificates one whose
    certificate says that it is a parent's. Nothing is unpickled before that.
    """
    import pickle

    function = pickle.loads(code)
    reads = getattr(function, "reads", False)

    def call(
        data: memoryview | str, early: Early | None = None, called: _core.Function | None = None
    ) -> tuple[bool, bytes]:
        try:
            if isinstance(data, str):
                with open(data, "rb") as file:  # noqa: PTH123 (no import that a task does not need)
                    data = memoryview(file.read())
            given = data if reads else pickle.loads(data)
            value = function(given) if early is None and called is None else function(given, early, called)
            ok = not getattr(value, "is_failure", False)
            raw = getattr(value, "is_raw", False)
            return ok, value.data if raw else pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        except BaseException as error:  # whatever a user's function raises is its answer
            return False, _text_of(error).encode(errors="replace")

    return call


def _text_of(error: BaseException) -> str:
    try:
        import traceback  # an agent starts sooner without

        return "".join(traceback.format_exception(error))
    except BaseException:
        if _is_own_process:  # a task has damaged this interpreter: it must not cost other tasks anything
            os._exit(1)
        raise


def be_agent(
    parent: str,
    name: str,
    token: str | None,
    *,
    tls: str | None = None,
    listen: str | None = None,
    about: str = "",
    spool: str | None = None,
    log: str | None = None,
    patience_s: float = 60.0,
    watch_input: int | None = None,
    leave: int | None = None,
    own_process: bool = False,
    mark: str | None = None,
    standing: str | None = None,
    on_listening: Callable[[str], None] = lambda address: None,
) -> None:
    """Be a node of a farm until its run ends.

    Parameters
    ----------
    parent : str
        HOST:PORT of the parent.
    name : str
        The node's name in the platform.
    token : str or None
        What all agents of the farm share, at least 16 bytes. Without `tls`, a process that knows it may run any code
        in this one. None: certificates are enough.
    tls : str, optional
        This node's directory of certificates (`crosswind cert`). Then only a parent whose certificate says so may have
        it run code.
    listen : str, optional
        HOST:PORT where its own children connect; port 0 takes a free one.
    about : str
        A node that the platform does not know gives its rates here, as a node of a platform in JSON, and joins.
    spool, log : str, optional
        Directory for large inputs; file for the log. Defaults: the system's for temporary files; stderr.
    patience_s : float
        How long a parent is waited for, at the start and when it was lost, s.
    watch_input : int, optional
        Descriptor whose end of input ends the agent.
    leave : int, optional
        Descriptor at which a byte asks the agent to leave: it hands back what waits, finishes what it computes, and
        ends. A second byte ends it at once.
    own_process : bool
        Whether this process is an agent and nothing else. Then what its tasks leave behind ends with it: processes of
        its session, and those that have its `CROSSWIND_AGENT` in their environment. Tasks find the node's name as
        `CROSSWIND_NODE` there. Soon after the run the process ends, even if a task holds the GIL.
    mark : str, optional
        The value of `CROSSWIND_AGENT` with which this process was started: processes that it forks bear it too.
    standing : str, optional
        Directory in which the agent writes how it stands, for a page about it (`crosswind.watch.status_files`).
    on_listening : callable
        Called once with the address in use.

    Raises
    ------
    AgentLost
        When the parent cannot be reached, or refuses.
    CrosswindError
        With `code` = "over-time": a task is over its time, and only the end of this process ends it.
    """
    import json

    global _is_own_process  # noqa: PLW0603 (it does not change any more)
    _is_own_process = own_process
    if own_process:
        mark = os.environ[MARK] = mark or new_mark()
        os.environ[NODE] = name
        from crosswind.run import node_token, task_output

        node_token.keep(token)
        task_output.begin()

    config = {
        "parent": parent,
        "name": name,
        "listen": listen,
        "about": about,
        "spool_directory": spool or _temporary(),
        "patience_s": patience_s,
        "watch_input": watch_input,
        "leave": leave,
        "mark": mark if own_process else None,
        "standing": standing,
        "log": log,
    }
    _core.run_agent(json.dumps(config), token, on_listening, load, tls, STATUSES if own_process else None)


def be_agents(parent: str, names: Sequence[str], token: str | None, **options: Any) -> None:
    """Be several nodes that have no children and compute nothing, each on a thread, until their run ends.

    Parameters
    ----------
    parent, token
        As of `be_agent`.
    names : sequence of str
        The nodes' names.
    **options
        Of `be_agent`.

    Raises
    ------
    AgentLost
        When one of them cannot reach the parent, or is refused, once all have ended.
    """
    import threading

    errors: list[BaseException] = []

    def be(name: str) -> None:
        try:
            be_agent(parent, name, token, **options)
        except BaseException as error:  # the others continue; a panic of Rust is no Exception
            errors.append(error)

    threading.stack_size(_STACK)
    threads = [threading.Thread(target=be, args=(name,), name=name) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def new_mark() -> str:
    """Return a value of `CROSSWIND_AGENT` that no other agent has."""
    return f"{os.getpid()}-{os.urandom(8).hex()}"


def _temporary() -> str:
    import tempfile  # an agent that is given a spool starts sooner without

    return tempfile.gettempdir()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an agent; the token is the first line of stdin, and the end of stdin ends it.

    SIGTERM and SIGHUP ask it to leave: it hands back what waits and finishes what it computes, however often it is
    asked. A process of several nodes (`--also`) ends at once. Exit codes: 0 its run is over, or it has left; 1 it
    cannot continue; 75 a task was over its time; 76 its disk was full.
    """
    parser = argparse.ArgumentParser(prog="python -m crosswind.run.agent", description=__doc__)
    parser.add_argument("--parent", required=True, metavar="HOST:PORT")
    parser.add_argument("--name", required=True)
    parser.add_argument("--also", action="append", default=[], metavar="NAME", help="another node of this process")
    parser.add_argument("--listen", metavar="HOST:PORT", help="the address in use is the first line of stdout")
    parser.add_argument("--spool", metavar="DIR")
    parser.add_argument("--about", default="", metavar="JSON", help="rates of a node that the platform does not know")
    parser.add_argument("--standing", metavar="DIR", help="write there how it stands")
    parser.add_argument("--tls", metavar="DIR", help="this node's directory of certificates")
    parser.add_argument("--patience-s", type=float, default=60.0)
    parser.add_argument("--log", metavar="FILE", help="its own log, apart from what tasks print")
    parser.add_argument("--mark", help=f"the value of {MARK} in its environment")
    parser.add_argument(
        "--ended", metavar="FILE", help="made when the agent ends by itself: a task that ends it cannot"
    )
    parser.add_argument(
        "--silent", action="store_true", help="leave it to the process that started this to show an error"
    )
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is the root's to handle; it ends us
    token = first_line() or None
    starter = os.dup(0)  # it ends with the process that started this one; tasks get another input
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 (no import that a task does not need)
        os.dup2(nothing.fileno(), 0)
    known = {"spool": options.spool, "log": options.log, "patience_s": options.patience_s, "watch_input": starter}
    try:
        if options.also:
            be_agents(options.parent, [options.name, *options.also], token, **known)
        else:
            with told_at([signal.SIGTERM, signal.SIGHUP]) as leave:
                be_agent(
                    options.parent,
                    options.name,
                    token,
                    tls=options.tls,
                    listen=options.listen,
                    about=options.about,
                    leave=leave,
                    own_process=True,
                    mark=options.mark,
                    standing=options.standing,
                    on_listening=tell_address,
                    **known,
                )
    except Exception as error:
        status, said = STATUSES.get(code_of(error), 1), told(error)
        if not options.silent or status != 1:
            print(f"{options.name}: {error}", file=sys.stderr, flush=True)
    else:
        status, said = 0, ""
    if options.ended and status not in {OVER_TIME, DISK_FULL}:
        with contextlib.suppress(OSError):  # it lies in a directory of the run, which may be over and gone
            leave_mark(options.ended, said)
    os._exit(status)  # a user's function may still run on the computing thread; it is not waited for


def tell_address(address: str) -> None:
    """Print where children connect; what tasks print later goes to stderr: nothing reads standard output any more."""
    print(address, flush=True)
    os.dup2(2, 1)


def told(error: Exception) -> str:
    """Return an error as the process that started this agent may raise it again."""
    import json

    kind = type(error).__name__
    known = {"code": code_of(error), "hint": getattr(error, "hint", None)}
    return json.dumps({"kind": kind, "message": str(error), **known})


def leave_mark(file: str, said: str) -> None:
    """Make the file that says that this agent ended by itself, whole or not at all."""
    part = f"{file}.part"
    with open(part, "w", encoding="utf-8") as mark:  # noqa: PTH123 (no import that a task does not need)
        mark.write(said)
    os.rename(part, file)  # noqa: PTH104


def code_of(error: Exception) -> str:
    """Return the stable word of an error."""
    return str(getattr(error, "code", "failed"))


def first_line() -> str:
    """Read a line without reading ahead: what follows is only waited for to end."""
    line = bytearray()
    while (byte := os.read(0, 1)) not in {b"", b"\n"}:
        line += byte
    return line.decode()


if __name__ == "__main__":
    main()
