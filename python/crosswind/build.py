"""What was built and what it runs on: `crosswind --version`, and the head of a bug report."""

from __future__ import annotations

import hashlib
import mmap
import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TypedDict

from crosswind import _core

_COMPILER = re.compile(rb"rustc version ([0-9][^\x00\n(]*)")


class Extension(TypedDict):
    """The extension module."""

    file: str
    sha256: str
    compiler: str | None
    for_tests: bool


class BuildFacts(TypedDict):
    """What was built, and what runs it."""

    version: str
    extension: Extension
    python: str
    system: str
    packages: dict[str, str | None]


def build_facts() -> BuildFacts:
    """Return the version, what the extension was built with, and the Python, system and packages that run it.

    Examples
    --------
    >>> sorted(build_facts())
    ['extension', 'packages', 'python', 'system', 'version']
    """
    file = Path(_core.__file__)
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = _COMPILER.search(content)
        compiler = f"rustc {found[1].decode().strip()}" if found else None
        digest = hashlib.sha256(content).hexdigest()
    extension: Extension = {"file": str(file), "sha256": digest, "compiler": compiler, "for_tests": _core.FOR_TESTS}
    return {
        "version": _core.__version__,
        "extension": extension,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "packages": _packages(),
    }


def _packages() -> dict[str, str | None]:
    """Return the versions of the packages that are needed, or that an extra needs; None for those that are missing."""
    try:
        needed = requires("crosswind") or []
    except PackageNotFoundError:
        needed = []
    names = dict.fromkeys(re.split(r"[^\w.-]", one, maxsplit=1)[0] for one in needed)
    found: dict[str, str | None] = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found
