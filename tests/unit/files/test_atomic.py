"""How results get into files: whole or not at all, on full disks, under signals, past links, devices and FIFOs."""

from __future__ import annotations

import ast
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import reported

from crosswind import CrosswindError, DescriptionError
from crosswind.files.atomic import replaced, write_text
from crosswind.files.output import distinct, writable, writable_directory

PACKAGE = Path(__file__).parents[3] / "python" / "crosswind"
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def nobody() -> Iterator[None]:
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def only(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_new_file_has_the_usual_mode_and_an_old_one_keeps_its_own(tmp_path):
    file = tmp_path / "a"
    with umask(0o027):
        write_text("1", file)
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
        file.chmod(0o604)
        write_text("2", file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o604
    assert (file.read_text(), only(tmp_path)) == ("2", ["a"])


@as_root
def test_a_file_of_another_user_stays_that_users(tmp_path):
    file = tmp_path / "a"
    file.write_text("1")
    os.chown(file, NOBODY, NOBODY)
    write_text("2", file)
    assert (file.stat().st_uid, file.stat().st_gid) == (NOBODY, NOBODY)


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    file = tmp_path / "a"
    file.write_text("old")
    with pytest.raises(ZeroDivisionError), replaced(file) as new:  # noqa: PT012
        new.write(b"new")
        new.write(b"newer" * (1 // 0))
    assert (file.read_text(), only(tmp_path)) == ("old", ["a"])


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    target, link, second = tmp_path / "there" / "a", tmp_path / "link", tmp_path / "second"
    target.write_text("old")
    link.symlink_to("there/a")
    second.symlink_to("link")
    write_text("new", second)
    assert [path.is_symlink() for path in (second, link, target)] == [True, True, False]
    assert target.read_text() == "new"
    assert (only(tmp_path), only(tmp_path / "there")) == (["link", "second", "there"], ["a"])


def socket_at(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


NO_FILES = {
    "a directory": lambda path: path.mkdir(),
    "a FIFO": os.mkfifo,
    "a socket": socket_at,
    "a symbolic link to 'nowhere', which does not exist": lambda path: path.symlink_to("nowhere"),
    "a symbolic link to '/dev/null', a device": lambda path: path.symlink_to("/dev/null"),
    "a path that cannot be used: too many levels of symbolic links": lambda path: path.symlink_to(path),
}


@pytest.mark.parametrize("what", NO_FILES)
def test_what_is_no_file_is_refused_and_stays(tmp_path, what):
    path = tmp_path / "x"
    NO_FILES[what](path)
    before = path.lstat()
    for refused in (lambda: write_text("new", path), lambda: writable(path, "plan", force=True)):
        with pytest.raises(DescriptionError, match=what):
            refused()
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert only(tmp_path) == ["x"]


def test_devices_and_missing_directories_are_refused(tmp_path):
    before = Path("/dev/null").stat()
    with pytest.raises(DescriptionError, match="is a device") as error:
        reported.planned().save("/dev/null")
    assert "`-` is standard output" in (error.value.hint or "")
    assert os.path.samestat(before, Path("/dev/null").stat())
    with pytest.raises(DescriptionError, match="in a directory that does not exist"):
        reported.planned().save(tmp_path / "no" / "plan.json")


def test_what_others_put_at_the_name_of_the_new_file_is_neither_followed_nor_removed(tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.write_text("theirs")
    monkeypatch.setattr(os, "urandom", lambda count: b"guessed.")
    guessed = f".crosswind-{b'guessed.'.hex()}.part"
    (tmp_path / guessed).symlink_to(other)
    with pytest.raises(CrosswindError, match="file exists"):
        write_text("text", tmp_path / "a")
    assert other.read_text() == "theirs"
    assert only(tmp_path) == [guessed, "other"]


@as_root
def test_a_plain_user_is_refused_where_it_may_not_write():
    reported.planned()  # imported while it may be
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        directory.chmod(0o755)
        (directory / "old").write_text("1")
        (directory / "open").mkdir(mode=0o777)
        (directory / "open").chmod(0o1777)
        (directory / "open" / "roots").write_text("1")
        (directory / "open" / "roots").chmod(0o666)
        with nobody():
            for path in (directory / "new", directory / "old"):
                with pytest.raises(DescriptionError, match="in a directory that cannot be written to"):
                    writable(path, "plan")
            with pytest.raises(DescriptionError, match="a file that cannot be written to"):
                writable(directory / "open" / "roots", "plan")  # as in /tmp: no file of another user may be replaced
            with pytest.raises(DescriptionError, match="a directory that cannot be written to"):
                writable_directory(directory / "new" / "deeper")
            writable(directory / "open" / "mine", "plan")
            writable_directory(directory / "open" / "mine" / "deeper")


@as_root
def test_a_link_that_another_user_put_into_a_shared_directory_is_not_followed(tmp_path):
    shared, kept = tmp_path / "shared", tmp_path / "text"
    shared.mkdir()
    shared.chmod(0o1777)
    kept.write_text("text")
    (shared / "a").symlink_to(kept)
    os.chown(shared / "a", NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(DescriptionError, match="of another user, in a directory that all may write to"):
        write_text("new", shared / "a")
    assert kept.read_text() == "text"


def test_a_directory_for_results_is_refused_before_it_is_made(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(DescriptionError, match="no directory"):
            writable_directory(path)
    with pytest.raises(DescriptionError, match="standard output"):
        writable_directory("-")
    writable_directory(tmp_path / "a" / "b")
    assert only(tmp_path) == ["file"]


WRITES = """
import signal, sys
from crosswind.files.atomic import replaced, write_text
if sys.argv[2] == "large":
    from crosswind import CrosswindError
    try:
        write_text("x" * 1_000_000, sys.argv[1])
    except CrosswindError as error:
        sys.exit(f"{error.exit_code} {error.code}: {error}")
    sys.exit()
with replaced(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    signal.pause()
"""


def test_a_limit_on_the_size_of_files_leaves_the_old_one(tmp_path):
    file = tmp_path / "a"
    file.write_text("old")
    done = subprocess.run(
        [sys.executable, "-c", WRITES, file, "large"],
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)),
    )
    assert (done.returncode, done.stderr) == (1, f"1 write-failed: {file} cannot be written: file too large\n")
    assert (file.read_text(), only(tmp_path)) == ("old", ["a"])


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_disk_that_fills_up_leaves_the_old_file_and_says_so(small_disk):
    file = small_disk / "a"
    file.write_text("old")
    for large in (reported.ran(works=tuple(range(1, 400))), reported.measured(), reported.traced(150_000)):
        with pytest.raises(CrosswindError) as error:
            large.save(file)
        assert (error.value.code, error.value.exit_code) == ("no-space", 1)
        assert str(error.value) == f"no space left on {small_disk}"
        assert "a is as it was" in (error.value.hint or "")
        assert (file.read_text(), only(small_disk)) == ("old", ["a"])


def test_a_disk_that_is_full_is_noticed_before_the_work(small_disk):
    (small_disk / "other").write_bytes(bytes(64 << 10))
    with pytest.raises(CrosswindError, match=f"no space left on {small_disk}"):
        writable(small_disk / "new", "measurement")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_during_a_write_leaves_the_old_file_and_nothing_else(tmp_path, name):
    number = signal.Signals[name]
    file = tmp_path / "a"
    file.write_text("old")
    writing = subprocess.Popen(
        [sys.executable, "-c", WRITES, file, "half"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert writing.stdout is not None
    assert writing.stdout.readline() == "writing\n"
    assert len(only(tmp_path)) == 2
    writing.send_signal(number)
    assert writing.wait(timeout=60) == -number
    writing.stdout.close()
    assert (file.read_text(), only(tmp_path)) == ("old", ["a"])


def test_a_file_of_another_kind_is_replaced_only_when_forced(tmp_path):
    file = tmp_path / "x"
    reported.platform().save(file)
    with pytest.raises(DescriptionError, match="is a platform; a plan would take its place") as error:
        writable(file, "plan")
    assert error.value.code == "other-kind"
    writable(file, "plan", force=True)
    writable(file, "platform")
    file.write_text("")
    writable(file, "plan")  # as `mktemp` makes them
    file.write_text("my notes")
    with pytest.raises(DescriptionError, match="a file of another kind"):
        writable(file, "plan")


def test_an_input_is_refused_by_whatever_name_and_even_when_forced(tmp_path):
    file = tmp_path / "x"
    reported.planned().save(file)
    (tmp_path / "soft").symlink_to("x")
    (tmp_path / "hard").hardlink_to(file)
    for path in (file, tmp_path / "soft", tmp_path / "hard", tmp_path / ".." / tmp_path.name / "x"):
        with pytest.raises(DescriptionError, match="an input of the same command"):
            writable(path, "plan", inputs=[None, "no/such", file], force=True)
    with pytest.raises(DescriptionError, match="an input of the same command"):
        writable(file, "plan", inputs=[tmp_path], force=True)
    writable(tmp_path / "new", "plan", inputs=[file])


def test_two_results_in_one_file_are_refused(tmp_path):
    (tmp_path / "link").symlink_to("a")
    distinct({"--out": tmp_path / "a", "--trace": None, "--perfetto": tmp_path / "b"})
    with pytest.raises(DescriptionError, match="--out and --perfetto are both"):
        distinct({"--out": tmp_path / "a", "--trace": None, "--perfetto": tmp_path / "link"})
    with pytest.raises(DescriptionError, match="are both '-'"):
        distinct({"--out": Path("-"), "--trace": Path("-")})


# What is no result: configuration and logs of processes, what tasks of a farm return, and descriptors of pipes.
ELSEWHERE = {"run/agent.py", "run/command.py", "run/dask.py", "run/mapping.py", "run/ranks.py", "run/rank_processes.py"}
ELSEWHERE |= {"run/processes.py", "run/worker_agents.py", "run/spool.py", "files/atomic.py"}
# Files of the kernel, a job's counter, and the filter's state, which no result replaces.
ELSEWHERE |= {"cost/job.py", "filter/kernel/traffic.py", "filter/kernel/state.py"}
# Source for the compiler, scripts for a recorded command, and steps as they come.
ELSEWHERE |= {"recorder/build.py", "recorder/program.py", "recorder/steps.py"}
WRITERS = {"write_text", "write_bytes", "NamedTemporaryFile", "mkstemp"}


def test_one_module_writes_every_result():
    found = []
    for path in PACKAGE.rglob("*.py"):
        name = str(path.relative_to(PACKAGE))
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        for call in calls:
            if isinstance(call.func, ast.Attribute) and name not in ELSEWHERE:
                words = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
                opened = call.func.attr == "open" and any(word[:1] in ("w", "x", "a") for word in words)
                if opened or call.func.attr in WRITERS:
                    found.append(f"{name}:{call.lineno}")
    assert found == []
