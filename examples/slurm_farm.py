"""A farm on Slurm: jobs that each start a Dask worker, an agent in each, and a function over many items.

pip install distributed dask-jobqueue
python slurm_farm.py --print      # the job script, without Slurm
python slurm_farm.py --jobs 8 --interface ib0
"""

from __future__ import annotations

import argparse
import math
import socket


def work(item: int) -> tuple[str, float]:
    """Stand for the real thing."""
    return socket.gethostname(), sum(math.sqrt(n) for n in range(item * 1_000_000))


def main() -> None:
    """Ask for jobs, run the farm, let the jobs go."""
    from dask_jobqueue import SLURMCluster
    from distributed import Client

    import crosswind

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--interface", help="network interface between the nodes, such as ib0")
    parser.add_argument("--walltime", default="01:00:00")
    parser.add_argument("--print", action="store_true", help="print the job script and stop")
    options = parser.parse_args()
    with SLURMCluster(
        cores=1,
        processes=1,
        memory="4GB",
        walltime=options.walltime,
        interface=options.interface,
        worker_extra_args=["--lifetime", "55m", "--lifetime-stagger", "4m"],
    ) as cluster:
        if options.print:
            print(cluster.job_script())
            return
        cluster.scale(jobs=options.jobs)
        with Client(cluster) as client:
            client.wait_for_workers(1)  # the others join while it runs
            for host, value in crosswind.map(work, range(1000), on=client, ordered=False, progress=True):
                print(host, value)


if __name__ == "__main__":
    main()
