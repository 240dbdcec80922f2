"""What an injection says of programs that may not be traced, and of control groups that it may not remove."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from disturbed import HALF
from freezing import ONE, running, wait_until

from crosswind.absences import leftovers, remove_leftovers
from crosswind.host.cgroup import unified_mount

pytestmark = pytest.mark.live

AS_NOBODY = """
import json, os, sys
from crosswind.inject import inject
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
injected = inject(sys.argv[1], [sys.argv[2], "0.3"], busy=False)
exposed = any(rank["exposed"] for rank in injected.summary["ranks"])
print(json.dumps([exposed, [told["code"] for told in injected.warnings], injected.elapsed_s]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_program_that_may_not_be_traced_is_stopped_by_signals_with_a_warning():
    with tempfile.TemporaryDirectory() as directory:
        at = Path(directory)
        at.chmod(0o755)
        (at / "half.toml").write_text(HALF)
        # A user that may not read a program may not trace its process either.
        programs = {mode: shutil.copy(shutil.which("sleep"), at / f"sleep-{mode:o}") for mode in (0o755, 0o711)}
        for mode, program in programs.items():
            program.chmod(mode)
            command = [sys.executable, "-c", AS_NOBODY, str(at / "half.toml"), str(program)]
            said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
            exposed, codes, elapsed_s = json.loads(said)
            assert elapsed_s > 0.3
            assert exposed == (mode == 0o711)
            assert codes.count("watchdog-only") == (mode == 0o711), codes


def test_a_group_of_an_ended_command_that_holds_processes_is_named_so_and_left_alone():
    if unified_mount() is None or not os.access(unified_mount(), os.W_OK):
        pytest.skip("no control groups of version 2 that this user may make")
    ended = subprocess.Popen(["true"])
    ended.wait()
    group = unified_mount() / f"crosswind-task-{ended.pid}-0"

    def kinds() -> list[str]:
        return [one["kind"] for one in leftovers() if one["name"] == str(group)]

    group.mkdir()
    try:
        with running(ONE) as target:
            (group / "cgroup.procs").write_text(str(target.pid))
            assert kinds() == ["occupied-group"]
            assert not any(str(group) in told["message"] for told in remove_leftovers())
            assert kinds() == ["occupied-group"]
        wait_until(lambda: not (group / "cgroup.procs").read_text())
        remove_leftovers()
        assert not group.exists()
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()
