"""README's commands, typed at 80 columns: with a process of this host, and less time where a figure needs a minute."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typed

pytestmark = pytest.mark.live

README = typed.ROOT / "README.md"
HANGS_S = 600
SHORTER = {
    r"--seconds 90": "--seconds 5",
    r"check --save good.json": "check --save good.json --force",
    r"check ": "check --seconds 10 ",
    r"measure ": "measure --max-seconds 3 ",
}
"""What a test types instead: exit code 3 is as good an answer there as 0."""
EXACT = ("plan", "map", "report")
"""Verbs whose answer is the same on each host, but for numbers."""
JOB = """
total = 0
with open("steps", "w") as log:
    while True:
        total += sum(range(1000))
        print(total, file=log, flush=True)
"""


def lines() -> Iterator[tuple[str, str]]:
    """Yield each command of README, and the first line that it shows below."""
    text = README.read_text().splitlines()
    for line, below in zip(text, [*text[1:], ""], strict=True):
        if match := re.match(r" {4}\$ (crosswind .*)", line):
            shown = below.strip() if below.startswith("    ") and not below.startswith("    $") else ""
            yield re.sub(r"\s+#.*", "", match[1]), shown


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    typed.settle(README, tmp_path)
    (tmp_path / "data").mkdir()
    for number in range(24):
        (tmp_path / "data" / f"{number}.log").write_text("a line\n")
    (tmp_path / "job.py").write_text(JOB)
    return tmp_path


def test_each_command_of_readme_gives_an_answer(folder):
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"]) as daemon:
        try:
            for line, shown in lines():
                words = re.sub(r"pid:\d+", f"pid:{daemon.pid}", line)
                words = words.replace("taskset -c 1 python3", sys.executable)
                for pattern, other in SHORTER.items():
                    words = re.sub(pattern, other, words)
                code, screen, _ = typed.type_in(words, folder, HANGS_S)
                assert code in (0, 3, 4), f"$ {words}\n{screen}"
                assert "Traceback" not in screen, f"$ {words}\n{screen}"
                if shown and line.split()[1] in EXACT:
                    assert typed.plain(shown) in typed.plain(" ".join(screen.splitlines())), f"$ {words}\n{screen}"
        finally:
            daemon.kill()


def test_readme_shows_each_of_the_three_commands_that_most_people_want_and_fits_a_screen_or_two():
    assert len(README.read_text().splitlines()) < 100
    verbs = [line.split()[1] for line, _ in lines()]
    assert verbs[0] == "cost"
    assert verbs.index("check") < verbs.index("map") < verbs.index("measure")
