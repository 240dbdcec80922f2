"""The package's public names: imported when they are used, and the same however they are reached."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import crosswind

HEAVY = ("numpy", "scipy", "pandas", "pyarrow", "altair", "vl_convert")
SLOW = (*HEAVY, "pyarrow.parquet", "scipy.stats", "scipy.optimize", "scipy.spatial", "scipy.sparse")


def in_a_fresh_process(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("start", ["import crosswind._core", "import crosswind.serve", "import crosswind.cli"])
def test_what_agents_peers_and_help_import_needs_nothing_heavy(start):
    loaded = f"import sys; print([name for name in {HEAVY} if name in sys.modules])"
    assert in_a_fresh_process(f"{start}; {loaded}") == "[]\n"


NAMES = sorted(name for name in crosswind.__all__ if not name.startswith("_"))
# What takes long to import is imported once; each name is then looked up in a process of its own.
FIRST_USES = f"""
import importlib, os, sys
for name in {SLOW}:
    importlib.import_module(name)
for modules in ([], ["measure", "plan", "report", "serve"]):
    for module in modules:
        importlib.import_module("crosswind." + module)
    for name in {NAMES}:
        if os.fork() == 0:
            import crosswind
            print(bool(modules), name, type(getattr(crosswind, name)).__name__, flush=True)
            os._exit(0)
        os.wait()
"""


def test_a_public_name_is_never_hidden_by_the_module_of_its_name():
    found = [line.split() for line in in_a_fresh_process(FIRST_USES).splitlines()]
    assert [(modules, name) for modules, name, _ in found] == [(m, n) for m in ("False", "True") for n in NAMES]
    assert [line for line in found if line[2] not in ("function", "type", "ABCMeta", "_ProtocolMeta")] == []
    assert [name for name in NAMES if isinstance(getattr(crosswind, name), ModuleType)] == []


def test_what_type_checkers_see_is_what_is_there():
    tree = ast.parse(Path(crosswind.__file__).read_text())
    guard = next(node for node in tree.body if isinstance(node, ast.If))
    modules = [node for node in guard.body if node.module != "typing"]
    seen = {alias.name: node.module for node in modules for alias in node.names}
    assert seen == {name: f"crosswind.{home}" for name, home in crosswind._HOME_OF.items()}
    assert set(seen) == set(crosswind.__all__) <= set(dir(crosswind))


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'mesure'"):
        crosswind.mesure  # noqa: B018
