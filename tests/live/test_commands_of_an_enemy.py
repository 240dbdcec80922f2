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
    "few-descriptors": ("ulimit -n 12; echo done > $1", "done\n"),
    "no-variables": ("unset PATH HOME TMPDIR; echo done > $1", "done\n"),
    "many-files-beside": ("for n in $(seq 200); do : > $(dirname $1)/f$n; done; echo done > $1", "done\n"),
    "replaced": ("echo one > $1; mv $1 $1.old; echo done > $1", "done\n"),
    "a-child-that-is-stopped": (f"sleep {MARK} & kill -STOP $!; echo done > $1", "done\n"),
}
FAILS = {
    "a-directory": ("mkdir $1", "not a regular file"),
    "a-queue": ("mkfifo $1", "not a regular file"),
    "a-link": ("ln -s /etc/hostname $1", "not a regular file"),
    "a-link-to-nothing": ("ln -s nowhere $1", "not a regular file"),
    "a-link-to-itself": ("ln -s $1 $1", "not a regular file"),
    "a-device": ("mknod $1 c 1 5", "not a regular file"),
    "a-socket": ("python3 -c 'import socket, sys; socket.socket(1).bind(sys.argv[1])' $1", "not a regular file"),
    "no-output": (":", "left no {output}"),
    "an-exit": ("exit 7", "exit status: 7"),
    "an-exit-of-255": ("exit 255", "exit status: 255"),
    "no-program": ("exec /no/such/program", "exit status: 127"),
    "a-syntax-error": ("if", "exit status: 2"),
    "killed": ("kill -KILL $$", "signal: 9"),
    "a-crash": ("kill -SEGV $$", "signal: 11"),
    "terminated": ("kill -TERM $$", "signal: 15"),
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


NAMES = [
    *(bytes([byte]) for byte in range(1, 256) if byte not in b"/."),
    *(b"a" + bytes([byte]) for byte in range(1, 33)),
    *(bytes([byte]) + b"a" for byte in range(1, 33)),
    *(b"--help", b"-o", b"--", b"-", b"...", b".hidden", b"~root", b"a.tar.gz", b"a.", b"{}", b"{input}", b"{output}"),
    *(
        b"{.}",
        b"%s%n",
        b"$(touch x)",
        b"`touch x`",
        b"${HOME}",
        b"a;touch x",
        b"a|touch x",
        b"a&touch x",
        b"a>x",
        b"!!",
    ),
    *(b"'\"'\"", b"\\n", b"a\\", b"*", b"?", b"[a-z]", b"\xff\xfe", b"caf\xe9", "\u202etxt".encode(), "😀".encode()),
    *(b"x" * 255, b"\xf0\x9f\x98\x80" * 63, b"a\nb\nc", b"a ", b" a", b"con", b"#comment", b"=cmd", b"@file"),
]


def test_every_byte_that_a_name_may_hold_comes_back_in_the_name_of_the_result(tmp_path):
    (tmp_path / "in").mkdir()
    for name in NAMES:
        (tmp_path / "in" / os.fsdecode(name)).write_bytes(name)
    for number, command in enumerate(["cp {input} {output}", 'printf %s "{name}"']):
        names = b"\0".join(b"in/" + name for name in NAMES)
        done = run(command, "--inputs", "-", "-o", f"out{number}", cwd=tmp_path, input=names)
        assert done.returncode == 0, done.stderr
        made = {os.fsencode(path.name): path.read_bytes() for path in (tmp_path / f"out{number}").iterdir()}
        made = {name: data for name, data in made.items() if not name.startswith(b".crosswind")}
        assert made == {name: name for name in NAMES}
    assert not (tmp_path / "x").exists()


def test_names_after_the_command_may_hold_any_byte(tmp_path):
    (tmp_path / "in").mkdir()
    paths = [b"in/" + name for name in NAMES]
    for path in paths:
        (tmp_path / os.fsdecode(path)).write_bytes(path)
    done = run("cp {input} {output}", *map(os.fsdecode, paths), "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = {os.fsencode(path.name): path.read_bytes() for path in (tmp_path / "out").iterdir() if path.name[0] != "."}
    assert {b"in/" + name: data for name, data in made.items()} == {path: path for path in paths if path[3:4] != b"."}


def test_a_command_that_is_not_utf_8_is_refused(tmp_path):
    (tmp_path / "a").touch()
    done = run(os.fsdecode(b"echo \xe9 {}"), "a", cwd=tmp_path)
    assert (done.returncode, b"is not UTF-8" in done.stderr, b"Traceback" in done.stderr) == (2, True, False)


LIMITED = {
    "no stdin": ("exec <&-", 0, ""),
    "no stdout": ("exec >&-", 141, ""),
    "no stderr": ("exec 2>&-", 0, ""),
    "a full stdout": ("exec > /dev/full", 1, "standard output: no space left"),
    "a full stderr": ("exec 2> /dev/full", 0, ""),
    "no environment": ("unset HOME PATH TMPDIR LANG", 0, ""),
    "no language": ("export LC_ALL=C LANG=C", 0, ""),
    "no permissions": ("umask 777", 0, ""),
    "no TMPDIR": ("export TMPDIR=/nonexistent", 0, ""),
    "a file as TMPDIR": ("export TMPDIR=/etc/hostname", 0, ""),
    "a removed directory": ('mkdir gone; cd gone; rmdir ../gone; set -- "$@" --force', 1, "does not exist any more"),
    "five descriptors": ("ulimit -n 5", 1, "ulimit -n"),
    "ten descriptors": ("ulimit -n 10", 1, "ulimit -n"),
    "fifteen descriptors": ("ulimit -n 15", 1, "ulimit -n"),
    "no files": ("ulimit -f 0", 1, "ulimit -f"),
    "a small stack": ("ulimit -s 256", 0, ""),
}


@pytest.mark.parametrize("limit", LIMITED)
def test_a_process_that_lacks_something_says_so_and_leaves_nothing(tmp_path, limit):
    before, status, says = LIMITED[limit]
    (tmp_path / "in").mkdir()
    (tmp_path / "temporary").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}").write_text(f"{number}")
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary"), "PYTHONDONTWRITEBYTECODE": "1"}
    words = ["/bin/sh", "-c", f'{before}; exec "$@"', "sh"]
    done = run("cat {}", *map(str, sorted((tmp_path / "in").iterdir())), cwd=tmp_path, before=words, env=environment)
    assert done.returncode == status, done.stderr
    assert says in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert b"fault of Crosswind" not in done.stderr
    assert not list((tmp_path / "temporary").iterdir())
    if not status:
        assert [(tmp_path / "results" / f"{number}").read_text() for number in range(3)] == ["0", "1", "2"]
