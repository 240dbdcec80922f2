"""ARCHITECTURE.md and CONTRIBUTING.md name what is there, and draw the arrows of the code."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

import crosswind

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "crosswind"
MAP = (ROOT / "ARCHITECTURE.md").read_text()
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md")


def rows(heading: str) -> dict[str, list[str]]:
    """Cells of the first table below a heading, by the first one."""
    section = MAP.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {first.strip("`"): rest for first, *rest in cells}


def named(cell: str) -> set[str]:
    return set(re.findall(r"`([a-z_]+)`", cell))


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_links_to_exists(page):
    links = re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text())
    assert len(links) > 3
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_calls_a_file_exists(page):
    """Whole paths, from the root or from `crates/` or `python/crosswind/`."""
    words = re.findall(r"`([\w./-]+\.(?:rs|py|toml|md|json|j2|csv))`", (ROOT / page).read_text())
    named = [word for word in words if "/" in word]
    tops = (ROOT, ROOT / "crates", PACKAGE)
    assert [word for word in named if not any((top / word).exists() for top in tops)] == []


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_has_make_do_is_a_target(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", (ROOT / page).read_text())) <= targets


def test_the_arrows_between_crates_are_those_of_the_manifests():
    drawn = {crate: named(uses) for crate, (_, uses) in rows("Crates").items()}
    manifests = {path.parent.name: tomllib.loads(path.read_text()) for path in ROOT.glob("crates/*/Cargo.toml")}
    prefix = "crosswind-"
    used = {
        crate: {name.removeprefix(prefix) for name in manifest.get("dependencies", {}) if name.startswith(prefix)}
        for crate, manifest in manifests.items()
    }
    assert drawn == used


def imports(path: Path) -> set[str]:
    """Rooms of the package that a module imports anywhere, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, *inner = name.split(".")
            if package == "crosswind" and inner:
                found.add(crosswind._HOME_OF.get(inner[0], inner[0]).split(".")[0] if len(inner) == 1 else inner[0])
    return {name for name in found if room(name)}


def room(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()


def test_every_room_of_the_package_stands_in_the_map_with_what_it_uses():
    """Errors, and what reads, writes and prints, is used everywhere and not drawn."""
    everywhere = named(MAP.split("Used everywhere, and not drawn: ")[1].split(".\n")[0])
    drawn = {name: named(uses) for name, (_, uses) in rows("Python").items()}
    used: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).with_suffix("").parts[0]
        if own not in ("__init__", "script"):  # where the command begins
            used.setdefault(own, set()).update(imports(path) - {own} - everywhere)
    assert {name: uses for name, uses in used.items() if name not in everywhere} == drawn


@pytest.mark.parametrize(("heading", "part"), [("Python", 0), ("Crates", 1)])
def test_the_drawing_fits_one_screen_and_has_each_room_above_all_that_it_uses(heading, part):
    drawing = MAP.split("## Map\n")[1].split("```")[1]
    floors = [line[:54].split() for line in drawing.split("\n\n")[part].splitlines() if line]
    floor = {name: number for number, names in enumerate(floors) for name in names}
    drawn = {name: named(uses) for name, (_, uses) in rows(heading).items()}
    assert sorted(name for names in floors for name in names) == sorted(drawn)
    assert [(name, used) for name, uses in drawn.items() for used in uses if floor[used] < floor[name]] == []
    assert len(drawing.splitlines()) <= 24
