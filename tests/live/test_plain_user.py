"""A user without any privilege: farms, ranks, measurements and injection work; what needs more says what."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from disturbed import HALF

ROOT = Path(__file__).parents[2]
NOBODY = 65534
# The path to Python and this package is closed to the user `nobody` where a home directory is: they are bind-mounted
# there.
PLAIN = """
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 shown /mnt
count=0
while [ "$1" != -- ]; do
  count=$((count + 1)); mkdir /mnt/$count; mount --bind "$1" /mnt/$count; eval "shown$count=\\$1"; shift
done
shift
for at in $(seq $count); do
  eval "place=\\$shown$at"
  top=/$(echo "$place" | cut -d/ -f2)
  case " $done " in *" $top "*) ;; *) mount -t tmpfs -o mode=755 shown "$top"; done="$done $top" ;; esac
  mkdir -p "$place"; mount --bind /mnt/$at "$place"
done
cd "$TMPDIR"
exec setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
"""
CROSSWIND = [sys.executable, "-m", "crosswind.cli"]
FARM = """
schema_version = 1
name = "farm"
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
[workload]
kind = "farm"
tasks = 40
task_size_mb = 0.1
task_work = 1
"""
PROGRAM = """
schema_version = 1
name = "program"
[disturbance]
schema_version = 1
name = "daemons"
[[disturbance.source]]
kind = "daemon"
interval_s = 0.1
duration_s = 0.01
[workload]
kind = "program"
program = "em3d"
ranks = 2
[workload.parameters]
steps = 5
"""
MAP = """
import crosswind
def twice(x):
    return 2 * x
if __name__ == "__main__":
    print(list(crosswind.map(twice, range(5))))
"""

CLOSED = """
import ctypes
import crosswind
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # as after setuid: other processes of this user may not look into this one
held = b"x" * 3_000_000
def close(at):
    if at == 2:
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    return held[at:]
with crosswind.Farm(max_workers=1) as farm:
    print([len(farm.submit(close, at).result()) for at in range(4)])
print([len(value) for value in crosswind.map(close, range(4), max_workers=1)])
"""


def closed(path):
    """Whether another user cannot come to a path."""
    return not all(place.stat().st_mode & stat.S_IXOTH for place in (path, *path.parents))


def as_nobody(place, *command):
    shown = [str(path) for path in map(Path, dict.fromkeys((sys.base_prefix, sys.prefix, str(ROOT)))) if closed(path)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(place), "TMPDIR": str(place)}
    environment |= {"PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    words = ["unshare", "--mount", "sh", "-c", PLAIN, "sh", *shown, "--", *command]
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)


def may_not(place="/tmp"):
    try:
        return as_nobody(place, sys.executable, "-c", "import crosswind").returncode != 0
    except OSError:
        return True


pytestmark = [pytest.mark.live, pytest.mark.skipif(may_not(), reason="no other user can be put on here")]


@pytest.fixture
def place():
    made = Path("/tmp") / f"crosswind-plain-{os.getpid()}"
    made.mkdir()
    texts = {"farm.toml": FARM, "program.toml": PROGRAM, "half.toml": HALF, "map.py": MAP, "closed.py": CLOSED}
    for name, text in texts.items():
        (made / name).write_text(text)
    os.chown(made, NOBODY, NOBODY)
    yield made
    subprocess.run(["rm", "-rf", str(made)], check=True)


WORKS = {
    "farm": ["run", "farm.toml", "--on", "local"],
    "command": ["map", "cat {input}", "--inputs", "farm.toml", "-o", "results"],
    "ranks": ["run", "program.toml", "--on", "local"],
    "measure": ["measure", "--matrix", "64", "--max-seconds", "4"],
    "record": ["record", "--seconds", "0.2"],
    "inject": ["inject", "half.toml", "--", "sleep", "0.2"],
}
REFUSED = {
    "nice": (["measure", "--nice", "-5", "--max-seconds", "2"], "nice level"),
    "trace": (["record", "--how", "trace"], "--how loop"),
    "freeze": (["inject", "half.toml", "--how", "freeze", "--", "true"], "--how stop"),
}


@pytest.mark.parametrize("verb", WORKS)
def test_it_works_and_leaves_no_temporary_files(place, verb):
    done = as_nobody(place, *CROSSWIND, *WORKS[verb])
    assert done.returncode in (0, 3), done.stderr  # 3: a crowded host
    assert "Traceback" not in done.stderr
    assert list(place.glob("crosswind-*")) == []


def test_a_function_is_mapped(place):
    done = as_nobody(place, sys.executable, "map.py")
    assert (done.returncode, done.stdout) == (0, "[0, 2, 4, 6, 8]\n"), done.stderr
    assert list(place.glob("crosswind-*")) == []


def test_large_values_of_processes_that_may_not_be_looked_into_are_sent(place):
    done = as_nobody(place, sys.executable, "closed.py")
    assert done.stdout == "[3000000, 2999999, 2999998, 2999997]\n" * 2, done.stderr


@pytest.mark.parametrize("what", REFUSED)
def test_what_needs_a_privilege_says_so_and_what_needs_none(place, what):
    words, hint = REFUSED[what]
    done = as_nobody(place, *CROSSWIND, *words)
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("error: ")
    assert hint in done.stderr.partition("hint: ")[2]
