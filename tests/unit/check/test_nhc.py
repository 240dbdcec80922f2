"""The check for LBNL NHC over several rounds: what happens to a node that was drained as sick.

A few lines of bash stand in for NHC 1.4.3: scripts are loaded once, a check runs here or in a process of its own, and
where all return 0, `ONLINE_NODE` is evaluated, which resumes what NHC has drained.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "examples/check/crosswind.nhc"
NHC = """
PATH="/sbin:/usr/sbin:/bin:/usr/bin"
ONLINE_NODE="{online}" HOSTNAME=n1
online() {{ echo "RESUME $1" >> {directory}/states; }}
die() {{ echo "DRAIN ${{*:2}}" >> {directory}/states; exit 1; }}
log() {{ echo "$*" >> {directory}/log; }}
syslog() {{ echo "$*" >> {directory}/syslog; }}
. {script}
export CROSSWIND={program}
check="check_crosswind good.json 10%"
if [ {forked} = 1 ]; then eval $check & wait $! || exit 1; else eval $check || exit 1; fi
eval $ONLINE_NODE "'$HOSTNAME'"
"""
SICK = ("ERROR: crosswind check: sick: noise +9 points", 1)
UNKNOWN = ("WARNING: crosswind check: unknown (busy host): noise +5 points", 3)
NEVER_JUDGED = ("WARNING: crosswind check: No verdict: no baseline, and 4 of the 5 quiet-host checks needed so far", 3)
CRASH = ("", 70)
HEALTHY = ("OK: crosswind check: healthy: 8 measures within tolerance", 0)

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="no bash")


@pytest.fixture
def node(tmp_path):
    """Run NHC once with what `crosswind` says; what is done to the node."""
    program = tmp_path / "virtual environment" / "bin" / "crosswind"
    program.parent.mkdir(parents=True)

    def run(said, forked):
        program.unlink(missing_ok=True)
        if said is not None:
            program.write_text(f"#!/bin/sh\necho '{said[0]}'\nexit {said[1]}\n")
            program.chmod(0o755)
        states = tmp_path / "states"
        states.write_text("")
        shown = str(program).replace(" ", "\\ ")
        script = NHC.format(online="online", directory=tmp_path, script=SCRIPT, program=shown, forked=int(forked))
        subprocess.run(["bash", "-c", script], check=False, timeout=20)
        return states.read_text().splitlines()

    return run


@pytest.mark.parametrize("forked", [False, True])
@pytest.mark.parametrize("said", [UNKNOWN, NEVER_JUDGED, CRASH, None])
def test_a_check_without_a_verdict_changes_nothing(node, said, forked, tmp_path):
    assert node(SICK, forked) == ["DRAIN crosswind check: sick: noise +9 points"]
    assert node(said, forked) == []
    assert "left as it is" in (tmp_path / "log").read_text() or not forked


@pytest.mark.parametrize("forked", [False, True])
def test_a_healthy_node_is_resumed_and_a_sick_one_is_drained_after_any_other(node, forked):
    assert node(UNKNOWN, forked) == []
    assert node(SICK, forked) == ["DRAIN crosswind check: sick: noise +9 points"]
    assert node(HEALTHY, forked) == ["RESUME n1"]


def test_a_missing_program_is_named_with_what_to_add(node, tmp_path):
    node(None, forked=False)
    assert "export CROSSWIND=/path/to/crosswind" in (tmp_path / "syslog").read_text()
