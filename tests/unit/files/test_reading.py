"""Files from outside are read in bounded memory, and what is wrong with them is said."""

import contextlib
import os
import subprocess
import sys
import threading

import command_line
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crosswind import DescriptionError
from crosswind.files import reading
from crosswind.files.reading import json_of, parse_json, read_bytes, read_parquet

COMMAND = [sys.executable, "-m", "crosswind.cli"]
PEAK = (
    "import re, sys; from crosswind.cli import main\n"
    "try:\n    main()\n"
    "finally:\n    sys.stderr.write('\\npeak ' + re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
)
"""Of this program's own memory: `ru_maxrss` counts that of the tests, from which it was started."""
ROOT = 'schema_version = 1\nname = "t"\n[[node]]\nname = "r"\ncompute_per_s = 1\n'


def test_a_file_is_read_up_to_the_limit_and_refused_beyond_it(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"x" * 1000)
    assert read_bytes(file, 1000) == b"x" * 1000
    with pytest.raises(DescriptionError, match=r"the file is 1000 bytes; at most 999 bytes are read"):
        read_bytes(file, 999)


def test_what_does_not_say_its_size_is_counted_while_it_is_read(monkeypatch):
    assert read_bytes("/proc/self/status").startswith(b"Name:")
    monkeypatch.setattr(reading, "LARGEST_STREAM_BYTES", 1_000_000)
    with pytest.raises(DescriptionError, match=r"/dev/zero: it has more than 1 MB; at most 1 MB are read"):
        read_bytes("/dev/zero")
    with pytest.raises(DescriptionError, match="is a directory"):
        read_bytes("/")


def test_a_fifo_is_read_to_its_end_or_to_the_limit(tmp_path, monkeypatch):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def write(count):
        with contextlib.suppress(BrokenPipeError):  # the reader has had enough
            fifo.write_bytes(b"y" * count)

    for count in (300_000, 3_000_000):
        writer = threading.Thread(target=write, args=(count,))
        writer.start()
        monkeypatch.setattr(reading, "LARGEST_STREAM_BYTES", 1_000_000)
        if count < 1_000_000:
            assert len(read_bytes(fifo)) == count
        else:
            with pytest.raises(DescriptionError, match="at most 1 MB"):
                read_bytes(fifo)
        writer.join()


def test_a_fifo_that_no_process_writes_to_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "FIFO_S", 0.05)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(DescriptionError, match=r"fifo: a FIFO that got no content within 0\.05 s"):
        read_bytes(fifo)
    held = os.open(fifo, os.O_RDWR)  # a writer that writes nothing
    try:
        with pytest.raises(DescriptionError, match="got no content"):
            read_bytes(fifo)
    finally:
        os.close(held)


def test_a_fifo_that_is_written_byte_by_byte_is_given_up(tmp_path, monkeypatch):
    clock, read = [0.0], []
    monkeypatch.setattr(reading, "FIFO_S", 5.0)
    monkeypatch.setattr(reading.time, "monotonic", lambda: clock[0])
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    held = os.open(fifo, os.O_RDWR)

    def drip(descriptor, count):
        clock[0] += 1.0
        read.append(b"x")
        return b"x" if len(read) < 100 else b""

    monkeypatch.setattr(reading.os, "read", drip)
    try:
        with pytest.raises(DescriptionError, match="a FIFO that was not closed by its writer within 5 s"):
            read_bytes(fifo)
    finally:
        os.close(held)
    assert len(read) == 6


def test_a_pipe_of_the_shell_is_waited_for(monkeypatch):
    monkeypatch.setattr(reading, "FIFO_S", 0.05)
    read, write = os.pipe()
    writer = threading.Timer(0.2, lambda: (os.write(write, b"late"), os.close(write)))
    writer.start()
    assert read_bytes(f"/dev/fd/{read}") == b"late"
    os.close(read)


def test_links_are_followed_only_where_they_may_be(tmp_path, monkeypatch):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"x")
    link.symlink_to(file)
    assert read_bytes(link) == read_bytes(link, links="own") == read_bytes(file, links="none") == b"x"
    with pytest.raises(DescriptionError, match="a symbolic link, which is not followed here"):
        read_bytes(link, links="none")
    with pytest.raises(DescriptionError, match="not a regular file"):
        read_bytes("/dev/zero", links="none")
    about = list(link.lstat())
    about[4] = 12345  # st_uid
    monkeypatch.setattr(reading.Path, "lstat", lambda path: os.stat_result(about))
    with pytest.raises(DescriptionError, match="a symbolic link of another user"):
        read_bytes(link, links="own")


