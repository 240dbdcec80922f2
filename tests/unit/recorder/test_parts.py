import io
import json
import struct

import pytest
import recorded

from crosswind.recorder import parts
from crosswind.recorder.parts import BLOCK, HEAD, HEAD_BYTES, Absences, Part, parts_in, write

CHUNK = 4096


def step(number):
    return struct.pack("<HHI3Q", 301, 4, 0xFFFFFFFF, 1000 + number, 0, number)


def part(directory, rank, size=2, *, chunks=((0, 3),), finalize=9000, lost=0, name=None):
    """Write a part whose chunks are (thread, steps), or (thread, steps, number)."""
    head = HEAD.pack(
        parts.MAGIC, CHUNK, rank, size, 100 + rank, 0, 1, 4, 1, 1, 0, 5, 6, 1000, finalize, lost, 77, b"node", b"boot",
        b"Open MPI v5, more", b"/app",
    )  # fmt: skip
    data = head.ljust(HEAD_BYTES, b"\0")
    for at, (thread, steps, *number) in enumerate(chunks):
        payload = b"".join(step(number) for number in range(steps))
        block = BLOCK.pack(
            b"CWTB" if steps else bytes(4), *(number or [at]), rank, thread, len(payload), 500 + thread, steps
        )
        data += (block + payload).ljust(CHUNK, b"\0")
    path = directory / (name or f"77-{rank}-{100 + rank}.part")
    path.write_bytes(data)
    return path


def merged(directory, **more):
    file = io.BytesIO()
    write(file, {"command": ["app"]}, parts_in(directory), **more)
    path = directory / "app.trace"
    path.write_bytes(file.getvalue())
    return recorded.read(path)


def test_parts_become_one_file_in_the_order_of_ranks(tmp_path):
    part(tmp_path, 1, chunks=[(0, 2), (1, 1), (0, 4), (1, 0)])
    part(tmp_path, 0)
    head, ranks, _ = merged(tmp_path)
    assert (head["ranks"], head["world_size"], head["complete"]) == ([0, 1], 2, True)
    assert [len(rank.steps) for rank in ranks.values()] == [3, 7]
    assert ranks[1].info["threads"] == [{"thread": 0, "tid": 500}, {"thread": 1, "tid": 501}]
    assert ranks[1].info["cpu_clock"] == "switches"


@pytest.mark.parametrize(("changes", "ended"), [({"finalize": 0}, False), ({"lost": 3}, True)])
def test_a_rank_that_died_or_lost_records_makes_it_incomplete(changes, ended, tmp_path):
    part(tmp_path, 0)
    part(tmp_path, 1, **changes)
    head, ranks, _ = merged(tmp_path)
    assert not head["complete"]
    assert ranks[1].ended is ended


def test_a_missing_rank_is_missing(tmp_path):
    part(tmp_path, 1)
    head, ranks, _ = merged(tmp_path)
    assert (head["ranks"], head["complete"], list(ranks)) == ([1], False, [1])


def test_a_part_without_a_head_is_left_out(tmp_path):
    part(tmp_path, 0, size=1)
    (tmp_path / "77-1-9.part").write_bytes(bytes(HEAD_BYTES))
    (tmp_path / "77-2-9.part").write_bytes(b"")
    assert [one.rank for one in parts_in(tmp_path)] == [0]


def test_a_torn_part_is_read_as_far_as_it_goes(tmp_path):
    path = part(tmp_path, 0, size=1, chunks=[(0, 2), (0, 3)])
    data = path.read_bytes()
    path.write_bytes(data[: HEAD_BYTES + CHUNK + 10])
    assert [chunk.records for chunk in Part.read(path).chunks()] == [2]


def test_the_chunk_that_is_filled_stands_first_and_is_the_last(tmp_path):
    path = part(tmp_path, 0, size=1, chunks=[(0, 1, 3), (1, 2, 2), (0, 3, 0), (0, 4, 1)])
    assert [(chunk.thread, chunk.records) for chunk in Part.read(path).chunks()] == [(0, 3), (0, 4), (1, 2), (0, 1)]


@pytest.mark.parametrize("written", [0, 40, 72, 5000])
def test_a_chunk_that_was_written_and_not_yet_emptied_counts_once(written, tmp_path):
    path = part(tmp_path, 0, size=1, chunks=[(0, 3, 1), (0, 4, 0), (0, 3, 1)])
    whole, last = path.read_bytes(), HEAD_BYTES + 2 * CHUNK
    path.write_bytes(whole[: last + written])
    assert [chunk.records for chunk in Part.read(path).chunks()] == [4, 3]
    path.write_bytes((whole[: last + written]).ljust(last + CHUNK, b"\0"))  # its place was reserved
    assert [chunk.payload for chunk in Part.read(path).chunks()] == [b"".join(map(step, range(n))) for n in (4, 3)]


def test_absences_and_their_causes_are_in_the_file(tmp_path):
    part(tmp_path, 0, size=1)
    interval = struct.pack("<QQiHHIIQ", 10, 20, 100, 0, 3, 0, 0, 0)
    causes = [{"name": "other", "pid": 7, "cgroup": "/a", "seconds": 1e-8}]
    _, ranks, found = merged(tmp_path, absences={100: Absences(interval, 4, 0.5)}, causes=causes)
    assert ranks[0].absences == [(10, 20, 100, 0, 3, 0, 0, 0)]
    assert ranks[0].info["away_short"] == {"intervals": 4, "seconds": 0.5}
    assert found == causes


def test_the_head_is_a_line_that_ends_at_a_multiple_of_eight(tmp_path):
    for length in range(9):
        file = io.BytesIO()
        part(tmp_path, 0, size=1)
        write(file, {"command": ["ä" * length]}, parts_in(tmp_path))
        line = file.getvalue().split(b"\n")[0]
        assert (len(line) + 1) % 8 == 0
        assert json.loads(line)["command"] == ["ä" * length]
