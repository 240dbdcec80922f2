"""Which control groups are thawed: those that a session froze, and none that anything else froze."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest
from freezing import ONE, grouped, is_frozen, later, running, runs_again, wait_until

from crosswind import _core
from crosswind.cost.targets import opened
from crosswind.doctor.disturbances import left_frozen
from crosswind.errors import CrosswindError, DescriptionError, MeasurementError
from crosswind.host.cgroup import unified_mount

pytestmark = pytest.mark.live

MARK = "user.frozen-by-undo-watchdog"


@pytest.fixture
def group():
    """A control group with a process in it."""
    with running(ONE) as target, grouped(target.pid) as found:
        yield found


def process_in(group: Path) -> int:
    return int((group / "cgroup.procs").read_text())


def froze(group: Path) -> None:
    """Freeze it as an administrator does."""
    (group / "cgroup.freeze").write_text("1")
    wait_until(lambda: is_frozen(group))


def is_marked(group: Path) -> bool:
    return MARK in os.listxattr(group)


def mark(group: Path) -> None:
    """Mark it as a session does that freezes it."""
    try:
        os.setxattr(group, MARK, b"1")
    except OSError as error:
        pytest.skip(f"control groups have no attributes here: {error}")


def kill(freezer: _core.Freezer, frozen: _core.Frozen) -> None:
    """Kill the watchdog, and let the command notice."""
    os.kill(freezer.pid, signal.SIGKILL)
    with pytest.raises(MeasurementError, match="the watchdog was ended"):
        freezer.thaw(frozen)


def named_by_doctor(group: Path) -> bool:
    return any(str(group) in finding.message for finding in left_frozen(unified_mount()))


def test_a_group_that_the_command_thaws_itself_bears_no_mark_and_is_another_users_to_freeze(group, freezers):
    freezer = freezers()
    frozen = freezer.seize_group(group)
    freezer.freeze(frozen, later())
    kill(freezer, frozen)
    assert runs_again(process_in(group))
    assert not is_marked(group)
    froze(group)
    assert not named_by_doctor(group)
    with pytest.raises(DescriptionError, match="already frozen"):
        freezers().seize_group(group)
    assert is_frozen(group)


@pytest.mark.parametrize("was_used", [False, True], ids=["never frozen", "frozen and thawed"])
def test_a_group_that_another_program_froze_stays_frozen_when_the_watchdog_is_killed(group, freezers, was_used):
    freezer = freezers()
    frozen = freezer.seize_group(group)
    if was_used:
        freezer.freeze(frozen, later())
        freezer.thaw(frozen)
    froze(group)
    kill(freezer, frozen)
    assert is_frozen(group)


def test_a_group_that_is_marked_and_not_frozen_is_named_by_nothing_and_loses_the_mark(group, freezers):
    mark(group)
    assert not named_by_doctor(group)
    frozen = freezers().seize_group(group)
    assert frozen.how == "freezer"
    assert not is_marked(group)
    froze(group)
    assert not named_by_doctor(group)


def test_a_process_below_a_frozen_group_is_refused_with_the_group_that_was_frozen(group, freezers):
    below = group / "below"
    target = process_in(group)
    below.mkdir()
    try:
        (below / "cgroup.procs").write_text(str(target))
        froze(group)
        for text in (f"pid:{target}", f"cgroup:/{group.name}/below"):
            with pytest.raises(DescriptionError, match=rf"{group} is already frozen") as refused:
                opened(text, freezers())
            assert f"echo 0 > {group}/cgroup.freeze" in refused.value.hint
        mark(group)  # as if a session that was killed had frozen it
        freezers().seize([target])
        wait_until(lambda: not is_frozen(group))
        assert not is_marked(group)
    finally:
        (group / "cgroup.freeze").write_text("0")
        (group / "cgroup.procs").write_text(str(target))
        below.rmdir()


def test_a_process_in_a_frozen_group_of_version_1_is_refused_with_what_thaws_that(freezers):
    mount = Path("/sys/fs/cgroup/freezer")
    if not (mount / "cgroup.procs").exists() or not os.access(mount, os.W_OK):
        pytest.skip("no freezer of version 1 here")
    group = mount / f"freezing-test-{os.getpid()}"
    below = group / "below"
    with running(ONE) as target:
        try:
            below.mkdir(parents=True)
            (below / "cgroup.procs").write_text(str(target.pid))
            (group / "freezer.state").write_text("FROZEN")
            with pytest.raises(DescriptionError, match=rf"{group} is already frozen") as refused:
                freezers().seize([target.pid])
            assert f"`echo THAWED > {group}/freezer.state`" in refused.value.hint
        finally:
            (group / "freezer.state").write_text("THAWED")
            (mount / "cgroup.procs").write_text(str(target.pid))
            for each in (below, group):
                with contextlib.suppress(OSError):
                    each.rmdir()


def test_a_group_that_is_removed_in_mid_session_is_told_without_the_number_of_a_process(freezers):
    freezer = freezers()
    with running(ONE) as target, grouped(target.pid) as group:
        frozen = freezer.seize_group(group)
    with pytest.raises(CrosswindError) as refused:
        freezer.freeze(frozen, later())
    assert refused.value.code == "gone"
    assert "process 0" not in str(refused.value)
