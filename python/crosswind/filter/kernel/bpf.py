"""Programs that look at a packet's mark or at its socket's control group; a few instructions each.

A filter that runs one takes what it returns: 0 does not match, -1 is the filter's own class. Source: cls_bpf(8),
bpf(2), Documentation/bpf/standardization/instruction-set.rst.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

from crosswind.filter.kernel.netlink import KernelError

Classic = tuple[tuple[int, int, int, int], ...]
"""Instructions of classic BPF: operation, where to on true, on false, constant."""

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_MARK = 0xFFFFF000 + 20
_OWN_CLASS = 0xFFFFFFFF
_BPF_CALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_PROG_LOAD, _SCHED_CLS = 5, 3
_ANCESTOR_CGROUP_ID = 83
_LICENSE = ctypes.create_string_buffer(b"Apache-2.0")


def mark_program(mark: int) -> Classic:
    """Return the program that matches packets with a mark."""
    return ((_LOAD, 0, 0, _MARK), (_EQUAL, 0, 1, mark), (_RETURN, 0, 0, _OWN_CLASS), (_RETURN, 0, 0, 0))


def packed(program: Classic) -> bytes:
    """Return a classic program as the kernel takes it (struct sock_filter)."""
    return b"".join(struct.pack("=HBBI", *line) for line in program)


def cgroup_program(cgroup: int, level: int) -> bytes:
    """Return the program that matches packets of sockets below a control group, `level` below the root."""

    def line(code: int, registers: int, offset: int, constant: int) -> bytes:
        return struct.pack("=BBhI", code, registers, offset, constant)

    return b"".join(
        (
            line(0xB7, 2, 0, level),  # r2 = level; r1 is the packet
            line(0x85, 0, 0, _ANCESTOR_CGROUP_ID),  # r0 = the ancestor's id
            line(0x18, 1, 0, cgroup & 0xFFFFFFFF),  # r1 = cgroup, 64 bits
            line(0, 0, 0, cgroup >> 32),
            line(0x1D, 0x10, 2, 0),  # if r0 == r1: two on
            line(0xB7, 0, 0, 0),
            line(0x95, 0, 0, 0),
            line(0xB7, 0, 0, 0xFFFFFFFF),
            line(0x95, 0, 0, 0),
        )
    )


def load(program: bytes) -> int:
    """Load a program for filters; return its file descriptor, which the caller closes.

    Raises
    ------
    KernelError
        When the kernel does not take it.
    """
    number = _BPF_CALL.get(platform.machine())
    if number is None:
        raise KernelError(38, f"the number of bpf(2) on {platform.machine()} is not known here")
    code = ctypes.create_string_buffer(program, len(program))
    request = struct.pack(
        "=IIQQ", _SCHED_CLS, len(program) // 8, ctypes.addressof(code), ctypes.addressof(_LICENSE)
    ) + bytes(128 - 24)
    asked = ctypes.create_string_buffer(request, len(request))
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(number, _PROG_LOAD, asked, len(request))
    if descriptor < 0:
        raise KernelError(ctypes.get_errno(), f"BPF program: {os.strerror(ctypes.get_errno())}")
    return int(descriptor)
