"""The arrows of the house: which room may import which. docs/decisions/ says why."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import crosswind

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
    "recorded": {"program"},
    "sim": {"schema", "policy", "program"},
    "linux": set(),
    "measure": {"schema", "access", "linux"},
    "disturb": {"schema", "linux"},
    "live": {"schema", "access", "policy", "agent", "program", "linux"},
    "experiment": {"schema", "access", "model", "policy", "agent", "program", "recorded", "sim", "measure", "live"},
    "gpu": set(),
    "py": {
        *("schema", "access", "model", "agent", "program", "live", "sim", "measure", "linux", "disturb"),
        *("experiment", "gpu", "recorded"),
    },
}
# What decides has no clock, no thread and no socket.
FORBIDDEN_WHERE_IT_IS_DECIDED = ("std::time", "std::thread", "std::net", "std::fs", "std::io")
# `cli` and `report` use the public Python API; the other rooms know neither of them.
OUTER_ROOMS = ("cli", "report")
# The lab uses the public API, what is used everywhere, and the extension module in one place; these two show it.
EVERYWHERE = ("documents", "errors", "files", "statistics", "terminal")
SHOW_THE_LAB = ("cli", "report")
PUBLIC = {"cli": set(), "report": {"draw", "kind_of", "report", "written"}}


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


def imported_names(path: Path) -> set[str]:
    """Return what a module imports, each by its whole name: of `from a import b` only `a.b`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_every_crate_is_in_the_map():
    assert {path.name for path in (ROOT / "crates").iterdir() if path.is_dir()} == set(CRATES)


@pytest.mark.parametrize("crate", CRATES)
def test_a_crate_knows_only_the_crates_below_it(crate):
    ours = {name.removeprefix("crosswind-") for name in crate_dependencies(crate) if name.startswith("crosswind-")}
    assert ours <= CRATES[crate]


@pytest.mark.parametrize("crate", [crate for crate in CRATES if crate != "py"])
def test_only_the_crate_py_knows_python(crate):
    assert "pyo3" not in crate_dependencies(crate)


@pytest.mark.parametrize("crate", ["model", "policy", "agent", "program", "recorded"])
def test_what_decides_has_no_clock_no_thread_no_socket_and_no_files(crate):
    for path in (ROOT / "crates" / crate / "src").rglob("*.rs"):
        code = path.read_text().split("#[cfg(test)]")[0]
        assert [word for word in FORBIDDEN_WHERE_IT_IS_DECIDED if word in code] == [], path


def test_what_python_calls_only_converts():
    """A run is made in `experiment`, a closed form in `model`: the room between the languages stays small."""
    lines = sum(len(path.read_text().splitlines()) for path in (ROOT / "crates/py/src").rglob("*.rs"))
    assert lines < 3_340


def test_only_the_outer_rooms_know_the_outer_rooms():
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0]
        if room in OUTER_ROOMS or path in (PACKAGE / "__init__.py", PACKAGE / "script.py"):
            continue
        known = {f"crosswind.{outer}" for outer in OUTER_ROOMS}
        assert not {m for m in imported_modules(path) if ".".join(m.split(".")[:2]) in known}, path


def test_the_command_line_and_the_report_do_not_know_each_other():
    for room in OUTER_ROOMS:
        for path in (PACKAGE / room).rglob("*.py"):
            for other in OUTER_ROOMS:
                if other != room:
                    inner = {m for m in imported_modules(path) if m.startswith(f"crosswind.{other}.")}
                    assert inner <= {f"crosswind.{other}.{name}" for name in PUBLIC[other]}, path


def test_the_lab_imports_only_public_names():
    for path in (PACKAGE / "lab").rglob("*.py"):
        for name in imported_names(path):
            package, *inner = name.split(".")
            if package != "crosswind" or not inner:
                continue
            is_engine = path.name == "engine.py" and inner[0] == "_core"
            is_public = len(inner) == 1 and inner[0] in crosswind.__all__
            assert is_public or is_engine or inner[0] in (*EVERYWHERE, "lab"), f"{path}: {name}"


def test_what_the_labs_tests_wait_for_is_all_that_the_lab_uses():
    rooms: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).with_suffix("").parts[0]
        names = [name.split(".")[1] for name in imported_names(path) if name.startswith("crosswind.")]
        homes = {crosswind._HOME_OF.get(name, name).split(".")[0] for name in names} - {"_core"}
        rooms.setdefault(own, set()).update(homes)
    used, waiting = set(), {"lab"}
    while waiting:
        used.add(room := waiting.pop())
        waiting |= rooms[room] - used
    listed = re.search(r"LAB_ROOMS := ((?:[^\\\n]|\\\n)*)", (ROOT / "Makefile").read_text())
    assert used == set(listed[1].replace("\\", " ").split())


def test_no_room_imports_the_lab():
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).parts[0]
        if own not in (*SHOW_THE_LAB, "lab", "__init__.py"):
            assert not [name for name in imported_names(path) if name.startswith("crosswind.lab")], path


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


def circles(uses: Mapping[str, set[str]]) -> list[tuple[str, ...]]:
    """Return the sets of modules that use each other, directly or through others."""
    reached: dict[str, set[str]] = {}
    for module in uses:
        found, waiting = set(), [*uses[module]]
        while waiting:
            if (other := waiting.pop()) not in found:
                found.add(other)
                waiting += uses[other]
        reached[module] = found
    around = {module: {other for other in found if module in reached[other]} for module, found in reached.items()}
    return sorted({tuple(sorted(others)) for others in around.values() if others})


