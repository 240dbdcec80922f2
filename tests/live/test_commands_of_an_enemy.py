"""Commands that do what commands must not do, names and files that are odd, and hosts without room: one run each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from farms import wait_until

pytestmark = pytest.mark.live
MAP = [sys.executable, "-m", "crosswind.cli", "map"]
MARK = f"9{os.getpid():07}"
"""A time to sleep that no other process of this host sleeps."""

# Each is a shell script that gets the output's path; what the result is to hold, or what its error is to say.
WORKS = {
    "reads-its-input": ("cat; echo read > $1", "read\n"),
    "prints-bytes-on-stderr": ("head -c 300000 /dev/urandom >&2; echo done > $1", "done\n"),
    "prints-escapes": (r"printf '\033[2J\033]0;title\007' >&2; echo done > $1", "done\n"),
    "prints-much": ("yes | head -c 3000000; echo done > $1", "done\n"),
    "closes-all": ("echo done > $1; exec 0<&- 1>&- 2>&-", "done\n"),
    "goes-elsewhere": ("cd /; echo done > $1", "done\n"),
    "removes-its-directory": ('echo done > $1; rm -rf "$(dirname $0)"', "done\n"),
    "removes-its-input": ("rm -f $0; echo done > $1", "done\n"),
    "changes-its-input": ("echo other > $0; echo done > $1", "done\n"),
    "umask": ("umask 777; echo done > $1", "done\n"),
    "no-mode": ("echo done > $1; chmod 000 $1", "done\n"),
    "a-hard-link": ("echo done > $1.other; ln $1.other $1", "done\n"),
    "an-empty-output": (": > $1", ""),
    "holes": ("truncate -s 3000000 $1", "\0" * 3_000_000),
    "a-background-process": (f"sleep {MARK} & echo done > $1", "done\n"),
    "a-daemon": (f"setsid sh -c 'sleep {MARK} & exit' >/dev/null 2>&1; echo done > $1", "done\n"),
    "a-daemon-without-an-environment": (f"setsid -f env -i sleep {MARK} >/dev/null 2>&1; echo done > $1", "done\n"),
    "a-process-group": (f"set -m; sleep {MARK} & echo done > $1", "done\n"),
    "deaf-in-the-background": (f"(trap '' TERM HUP INT; sleep {MARK}) >/dev/null & echo done > $1", "done\n"),
    "few-descriptors": ("ulimit -n 4; echo done > $1", "done\n"),
    "no-variables": ("unset PATH HOME TMPDIR; echo done > $1", "done\n"),
    "many-files-beside": ("for n in $(seq 200); do : > $(dirname $1)/f$n; done; echo done > $1", "done\n"),
    "replaced": ("echo one > $1; mv $1 $1.old; echo done > $1", "done\n"),
    "a-child-that-is-stopped": (f"sleep {MARK} & kill -STOP $!; echo done > $1", "done\n"),
}
FAILS = {
    "a-directory": ("mkdir $1", "no regular file"),
    "a-queue": ("mkfifo $1", "no regular file"),
    "a-link": ("ln -s /etc/hostname $1", "no regular file"),
    "a-link-to-nothing": ("ln -s nowhere $1", "no regular file"),
    "a-link-to-itself": ("ln -s $1 $1", "no regular file"),
    "a-device": ("mknod $1 c 1 5", "no regular file"),
    "a-socket": ("python3 -c 'import socket, sys; socket.socket(1).bind(sys.argv[1])' $1", "no regular file"),
    "no-output": (":", "left no {output}"),
    "an-exit": ("exit 7", "exit status: 7"),
    "an-exit-of-255": ("exit 255", "exit status: 255"),
    "no-program": ("exec /no/such/program", "exit status: 127"),
    "a-syntax-error": ("if", "exit status: 2"),
    "killed": ("kill -KILL $$", "exit status: 137"),
    "a-crash": ("kill -SEGV $$", "exit status: 139"),
    "terminated": ("kill -TERM $$", "exit status: 143"),
    "its-session": ("kill -KILL 0", "signal"),
}
SLOW = {
    "too-slow": f"exec sleep {MARK}",
    "stopped": "kill -STOP $$",
    "deaf": f"trap '' TERM INT HUP; sleep {MARK}; sleep {MARK}",
    "prints-for-ever": "yes > /dev/null",
    "an-endless-list": "while :; do :; done",
}


def run(*words, cwd, **options):
    command = [*options.pop("before", []), *MAP, *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, timeout=120, check=False, **options)


def sleeping():
    """Processes that sleep for the time of this module."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(b"sleep\0" + MARK.encode()):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_what_a_command_does_costs_no_other_one_its_result_and_nothing_stays(tmp_path):
    (tmp_path / "in").mkdir()
    for name, (script, _) in {**WORKS, **FAILS}.items():
        (tmp_path / "in" / name).write_text(f": {name}\n{script}\n")
    words = ["sh {input} {output}", "in/*", "-o", "out", "--grace", "0.3", "-j", "4", "--json"]
    done = run(*words, "-q", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    events = json.loads(done.stdout)["runs"][0]["events"]
    said = {name: [one["message"] for one in events if one["message"].startswith(f"in/{name}: ")] for name in FAILS}
    for name, (_, expected) in WORKS.items():
        assert [one["message"] for one in events if one["message"].startswith(f"in/{name}: ")] == []
        assert (tmp_path / "out" / name).read_text() == expected, name
    for name, (_, expected) in FAILS.items():
        assert len(said[name]) == 1, (name, said[name])
        assert expected in said[name][0], name
        assert not (tmp_path / "out" / name).exists(), name
    wait_until(lambda: not sleeping(), "the end of what commands left")
    assert b"\033" not in done.stderr


def test_a_command_over_its_time_ends_whatever_it_does(tmp_path):
    (tmp_path / "in").mkdir()
    for name, script in SLOW.items():
        (tmp_path / "in" / name).write_text(f": {name}\n{script}\n")
    words = ["sh {input} {output}", "in/*", "-o", "out", "--task-timeout", "1", "--grace", "0.3", "-j", "5"]
    done = run(*words, "--json", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    events = json.loads(done.stdout)["runs"][0]["events"]
    assert len(events) == len(SLOW)
    assert all("over its time of 1 s (--task-timeout)" in event["message"] for event in events)
    wait_until(lambda: not sleeping(), "the end of what commands left")
