"""Each row of docs/guides/coming-from.md does on both sides what it says: the same."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.live
PAGE = (Path(__file__).parents[2] / "docs/guides/coming-from.md").read_text()

PROGRAM = """
import concurrent.futures, json, multiprocessing, sys
from concurrent.futures import as_completed

import crosswind

def f(one):
    return one * one

def g(one, other):
    return one - other

items, a, b, pairs = list(range(20)), [1, 2, 3], [5, 4, 3], [(1, 2), (3, 4)]

def main():
    with {opened}, crosswind.Farm(max_workers=2) as farm:
        for there, here in json.loads(sys.stdin.read()):
            expected, found = eval(there, globals() | locals()), eval(here, globals() | locals())
            assert found == expected, (there, expected, here, found)
            print("same:", there)

if __name__ == "__main__":
    main()
"""
OPENED = {
    "ProcessPoolExecutor": "concurrent.futures.ProcessPoolExecutor(2) as executor",
    "Pool": "multiprocessing.Pool(2) as pool",
    "joblib": "contextlib.nullcontext()",
    "Dask's client": "Client(n_workers=1, threads_per_worker=2, dashboard_address=None) as client",
}
IMPORTS = {
    "joblib": "import contextlib\nfrom joblib import Parallel, delayed\n",
    "Dask's client": "import dask\nfrom distributed import Client\n",
}


def rows(heading):
    """Pairs of the code in the tables below a heading, whose first column is headed so."""
    table = PAGE.split(f"| {heading} | Crosswind |\n")[1].split("\n\n")[0].splitlines()[1:]
    pairs = [re.fullmatch(r"\| `(.*)` \| `(.*)` \|", line) for line in table]
    assert all(pairs), table
    return [tuple(code.replace("\\|", "|") for code in pair.groups()) for pair in pairs]


def same(program, pairs, directory):
    (directory / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "program.py"],
        input=json.dumps(pairs),
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("same:") == len(pairs)


@pytest.mark.parametrize("heading", OPENED)
def test_the_same_line_there_and_here(tmp_path, heading):
    program = IMPORTS.get(heading, "") + PROGRAM.format(opened=OPENED[heading])
    same(program, rows(heading), tmp_path)


@pytest.mark.parametrize(("there", "here"), [*rows("parallel"), *rows("xargs")])
def test_with_parallel_and_xargs(tmp_path, there, here):
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.txt").write_text("x" * number)
    (tmp_path / "numbers").write_text("1\n2\n3\n")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = ["bash", "-c", f"set -o pipefail; {here}"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    made = [path for place in ("out", "results") for path in (tmp_path / place).rglob("[!.]*") if path.is_file()]
    assert len(made) == (0 if "--dry-run" in here else 3)
    tool = re.search(r"\b(parallel|xargs)\b", there)[1]
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed; only Crosswind's side was run")
    (tmp_path / "out").mkdir(exist_ok=True)
    subprocess.run(["bash", "-c", there], cwd=tmp_path, capture_output=True, check=True, timeout=60)
