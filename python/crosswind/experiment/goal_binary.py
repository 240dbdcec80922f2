"""The binary form of GOAL schedules, as LogGOPSim's `txt2bin` writes it, back to text.

A file is a cookie, the number of ranks, the highest processor and interface, then start and end of each rank. Offsets
count from the end of the cookie. A rank is the number of its operations, those that wait for nothing, its operations
(39 bytes each), and the operations that follow each of them. All numbers are little-endian.
"""

from __future__ import annotations

import struct

from crosswind.errors import DescriptionError

COOKIE = struct.pack("<Q", 4223)
"""The first bytes of a file."""

_HEAD = struct.Struct("<IBB")
_OPERATION = struct.Struct("<IBIQIBBIIII")
_ANY = 2**32 - 1
_SEND, _RECEIVE, _CALC = 1, 2, 3


def is_binary_goal(content: bytes) -> bool:
    """Return whether a file's content, or its first eight bytes, is of a binary schedule."""
    return content.startswith(COOKIE)


def goal_text(content: bytes, name: str) -> str:
    """Return a binary schedule as text.

    Parameters
    ----------
    content : bytes
        The whole file.
    name : str
        What messages call it.

    Raises
    ------
    DescriptionError
        When it is cut off, or is no binary schedule of `txt2bin`.
    """
    body = memoryview(content)[len(COOKIE) :]
    lines: list[str] = []
    rank = 0
    try:
        ranks, _, _ = _HEAD.unpack_from(body)
        if ranks * 16 > len(body):
            raise struct.error
        lines.append(f"num_ranks {ranks}")
        for rank in range(ranks):
            start, end = struct.unpack_from("<QQ", body, _HEAD.size + 16 * rank)
            lines += [f"rank {rank} {{", *_rank(body[start:end]), "}"]
    except (struct.error, KeyError):
        hint = "make it again with LogGOPSim's txt2bin, or name the text that it was made from"
        raise DescriptionError(f"{name} is a binary GOAL schedule, damaged in rank {rank}", "file", hint) from None
    return "\n".join(lines) + "\n"


def _rank(part: memoryview) -> list[str]:
    count, roots = struct.unpack_from("<II", part)
    place = 8 + 4 * roots
    appendix = place + _OPERATION.size * count
    lines, after = [], []
    if appendix > len(part):
        raise struct.error
    for number in range(count):
        _, kind, peer, size, tag, cpu, nic, over, over_at, begun, begun_at = _OPERATION.unpack_from(
            part, place + _OPERATION.size * number
        )
        lines.append(f"l{number}: {_words(kind, size, peer, tag)} cpu {cpu}{'' if kind == _CALC else f' nic {nic}'}")
        for word, followers, at in (("requires", over, over_at), ("irequires", begun, begun_at)):
            if followers:
                found = struct.unpack_from(f"<{followers}I", part, appendix + 4 * at)
                after += [f"l{follower} {word} l{number}" for follower in found]
    return lines + after


def _words(kind: int, size: int, peer: int, tag: int) -> str:
    source, mark = (-1 if value == _ANY else value for value in (peer, tag))
    return {
        _SEND: f"send {size}b to {peer} tag {tag}",
        _RECEIVE: f"recv {size}b from {source} tag {mark}",
        _CALC: f"calc {size}",
    }[kind]
