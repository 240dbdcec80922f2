"""The way to a Dask cluster: a client, questions to its workers, and whether all of them fit to this process.

Nothing here waits for ever: a scheduler or a worker that is stopped (SIGSTOP, a suspended machine) keeps its
connections and never answers.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from crosswind.cluster import versions
from crosswind.cluster.hosts import Host
from crosswind.errors import AgentLost, DescriptionError

if TYPE_CHECKING:
    from distributed import Client

PATIENCE_S: Final = 10.0
NONE_YET_S: Final = 20.0
"""How much longer a first answer is waited for: a busy worker may need a while."""
_LOOK_S: Final = 0.1
_HURRIED_S: Final = 0.5
_AT_ONCE: Final = 256
"""Questions under way at a time: each takes a connection to the scheduler."""
_CLOSED: Final = ("closing", "closed")
_START_AGAIN: Final = "start the cluster again, then run again"
SILENT_HINT: Final = "is it stopped, or its host suspended? continue it, or remove it: client.retire_workers([...])"


class Patience:
    """How long something is waited for.

    Parameters
    ----------
    seconds : float
        From now on.
    hurried : threading.Event, optional
        Once it is set, at most 0.5 s are left: ctrl-C ends a program, whatever its cluster does.

    Examples
    --------
    >>> hurried = threading.Event()
    >>> patience = Patience(100.0, hurried)
    >>> patience.left() > 99.0
    True
    >>> hurried.set()
    >>> patience.left() <= 0.5
    True
    """

    def __init__(self, seconds: float, hurried: threading.Event | None = None) -> None:
        self._until, self._hurried = time.monotonic() + seconds, hurried

    def left(self) -> float:
        """Return the seconds that are left, at least 0."""
        now = time.monotonic()
        if self._hurried is not None and self._hurried.is_set():
            self._until, self._hurried = min(self._until, now + _HURRIED_S), None
        return max(self._until - now, 0.0)

    async def wait(self, tasks: Sequence[asyncio.Future[None]]) -> set[asyncio.Future[None]]:
        """Wait for tasks, and return those that are not done."""
        waiting = set(tasks)
        while waiting and (left := self.left()) > 0:
            _, waiting = await asyncio.wait(waiting, timeout=min(left, _LOOK_S))
        return waiting


class Answers(NamedTuple):
    """What workers answered to a question, by address."""

    values: dict[str, Any]
    errors: dict[str, Exception]
    """What the function raised there."""
    silent: list[str]
    """Those that did not answer in time, or have gone."""


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Yield a client of the scheduler at an address such as `tcp://10.0.0.1:8786`, and close it at the end.

    Raises
    ------
    DescriptionError
        When Dask is not installed here; when that is no address, or one of TLS and Dask's configuration has no
        certificates.
    AgentLost
        When no scheduler answers there.
    """
    try:
        from distributed import Client
    except ImportError:
        hint = "pip install distributed"
        raise DescriptionError("Dask is not installed here", "no-dask", hint) from None
    _check(address)
    try:
        client = Client(address, timeout=PATIENCE_S, set_as_default=False)
    except OSError as error:
        hint = "is it running, can this machine reach it, and do both ends speak TLS (dask:tls://...), or neither?"
        raise AgentLost(f"no Dask scheduler answers at {address}: {error}", "cluster", hint) from None
    with client:
        yield client


def _check(address: str) -> None:
    """Refuse an address that no client can use: a client made of it would hang at its end, with a traceback."""
    from distributed.comm import normalize_address
    from distributed.comm.registry import get_backend
    from distributed.security import Security

    try:
        parts = urlsplit(normalize_address(address))
        get_backend(parts.scheme)
        if not parts.hostname or not parts.port or any(parts[2:]):
            raise ValueError("it must be a host and a port")
    except ValueError as error:
        hint = "dask:tcp://SCHEDULER:PORT, as the scheduler prints it when it starts"
        raise DescriptionError(f"{address!r} is no address of a scheduler: {error}", "cluster", hint) from None
    if parts.scheme not in ("tls", "wss"):
        return
    hint = "set distributed.comm.tls.ca-file, .client.cert and .client.key in ~/.config/dask/distributed.yaml"
    try:
        has_certificates = Security().get_connection_args("client")["ssl_context"] is not None
    except OSError as error:
        message = f"the certificates of Dask's configuration cannot be read: {error}"
        raise DescriptionError(message, "cluster", hint) from None
    if not has_certificates:
        message = f"{address} asks for TLS, and Dask's configuration here names no certificates"
        raise DescriptionError(message, "cluster", hint)


