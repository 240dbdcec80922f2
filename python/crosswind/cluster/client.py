"""The way to a Dask cluster: a client, and whether all its workers fit to this process."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import cloudpickle

from crosswind.cluster import versions
from crosswind.cluster.hosts import Host
from crosswind.errors import AgentLost, DescriptionError

if TYPE_CHECKING:
    from distributed import Client

_PATIENCE_S = 10


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
        client = Client(address, timeout=_PATIENCE_S, set_as_default=False)
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


def workers_of(client: Client) -> dict[str, Any]:
    """Return what the scheduler knows of each worker, by address.

    Raises
    ------
    AgentLost
        When the scheduler has gone.
    """
    known = client.scheduler_info(n_workers=-1)
    if "workers" not in known:  # so says a client whose scheduler was closed
        raise AgentLost("its scheduler is gone", "cluster")
    found: dict[str, Any] = known["workers"]
    return found


def fitting(client: Client, workers: Sequence[str] | None = None) -> dict[str, Any]:
    """Return what the scheduler knows of the workers, once all of them are known to fit to this process.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    workers : sequence of str, optional
        Addresses of those to look at; default: all.

    Raises
    ------
    DescriptionError
        When there is none, Crosswind is missing there, or a version differs: host, both versions, what to do.
    """
    there = workers_of(client)
    asked = list(there) if workers is None else [worker for worker in workers if worker in there]
    if not asked:
        raise DescriptionError("the Dask cluster has no worker", "cluster", "start one: dask worker SCHEDULER:PORT")
    cloudpickle.register_pickle_by_value(versions)  # a worker without Crosswind can be asked, too
    try:
        found = client.run(versions.look, workers=asked)
    finally:
        cloudpickle.unregister_pickle_by_value(versions)
    for worker, theirs in found.items():
        problem = difference(running_here(), theirs)
        if problem is not None:
            message, hint = problem
            raise DescriptionError(f"{there[worker]['host']} ({worker}): {message}", "versions-differ", hint)
    return there


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
