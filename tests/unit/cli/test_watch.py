"""`--watch` on the command line: refused where there is nothing to watch, before anything runs."""

import subprocess
import sys
from pathlib import Path

import pytest

FORK = str(Path(__file__).parents[3] / "examples" / "fork_graph_emulated.toml")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--watch"], "--watch does not go with --on sim"),
        (["--on", "sim", "--watch-listen", "127.0.0.1:0"], "--watch-listen does not go with --on sim"),
        (["--on", "local", "--watch-listen", "0.0.0.0:0"], "which is not loopback; a token is required"),
        (["--on", "local", "--watch-listen", "nowhere"], "it must be HOST:PORT"),
    ],
)
def test_what_cannot_be_watched_is_refused(words, told):
    pytest.importorskip("tornado", reason="tornado is not installed")
    command = [sys.executable, "-m", "crosswind.cli", "run", FORK, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, told in done.stderr, done.stdout) == (2, True, "")