def test_a_file_that_grows_while_it_is_read_is_limited_too(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes(b"x" * 10)
    told = os.stat_result((0o100644, 0, 0, 1, 0, 0, 4, 0, 0, 0))
    monkeypatch.setattr(reading.os, "fstat", lambda _: told)
    assert read_bytes(file, 10) == b"x" * 10
    with pytest.raises(DescriptionError, match="more than 9 bytes"):
        read_bytes(file, 9)


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "FILE", "--task-size-mb", "1", "--task-work", "1"],
        ["run", "FILE"],
        ["blame", "FILE"],
        ["report", "FILE.toml"],
        ["report", "FILE.json"],
        ["fit", "contention", "FILE"],
        ["inject", "FILE", "--", "true"],
        ["map", "true {input}", "--inputs", "input", "--platform", "FILE"],
        ["serve", "--hosts", "FILE", "--name", "a"],
    ],
    ids=" ".join,
)
def test_no_verb_takes_more_than_the_limit_of_an_endless_file(tmp_path, words):
    for name in ("FILE", "FILE.json", "FILE.toml"):
        (tmp_path / name).symlink_to("/dev/zero")
    (tmp_path / "input").touch()
    asked = [sys.executable, "-c", PEAK, *words]
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    said, peak = done.stderr.rsplit("\npeak ", 1)
    assert "it has more than 64 MB; at most 64 MB are read" in said
    assert int(peak) < 700_000, "KiB"


def test_a_device_is_no_table(tmp_path):
    (tmp_path / "zero.parquet").symlink_to("/dev/zero")
    for verb in ("fit", "report"):
        done = command_line.crosswind(verb, "zero.parquet", cwd=tmp_path, env=dict(os.environ))
        assert (done.returncode, "is not a Parquet file" in done.stderr) == (2, True), done.stderr


DEEP = b"[" * 200_000 + b"]" * 200_000


def test_json_that_is_nested_too_deeply_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(DEEP)
    (tmp_path / "deep.json").write_bytes(DEEP)
    with pytest.raises(DescriptionError, match=r"deep.json: is not JSON: its lists and objects are nested too deeply"):
        json_of(tmp_path / "deep.json", "no-study")


def test_json_that_is_nested_too_deeply_is_an_error_of_every_verb(tmp_path):
    for name in ("deep.json", "objects.json"):
        text = DEEP if name == "deep.json" else b'{"a":' * 200_000 + b"1" + b"}" * 200_000
        (tmp_path / name).write_bytes(text)
        for words in (["report", name], ["plan", name], ["run", name], ["blame", name], ["fit", "contention", name]):
            done = subprocess.run([*COMMAND, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stdout) == (2, ""), (words, done.stderr)
            assert done.stderr.startswith("error: "), (words, done.stderr)
            assert "Traceback" not in done.stderr
    (tmp_path / "sweep.json").write_bytes(DEEP)
    done = subprocess.run([*COMMAND, "report", "."], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "nested too deeply" in done.stderr) == (2, True), done.stderr


def test_json_of_too_many_values_is_refused_before_it_is_parsed(monkeypatch):
    monkeypatch.setattr(reading, "LARGEST_VALUES", 100)
    assert parse_json(b"[" + b"0," * 98 + b"0]") == [0] * 99
    with pytest.raises(ValueError, match="more than"):
        parse_json(b"[" + b"0," * 200 + b"0]")


def test_a_table_of_too_many_equal_values_is_refused_by_its_head(tmp_path, monkeypatch):
    file = tmp_path / "table.parquet"
    pq.write_table(pa.table({"a": pa.array([0.0] * 100_000)}), file)
    assert file.stat().st_size < 2_000
    assert read_parquet(file).num_rows == 100_000
    monkeypatch.setattr(reading, "LARGEST_CELLS", 99_999)
    with pytest.raises(DescriptionError, match="100000 rows of 1 columns"):
        read_parquet(file)


def test_a_description_may_come_through_a_pipe(tmp_path):
    (tmp_path / "platform.toml").write_text(ROOT)
    words = f"{sys.executable} -m crosswind.cli plan <(cat platform.toml) --task-size-mb 1 --task-work 1 --json"
    done = subprocess.run(["bash", "-c", words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
