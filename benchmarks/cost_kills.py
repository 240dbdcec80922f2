"""Claim: however `crosswind cost` is killed, nothing stays stopped and no control group stays frozen.

Kills at random moments, of four kinds: the command alone; by ascending number everything that has "crosswind" in its
command line (as `pkill -9 -f crosswind` does, of this trial only); the command's control group (`cgroup.kill`); the
leader of its session, whose terminal then hangs up. Each over targets `pid:`, `cgroup:` and `command:`, and over
daemons with one thread, with six, and with helpers that leave orphans in sessions of their own and end (double forks).
Four kills of five fall within 2 s after the first stop, about half of them while the target is stopped; the others
anywhere.

After each, within 5 s: no process of the trial is stopped, no control group is frozen, and the watchdog has ended.
Processes of a trial are found by a mark in their environment, so that trials may run side by side, and next to other
sessions on the host.

    python benchmarks/cost_kills.py [KILLS [TRIALS_AT_A_TIME [SEED]]]

Without arguments it is a short try, printed and not recorded (`make bench`). Root and control groups of version 2. 500
kills, eight at a time, take a quarter of an hour on 2 CPUs, 25 minutes on a busy host, which falsifies nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import termios
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import record

from crosswind.host.cgroup import unified_mount

NAME = "cost_kills"
TRY, AT_A_TIME = 12, 8
ATTACKS = ("command", "name", "group", "leader")
TARGETS = ("pid", "cgroup", "command")
SHAPES = ("one thread", "six threads", "double forks")
MARK = "KILL_TRIAL"
WITHIN_S, PATIENCE_S = 5.0, 60.0
AFTER_FIRST_STOP_S, ANYWHERE_S, ANYWHERE_SHARE = 2.0, 8.0, 0.2
PYTHON = os.path.realpath(sys.executable)  # its path must not hold the name that is searched for
SPIN = """
import os, threading, time
def spin(until=float("inf")):
    while time.monotonic() < until:
        begun = time.monotonic()
        while time.monotonic() - begun < 0.001: pass
        time.sleep(0.02)
"""
DAEMONS = {
    "one thread": SPIN + "spin()",
    "six threads": SPIN + "for _ in range(5): threading.Thread(target=spin).start()\nspin()",
    "double forks": SPIN
    + """
while True:
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            spin(time.monotonic() + 3.0)
        os._exit(0)
    os.wait()
    time.sleep(0.05)
""",
}
JOB = """
import mmap, sys, time
with open(sys.argv[1], "r+b") as file: counter = memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")
while True:
    time.sleep(0.0005)
    counter[0] += 1
