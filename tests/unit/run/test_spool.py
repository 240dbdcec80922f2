"""Directories for tasks' bytes: none is left behind for long, and none in use is taken away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from crosswind.run.spool import Spool, take_away_abandoned


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_directory_is_gone_with_all_that_is_in_it_when_it_is_closed() -> None:
    spool = Spool()
    (spool.path / "task").write_bytes(b"bytes")
    spool.close()
    assert not spool.path.exists()


def test_the_directory_of_a_live_process_stays() -> None:
    spool = Spool()
    take_away_abandoned()
    assert spool.path.exists()
    spool.close()


def test_the_directory_of_a_killed_process_is_taken_away_by_the_next(tmp_path: Path) -> None:
    code = (
        "import tempfile, time; from crosswind.run.spool import Spool\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "spool = Spool(); (spool.path / 'task').write_bytes(b'x'); print(spool.path, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        left = Path(other.stdout.readline().strip())
        take_away_abandoned()
        assert (left / "task").exists(), "its owner still lived"
        os.kill(other.pid, signal.SIGKILL)
    take_away_abandoned()
    assert not left.exists()


def test_a_directory_that_is_taken_before_it_is_locked_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made, make = [], tempfile.mkdtemp

    def taken_at_first(prefix: str) -> str:
        made.append(make(prefix=prefix))
        if len(made) == 1:
            take_away_abandoned()  # as another process may, in that moment
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", taken_at_first)
    spool = Spool()
    assert [str(spool.path), spool.path.exists()] == [made[1], True]
    spool.close()


def test_processes_that_start_at_once_take_away_no_directory_of_each_other(tmp_path: Path) -> None:
    code = (
        "import tempfile; from crosswind.run.spool import Spool\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "for _ in range(200):\n"
        "    spool = Spool(); (spool.path / 'task').write_bytes(b'x'); spool.close()"
    )
    several = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert [process.wait() for process in several] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == []
