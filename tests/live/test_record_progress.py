"""A recording says how many ranks it has while they run. No MPI is needed: the program marks its steps itself."""

import sys
from pathlib import Path

import pytest

from crosswind.recorder.program import record_program

pytestmark = pytest.mark.live
PROGRAM = """
import pathlib, time
import crosswind
crosswind.record_step()
while not pathlib.Path("go").exists():
    time.sleep(0.02)
crosswind.record_step()
"""


def test_ranks_are_counted_while_they_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(PROGRAM)
    said = []

    def on_progress(fraction, message):
        assert fraction == 0.0, "how long a program runs is not known"
        said.append(message)
        if message.startswith("recording 1 rank,"):
            Path("go").touch()  # the program waits for this, so the message is no matter of chance

    recorded = record_program([sys.executable, "program.py"], "app.trace", how="none", progress=on_progress)
    assert recorded.summary["ranks"] == 1
    assert any(message.startswith("recording 1 rank, ") and message.endswith("so far") for message in said)
    assert said[-1] == "writing app.trace"
