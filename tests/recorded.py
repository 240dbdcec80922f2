"""Reads a recorded program as `docs/reference/recorded-programs.md` describes it, for tests: a whole file at a time."""

import json
import struct
from types import SimpleNamespace

BLOCK = struct.Struct("<4s3IQQ")
CALL = struct.Struct("<HHI4QiiQQ")
ENTRY = struct.Struct("<QiiQ")
NAMES = {1: "Init", 2: "Finalize", 10: "Send", 14: "Recv", 15: "Sendrecv", 17: "Probe", 19: "Mprobe", 21: "Mrecv"}
NAMES |= {30: "Isend", 34: "Irecv", 40: "Send_init", 44: "Recv_init", 45: "Start", 46: "Startall", 50: "Wait"}
NAMES |= {51: "Waitall", 52: "Waitany", 53: "Waitsome", 54: "Test", 55: "Testall", 70: "Barrier", 71: "Bcast"}
NAMES |= {73: "Allreduce", 74: "Gather", 75: "Gatherv", 78: "Allgather", 80: "Alltoall", 81: "Alltoallv"}
NAMES |= {36: "Isendrecv", 89: "Neighbor_alltoall", 189: "Ineighbor_alltoall", 489: "Neighbor_alltoall_init"}
NAMES |= {
    85: "Scan",
    126: "Comm_idup",
    132: "Intercomm_create",
    473: "Allreduce_init",
    173: "Iallreduce",
    120: "Comm_dup",
    121: "Comm_split",
    134: "Comm_free",
    201: "Put",
    205: "Win_create",
    206: "Win_fence",
    207: "Win_free",
    208: "Win_start",
    209: "Win_post",
    210: "Win_complete",
    211: "Win_wait",
}


def _records(payload, thread, rank):
    at = 0
    while at < len(payload):
        kind, words, comm = struct.unpack_from("<HHI", payload, at)
        body = payload[at : at + 8 * words]
        assert len(body) == 8 * words >= 8
        at += 8 * words
        if kind == 301:
            t, cpu, number = struct.unpack_from("<3Q", body, 8)
            rank.steps.append(SimpleNamespace(t=t, cpu=cpu, number=number))
        elif kind == 302:
            rank.delays.append(struct.unpack_from("<3Q", body, 8))
        elif kind == 310:
            number, _, parent, local, remote, _ = struct.unpack_from("<QQ4I", body, 8)
            members = list(struct.unpack_from(f"<{local + remote}i", body, 40))
            rank.comms[comm] = SimpleNamespace(
                id=number, parent=parent, members=members[:local], remote=members[local:]
            )
        elif kind == 312:
            sources, targets = struct.unpack_from("<II", body, 8)
            near = struct.unpack_from(f"<{sources + targets}i", body, 16)
            rank.comms[comm].sources, rank.comms[comm].targets = list(near[:sources]), list(near[sources:])
        elif kind == 311:
            rank.freed.append(comm)
        elif kind == 300:
            _, _, _, t0, t1, _, _, calls, _, inside, request = struct.unpack_from("<HHI4QIIQQ", body)
            rank.polls.append(SimpleNamespace(t0=t0, t1=t1, calls=calls, inside=inside, request=request))
        else:
            _, _, comm, t0, t1, cpu0, cpu1, peer, tag, size, request = CALL.unpack_from(body)
            entries = [SimpleNamespace(**dict(zip(("value", "peer", "tag", "bytes"), e, strict=True)))
                       for e in ENTRY.iter_unpack(body[CALL.size :])]  # fmt: skip
            about = {"t0": t0, "t1": t1, "cpu0": cpu0, "cpu1": cpu1, "peer": peer, "tag": tag, "bytes": size}
            about |= {"kind": kind, "name": NAMES.get(kind, str(kind)), "comm": comm, "request": request}
            rank.calls.append(SimpleNamespace(**about, entries=entries, thread=thread))
        rank.records += 1


def read(path):
    """Return the head, the ranks by number, and the causes of absences."""
    data = path.read_bytes()
    end = data.index(b"\n") + 1
    assert end % 8 == 0
    head, ranks, causes, at = json.loads(data[:end]), {}, [], end
    while at < len(data):
        magic, kind, number, thread, length, reserved = BLOCK.unpack_from(data, at)
        assert (magic, length % 8, reserved) == (b"CWTB", 0, 0)
        payload = data[at + BLOCK.size : at + BLOCK.size + length]
        assert len(payload) == length
        at += BLOCK.size + length
        if kind == 1:
            ranks[number] = SimpleNamespace(info=json.loads(payload), calls=[], steps=[], polls=[], delays=[], comms={},
                                            freed=[], absences=[], records=0, ended=False)  # fmt: skip
        elif kind == 2:
            _records(payload, thread, ranks[number])
        elif kind == 3:
            ranks[number].absences = list(struct.iter_unpack("<QQiHHIIQ", payload))
        elif kind == 4:
            causes = json.loads(payload)
        elif kind == 5:
            records, complete = struct.unpack("<QQ", payload)
            assert records == ranks[number].records
            ranks[number].ended = bool(complete)
    return head, ranks, causes