def workers_of(
    client: Client, patience_s: float = PATIENCE_S, hurried: threading.Event | None = None
) -> dict[str, Any]:
    """Return what the scheduler knows of each worker, by address.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    patience_s, hurried
        How long its answer is waited for, s, and what cuts that short (`Patience`).

    Raises
    ------
    DescriptionError
        When the client is asynchronous.
    AgentLost
        When the client is closed; when the scheduler has gone, or does not answer.
    """
    if client.asynchronous:
        message = "the client of Dask is asynchronous, which nothing here can wait for"
        raise DescriptionError(message, "argument", "Client(..., asynchronous=False), or give its scheduler's address")
    if client.status in _CLOSED or client.scheduler is None:
        raise _closed()

    patience = Patience(patience_s, hurried)

    async def identity() -> Any:
        asked = asyncio.ensure_future(client.scheduler.identity(n_workers=-1))
        try:
            while not asked.done():
                if not (left := patience.left()):
                    raise TimeoutError
                await asyncio.wait([asked], timeout=min(left, _LOOK_S))
                if client.status == "connecting":  # later it gives up and closes, as if the user had closed it
                    raise ConnectionError
            return asked.result()
        finally:
            asked.cancel()

    where = str(client.scheduler.address)
    try:
        known = client.sync(identity, callback_timeout=patience_s + _LOOK_S)
    except Exception as error:  # of the connection, of a loop that is closed, of the time
        if client.status in _CLOSED:
            raise _closed() from error
        if isinstance(error, TimeoutError):
            message, hint = f"the Dask scheduler at {where} does not answer", "continue or restart it, then run again"
        else:
            message, hint = f"the Dask scheduler at {where} has gone", _START_AGAIN
        raise AgentLost(message, "cluster", hint) from error
    found: dict[str, Any] = known["workers"]
    return found


def _closed() -> AgentLost:
    return AgentLost("the Dask client is closed", "cluster", "keep it open until the farm is closed")


def ask(
    client: Client,
    function: Callable[..., Any],
    given: Mapping[str, Sequence[Any]],
    patience_s: float = PATIENCE_S,
    none_yet_s: float = 0.0,
    hurried: threading.Event | None = None,
) -> Answers:
    """Have workers call a function at once, however busy they are; none holds up the others.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    function : callable
        What they call. As with `client.run`, one with an argument `dask_worker` gets the worker.
    given : mapping
        The arguments for each worker, by its address.
    patience_s, none_yet_s : float
        How long answers are waited for, and how much longer the first one is, s.
    hurried : threading.Event, optional
        What cuts that short (`Patience`).
    """
    values: dict[str, Any] = {}
    errors: dict[str, Exception] = {}

    async def asked(worker: str, limit: asyncio.Semaphore) -> None:
        async with limit:
            found = await client.run(function, *given[worker], workers=[worker], on_error="return")
        answer = found.get(worker)
        if isinstance(answer, OSError):  # of the connection to it: functions that are asked raise errors of our own
            return
        if isinstance(answer, Exception):
            errors[worker] = answer
        else:
            values[worker] = answer

    async def all_asked() -> None:
        limit = asyncio.Semaphore(_AT_ONCE)
        tasks = [asyncio.ensure_future(asked(worker, limit)) for worker in given]
        try:
            waiting = await Patience(patience_s, hurried).wait(tasks)
            if waiting and not values and not errors and none_yet_s:
                await asyncio.wait(waiting, timeout=none_yet_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)  # a connection that broke is no answer, either

    if given:
        with suppress(TimeoutError, RuntimeError):  # its loop is stuck, or closed: nothing answers
            client.sync(all_asked, callback_timeout=patience_s + none_yet_s + min(patience_s, PATIENCE_S))
    return Answers(dict(values), dict(errors), [worker for worker in given if worker not in {*values, *errors}])


class Look(NamedTuple):
    """What workers are, by address."""

    fit: dict[str, Any]
    """What the scheduler knows of those that fit to this process."""
    unfit: dict[str, DescriptionError]
    """What the others lack: host, both versions, what to do."""
    silent: dict[str, Any]
    """What the scheduler knows of those that do not answer."""


