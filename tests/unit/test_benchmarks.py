"""Benchmarks measure what users get."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("for_tests", [True, False])
def test_no_record_is_made_with_an_extension_that_was_built_for_tests(for_tests):
    run = "import runpy; runpy.run_path('record.py', run_name='__main__')"
    script = f"from crosswind import _core; _core.FOR_TESTS = {for_tests}; {run}"
    done = subprocess.run([sys.executable, "-c", script], cwd=BENCHMARKS, capture_output=True, text=True, check=False)
    assert (done.returncode, "hint: `make build`" in done.stderr) == (int(for_tests), for_tests)
