"""The programs that start MPI ranks, and how each is asked to set variables in the ranks and nowhere else."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from crosswind.errors import DescriptionError

Kind = Literal["open-mpi", "hydra", "slurm"]

NAMES = frozenset(
    {
        "mpirun",
        "mpiexec",
        "orterun",
        "prterun",
        "srun",
        "mpiexec.hydra",
        "mpirun.openmpi",
        "mpiexec.openmpi",
        "mpirun.mpich",
        "mpiexec.mpich",
    }
)
"""Names under which launchers are installed."""
_VERSION_S = 20.0
_MPI: dict[str, Kind] = {
    "Open MPI": "open-mpi",
    "OpenRTE": "open-mpi",
    "PRRTE": "open-mpi",
    "PMIx Reference": "open-mpi",
    "HYDRA": "hydra",
    "Intel(R) MPI": "hydra",
    "slurm": "slurm",
}
"""What a launcher prints about its version -> how it takes variables."""


@dataclass(frozen=True)
class Launcher:
    """A program that starts ranks.

    Attributes
    ----------
    path : str
        The program itself.
    kind : str
        How it takes variables for the ranks.
    """

    path: str
    kind: Kind

    def command(self, variables: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
        """Return the command that starts the ranks with these variables set, in them alone."""
        if self.kind == "slurm":
            pairs = ",".join(f"{name}={value}" for name, value in variables.items())
            return [self.path, f"--export=ALL,{pairs}", *arguments]
        options: list[str] = []
        for name, value in variables.items():
            options += ["-x", f"{name}={value}"] if self.kind == "open-mpi" else ["-genv", name, value]
        return [self.path, *options, *arguments]


def is_launcher(word: str) -> bool:
    """Whether a command's first word is called as launchers are."""
    return Path(word).name in NAMES


def find(word: str) -> Launcher:
    """Return the launcher that a word names.

    Raises
    ------
    DescriptionError
        When it does not exist, or is of an unknown MPI.
    """
    path = shutil.which(word)
    if path is None:
        raise DescriptionError(f"{word} was not found", "command", "load the MPI module, or name the launcher's path")
    try:
        done = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            timeout=_VERSION_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        printed = done.stdout + done.stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DescriptionError(f"{path} --version failed: {error}", "command", "name another launcher") from None
    for mark, kind in _MPI.items():
        if mark in printed:
            return Launcher(path, kind)
    message = f"{path} is the launcher of an MPI that is not known here: it prints {printed.strip()[:60]!r}"
    raise DescriptionError(message, "command", "known are Open MPI, MPICH and its relatives (Hydra), and srun")


def on_path() -> list[str]:
    """Return the names of launchers that a program finds by itself."""
    return sorted(name for name in NAMES if shutil.which(name))


def variables(shim: Path, parts: Path) -> dict[str, str]:
    """Return the variables that make a process a recorded rank."""
    before = os.environ.get("LD_PRELOAD", "")
    return {"LD_PRELOAD": f"{shim}:{before}" if before else str(shim), "CROSSWIND_TRACE_PARTS": str(parts)}