def look_at(client: Client, there: Mapping[str, Any], none_yet_s: float = 0.0) -> Look:
    """Return which workers fit to this process: the same Crosswind, and the same versions of what it needs.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    there : mapping
        What the scheduler knows of the workers to look at (`workers_of`).
    none_yet_s : float
        As of `ask`.
    """
    found = ask(client, versions.look, dict.fromkeys(there, ()), none_yet_s=none_yet_s)
    unfit = {}
    for worker in [*found.errors, *found.values]:
        problem: tuple[str, str] | None = ("it cannot say which versions it has", "restart it")
        if worker in found.values:
            problem = difference(running_here(), found.values[worker])
        if problem is not None:
            place = f"{there[worker]['host']} ({worker})"
            unfit[worker] = DescriptionError(f"{place}: {problem[0]}", "versions-differ", problem[1])
    fit = {worker: there[worker] for worker in found.values if worker not in unfit}
    return Look(fit, unfit, {worker: there[worker] for worker in found.silent})


def fitting(client: Client, *, all_answer: bool = True) -> Look:
    """Return the workers of a cluster, once those that answer are known to fit to this process.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    all_answer : bool
        Whether one that does not answer is an error.

    Raises
    ------
    DescriptionError
        When there is none, Crosswind is missing there, or a version differs: host, both versions, what to do.
    AgentLost
        When none answers, or not all; when the scheduler has gone.
    """
    there = workers_of(client)
    if not there:
        raise DescriptionError("the Dask cluster has no worker", "cluster", "start one: dask worker SCHEDULER:PORT")
    found = look_at(client, there, NONE_YET_S)
    for error in found.unfit.values():
        raise error
    if found.silent and (all_answer or not found.fit):
        raise AgentLost(does_not_answer(list(found.silent)), "cluster", SILENT_HINT)
    return found


def does_not_answer(workers: Sequence[str]) -> str:
    """Return that workers do not answer, as a sentence.

    Examples
    --------
    >>> does_not_answer(["tcp://a:1"]), does_not_answer(["tcp://a:1", "tcp://b:1", "tcp://c:1", "tcp://d:1"])
    ('worker tcp://a:1 does not answer', '4 workers do not answer: tcp://a:1, tcp://b:1, tcp://c:1, ...')
    """
    if len(workers) == 1:
        return f"worker {workers[0]} does not answer"
    return f"{len(workers)} workers do not answer: {', '.join(workers[:3])}{', ...' if len(workers) > 3 else ''}"


def running_here() -> dict[str, Any]:
    """Return what this process runs."""
    return versions.look()


def difference(own: Mapping[str, Any], theirs: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return what keeps a worker from running tasks of this process and what to do about it; None where nothing does.

    Examples
    --------
    >>> difference({"python": "3.12", "crosswind": "1"}, {"python": "3.11", "crosswind": "1"})
    ('Python is 3.11 there and 3.12 here', 'run both with the same minor version: functions travel as bytecode')
    """
    python, where = theirs["python"], theirs.get("executable", "its Python")
    if own["python"] != python:
        hint = "run both with the same minor version: functions travel as bytecode"
        return f"Python is {python} there and {own['python']} here", hint
    if theirs["crosswind"] is None:
        why = theirs.get("error", "it is not installed")
        hint = f"on that host: {where} -m pip install WHEEL (docs/guides/install.md)"
        return f"Crosswind cannot be imported there: {why}", hint
    for field, name in (
        ("crosswind", "Crosswind"),
        ("protocol", "the agents' protocol"),
        ("cloudpickle", "cloudpickle"),
    ):
        if own.get(field) != theirs.get(field):
            hint = "install the same version on every host"
            return f"{name} is {theirs.get(field)} there and {own.get(field)} here", hint
    return None


def own_address(hosts: Sequence[Host]) -> str:
    """Return the address of this machine that the hosts of a cluster reach: the one that packets to them leave from."""
    away = next((host.address for host in hosts if not host.address.startswith("127.")), None)
    if away is None:
        return "127.0.0.1"
    family = socket.AF_INET6 if ":" in away else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as unsent:  # a datagram socket that connects sends nothing
        unsent.connect((away, 9))
        return str(unsent.getsockname()[0])
