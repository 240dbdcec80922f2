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


def in_a_fresh_process(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("start", ["import crosswind._core", "import crosswind.serve", "import crosswind.cli"])
def test_what_agents_peers_and_help_import_needs_nothing_heavy(start):
    loaded = f"import sys; print([name for name in {HEAVY} if name in sys.modules])"
    assert in_a_fresh_process(f"{start}; {loaded}") == "[]\n"


@pytest.mark.parametrize("name", sorted({n for n in crosswind.__all__ if not n.startswith("_")}))
def test_a_public_name_is_never_hidden_by_the_module_of_its_name(name):
    modules = "import crosswind.measure, crosswind.plan, crosswind.report, crosswind.serve, crosswind.sweep"
    print_kind = f"print(type(crosswind.{name}).__name__)"
    for code in (f"import crosswind; {print_kind}", f"{modules}; {print_kind}"):
        assert in_a_fresh_process(code) in {"function\n", "type\n"}
    assert not isinstance(getattr(crosswind, name), ModuleType)


def test_what_type_checkers_see_is_what_is_there():
    tree = ast.parse(Path(crosswind.__file__).read_text())
    guard = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in guard.body for alias in node.names}
    assert seen == {name: f"crosswind.{home}" for name, home in crosswind._HOME_OF.items()}
    assert set(seen) == set(crosswind.__all__) <= set(dir(crosswind))


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'mesure'"):
        crosswind.mesure  # noqa: B018
