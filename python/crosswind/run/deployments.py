"""The deployment that a user's word names: `local`, a Dask cluster, or the hosts of a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crosswind.errors import DescriptionError
from crosswind.run.deployment import Deployment, Placing

if TYPE_CHECKING:
    from distributed import Client

HINT = "local; dask:tcp://SCHEDULER:PORT; hosts:FILE.toml"


@contextmanager
def deployed(on: str | Client, placing: Placing | None = None, *, echo: bool = False) -> Iterator[Deployment]:
    """Yield the deployment that a word or a client names.

    Parameters
    ----------
    on : str or distributed.Client
        `local`, `dask:ADDRESS` of a scheduler, `hosts:FILE`, or a client, which stays open.
    placing : optional
        Which node goes where.
    echo : bool
        Whether what agents of this machine leave in their logs is shown.

    Raises
    ------
    DescriptionError
        For any other word; when the cluster does not fit to this process.
    AgentLost
        When the scheduler cannot be reached.
    """
    placing = placing or Placing()
    if not isinstance(on, str):
        from crosswind.run.dask import OnDask

        yield OnDask(on, placing)
        return
    kind, _, where = on.partition(":")
    if on == "local":
        from crosswind.run.processes import Launch

        if placing:
            raise DescriptionError("nodes are placed on a cluster's hosts; on is local", "argument", f"on: {HINT}")
        yield Launch(echo=echo)
    elif kind == "dask" and where:
        from crosswind.cluster.client import connected
        from crosswind.run.dask import OnDask

        with connected(where) as client:
            yield OnDask(client, placing)
    elif kind == "hosts" and where:
        from crosswind.run.hosts import OnHosts

        yield OnHosts.load(where, placing)
    else:
        raise DescriptionError(f"on is {on!r}; it must be one of: {HINT}", "argument")


def is_deployed(on: str | Client) -> bool:
    """Whether real agents run there: everything but `sim`."""
    return not isinstance(on, str) or on == "local" or on.partition(":")[0] in ("dask", "hosts")
