"""Exit codes by which scripts act: no error and no fault may pass for a verdict."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from checks import checked

from crosswind import cli

TESTS = str(Path(__file__).parents[2])
CHECK = [sys.executable, "-m", "crosswind.cli", "check", "--seconds", "10"]


def check(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run([*CHECK, *words], check=False, text=True, timeout=60, **how)  # type: ignore[call-overload]


@pytest.fixture
def full(tmp_path):
    """A disk without space."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("cannot mount a tmpfs")
    try:
        with pytest.raises(OSError, match="No space"):
            (disk / "filler").write_bytes(bytes(1 << 17))
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_full_disk_makes_no_node_sick(tmp_path, full):
    checked().save(tmp_path / "good.json")
    said = check("--baseline", str(tmp_path / "good.json"), "--prometheus", str(full / "crosswind.prom"))
    assert (said.returncode, said.stdout) == (3, "")
    assert said.stderr.startswith(f"error: no space left on {full}\n")


# A check that has found what `checks.checked` holds, without the ten seconds in which a node is measured.
FOUND = """
import sys
from importlib import import_module
from checks import checked
from crosswind.cli import main

memory = float(sys.argv.pop())
import_module("crosswind.check").check = lambda *, baseline, **_: checked(base=baseline, memory=memory)
main()
"""


@pytest.mark.parametrize(("memory", "code"), [("100", 0), ("50", 1)])
def test_a_full_standard_output_makes_no_node_sick(tmp_path, memory, code):
    checked().save(tmp_path / "good.json")
    command = [sys.executable, "-c", FOUND, "check", "--baseline", str(tmp_path / "good.json"), memory]
    how = {"env": os.environ | {"PYTHONPATH": TESTS}, "stderr": subprocess.PIPE, "text": True, "timeout": 60}
    assert subprocess.run(command, check=False, stdout=subprocess.DEVNULL, **how).returncode == code
    with Path("/dev/full").open("w") as nowhere:
        said = subprocess.run(command, check=False, stdout=nowhere, **how)
    assert said.returncode == 3
    assert "error: standard output: no space left on device" in said.stderr


def test_a_fault_is_no_verdict_either(monkeypatch, capsys):
    def faulty(*_, **__):
        raise ZeroDivisionError("in a test")

    monkeypatch.setattr(cli, "app", faulty)
    monkeypatch.setattr(cli, "interrupt_on", lambda _: None)
    assert cli._performed() == 70
    said = capsys.readouterr().err
    assert "ZeroDivisionError: in a test" in said
    assert "error: this is a fault of Crosswind" in said
