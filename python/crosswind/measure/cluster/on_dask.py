"""The hosts of a Dask cluster, as `measure_cluster` calls them: one worker of each host carries the calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from crosswind.cluster.client import fitting, workers_of
from crosswind.cluster.hosts import Host, Per, hosts_of

if TYPE_CHECKING:
    from distributed import Client, Future


class DaskCluster:
    """Hosts of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster; it stays open.
    per : {"host", "worker"}
        What counts as a host: all workers at one address, or each worker. Workers of one machine share its processor
        and never meet a network card: good for a look at how it goes.

    Raises
    ------
    DescriptionError
        When it has no worker, or one runs another version.
    """

    def __init__(self, client: Client, per: Per = "host") -> None:
        self._client = client
        self.places: list[Host] = hosts_of(fitting(client).fit, per)
        self._workers = {host.name: host.worker for host in self.places}

    @property
    def name(self) -> str:
        """The scheduler's address."""
        scheduler = self._client.scheduler
        return str(scheduler.address) if scheduler is not None else "Dask"

    @property
    def hosts(self) -> Mapping[str, str]:
        """Each host's name and address."""
        return {host.name: host.address for host in self.places}

    def submit(self, host: str, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function in the worker that speaks for a host, and nowhere else."""
        module, name = function.__module__, function.__name__

        def called(*arguments: Any) -> Any:  # travels by value: the scheduler need not have Crosswind
            from importlib import import_module

            return getattr(import_module(module), name)(*arguments)

        worker = self._workers[host]
        return self._client.submit(
            called, *arguments, workers=[worker], allow_other_workers=False, pure=False, retries=0
        )

    def is_alive(self, host: str) -> bool:
        """Whether the worker that speaks for a host is still there."""
        return self._workers[host] in workers_of(self._client)
