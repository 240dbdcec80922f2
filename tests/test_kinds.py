"""How many files must name a kind: what a newcomer touches to add one.

A file that names every member of a kind must name a new one, too. Counted is code, not text: in Rust, variants and
strings outside comments and tests; in Python, strings that are just the name. A member has one file of its own beside
these where `OWN` says so. The papers' studies name what the papers tried, and `make schemas` writes
the modules of `documents`.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from crosswind import _core
from crosswind.filter import Discipline
from crosswind.run.farm import Order

ROOT = Path(__file__).parent.parent
SOURCES = ["coscheduled", "local", "daemon", "job", "recorded"]
MEMBERS = {kind: [name for name, _ in members] for kind, members in _core.KINDS.items()} | {"source": SOURCES}
OWN = {"order": 1, "kernel": 1, "discipline": 0, "source": 0}
MOST = {"order": 4, "discipline": 4, "source": 4, "kernel": 3}


@cache
def rust_code(path: Path) -> str:
    return re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8").split("#[cfg(test)]", maxsplit=1)[0])


@cache
def python_strings(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    }


def names_in(path: Path, members: list[str]) -> bool:
    """Whether a file names every member of a kind."""
    if path.suffix == ".py":
        found = python_strings(path)
        return all(member in found for member in members)
    code = rust_code(path)
    words = [rf'"{member}"|::{member.title().replace("-", "")}\b' for member in members]
    return all(re.search(word, code) for word in words)


def files_that_name(kind: str) -> list[str]:
    rust = [path for path in ROOT.glob("crates/*/src/**/*.rs") if "bin" not in path.parts]
    python = [path for path in ROOT.glob("python/crosswind/**/*.py") if not {"papers", "documents"} & {*path.parts}]
    return sorted(str(path.relative_to(ROOT)) for path in rust + python if names_in(path, MEMBERS[kind]))


@pytest.mark.parametrize("kind", MOST)
def test_a_kind_is_named_in_few_files(kind):
    files = files_that_name(kind)
    assert len(files) + OWN[kind] <= MOST[kind], files
    assert files, "a kind that is named nowhere is misspelt here"


@pytest.mark.parametrize("kind", MOST)
def test_the_map_says_which_files_those_are(kind):
    heading = {"order": "an order of service", "discipline": "a queue discipline", "source": "a disturbance"}
    line = next(
        line
        for line in (ROOT / "ARCHITECTURE.md").read_text().splitlines()
        if line.startswith(f"| {heading.get(kind, 'a kernel')} |")
    )
    assert [file for file in files_that_name(kind) if f"]({file})" not in line] == []


def test_the_words_that_python_types_are_those_of_the_files():
    assert set(get_args(Discipline)) == set(MEMBERS["discipline"])
    # A farm of calls has no plan to follow, and without children no farm is needed.
    assert set(get_args(Order)) == set(MEMBERS["order"]) - {"planned", "root-only"}


def test_sources_are_those_that_a_disturbance_may_have():
    import json

    schema = json.loads((ROOT / "docs/reference/schemas/disturbance.schema.json").read_text())
    kinds = {one["properties"]["kind"]["const"] for one in schema["$defs"]["Source"]["oneOf"]}
    assert kinds == set(SOURCES)