def used_paths(tree: str, before: str = "") -> Iterator[str]:
    """Yield the paths of a tree of `use`: of `a::{b, c::{d, e}}` the paths `a::b`, `a::c::d`, `a::c::e`."""
    head, brace, inner = tree.partition("{")
    if not brace:
        yield before + tree.split(" as ", maxsplit=1)[0].strip()
        return
    depth, begun = 0, 0
    inner = inner.rstrip().removesuffix("}") + ","
    for place, sign in enumerate(inner):
        depth += (sign == "{") - (sign == "}")
        if sign == "," and depth == 0:
            if branch := inner[begun:place].strip():
                yield from used_paths(branch, before + head.strip())
            begun = place + 1


def rust_uses(source: Path) -> dict[str, set[str]]:
    """Return which files of a crate use which others of it.

    What counts: every path in code, whether in a `use`, in a `pub use` or written where it is needed. What does not:
    declarations (`mod name;`), comments, their examples, and tests. A path means the innermost file that it names.
    """
    files = {}
    for path in source.rglob("*.rs"):
        files[
            "::".join(part for part in path.relative_to(source).with_suffix("").parts if part not in ("mod", "lib"))
        ] = path

    def meant(path: str, own: str) -> str | None:
        base, parts = own.split("::") if own else [], path.split("::")
        is_local = parts[0] in ("crate", "self", "super")
        if parts[0] == "crate":
            base = []
        while parts and parts[0] in ("crate", "self", "super"):
            if parts.pop(0) == "super":
                base = base[:-1]
        named = ["::".join([*base, *parts[:count]]) for count in range(0 if is_local else 1, len(parts) + 1)]
        return next((name for name in reversed(named) if name in files), None)

    uses = {}
    for own, path in files.items():
        code = re.sub(r"//.*", "", path.read_text().split("#[cfg(test)]")[0])
        trees = re.findall(r"\buse\s+([^;]+);", code)
        inline = re.findall(r"(?<![\w:])\w+(?:::\w+)+", re.sub(r"\buse\s+[^;]+;", "", code))
        paths = [*inline, *(path for tree in trees for path in used_paths(tree))]
        uses[own] = {found for path in paths if (found := meant(path, own)) is not None} - {own}
    return uses


def python_uses(package: Path, room: str) -> dict[str, set[str]]:
    """Return which modules of a room use which others of it.

    What counts: every import, at module level, under `if TYPE_CHECKING`, and inside functions, since an import that is
    only put off is how a circle hides.
    """
    files = {}
    for path in (package / room).rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        files[".".join(part for part in parts if part != "__init__")] = path
    uses = {}
    for own, path in files.items():
        found = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: modules are imported by their whole names"
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    found.add(inner if inner in files else str(node.module))
        uses[own] = (found & files.keys()) - {own}
    return uses


def test_no_modules_of_the_policy_use_each_other_in_a_circle():
    assert circles(rust_uses(ROOT / "crates" / "policy" / "src")) == []


def test_no_modules_that_run_things_import_each_other_in_a_circle():
    assert circles(python_uses(PACKAGE, "run")) == []


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("use super::b::B;", "use crate::farm::a::A;", [("farm::a", "farm::b")]),
        ("use super::{b::{self, B}, c::C};", "fn f() { super::a::g() }", [("farm::a", "farm::b")]),
        ("use super::B;", "use super::c::C;", [("farm", "farm::a")]),  # through the head's re-export
        ("use super::b::B;", "use super::c::C;", []),
        ("use super::b::B;", "/// [`A`](super::a::A)\n#[cfg(test)]\nmod tests { use super::super::a::A; }", []),
    ],
)
def test_circles_of_rust_are_found(tmp_path, first, second, found):
    head = "mod a;\nmod b;\nmod c;\npub use a::A;\npub use b::B;\n"
    (tmp_path / "farm").mkdir()
    files = {"lib.rs": "pub mod farm;", "farm/mod.rs": head, "farm/a.rs": first, "farm/b.rs": second, "farm/c.rs": ""}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert circles(rust_uses(tmp_path)) == found


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("from pack.run.b import B", "import pack.run.a", [("pack.run.a", "pack.run.b")]),
        ("from pack.run import b", "def f():\n    from pack.run.a import A", [("pack.run.a", "pack.run.b")]),
        ("from pack.run.b import B", "from pack.other import a", []),
    ],
)
def test_circles_of_python_are_found(tmp_path, first, second, found):
    room = tmp_path / "pack" / "run"
    room.mkdir(parents=True)
    for name, text in {"__init__": "", "a": first, "b": second}.items():
        (room / f"{name}.py").write_text(text)
    assert circles(python_uses(tmp_path / "pack", "run")) == found


def test_no_struct_but_a_files_document_shows_more_than_a_dozen_fields():
    """What `schema` describes is as wide as its files; anything else that wide is several things."""
    wide = {}
    for path in sorted((ROOT / "crates").rglob("*.rs")):
        if "schema" in path.parts or "target" in path.parts:
            continue
        for struct in re.finditer(r"pub(?:\(\w+\))? struct (\w+)(?:<[^>]*>)? \{(.*?)\n\}", path.read_text(), re.DOTALL):
            fields = re.findall(r"^\s+pub \w+:", struct[2], re.MULTILINE)
            if len(fields) > 12:
                wide[struct[1]] = len(fields)
    assert not wide
