"""Which packets belong to a class: `8001`, `dscp:34`, `mark:7`, `cgroup:PATH`.

A port is the sender's or the receiver's, of TCP and UDP. Packets that carry no ports (later fragments, options in the
IPv4 header) match none. `u32 match mark` is not used: a kernel without CONFIG_CLS_U32_MARK takes it and ignores it, so
that every packet matches; a mark is read by classic BPF.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from crosswind.errors import DescriptionError

Kind = Literal["port", "dscp", "mark", "cgroup"]

MOST_PORTS = 32
"""Each takes eight filters, which every packet may pass."""
_LARGEST = {"port": 65535, "dscp": 63, "mark": 2**32 - 1}
_NAMED_DSCP = {"ef": 46, "va": 44} | {f"cs{n}": 8 * n for n in range(8)}
_NAMED_DSCP |= {f"af{n}{drop}": 8 * n + 2 * drop for n in range(1, 5) for drop in range(1, 4)}
MOUNTS = Path("/proc/self/mounts")


@dataclass(frozen=True)
class Selector:
    """One property of packets that puts them into a class.

    Parameters
    ----------
    kind : str
        "port", "dscp", "mark" (of the socket or the firewall) or "cgroup" (version 2).
    value : int
        The port (1 to 65535), the code point (0 to 63), the mark, or the control group's id.
    text : str
        As it was given.
    level : int
        Of a control group: how deep it lies below the root, at least 1.
    path : str
        Of a control group: its directory.
    """

    kind: Kind
    value: int
    text: str
    level: int = 0
    path: str = ""


def parse(texts: Sequence[str], option: str) -> list[Selector]:
    """Return what an option's values name; each may name several, with commas between them.

    Raises
    ------
    DescriptionError
        When a value is none of the forms or out of range, or there are more than 32 ports.

    Examples
    --------
    >>> [(one.kind, one.value) for one in parse(["8001,dscp:af41"], "--parallel")]
    [('port', 8001), ('dscp', 34)]
    """
    found = [_one(part.strip(), option) for text in texts for part in text.split(",")]
    if (ports := sum(one.kind == "port" for one in found)) > MOST_PORTS:
        hint = "mark the traffic instead: dscp:N, mark:N or cgroup:PATH"
        raise DescriptionError(f"{option} names {ports} ports; at most {MOST_PORTS} are allowed", "argument", hint)
    return found


def _one(text: str, option: str) -> Selector:
    kind, sign, value = text.partition(":")
    if not sign:
        kind, value = "port", text
    if kind == "cgroup":
        return _cgroup(value, text, option)
    if kind not in _LARGEST:
        hint = f"such as {option} 8001, {option} dscp:af41, {option} mark:7 or {option} cgroup:/jobs"
        raise DescriptionError(
            f"{option} is {text!r}; with --in-kernel it must be PORT, dscp:N, mark:N or cgroup:PATH", "argument", hint
        )
    least = 1 if kind in ("port", "mark") else 0
    if kind == "dscp" and value.lower() in _NAMED_DSCP:
        number = _NAMED_DSCP[value.lower()]
    else:
        try:
            number = int(value, 0)
        except ValueError:
            number = -1
    if not least <= number <= _LARGEST[kind]:
        message = f"{option} is {text!r}; {kind} must be {least} to {_LARGEST[kind]}"
        raise DescriptionError(message, "argument", "dscp also takes names: af41, cs1, ef" if kind == "dscp" else None)
    return Selector(kind, number, text)  # type: ignore[arg-type]


def _cgroup(value: str, text: str, option: str) -> Selector:
    mounts = (line.split() for line in MOUNTS.read_text(encoding="utf-8").splitlines())
    root = next((Path(where) for _, where, kind, *_ in mounts if kind == "cgroup2"), None)
    if root is None:
        hint = "use a port, dscp:N or mark:N"
        raise DescriptionError(
            f"{option} is {text!r}; no control groups of version 2 are mounted here", "argument", hint
        )
    path = Path(value) if value.startswith(str(root)) else root / value.lstrip("/")
    path = path.resolve()
    if not path.is_dir() or not path.is_relative_to(root) or path == root:
        hint = f"mkdir {root}/jobs; echo $$ > {root}/jobs/cgroup.procs"
        raise DescriptionError(f"{option} is {text!r}; {path} is not a control group below {root}", "argument", hint)
    if root.stat().st_ino != 1:
        hint = "run it on the host, outside the container"
        raise DescriptionError(
            f"{option} is {text!r}; {root} is not the root of the control groups, so that depths are unknown",
            "argument",
            hint,
        )
    return Selector("cgroup", path.stat().st_ino, text, len(path.relative_to(root).parts), str(path))
