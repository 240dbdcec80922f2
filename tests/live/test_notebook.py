"""In a notebook, what tasks print is shown below the cell that waits for them, as it comes."""

from __future__ import annotations

import time

import pytest
from farms import PATIENCE_S

pytestmark = pytest.mark.live
REASON = "a kernel for notebooks is not installed (dependency group `notebook`)"

SPEAK = """
import logging, time
from pathlib import Path
import crosswind

def speak(ready, word="spoken"):
    print(word)
    logging.warning("warned")
    while not Path(ready).exists():
        time.sleep(0.02)
    return "done"
"""


@pytest.fixture
def cells():
    """A kernel: `cells(code)` begins a cell; `cells.until(text)` waits until it has shown a text on standard error."""
    manager = pytest.importorskip("jupyter_client.manager", reason=REASON)
    pytest.importorskip("ipykernel", reason=REASON)
    kernel, client = manager.start_new_kernel(startup_timeout=PATIENCE_S)
    yield Cells(client)
    client.stop_channels()
    kernel.shutdown_kernel(now=True)


class Cells:
    def __init__(self, client):
        self._client, self._cell, self._shown = client, "", ""

    def __call__(self, code):
        self._cell, self._shown = self._client.execute(code), ""

    def until(self, text):
        until = time.monotonic() + PATIENCE_S
        while text not in self._shown:
            self._take(until)
        return self._shown

    def end(self):
        """Wait for the end of the cell."""
        until = time.monotonic() + PATIENCE_S
        while not self._take(until):
            pass

    def _take(self, until):
        message = self._client.get_iopub_msg(timeout=max(until - time.monotonic(), 0.0))
        if message["parent_header"].get("msg_id") != self._cell:
            return False
        content = message["content"]
        assert message["msg_type"] != "error", "\n".join(content["traceback"])
        if message["msg_type"] == "stream" and content["name"] == "stderr":
            self._shown += content["text"]
        return message["msg_type"] == "status" and content["execution_state"] == "idle"


def test_what_a_call_prints_is_shown_below_its_cell_while_it_runs(cells, tmp_path):
    cells(SPEAK)
    cells.end()
    cells(f"assert list(crosswind.map(speak, [{str(tmp_path / 'a')!r}], max_workers=1, progress=False)) == ['done']")
    cells.until("[cpu0] 0: spoken\n[cpu0] 0: WARNING:root:warned\n")
    (tmp_path / "a").touch()
    cells.end()


def test_a_farm_of_an_earlier_cell_shows_it_below_the_cell_that_waits(cells, tmp_path):
    (tmp_path / "a").touch()
    cells(SPEAK + "farm = crosswind.Farm(max_workers=1)\n")
    cells.end()
    cells(f"assert farm.submit(speak, {str(tmp_path / 'a')!r}, 'first').result() == 'done'")
    cells.until("[cpu0] 0: first\n")
    cells.end()
    cells(f"assert farm.submit(speak, {str(tmp_path / 'b')!r}, 'second').result() == 'done'")
    cells.until("[cpu0] 1: second\n[cpu0] 1: WARNING:root:warned\n")
    (tmp_path / "b").touch()
    cells.end()
    cells("farm.shutdown()")
    cells.end()


def test_commands(cells, tmp_path):
    line = f"echo begun >&2; until test -e {tmp_path / 'a'}; do sleep 0.02; done; echo {{}}"
    cells(
        "from crosswind.run.command import map_command\n"
        f"map_command({line!r}, values=['1'], out={str(tmp_path / 'out')!r}, max_workers=1)"
    )
    cells.until("[cpu0] 1: begun\n")
    (tmp_path / "a").touch()
    cells.end()