"""


def of_trial(mark: str) -> Iterator[tuple[int, str]]:
    """Yield the processes of a trial with their states."""
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name), (entry / "stat").read_text().rpartition(")")[2].split()[0]


def command_line(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def is_frozen(group: Path) -> bool:
    with contextlib.suppress(OSError):
        return "frozen 1" in (group / "cgroup.events").read_text()
    return False


def waited_for(condition: Any, within_s: float) -> bool:
    until = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


class Trial:
    """One session of `crosswind cost`, and one kill."""

    def __init__(self, attack: str, target: str, shape: str, seed: int) -> None:
        self.attack, self.target, self.shape = attack, target, shape
        self.draw = random.Random(seed)
        self.mark = uuid.uuid4().hex
        self.environment = os.environ | {MARK: self.mark}
        mount = unified_mount()
        if mount is None or os.geteuid() != 0:
            raise SystemExit("error: this needs root and control groups of version 2")
        self.target_group, self.tool_group = mount / f"kills-{self.mark}", mount / f"kills-{self.mark}-tool"
        self.daemon: subprocess.Popen[bytes] | None = None
        self.terminal: list[int] = []

    def run(self) -> dict[str, Any]:
        """Start, kill, and see what is left."""
        with tempfile.TemporaryDirectory(prefix="kills-") as scratch, contextlib.ExitStack() as stack:
            stack.callback(self.clean)
            tool = self.start(Path(scratch))
            if self.draw.random() < ANYWHERE_SHARE:
                time.sleep(self.draw.uniform(0.0, ANYWHERE_S))
            else:
                waited_for(lambda: self.is_stopped() or tool.poll() is not None, PATIENCE_S)
                time.sleep(self.draw.uniform(0.0, AFTER_FIRST_STOP_S))
            had_ended, was_stopped = tool.poll() is not None, self.is_stopped()
            self.kill(tool)
            waited_for(lambda: not any(self.left().values()), WITHIN_S)
            return {
                "attack": self.attack,
                "target": self.target,
                "shape": self.shape,
                "was_stopped": was_stopped,
                "had_ended": had_ended,
                **self.left(),
            }

    def start(self, scratch: Path) -> subprocess.Popen[bytes]:
        """Start the target and the session."""
        script, counter = scratch / "daemon.py", scratch / "counter"
        script.write_text(DAEMONS[self.shape])
        counter.write_bytes(bytes(8))
        of = f"command:{PYTHON} -S {script}"
        if self.target != "command":
            self.daemon = subprocess.Popen([PYTHON, "-S", str(script)], env=self.environment, start_new_session=True)
            of = f"pid:{self.daemon.pid}"
        if self.target == "cgroup" and self.daemon is not None:
            self.target_group.mkdir()
            (self.target_group / "cgroup.procs").write_text(str(self.daemon.pid))
            of = f"cgroup:/{self.target_group.name}"
        command = [sys.executable, "-m", "crosswind.cli", "cost", "--of", of, "--seconds", "12", "--to-the-end"]
        command += ["--seed", str(self.draw.randrange(1 << 30)), "--progress", f"u64:{counter}"]
        command += ["--", PYTHON, "-S", "-c", JOB, str(counter)]
        with Path(os.devnull).open("r+b") as nowhere:
            if self.attack == "leader":
                shell = ["sh", "-c", '"$@"; true', "sh", *command]
                return self.under_a_terminal(shell)
            if self.attack == "group":
                self.tool_group.mkdir()
                command = ["sh", "-c", f'echo $$ > {self.tool_group}/cgroup.procs && exec "$@"', "sh", *command]
            return subprocess.Popen(
                command, env=self.environment, start_new_session=True, stdin=nowhere, stdout=nowhere, stderr=nowhere
            )

    def under_a_terminal(self, command: list[str]) -> subprocess.Popen[bytes]:
        """Start a command as the leader of a session with a terminal of its own."""
        near, far = os.openpty()
        self.terminal = [near, far]
        return subprocess.Popen(
            command,
            env=self.environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(far, termios.TIOCSCTTY, 0),  # noqa: PLW1509 (one call to the kernel)
            stdin=far,
            stdout=far,
            stderr=far,
        )

    def kill(self, tool: subprocess.Popen[bytes]) -> None:
        """Attack, and close the terminal if there is one."""
        if self.attack in ("command", "leader"):
            tool.kill()
        elif self.attack == "group":
            (self.tool_group / "cgroup.kill").write_text("1")
        else:
            for pid in sorted(pid for pid, _ in of_trial(self.mark)):
                if "crosswind" in command_line(pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        for end in self.terminal:
            os.close(end)
        self.terminal = []
        tool.wait()

    def is_stopped(self) -> bool:
        """Whether anything of the trial is stopped now."""
        return is_frozen(self.target_group) or any(state in "Tt" for _, state in of_trial(self.mark))

    def left(self) -> dict[str, int]:
        """Count what must not be left."""
        found = list(of_trial(self.mark))
        return {
            "left_stopped": sum(state in "Tt" for _, state in found),
            "left_frozen": int(is_frozen(self.target_group)),
            "left_watchdogs": sum(command_line(pid).startswith("undo-watchdog") for pid, _ in found),
        }

    def clean(self) -> None:
        """End what is left of the trial."""
        with contextlib.suppress(OSError):
            (self.target_group / "cgroup.freeze").write_text("0")

        def ended() -> bool:
            found = [pid for pid, state in of_trial(self.mark) if state not in "ZX"]
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not found

        waited_for(ended, PATIENCE_S)
        if self.daemon is not None:
            self.daemon.wait()
        for group in (self.target_group, self.tool_group):
            waited_for(lambda group=group: not group.exists() or removed(group), PATIENCE_S)


def removed(group: Path) -> bool:
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()


def main(arguments: list[str]) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as a login shell starts commands, however this script was started
    kills, at_a_time, seed = (*map(int, arguments), *(TRY, AT_A_TIME, 1)[len(arguments) :])
    cases = list(itertools.product(ATTACKS, TARGETS, SHAPES))
    random.Random(seed).shuffle(cases)
    begun = time.monotonic()

    def run(number: int) -> dict[str, Any]:
        return Trial(*cases[number % len(cases)], seed=seed * 1_000_003 + number).run()

    with ThreadPoolExecutor(at_a_time) as pool:
        found = []
        for each in pool.map(run, range(kills)):
            found.append(each)
            print(len(found), each, flush=True)
    totals = {name: sum(each[name] for each in found) for name in ("left_stopped", "left_frozen", "left_watchdogs")}
    while_stopped = sum(each["was_stopped"] for each in found)
    print(f"{kills} kills, {while_stopped} while something was stopped, {time.monotonic() - begun:.0f} s: {totals}")
    if arguments:
        by_case = Counter((each["attack"], each["target"], each["shape"]) for each in found)
        print(
            record.write(
                NAME,
                [],
                kills=kills,
                while_stopped=while_stopped,
                **totals,
                of_each_case=[{"case": list(case), "kills": count} for case, count in sorted(by_case.items())],
                samples=found,
            )
        )
    if any(totals.values()):
        raise SystemExit(f"error: {totals}")


if __name__ == "__main__":
    main(sys.argv[1:])
