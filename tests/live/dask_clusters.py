"""Dask clusters on this machine, and what a farm may leave in one."""

import contextlib
import os
import signal

import distributed
from farms import wait_until


def two_workers(temporary):
    """A cluster whose workers have a directory for temporary files of their own: what is left there is the test's."""
    return distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs=50,
        env={"TMPDIR": str(temporary)},
    )


def left_in(client):
    """What a farm may leave in a cluster: processes, files, tasks, plugins."""

    def there(dask_worker):
        import contextlib
        import tempfile
        from pathlib import Path

        children = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if int((entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]) == os.getpid():
                    children.append((entry / "cmdline").read_bytes())
        agents = [line for line in children if b"crosswind.run.agent" in line]
        kept = [path.name for path in Path(tempfile.gettempdir()).glob("crosswind-*")]
        plugins = [name for name in dask_worker.plugins if "crosswind" in name]
        return agents, sorted(kept), plugins, sorted(map(str, dask_worker.state.tasks))

    tasks = client.run_on_scheduler(lambda dask_scheduler: sorted(map(str, dask_scheduler.tasks)))
    plugins = client.run_on_scheduler(lambda dask_scheduler: sorted(dask_scheduler.worker_plugins))
    return client.run(there), tasks, plugins


def clean(client):
    """What is in a cluster once the farms of earlier tests have left it."""
    wait_until(lambda: not any(any(found) for found in left_in(client)[0].values()), "a cluster without a farm")
    return left_in(client)


@contextlib.contextmanager
def stopping(*pids):
    """A function that stops these processes, and more: until the end of the block they answer nothing, connected."""
    stopped = list(pids)

    def stop(*more):
        stopped.extend(more)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)

    try:
        yield stop
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
