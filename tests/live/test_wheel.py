"""The wheel in a fresh environment: no cargo, no checkout, only what its metadata asks for."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "constraints.txt"
# A wheel that `make wheel` made; else one is packed from what `make test` has compiled already.
GIVEN = os.environ.get("CROSSWIND_WHEEL")

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not GIVEN and not (ROOT / "target" / "debug").is_dir(), reason="make build test-fast first"),
]


def _packed(folder: Path) -> Path:
    """Return a wheel of the library that is compiled for tests: the same files and metadata, not optimised."""
    maturin = [sys.executable, "-m", "maturin", "build", "--profile", "dev", "--compatibility", "linux"]
    subprocess.run([*maturin, "--offline", "--out", str(folder)], cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return Path(GIVEN).resolve() if GIVEN else _packed(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> Path:
    """Return the folder of programs of an environment into which only the wheel was installed."""
    place = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    pip = [place / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-compile"]
    install = [*pip, "--constraint", CONSTRAINTS, wheel]
    done = subprocess.run(install, env=_without_tools(place), capture_output=True, text=True, check=False)
    if "NewConnectionError" in done.stderr or "Temporary failure in name resolution" in done.stderr:
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr
    return place / "bin"


def _without_tools(place: Path) -> dict[str, str]:
    """Return an environment in which neither cargo nor the checkout can be found."""
    kept = {name: os.environ[name] for name in ("HOME", "PIP_CERT", "PIP_CONFIG_FILE") if name in os.environ}
    return {**kept, "PATH": f"{place / 'bin'}:/usr/bin:/bin", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def run(environment: Path, *command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    variables = _without_tools(environment.parent)
    assert shutil.which("cargo", path=variables["PATH"]) is None
    program = [str(environment / command[0]), *command[1:]]
    return subprocess.run(program, env=variables, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def test_the_wheel_holds_the_package_and_no_part_of_the_checkout(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {"crosswind/_core.abi3.so", "crosswind/py.typed", "crosswind/__init__.py"} <= set(names)
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not re.fullmatch(r"crosswind(-[\d.]+\.dist-info|\.libs)?", top)} == set()


def test_one_wheel_serves_every_python_from_3_11(wheel):
    assert re.fullmatch(r"crosswind-[\d.]+-cp311-abi3-(manylinux_2_28|linux)_(x86_64|aarch64)\.whl", wheel.name)
    assert not GIVEN or "manylinux" in wheel.name, "what is published runs on other distributions"


def test_the_command_plans_an_example(environment, tmp_path):
    platform = str(ROOT / "examples" / "fork_of_table_4.toml")
    task = ("--task-size-mb", "2", "--task-work", "5", "--ports", "single")
    done = run(environment, "crosswind", "plan", platform, *task, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["throughput_tasks_per_s"] == pytest.approx(6.5788, abs=1e-4)


def test_the_report_finds_its_templates(environment, tmp_path):
    platform = str(ROOT / "examples" / "fork_of_table_4.toml")
    task = ("--task-size-mb", "2", "--task-work", "5", "--ports", "single")
    assert run(environment, "crosswind", "plan", platform, *task, "-o", "plan.json", cwd=tmp_path).returncode == 0
    done = run(environment, "crosswind", "report", "plan.json", "-o", "report.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "<html" in (tmp_path / "report.html").read_text()


def test_a_farm_of_processes_computes(environment, tmp_path):
    """Agents are processes of their own: they must find the package that started them."""
    script = tmp_path / "squares.py"
    script.write_text(
        "import crosswind\n"
        "def square(x): return x * x\n"
        "if __name__ == '__main__':\n"
        "    print(crosswind.__file__)\n"
        "    print(sum(crosswind.map(square, range(20))))\n"
    )
    done = run(environment, "python", str(script), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    where, total = done.stdout.split()
    assert Path(where).is_relative_to(environment.parent)
    assert total == str(sum(x * x for x in range(20)))
