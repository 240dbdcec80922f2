"""`--on` of `check` and `measure cluster`: hosts on which functions can be called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from crosswind.errors import DescriptionError

if TYPE_CHECKING:
    from crosswind.measure.cluster.on_dask import DaskCluster
    from crosswind.measure.cluster.on_hosts import HostsCluster

DASK, HOSTS = "dask:", "hosts:"


def cluster_on(
    on: str | None,
    per: Literal["host", "worker"],
    token_file: Path | None,
    allow_loose_token: bool,
    hint: str,
) -> AbstractContextManager[DaskCluster | HostsCluster]:
    """Return the cluster that a word names; it is reached when it is entered.

    Raises
    ------
    DescriptionError
        For another word, with the hint; when hosts of a file share no token.
    """
    if on is not None and on.startswith(DASK):
        return _on_dask(on.removeprefix(DASK), per)
    if on is None or not on.startswith(HOSTS):
        message = f"--on is {on!r}; it must be dask:tcp://SCHEDULER:PORT or hosts:FILE.toml"
        raise DescriptionError(message, "on", hint)
    if per != "host":
        raise DescriptionError("--per worker does not go with --on hosts:", "argument", "Dask has workers")
    from crosswind.measure.cluster.on_hosts import HostsCluster

    return HostsCluster.load(on.removeprefix(HOSTS), token_file, allow_loose_token=allow_loose_token)


@contextmanager
def _on_dask(address: str, per: Literal["host", "worker"]) -> Iterator[DaskCluster]:
    from crosswind.cluster.client import connected
    from crosswind.measure.cluster.on_dask import DaskCluster

    with connected(address) as client:
        yield DaskCluster(client, per)
