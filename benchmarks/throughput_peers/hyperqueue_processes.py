"""Processes per second of HyperQueue, which starts one for each task: python hyperqueue_processes.py CORES TASKS."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time

from hyperqueue import Job
from hyperqueue.cluster import LocalCluster, WorkerConfig


def job(tasks: int, directory: str) -> Job:
    job = Job(default_workdir=directory)
    for _ in range(tasks):
        job.program([shutil.which("true")], stdout=None, stderr=None)
    return job


if __name__ == "__main__":
    cores, tasks = map(int, sys.argv[1:])
    with (
        tempfile.TemporaryDirectory() as directory,
        LocalCluster(directory, WorkerConfig(cores=cores)) as cluster,
    ):
        client = cluster.client()
        client.wait_for_jobs([client.submit(job(10 * cores, directory))])
        described = job(tasks, directory)
        begun = time.perf_counter()
        client.wait_for_jobs([client.submit(described)])
        print(tasks / (time.perf_counter() - begun))
