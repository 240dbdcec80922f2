"""`crosswind compare` with real commands: exit code, JSON, JUnit, and a stored comparison run again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.live


def crosswind(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "crosswind.cli", "compare", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_slower_command_ends_with_4_in_json_and_in_junit(tmp_path):
    out, xml = tmp_path / "comparison.json", tmp_path / "comparison.xml"
    # It ends once the difference is known; what a busy host adds to a run is small beside both.
    asked = ["--seconds", "100", "--warm-up", "0", "-o", str(out), "--junit", str(xml), "--json"]
    process = crosswind("sleep 0.1", "sleep 0.3", *asked)
    said, err = process.communicate(timeout=300)
    assert process.returncode == 4, err
    assert json.loads(said)["outcome"] == json.loads(out.read_text())["result"]["outcome"] == "slower"
    assert ElementTree.parse(xml).getroot().get("failures") == "1"


def test_ctrl_c_keeps_the_quads_that_were_finished_and_leaves_no_command_behind(tmp_path):
    out = tmp_path / "comparison.json"
    process = crosswind("sleep 0.01", "sleep 0.01", "--seconds", "60", "--margin", "0.01%", "-o", str(out))
    time.sleep(4.0)  # some quads, or, on a busy host, none
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    if out.exists():
        assert json.loads(out.read_text())["interrupted"]
