"""`make demo`, with a shorter measurement: what a stranger sees of it."""

import shlex
import subprocess
import sys

import pytest
import typed

pytestmark = [pytest.mark.live, pytest.mark.nightly]
MOST_LINES = 45


def test_the_demo_says_what_it_found_in_less_than_45_lines(tmp_path):
    """It printed 224 lines: 48 of warnings and hints, 6 of them three times."""
    crosswind = shlex.join([sys.executable, "-m", "crosswind.cli"])
    command = [sys.executable, str(typed.ROOT / "examples/demo.py"), "--crosswind", crosswind, "--measure-s", "10"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) < MOST_LINES, done.stdout
    assert max(map(len, lines)) <= 80, done.stdout
    found = lines.index("What it found")
    assert [line.split(":")[0].strip() for line in lines[found + 1 : found + 3]] == ["Traffic", "Plan"]
    assert lines[found + 3].startswith("  Disturbances")
    assert lines[-1] == "Open demo/report.html. Every step's command: demo/steps.txt"
    assert len((tmp_path / "demo/steps.txt").read_text().splitlines()) == 12
    assert "</html>" in (tmp_path / "demo/report.html").read_text()
