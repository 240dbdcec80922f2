"""Names of results: what --name makes of each input, and where that cannot be."""

from __future__ import annotations

import os
import stat
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Final

from crosswind.errors import DescriptionError
from crosswind.run.inputs import Inputs
from crosswind.run.lock import LOCK
from crosswind.run.resume import JOURNAL

_ODD: Final = -1


def template_of(name: str | None, inputs: Inputs) -> str:
    """Return what names are made of: --name, or its default."""
    if name is not None:
        return name
    return "{number}" if inputs.are_values else "{name}"


def name_of(name: str, file: str, number: int) -> str:
    """Return the name of an input's result."""
    path = PurePath(file)
    words = {"name": path.name, "stem": path.stem, "ext": path.suffix[1:], "number": f"{number:06d}"}
    if "{dir" in name:
        words["dir"] = str(path.parent).lstrip("/") or "."
    called = name.format(**words)
    return os.path.normpath(called) if "/" in called and not called.endswith("/") else called


def check_names(files: Sequence[str], name: str) -> None:
    """Refuse names that are none, or that two results would have."""
    hashes = array("q", (hash(_checked(name, file, n)) for n, file in enumerate(files)))
    if all(one != following for one, following in pairwise(sorted(hashes))):
        return
    # Only now by the names themselves: a million of them take more than all else here.
    first: dict[str, str] = {}
    for number, file in enumerate(files):
        result = name_of(name, file, number)
        if result in first:
            message = f"{first[result]} and {file} would both become {result!r}"
            is_elsewhere = PurePath(first[result]).parent != PurePath(file).parent
            apart = "{dir}/" if is_elsewhere and "{dir}" not in name else "{number}-"
            raise DescriptionError(message, "argument", f"--name '{apart}{name}' keeps them apart")
        first[result] = file


def check_results(files: Sequence[str], name: str, out: Path, *, may_replace: bool, are_values: bool) -> None:
    """Refuse results that would replace an input, or files that no run has made."""
    if not any(True for _ in os.scandir(out)):
        return
    replaced = array("q", (_inode(out, name_of(name, file, n)) for n, file in enumerate(files)))
    odd = next((number for number, inode in enumerate(replaced) if inode == _ODD), None)
    if odd is not None:
        result = out / name_of(name, files[odd], odd)
        message = f"{result} is not a regular file; the result of {files[odd]} would replace it"
        raise DescriptionError(message, "out", "name another --out, or another --name")
    if not are_values:  # which are no files, so nothing can replace them
        _check_inputs(files, name, out, replaced)
    there = [number for number, inode in enumerate(replaced) if inode] if not may_replace else []
    if there and not (out / JOURNAL).exists():
        first = out / name_of(name, files[there[0]], there[0])
        more = f" and {len(there) - 1} more files" if len(there) > 1 else ""
        message = f"{first}{more} would be replaced, and no run has made them"
        raise DescriptionError(message, "out", "name another --out, or give --force")


def _check_inputs(files: Sequence[str], name: str, out: Path, replaced: array[int]) -> None:
    """Refuse results that would replace an input."""
    inodes = array("q", sorted(inode for inode in replaced if inode))  # of a million, a set would be six times as large
    for file in files if inodes else ():
        inode = os.stat(file).st_ino  # noqa: PTH116 (there may be a million)
        at = bisect_left(inodes, inode)
        if at == len(inodes) or inodes[at] != inode:
            continue
        number = replaced.index(inode)
        result = out / name_of(name, files[number], number)
        if os.path.samefile(result, file):  # noqa: PTH121 (inodes of two disks may be equal)
            message = f"the result of {files[number]} would replace an input, {result}"
            raise DescriptionError(message, "out", "name another --out, or another --name such as '{name}.out'")


def _inode(out: Path, name: str) -> int:
    """Return the inode of a file; 0: there is none, `_ODD`: it is something else."""
    try:
        found = os.stat(f"{out}/{name}", follow_symlinks=False)  # noqa: PTH116
    except OSError:
        return 0
    return found.st_ino if stat.S_ISREG(found.st_mode) else _ODD


def _checked(name: str, file: str, number: int) -> str:
    try:
        result = name_of(name, file, number)
    except (KeyError, IndexError, ValueError) as error:
        hint = "it may hold {name}, {stem}, {ext}, {dir} and {number}; {{ stands for a brace"
        raise DescriptionError(f"--name is {name!r}: there is no {_unknown(error)}", "argument", hint) from None
    *above, last = result.split("/")
    if ".." in above or result.startswith("/"):
        hint = "{dir} is the directory of the input as it is named: change to a directory above all inputs"
        raise DescriptionError(f"--name makes {result!r} of {file}: outside of --out", "argument", hint)
    if "\0" in result or last in ("", ".", "..", JOURNAL, LOCK):
        raise DescriptionError(f"--name makes {result!r} of {file}: no name of a file", "argument")
    return result


def _unknown(error: Exception) -> str:
    """Return what a template holds that is not known, as it stands there."""
    return f"{{{error.args[0]}}}" if isinstance(error, KeyError) else str(error)


def make_directories(files: Sequence[str], name: str, out: Path) -> None:
    """Make the directories below `out` that names of results have."""
    if "/" not in name and "{dir" not in name:
        return
    above = {parent for n, file in enumerate(files) for parent in PurePath(name_of(name, file, n)).parents}
    above.discard(PurePath())
    for number, file in enumerate(files):
        if PurePath(result := name_of(name, file, number)) in above:
            message = f"--name makes {result!r} of {file}, which is a directory of other results"
            raise DescriptionError(message, "argument", "name another --name, such as '{dir}/{name}.out'")
    for directory in sorted(above):
        try:
            (out / directory).mkdir(exist_ok=True)
        except OSError as error:
            message = f"{out / directory}: {(error.strerror or str(error)).lower()}"
            raise DescriptionError(message, "out", "name another --out, or another --name") from None
