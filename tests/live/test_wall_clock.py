"""A wall clock that jumps by hours, both ways, all the while: no verb waits by it, and none ends by it."""

import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from disturbed import HALF
from live import test_filter as filters

CC = shutil.which("cc")
pytestmark = [pytest.mark.live, pytest.mark.skipif(CC is None, reason="no C compiler for a wall clock that jumps")]

CROSSWIND = [sys.executable, "-m", "crosswind.cli"]
HOUR_S = 3600
PATIENCE_S = 120

PLATFORM = """
[platform]
schema_version = 1
name = "pair"
[[platform.node]]
name = "root"
compute_per_s = 100
[[platform.node]]
name = "leaf"
parent = "root"
compute_per_s = 100
receive_limit_mb_per_s = 100
"""
FARM = f"""
schema_version = 1
name = "farm"
{PLATFORM}
[workload]
kind = "farm"
tasks = 300
task_size_mb = 0.1
task_work = 1
"""
COMMANDS = {
    "measure": ["measure", "--matrix", "64", "--direction", "receive", "--max-seconds", "4", "-o", "TMP/m.parquet"],
    "run": ["run", "TMP/farm.toml", "--on", "local", "-o", "TMP/run.json"],
    "inject": ["inject", "TMP/half.toml", "-o", "TMP/injected.toml", "--", "sleep", "1"],
    "record": ["record", "--seconds", "1", "-o", "TMP/recorded.toml"],
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    made = tmp_path_factory.mktemp("clock") / "wall_clock.so"
    source = Path(__file__).with_name("wall_clock.c")
    subprocess.run([CC, "-shared", "-fPIC", "-O1", "-o", str(made), str(source)], check=True)
    return made


@pytest.fixture
def jumping(library, tmp_path):
    """The environment of processes whose wall clock jumps forth and back by two hours, again and again."""
    place = tmp_path / "wall-clock"
    place.write_bytes(struct.pack("q", 0))
    done = threading.Event()

    def jump():
        ahead = HOUR_S
        with place.open("r+b") as file:
            while not done.wait(0.1):
                os.pwrite(file.fileno(), struct.pack("q", ahead), 0)
                ahead = -ahead

    thread = threading.Thread(target=jump)
    thread.start()
    yield {**os.environ, "LD_PRELOAD": str(library), "WALL_CLOCK": str(place)}
    done.set()
    thread.join()


def test_the_clock_of_these_tests_jumps_both_ways_and_no_other_clock_does(jumping):
    code = """
import time
least = most = time.time() - time.monotonic()
end = time.monotonic() + 1
while time.monotonic() < end:
    now = time.time() - time.monotonic()
    least, most = min(least, now), max(most, now)
print(round(most - least))
"""
    done = subprocess.run([sys.executable, "-c", code], env=jumping, capture_output=True, text=True, check=True)
    assert int(done.stdout) == 2 * HOUR_S


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_verb_ends_in_its_time_with_its_result(verb, jumping, tmp_path):
    (tmp_path / "farm.toml").write_text(FARM)
    (tmp_path / "half.toml").write_text(HALF)
    words = [word.replace("TMP", str(tmp_path)) for word in COMMANDS[verb]]
    command = [*CROSSWIND, *words]
    done = subprocess.run(
        command, env=jumping, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False
    )
    assert done.returncode in (0, 3), done.stderr  # 3: a crowded host, not the clock
    assert Path(words[words.index("-o") + 1]).stat().st_size > 0
    assert "Traceback" not in done.stderr


def test_filters_go_on(jumping, monkeypatch):
    for name in ("LD_PRELOAD", "WALL_CLOCK"):
        monkeypatch.setenv(name, jumping[name])
    process, port = filters.echo()
    try:
        filters.test_filters_started_by_hand_forward_and_count_until_they_are_ended(port, signal.SIGINT)
    finally:
        process.kill()
        process.communicate()
