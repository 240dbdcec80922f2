"""What builds packages names the same version and the same dependencies as `pyproject.toml`."""

import ast
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
CONDA = yaml.safe_load((PACKAGING / "conda" / "recipe.yaml").read_text())
SPACK = (PACKAGING / "spack" / "spack_repo" / "crosswind" / "packages" / "py_crosswind" / "package.py").read_text()


def bounds(requirements: list[str]) -> dict[str, str]:
    """Return name and lower bound of requirements such as `numpy>=2` or, in conda's writing, `numpy >=2`."""
    return dict(re.fullmatch(r"([\w-]+) ?>=([\d.]+)(?:,<\d+)?", line).groups() for line in requirements)


def spack_bounds(condition: str) -> dict[str, str]:
    calls = [node for node in ast.walk(ast.parse(SPACK)) if isinstance(node, ast.Call)]
    named = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "depends_on"]
    found = {}
    for call in named:
        when = [word.value.value for word in call.keywords if word.arg == "when"]
        name, _, version = call.args[0].value.removeprefix("py-").partition("@")
        if (when or [""]) == [condition] and call.keywords[-1].value != "build" and version:
            found[name] = version.split(":")[0]
    return found


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    wanted = bounds(PROJECT["dependencies"]) | {"python": "3.11"}
    assert bounds(CONDA["requirements"]["run"]) == wanted
    assert CONDA["context"]["version"] == VERSION


def test_the_spack_recipe_asks_for_what_the_package_asks_for():
    wanted = bounds(PROJECT["dependencies"])
    asked = spack_bounds("")
    assert {name: asked.get(name) for name in wanted} == wanted
    assert spack_bounds("+dask") == bounds(PROJECT["optional-dependencies"]["dask"])


def test_the_recipes_build_with_the_rust_that_the_crates_need():
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    assert f'"rust@{rust}:"' in SPACK


@pytest.mark.parametrize("name", ["Containerfile", "crosswind.def"])
def test_an_image_takes_the_wheel_from_where_make_puts_it(name):
    assert "--out dist" in (ROOT / "Makefile").read_text()
    text = (PACKAGING / name).read_text()
    assert re.search(r"\bdist/? /tmp/dist", text)
    assert "--find-links /tmp/dist" in text


def test_guides_do_not_install_from_an_index():
    """Crosswind is on no index: a page that asks for one sends readers to another project's package."""
    asks = re.compile(r"pip install (?:--\S+ )*['\"]?crosswind(?:\[[\w,]+\])?['\"]?(?:\s|$)", re.MULTILINE)
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py")]
    pages += [*(ROOT / "python").rglob("*.py")]
    assert [page for page in pages if asks.search(page.read_text())] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_pages_name_the_wheel_of_this_version(page):
    named = set(re.findall(r"crosswind-([\d.]+)-cp311", page.read_text()))
    assert named <= {VERSION}


def features(*options: str) -> dict[str, str]:
    """Return the features of each crate as cargo builds it with these options."""
    tree = ["cargo", "tree", "--offline", "--prefix", "none", "--format", "{p}|{f}", *options]
    lines = subprocess.run(tree, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    named = (line.removesuffix(" (*)").partition("|") for line in lines if "|" in line)
    return {crate.split(" (")[0].strip(): names for crate, _, names in named}


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_the_extension_and_the_tests_of_its_crates_share_one_build():
    """Where a dependency of tests asks for another feature of a common crate, cargo compiles everything twice."""
    extension = features("--package", "crosswind-py", "--edges", "normal,build")
    tests = features("--edges", "normal,build,dev")
    shared = {crate for crate in extension.keys() & tests.keys() if not crate.startswith("pyo3")}
    assert len(shared) > 80
    assert {crate: extension[crate] for crate in shared} == {crate: tests[crate] for crate in shared}
