"""What calls, large values and commands cost, beside what is used for the same: processor time and wall time.

- Tiny calls: `crosswind.map` beside `Pool.map`; `Farm.submit` beside
  `ProcessPoolExecutor.submit` and `Pool.apply_async`.
- Calls whose function closes over 20 MB: `crosswind.map`, `Farm.submit`, and the same beside a function without.
- Values of 16 and 160 MB, bytes and arrays, two workers, two under way for each: beside `ProcessPoolExecutor`.
- The same by agents that are reached by TCP on loopback as those of other hosts are (`_tcp`; `_plain`: agents that may
  send plain data only), and by a client of Dask.
- Tiny calls on a Dask cluster of two worker processes on this machine: `crosswind.map(..., on=client)` beside
  `client.map` and `client.gather`; the start of the cluster is not counted, that of the agents is.
- `crosswind map 'gzip ...'` over 300 files of 20 kB, beside `parallel` and `xargs` where they are installed.

All of a turn's measures follow each other in shuffled order; processor time is that of this process and of all that it
started and waited for. Two workers each. Writes records/farm_calls.json. Run on a quiet host, with a release build:
    python benchmarks/farm_calls.py [turns [NAME...]]
with parts of names of measures: only those, and nothing is written.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import record
from distributed import Client, LocalCluster

import crosswind
from crosswind.run.agents import Launch

MAPPED = 4_000_000
SUBMITTED = 100_000
ON_DASK, BY_DASK = 200_000, 5_000
CLOSED_OVER = 20_000_000
WITH_CLOSURE = 50
FILES = 300
FILE_BYTES = 20_000
Cost = tuple[float, float]


def cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def cost(what: Callable[[], None]) -> Cost:
    """Return the processor time and the wall time of something, s."""
    used, begun = cpu_s(), time.perf_counter()
    what()
    return cpu_s() - used, time.perf_counter() - begun


def one_more(number: int) -> int:
    return number + 1


def map_crosswind() -> None:
    assert len(list(crosswind.map(one_more, range(MAPPED), max_workers=2))) == MAPPED


def map_pool() -> None:
    with multiprocessing.Pool(2) as pool:
        assert len(pool.map(one_more, range(MAPPED))) == MAPPED
        pool.close()
        pool.join()


def submit_to(executor: Executor) -> None:
    with executor:
        for future in [executor.submit(one_more, number) for number in range(SUBMITTED)]:
            future.result()


def submit_pool() -> None:
    with multiprocessing.Pool(2) as pool:
        for result in [pool.apply_async(one_more, (number,)) for number in range(SUBMITTED)]:
            result.get()
        pool.close()
        pool.join()


def closed_over(size: int) -> Callable[[int], int]:
    held = np.ones(size // 8)
    return lambda number: number + len(held)


def closure_map(size: int) -> None:
    assert len(list(crosswind.map(closed_over(size), range(WITH_CLOSURE), max_workers=2))) == WITH_CLOSURE


def closure_submit(size: int, opened: AbstractContextManager[Executor]) -> None:
    function = closed_over(size)
    with opened as farm:
        for future in [farm.submit(function, number) for number in range(WITH_CLOSURE)]:
            future.result()


def made_bytes(size: int) -> bytes:
    return b"x" * size


def made_array(size: int) -> np.ndarray:
    return np.ones(size // 8)


def large_values(
    opened: AbstractContextManager[Executor], make: Callable[[int], object], size: int, count: int
) -> Cost:
    """Return the cost of values that are read a byte a page, four under way.

    The wall time is that without the start and the end of the workers; their processor time is known after their end.
    """
    used = cpu_s()
    with opened as executor:
        for _ in range(4):
            executor.submit(make, 1_000).result()
        begun = time.perf_counter()
        under_way: deque = deque()
        for number in range(count + 3):
            if number < count:
                under_way.append(executor.submit(make, size))
            if number >= 3:
                int(np.frombuffer(under_way.popleft().result(), "u1")[::4096].sum())
        wall = time.perf_counter() - begun
    return cpu_s() - used, wall


class ByTcp(Launch):
    """Agents of this machine that are taken for those of other hosts."""


class Plain(ByTcp):
    """The same, which may send plain data only."""

    trusted = False


def far(launch: Launch) -> crosswind.Farm:
    """Return a farm of two nodes as on other hosts."""
    nodes = [{"name": "root", "compute_per_s": 0.0}]
    for name in ("one", "two"):
        nodes.append({"name": name, "parent": "root", "compute_per_s": 1.0, "receive_limit_mb_per_s": 10_000.0})
    platform = crosswind.Platform.from_dict({"schema_version": 1, "name": "two", "node": nodes})
    return crosswind.Farm(platform, launch=launch, quiet=True)


@contextmanager
def dask_executor() -> Iterator[Executor]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client.get_executor(pure=False)


def on_dask(what: Callable[[Client], object]) -> Cost:
    """Return the cost of something on a Dask cluster, whose start and end count in the processor time only."""
    used = cpu_s()
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        begun = time.perf_counter()
        what(client)
        wall = time.perf_counter() - begun
    return cpu_s() - used, wall


def map_on_dask(client: Client) -> None:
    assert sum(crosswind.map(one_more, range(ON_DASK), on=client, progress=False)) == ON_DASK * (ON_DASK + 1) // 2


def map_by_dask(client: Client) -> None:
    found = client.gather(client.map(one_more, range(BY_DASK), pure=False))
    assert sum(found) == BY_DASK * (BY_DASK + 1) // 2


class Gzip:
    """A directory of files to compress, and the commands that do."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        draw = random.Random(1)
        (directory / "in").mkdir()
        words = [bytes(draw.choices(range(97, 123), k=draw.randrange(2, 10))) for _ in range(500)]
        for number in range(FILES):
            text = b" ".join(draw.choice(words) for _ in range(FILE_BYTES // 6))[:FILE_BYTES]
            (directory / "in" / f"{number}.txt").write_bytes(text)

    def run(self, command: str) -> None:
        """Run a command that compresses all files, and see that it did."""
        out = self.directory / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        # This `crosswind`, compiled to bytecode as an installed package is.
        environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(self.directory / "bytecode"),
        }
        shell = ["sh", "-c", command]
        subprocess.run(shell, check=True, cwd=self.directory, env=environment, stderr=subprocess.DEVNULL)
        assert sum(path.suffix == ".gz" for path in out.iterdir()) == FILES

    def measures(self) -> dict[str, Callable[[], Cost]]:
        """Return what is measured, by name."""
        found = {"gzip_crosswind": "crosswind map 'gzip -c {}' in/* -j 2 --out out --name '{name}.gz' --force --quiet"}
        if shutil.which("parallel"):
            found["gzip_parallel"] = "parallel -j 2 'gzip -c {} > out/{/}.gz' ::: in/*"
        if shutil.which("xargs"):
            found["gzip_xargs"] = "ls in | xargs -P 2 -I{} sh -c 'gzip -c in/{} > out/{}.gz'"
        self.run(found["gzip_crosswind"])  # makes the bytecode
        return {name: lambda command=command: cost(lambda: self.run(command)) for name, command in found.items()}


def measures(directory: Path) -> dict[str, tuple[float, Callable[[], Cost]]]:
    """Return what is measured, by name, with what its costs are divided by."""
    found: dict[str, tuple[float, Callable[[], Cost]]] = {
        "map_crosswind": (MAPPED, lambda: cost(map_crosswind)),
        "map_pool": (MAPPED, lambda: cost(map_pool)),
        "submit_crosswind": (SUBMITTED, lambda: cost(lambda: submit_to(crosswind.Farm(max_workers=2)))),
        "submit_executor": (SUBMITTED, lambda: cost(lambda: submit_to(ProcessPoolExecutor(2)))),
        "submit_pool": (SUBMITTED, lambda: cost(submit_pool)),
        "closure_map": (WITH_CLOSURE, lambda: cost(lambda: closure_map(CLOSED_OVER))),
        "closure_submit": (
            WITH_CLOSURE,
            lambda: cost(lambda: closure_submit(CLOSED_OVER, crosswind.Farm(max_workers=2))),
        ),
        "closure_submit_tcp": (WITH_CLOSURE, lambda: cost(lambda: closure_submit(CLOSED_OVER, far(ByTcp())))),
        "no_closure_map": (WITH_CLOSURE, lambda: cost(lambda: closure_map(8))),
        "dask_crosswind": (ON_DASK, lambda: on_dask(map_on_dask)),
        "dask_client": (BY_DASK, lambda: on_dask(map_by_dask)),
    }
    for mb, count in ((16, 24), (160, 6)):
        for kind, make in (("bytes", made_bytes), ("array", made_array)):
            for way, executor in (
                ("crosswind", lambda: crosswind.Farm(max_workers=2)),
                ("executor", lambda: ProcessPoolExecutor(2)),
                ("tcp", lambda: far(ByTcp())),
                ("plain", lambda: far(Plain())),
                ("dask", dask_executor),
            ):
                found[f"{kind}_{mb}_mb_{way}"] = (
                    mb * count,
                    lambda executor=executor, make=make, mb=mb, count=count: large_values(
                        executor(), make, mb * 1_000_000, count
                    ),
                )
    found |= {name: (FILES, run) for name, run in Gzip(directory).measures().items()}
    return found


def main(turns: int = 5, parts: Sequence[str] = ()) -> None:
    with tempfile.TemporaryDirectory() as directory:
        every = measures(Path(directory))
        chosen = [name for name in every if not parts or any(part in name for part in parts)]
        samples: dict[str, list[Cost]] = {name: [] for name in chosen}
        for _ in range(turns):
            for name in random.sample(chosen, len(chosen)):
                by, run = every[name]
                cpu, wall = run()
                samples[name].append((1e6 * cpu / by, 1e6 * wall / by))
                print(f"{name}: {samples[name][-1][0]:.2f} us CPU, {samples[name][-1][1]:.2f} us wall", flush=True)
    cpu_us = {name: record.spread([one[0] for one in found]) for name, found in samples.items()}
    wall_us = {name: record.spread([one[1] for one in found]) for name, found in samples.items()}
    ratios = {
        "map CPU to Pool.map": ("map_crosswind", "map_pool", cpu_us),
        "submit CPU to ProcessPoolExecutor": ("submit_crosswind", "submit_executor", cpu_us),
        "submit CPU to Pool.apply_async": ("submit_crosswind", "submit_pool", cpu_us),
        "wall time on Dask to client.map": ("dask_crosswind", "dask_client", wall_us),
        "gzip CPU to parallel": ("gzip_crosswind", "gzip_parallel", cpu_us),
        "gzip CPU to xargs": ("gzip_crosswind", "gzip_xargs", cpu_us),
        **{
            f"rate of {kind} of {mb} MB to ProcessPoolExecutor": (
                f"{kind}_{mb}_mb_executor",
                f"{kind}_{mb}_mb_crosswind",
                wall_us,
            )
            for mb in (16, 160)
            for kind in ("bytes", "array")
        },
        **{
            f"{kind} of {mb} MB by {way}, rate to {other}": (
                f"{kind}_{mb}_mb_{other}",
                f"{kind}_{mb}_mb_{way}",
                wall_us,
            )
            for mb in (16, 160)
            for kind in ("bytes", "array")
            for way in ("tcp", "plain")
            for other in ("executor", "dask")
        },
    }
    found = {
        name: spread[above]["median"] / spread[below]["median"]
        for name, (above, below, spread) in ratios.items()
        if above in spread and below in spread
    }
    for name, ratio in found.items():
        print(f"{name}: {ratio:.2f}")
    if not parts:
        units = "microseconds per call or file, and per MB of values"
        record.write("farm_calls", ["numpy", "distributed"], units=units, cpu_us=cpu_us, wall_us=wall_us, ratios=found)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 5, sys.argv[2:])
