"""The arrows of the house: which room may import which. docs/decisions/ says why."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "crosswind"

# Each crate and the crates it may know. `py` is the only one that knows Python.
CRATES = {
    "schema": set(),
    "access": set(),
    "model": {"schema"},
    "policy": {"schema"},
    "agent": {"schema", "policy"},
    "faults": {"schema", "agent"},
    "program": {"schema"},
    "sim": {"schema", "policy", "program"},
    "linux": set(),
    "measure": {"schema", "access", "linux"},
    "disturb": {"schema", "linux"},
    "live": {"schema", "access", "policy", "agent", "program", "linux"},
    "experiment": {"schema", "model", "policy", "agent", "program", "sim", "measure", "live"},
    "py": {
        *("schema", "access", "model", "policy", "agent", "program", "live", "sim", "measure", "experiment"),
        *("linux", "disturb"),
    },
}
# What decides has no clock, no thread and no socket.
FORBIDDEN_WHERE_IT_IS_DECIDED = ("std::time", "std::thread", "std::net", "std::fs", "std::io")
# `cli` and `report` use the public Python API; the other rooms know neither of them.
OUTER_ROOMS = ("cli", "report")


def crate_dependencies(crate: str) -> set[str]:
    manifest = tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text())
    return set(manifest.get("dependencies", {}))


def imported_modules(path: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return modules


def test_every_crate_is_in_the_map():
    assert {path.name for path in (ROOT / "crates").iterdir() if path.is_dir()} == set(CRATES)


@pytest.mark.parametrize("crate", CRATES)
def test_a_crate_knows_only_the_crates_below_it(crate):
    ours = {name.removeprefix("crosswind-") for name in crate_dependencies(crate) if name.startswith("crosswind-")}
    assert ours <= CRATES[crate]


@pytest.mark.parametrize("crate", [crate for crate in CRATES if crate != "py"])
def test_only_the_crate_py_knows_python(crate):
    assert "pyo3" not in crate_dependencies(crate)


@pytest.mark.parametrize("crate", ["model", "policy", "agent", "program"])
def test_what_decides_has_no_clock_no_thread_no_socket_and_no_files(crate):
    for path in (ROOT / "crates" / crate / "src").rglob("*.rs"):
        code = path.read_text().split("#[cfg(test)]")[0]
        assert [word for word in FORBIDDEN_WHERE_IT_IS_DECIDED if word in code] == [], path


def test_only_the_outer_rooms_know_the_outer_rooms():
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0]
        if room in OUTER_ROOMS or path == PACKAGE / "__init__.py":
            continue
        known = {f"crosswind.{outer}" for outer in OUTER_ROOMS}
        assert not {m for m in imported_modules(path) if ".".join(m.split(".")[:2]) in known}, path


def test_the_command_line_and_the_report_do_not_know_each_other():
    for room in OUTER_ROOMS:
        for path in (PACKAGE / room).rglob("*.py"):
            for other in OUTER_ROOMS:
                if other != room:
                    inner = {m for m in imported_modules(path) if m.startswith(f"crosswind.{other}.")}
                    assert inner <= {f"crosswind.{other}.{other}"}, path


def test_no_file_tells_more_than_one_story():
    for pattern in ("crates/**/*.rs", "python/**/*.py", "tests/**/*.py", "benchmarks/*.py"):
        for path in ROOT.glob(pattern):
            assert len(path.read_text().splitlines()) <= 800, path


def test_no_name_tells_nothing():
    empty = {"utils", "util", "common", "core", "helpers", "helper", "manager", "misc"}
    for pattern in ("crates/*/src/**/*.rs", "python/**/*.py", "tests/**/*.py"):
        for path in ROOT.glob(pattern):
            assert path.stem not in empty, path


def test_no_module_writes_csv():
    """A spreadsheet runs a cell of text that begins with =, +, - or @; code that writes CSV first must quote names."""
    writers = ("csv.writer", "csv.DictWriter", ".to_csv", ".write_csv", "write_csv(")
    for path in PACKAGE.rglob("*"):
        if path.suffix in (".py", ".js", ".j2"):
            text = path.read_text(encoding="utf-8")
            assert [word for word in writers if word in text] == [], path
