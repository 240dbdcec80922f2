"""Generates the recorder's wrappers of MPI calls: one table, from which C, large-count and Fortran forms follow.

A line of the table is the call's number in the file, its name, its parameters as the MPI standard has them, and what is
noted after it. In the parameters `count` is `int`, or `MPI_Count` in the large form (`MPI_Send_c`), and `displacement`
is `int` or `MPI_Aint`. In what is noted, C and Fortran differ in a few places, written `$NAME(...)`:

| written | in C | in Fortran |
|---|---|---|
| `$in_place(buffer)` | `MPI_IN_PLACE` | the address that stands for it |
| `$request(r)`, `$window(w)` | the handle behind the pointer | the same, converted |
| `$type(types, i)` | an element | converted |

The C that does the work is in `shim/core.c` and `shim/fortran.c`.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from importlib.resources import files

NONBLOCKING = 100
PERSISTENT = 400


@dataclass(frozen=True)
class Call:
    """An MPI call: its number, its parameters, what is done before it and noted after it."""

    kind: int
    name: str
    parameters: str
    noted: str
    before: str = ""
    fortran: bool = True


_SEND = "const void *buf, count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm"
_RECEIVE = "void *buf, count n, MPI_Datatype type, int source, int tag, MPI_Comm comm"
_BOTH = (
    "const void *sendbuf, count sendcount, MPI_Datatype sendtype, int dest, int sendtag, "
    "void *recvbuf, count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm"
)
_REPLACE = "void *buf, count n, MPI_Datatype type, int dest, int sendtag, int source, int recvtag, MPI_Comm comm"
_PROBE = "int source, int tag, MPI_Comm comm"
_REQUEST = ", MPI_Request *request"
_STATUS = ", MPI_Status *status"
_ONE = "$note(1, request);"
_MANY = "$note(n, requests);"


def _note(kind: int, peer: str, tag: str, amount: str, request: str = "0") -> str:
    return f"finish(&p, put(&p, {kind}, index_of(p.s, comm), {peer}, {tag}, {amount}, {request}, 0));"


def _found(kind: int, peer: str, tag: str, amount: str, value: str = "0") -> str:
    """Note a receive or a probe with what its status says."""
    return (
        f"struct record *r = put(&p, {kind}, index_of(p.s, comm), {peer}, {tag}, {amount}, 0, result == MPI_SUCCESS); "
        f"if (r && result == MPI_SUCCESS) *entries_of(r) = entry_of(status, {value}); finish(&p, r);"
    )


def _both(kind: int, sent: str, received: str, request: str = "") -> str:
    """Note a send and a receive in one: what was found, what was asked for."""
    entries = 1 if request else 2
    found = "" if request else "entries_of(r)[0] = entry_of(status, 0); "
    return (
        f"struct record *r = put(&p, {kind}, index_of(p.s, comm), peer_of(dest), tag_of(sendtag), {sent}, "
        f"{request or 0}, {entries}); if (r) {{ {found}entries_of(r)[{entries - 1}] = "
        f"(struct entry){{0, peer_of(source), tag_of(recvtag), {received}}}; }} finish(&p, r);"
    )


_SENT = "bytes_of(n, type)"


def _point_to_point() -> list[Call]:
    calls = []
    for at, mode in enumerate(("", "B", "S", "R")):
        send = f"{mode}send".capitalize()
        sent = ("peer_of(dest)", "tag", _SENT)
        calls += [
            Call(10 + at, send, _SEND, _note(10 + at, *sent)),
            Call(30 + at, f"I{send.lower()}", _SEND + _REQUEST, _note(30 + at, *sent, "$request(request)")),
            Call(40 + at, f"{send}_init", _SEND + _REQUEST, _note(40 + at, *sent, "$request(request)")),
        ]
    asked = ("peer_of(source)", "tag_of(tag)", _SENT)
    probed = ("peer_of(source)", "tag_of(tag)", "0")
    message = "void *buf, count n, MPI_Datatype type, MPI_Message *message"
    got = "struct record *r = put(&p, {kind}, NO_COMM, NONE, NONE, bytes_of(n, type), {request}, 1); if (r) {entry}; "
    missed = "if (result == MPI_SUCCESS && !*flag) put_poll(&p, 0); else "
    calls += [
        Call(14, "Recv", _RECEIVE + _STATUS, _found(14, *asked)),
        Call(34, "Irecv", _RECEIVE + _REQUEST, _note(34, *asked, "$request(request)")),
        Call(44, "Recv_init", _RECEIVE + _REQUEST, _note(44, *asked, "$request(request)")),
        Call(15, "Sendrecv", _BOTH + _STATUS,
             _both(15, "bytes_of(sendcount, sendtype)", "bytes_of(recvcount, recvtype)")),
        Call(16, "Sendrecv_replace", _REPLACE + _STATUS, _both(16, _SENT, _SENT)),
        Call(36, "Isendrecv", _BOTH + _REQUEST,
             _both(36, "bytes_of(sendcount, sendtype)", "bytes_of(recvcount, recvtype)", "$request(request)")),
        Call(37, "Isendrecv_replace", _REPLACE + _REQUEST, _both(37, _SENT, _SENT, "$request(request)")),
        Call(17, "Probe", _PROBE + _STATUS, _found(17, *probed)),
        Call(18, "Iprobe", _PROBE + ", int *flag" + _STATUS, f"{missed}{{ {_found(18, *probed)} }}"),
        Call(19, "Mprobe", _PROBE + ", MPI_Message *message" + _STATUS, _found(19, *probed, "$message(message)")),
        Call(20, "Improbe", _PROBE + ", int *flag, MPI_Message *message" + _STATUS,
             f"{missed}{{ {_found(20, *probed, '$message(message)')} }}"),
        Call(21, "Mrecv", message + _STATUS,
             got.format(kind=21, request="0", entry="*entries_of(r) = entry_of(status, matched)") + "finish(&p, r);",
             "uint64_t matched = p.s ? $message(message) : 0;"),
        Call(35, "Imrecv", message + _REQUEST,
             got.format(kind=35, request="$request(request)",
                        entry="*entries_of(r) = (struct entry){matched, NONE, NONE, 0}") + "finish(&p, r);",
             "uint64_t matched = p.s ? $message(message) : 0;"),
    ]  # fmt: skip
    return calls


def _completions() -> list[Call]:
    many = "count_int n, MPI_Request requests[]"
    ok = "result == MPI_SUCCESS"
    all_of = "put_requests(&p, {kind}, n, NULL, 0, " + f"{ok} ? $statuses(n) : NULL);"
    any_of = (
        "put_requests(&p, {kind}, index_ < $base || index_ >= n + $base ? 0 : 1, &index_, $base, "
        f"{ok} ? status : NULL);"
    )
    some_of = "put_requests(&p, {kind}, *m == MPI_UNDEFINED ? 0 : *m, indices, $base, $statuses(*m));"
    one = f"put_requests(&p, {{kind}}, 1, NULL, 0, {ok} ? status : NULL);"
    poll = "if ({miss}) put_poll(&p, n_handle); else {{ {hit} }}"
    first = "uint64_t n_handle = p.s && {n} > 0 ? p.s->handles[0] : 0;"
    index = "int index_ = *index;"

    def tried(hit: str, kind: int, miss: str = f"{ok} && !*flag") -> str:
        return poll.format(miss=miss, hit=hit.format(kind=kind))

    many_first, one_first = _MANY + first.format(n="n"), _ONE + first.format(n="1")
    return [
        Call(50, "Wait", "MPI_Request *request" + _STATUS, one.format(kind=50), _ONE),
        Call(51, "Waitall", many + ", MPI_Status statuses[]", all_of.format(kind=51), _MANY),
        Call(52, "Waitany", many + ", int *index" + _STATUS, index + any_of.format(kind=52), _MANY),
        Call(53, "Waitsome", many + ", int *m, int indices[], MPI_Status statuses[]", some_of.format(kind=53), _MANY),
        Call(54, "Test", "MPI_Request *request, int *flag" + _STATUS, tried(one, 54), one_first),
        Call(55, "Testall", many + ", int *flag, MPI_Status statuses[]", tried(all_of, 55), many_first),
        Call(56, "Testany", many + ", int *index, int *flag" + _STATUS, index + tried(any_of, 56), many_first),
        Call(57, "Testsome", many + ", int *m, int indices[], MPI_Status statuses[]",
             tried(some_of, 57, f"{ok} && *m == 0"), many_first),
        Call(58, "Request_free", "MPI_Request *request", "put_requests(&p, 58, 1, NULL, 0, NULL);", _ONE),
        Call(59, "Cancel", "MPI_Request *request", "put_requests(&p, 59, 1, NULL, 0, NULL);", _ONE),
        Call(45, "Start", "MPI_Request *request", "put_requests(&p, 45, 1, NULL, 0, NULL);", _ONE),
        Call(46, "Startall", many, "put_requests(&p, 46, n, NULL, 0, NULL);", _MANY),
        Call(300, "Request_get_status", "MPI_Request request, int *flag" + _STATUS,
             f"if ({ok} && !*flag) put_poll(&p, $value(request));"),
    ]  # fmt: skip


_V = ", const count recvcounts[], const displacement displs[], MPI_Datatype recvtype"
_TO = "const void *sendbuf, count sendcount, MPI_Datatype sendtype, void *recvbuf, "
_ALL_V = (
    "const void *sendbuf, const count sendcounts[], const displacement sdispls[], MPI_Datatype sendtype, "
    "void *recvbuf, const count recvcounts[], const displacement rdispls[], MPI_Datatype recvtype"
)
_ALL_W = (
    "const void *sendbuf, const count sendcounts[], const displacement sdispls[], const MPI_Datatype sendtypes[], "
    "void *recvbuf, const count recvcounts[], const displacement rdispls[], const MPI_Datatype recvtypes[]"
)
# The displacements of the neighbourhood form are addresses in the small form, too.
_NEIGHBOUR_W = _ALL_W.replace("displacement", "MPI_Aint")
_REDUCTION = "const void *sendbuf, void *recvbuf, count n, MPI_Datatype type, MPI_Op op"
_FROM_SEND, _FROM_RECEIVE = "bytes_of(sendcount, sendtype)", "bytes_of(recvcount, recvtype)"
_ROOT_HERE = "at_root(p.s, comm, root)"


def _sum(counts: str, amount: str, size: str = "size") -> str:
    return f"for (int k = 0; k < {size}; k++) {amount} += bytes_of({counts}[k], $type_of_{counts}(k));"


def _collectives() -> list[Call]:
    """Return blocking, nonblocking and persistent collectives. `out` and `in` are bytes sent and received."""
    gather = f"out = $in_place(sendbuf) ? {_FROM_RECEIVE} : root < 0 ? 0 : {_FROM_SEND};"
    # (number, name, parameters, root, code; the last word is whether `in` is noted)
    table: list[tuple[str, str, str, str]] = [
        ("Barrier", "", "", ""),
        ("Bcast", "void *buf, count n, MPI_Datatype type, int root", "root", "out = bytes_of(n, type);"),
        ("Reduce", _REDUCTION + ", int root", "root", "out = bytes_of(n, type);"),
        ("Allreduce", _REDUCTION, "", "out = bytes_of(n, type);"),
        ("Gather", _TO + "count recvcount, MPI_Datatype recvtype, int root", "root",
         f"{gather} if ({_ROOT_HERE}) in = size * {_FROM_RECEIVE};"),
        ("Gatherv", _TO[:-2] + _V + ", int root", "root",
         f"if ({_ROOT_HERE}) {{ {_sum('recvcounts', 'in')} }} "
         f"out = $in_place(sendbuf) ? bytes_of(recvcounts[rank], recvtype) : root < 0 ? 0 : {_FROM_SEND};"),
        ("Scatter", _TO + "count recvcount, MPI_Datatype recvtype, int root", "root",
         f"if ({_ROOT_HERE}) out = size * {_FROM_SEND}; "
         f"in = $in_place(recvbuf) ? {_FROM_SEND} : root < 0 ? 0 : {_FROM_RECEIVE};"),
        ("Scatterv", "const void *sendbuf, const count sendcounts[], const displacement displs[], "
         "MPI_Datatype sendtype, void *recvbuf, count recvcount, MPI_Datatype recvtype, int root", "root",
         f"if ({_ROOT_HERE}) {{ {_sum('sendcounts', 'out')} }} "
         f"in = $in_place(recvbuf) ? bytes_of(sendcounts[rank], sendtype) : root < 0 ? 0 : {_FROM_RECEIVE};"),
        ("Allgather", _TO + "count recvcount, MPI_Datatype recvtype", "",
         f"out = $in_place(sendbuf) ? {_FROM_RECEIVE} : {_FROM_SEND}; in = size * {_FROM_RECEIVE};"),
        ("Allgatherv", _TO[:-2] + _V, "",
         f"out = $in_place(sendbuf) ? bytes_of(recvcounts[rank], recvtype) : {_FROM_SEND}; {_sum('recvcounts', 'in')}"),
        ("Alltoall", _TO + "count recvcount, MPI_Datatype recvtype", "",
         f"in = size * {_FROM_RECEIVE}; out = $in_place(sendbuf) ? in : size * {_FROM_SEND};"),
        ("Alltoallv", _ALL_V, "",
         f"{_sum('recvcounts', 'in')} if ($in_place(sendbuf)) out = in; else {{ {_sum('sendcounts', 'out')} }}"),
        ("Alltoallw", _ALL_W, "",
         f"{_sum('recvcounts', 'in')} if ($in_place(sendbuf)) out = in; else {{ {_sum('sendcounts', 'out')} }}"),
        ("Reduce_scatter", "const void *sendbuf, void *recvbuf, const count recvcounts[], MPI_Datatype type, MPI_Op op",
         "", f"{_sum('recvcounts', 'out', 'local')} in = bytes_of(recvcounts[rank], type);"),
        ("Reduce_scatter_block", _REDUCTION, "", "in = bytes_of(n, type); out = local * in;"),
        ("Scan", _REDUCTION, "", "out = bytes_of(n, type);"),
        ("Exscan", _REDUCTION, "", "out = bytes_of(n, type);"),
        ("Neighbor_allgather", _TO + "count recvcount, MPI_Datatype recvtype", "",
         f"out = {_FROM_SEND}; in = sources * {_FROM_RECEIVE};"),
        ("Neighbor_allgatherv", _TO[:-2] + _V, "", f"out = {_FROM_SEND}; {_sum('recvcounts', 'in', 'sources')}"),
        ("Neighbor_alltoall", _TO + "count recvcount, MPI_Datatype recvtype", "",
         f"out = targets * {_FROM_SEND}; in = sources * {_FROM_RECEIVE};"),
        ("Neighbor_alltoallv", _ALL_V, "",
         f"{_sum('recvcounts', 'in', 'sources')} {_sum('sendcounts', 'out', 'targets')}"),
        ("Neighbor_alltoallw", _NEIGHBOUR_W, "",
         f"{_sum('recvcounts', 'in', 'sources')} {_sum('sendcounts', 'out', 'targets')}"),
    ]  # fmt: skip
    calls = []
    for at, (name, parameters, root, untyped) in enumerate(table):
        kind, code = 70 + at, untyped
        for types in re.findall(r"MPI_Datatype (\w+)", parameters):
            side = "sendcounts" if types.startswith("send") else "recvcounts"
            code = code.replace(f"$type_of_{side}(k)", f"$type({types}, k)" if types.endswith("s") else types)
        shared = (parameters + ", " if parameters else "") + "MPI_Comm comm"
        peer = "peer_of(root)" if root else "NONE"

        def noted(kind: int, request: str, *, code: str = code, peer: str = peer) -> str:
            used = [word for word in ("size", "local", "rank", "sources", "targets") if re.search(rf"\b{word}\b", code)]
            values = "".join(f" int {word} = c ? c->{word} : 0;" for word in used)
            return (
                f"struct communicator *c = find(p.s, comm); uint64_t out = 0, in = 0;{values} {code} "
                f"put_collective(&p, {kind}, c, {peer}, out, in, {int('in ' in code or 'in)' in code)}, {request});"
            )

        request, several = shared + _REQUEST, name[0].lower() + name[1:]
        persistent = shared + ", MPI_Info info" + _REQUEST
        calls += [
            Call(kind, name, shared, noted(kind, "0")),
            Call(kind + NONBLOCKING, f"I{several}", request, noted(kind + NONBLOCKING, "$request(request)")),
            Call(kind + PERSISTENT, f"{name}_init", persistent, noted(kind + PERSISTENT, "$request(request)")),
        ]
    return calls


def _communicators() -> list[Call]:
    made = ", MPI_Comm *made"

    def creates(kind: int, name: str, parameters: str, *, fortran: bool = True, parent: str = "comm") -> Call:
        return Call(kind, name, parameters + made, f"put_created(&p, {kind}, {parent}, $comm(made), 0);", "", fortran)

    weights = "const int weights[]"
    freed = "uint32_t index = 0; uint64_t id = 0; if (p.s) { struct communicator *c = find(p.s, $comm(comm)); "
    freed += "if (c) index = c->index, id = c->id; }"
    return [
        creates(120, "Comm_dup", "MPI_Comm comm"),
        creates(121, "Comm_split", "MPI_Comm comm, int color, int key_"),
        creates(122, "Comm_create", "MPI_Comm comm, MPI_Group group"),
        creates(123, "Comm_create_group", "MPI_Comm comm, MPI_Group group, int tag"),
        creates(124, "Comm_split_type", "MPI_Comm comm, int type, int key_, MPI_Info info"),
        creates(125, "Comm_dup_with_info", "MPI_Comm comm, MPI_Info info"),
        Call(126, "Comm_idup", "MPI_Comm comm, MPI_Comm *made, MPI_Request *request",
             "put_created(&p, 126, comm, MPI_COMM_NULL, $request(request));"),
        creates(127, "Cart_create", "MPI_Comm comm, int n, const int dims[], const int periods[], int reorder"),
        creates(128, "Graph_create", "MPI_Comm comm, int n, const int index[], const int edges[], int reorder"),
        creates(129, "Dist_graph_create", "MPI_Comm comm, int n, const int sources[], const int degrees[], "
                f"const int targets[], {weights}, MPI_Info info, int reorder"),
        creates(130, "Dist_graph_create_adjacent", "MPI_Comm comm, int n, const int sources[], "
                f"const int sourceweights[], int m, const int targets[], {weights}, MPI_Info info, int reorder"),
        creates(131, "Cart_sub", "MPI_Comm comm, const int remain[]"),
        creates(132, "Intercomm_create", "MPI_Comm comm, int leader, MPI_Comm peers, int remote_leader, int tag"),
        creates(133, "Intercomm_merge", "MPI_Comm comm, int high"),
        Call(134, "Comm_free", "MPI_Comm *comm", "put_freed(&p, 134, index, id); age++;", freed),
        Call(135, "Comm_disconnect", "MPI_Comm *comm", "put_freed(&p, 135, index, id); age++;", freed),
        Call(137, "Comm_idup_with_info", "MPI_Comm comm, MPI_Info info, MPI_Comm *made, MPI_Request *request",
             "put_created(&p, 137, comm, MPI_COMM_NULL, $request(request));"),
        creates(136, "Comm_accept", "const char *port, MPI_Info info, int root, MPI_Comm comm", fortran=False),
        creates(136, "Comm_connect", "const char *port, MPI_Info info, int root, MPI_Comm comm", fortran=False),
        Call(136, "Comm_spawn", "const char *command, char *argv[], int maxprocs, MPI_Info info, int root, "
             "MPI_Comm comm, MPI_Comm *made, int codes[]", "put_created(&p, 136, comm, $comm(made), 0);", "", False),
        Call(136, "Comm_spawn_multiple", "int n, char *commands[], char **argv[], const int maxprocs[], "
             "const MPI_Info infos[], int root, MPI_Comm comm, MPI_Comm *made, int codes[]",
             "put_created(&p, 136, comm, $comm(made), 0);", "", False),
        creates(136, "Comm_join", "int fd", fortran=False, parent="MPI_COMM_NULL"),
        creates(136, "Comm_create_from_group", "MPI_Group group, const char *name, MPI_Info info, "
                "MPI_Errhandler handler", fortran=False, parent="MPI_COMM_NULL"),
        creates(136, "Intercomm_create_from_groups", "MPI_Group group, int leader, MPI_Group remote, "
                "int remote_leader, const char *name, MPI_Info info, MPI_Errhandler handler", fortran=False,
                parent="MPI_COMM_NULL"),
    ]  # fmt: skip


def _windows() -> list[Call]:
    """Return what makes, synchronises and frees the windows of one-sided communication, with the window's handle."""
    size, comm = "MPI_Aint size, displacement unit", "MPI_Info info, MPI_Comm comm"
    made = {
        "Win_create": f"void *base, {size}, {comm}, MPI_Win *win",
        "Win_allocate": f"{size}, {comm}, void *base, MPI_Win *win",
        "Win_allocate_shared": f"{size}, {comm}, void *base, MPI_Win *win",
        "Win_create_dynamic": f"{comm}, MPI_Win *win",
    }
    note = "finish(&p, put(&p, {kind}, {comm}, NONE, {tag}, 0, {window}, 0));"
    created = note.format(
        kind=205, comm="index_of(p.s, comm)", tag="NONE", window="result == MPI_SUCCESS ? $window(win) : 0"
    )
    fenced = note.format(kind=206, comm="NO_COMM", tag="assertion_of(assert_)", window="$the_window(win)")
    freed = note.format(kind=207, comm="NO_COMM", tag="NONE", window="window")
    grouped, group = "put_group(&p, {}, group, assert_, $the_window(win));", "MPI_Group group, int assert_, MPI_Win win"
    completed, waited = (
        note.format(kind=kind, comm="NO_COMM", tag="NONE", window="$the_window(win)") for kind in (210, 211)
    )
    looked = "if (result == MPI_SUCCESS && !*flag) put_poll(&p, $the_window(win)); else "
    return [
        *(Call(205, name, parameters, created) for name, parameters in made.items()),
        Call(206, "Win_fence", "int assert_, MPI_Win win", fenced),
        Call(207, "Win_free", "MPI_Win *win", freed, "uint64_t window = p.s ? $window(win) : 0;"),
        Call(208, "Win_start", group, grouped.format(208)),
        Call(209, "Win_post", group, grouped.format(209)),
        Call(210, "Win_complete", "MPI_Win win", completed),
        Call(211, "Win_wait", "MPI_Win win", waited),
        Call(211, "Win_test", "MPI_Win win, int *flag", looked + waited),
    ]


def _others() -> list[Call]:
    """Return calls of which only the time is noted: a reader can then say what it does not model."""
    at = "count n, MPI_Datatype type, int target, MPI_Aint disp, count m, MPI_Datatype target_type"
    result = "void *result_, count k, MPI_Datatype result_type"
    got = (
        f"const void *origin, count n, MPI_Datatype type, {result}, {at.partition('type, ')[2]}, MPI_Op op, MPI_Win win"
    )
    split = "void *buf, count n, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Info info"
    partitioned = f"{split.replace('void *buf,', 'void *buf, int partitions,').replace('count', 'MPI_Count')}{_REQUEST}"
    names: dict[int, dict[str, str]] = {
        200: {
            "Win_lock": "int type, int rank, int assert_, MPI_Win win",
            "Win_unlock": "int rank, MPI_Win win",
            "Win_lock_all": "int assert_, MPI_Win win",
            "Win_unlock_all": "MPI_Win win",
            "Win_flush": "int rank, MPI_Win win",
            "Win_flush_all": "MPI_Win win",
            "Win_flush_local": "int rank, MPI_Win win",
            "Win_flush_local_all": "MPI_Win win",
        },
        201: {
            "Put": f"const void *origin, {at}, MPI_Win win",
            "Get": f"void *origin, {at}, MPI_Win win",
            "Accumulate": f"const void *origin, {at}, MPI_Op op, MPI_Win win",
            "Get_accumulate": got,
            "Rput": f"const void *origin, {at}, MPI_Win win, MPI_Request *request",
            "Rget": f"void *origin, {at}, MPI_Win win, MPI_Request *request",
            "Raccumulate": f"const void *origin, {at}, MPI_Op op, MPI_Win win, MPI_Request *request",
            "Rget_accumulate": f"{got}{_REQUEST}",
            "Fetch_and_op": "const void *origin, void *result_, MPI_Datatype type, int target, MPI_Aint disp, "
            "MPI_Op op, MPI_Win win",
            "Compare_and_swap": "const void *origin, const void *compare, void *result_, MPI_Datatype type, "
            "int target, MPI_Aint disp, MPI_Win win",
        },
        202: _of_files(),
        203: {"Psend_init": f"const {partitioned}", "Precv_init": partitioned},
        204: {"Buffer_detach": "void *buffer, count *n"},
    }
    # Strings have hidden lengths in Fortran.
    return [
        Call(
            kind,
            name,
            parameters,
            f"finish(&p, put(&p, {kind}, NO_COMM, NONE, NONE, 0, "
            f"{'$request(request)' if 'MPI_Request' in parameters else '0'}, 0));",
            fortran="char *" not in parameters,
        )
        for kind, group in names.items()
        for name, parameters in group.items()
    ]


def _of_files() -> dict[str, str]:
    """Return the parameters of the calls that read and write files, or wait for other ranks in doing so."""
    calls = {
        "File_open": "MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file",
        "File_close": "MPI_File *file",
        "File_sync": "MPI_File file",
        "File_preallocate": "MPI_File file, MPI_Offset bytes",
        "File_set_size": "MPI_File file, MPI_Offset bytes",
        "File_set_view": "MPI_File file, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *data, "
        "MPI_Info info",
        "File_seek_shared": "MPI_File file, MPI_Offset offset, int whence",
    }
    for verb, buffer in (("read", "void *buf"), ("write", "const void *buf")):
        for which in ("", "_all", "_shared", "_ordered", "_at", "_at_all"):
            place = "MPI_File file, MPI_Offset offset" if which.startswith("_at") else "MPI_File file"
            amount = f"{place}, {buffer}, count n, MPI_Datatype type"
            calls[f"File_{verb}{which}"] = amount + _STATUS
            if which != "_ordered":
                calls[f"File_i{verb}{which}"] = amount + _REQUEST
            if which in ("_all", "_ordered", "_at_all"):
                calls[f"File_{verb}{which}_begin"] = amount
                calls[f"File_{verb}{which}_end"] = f"MPI_File file, {buffer}{_STATUS}"
    return calls


def table() -> list[Call]:
    """Return all calls that are recorded, but for MPI_Init and MPI_Finalize, which are written by hand."""
    return [*_point_to_point(), *_completions(), *_collectives(), *_communicators(), *_windows(), *_others()]


@dataclass(frozen=True)
class _Parameter:
    type: str  # without const, stars and brackets
    name: str
    text: str
    pointer: bool
    array: bool

    @classmethod
    def of(cls, text: str, *, large: bool) -> _Parameter:
        text = text.strip().replace("count_int", "int")
        text = re.sub(r"\bcount\b", "MPI_Count" if large else "int", text)
        text = re.sub(r"\bdisplacement\b", "MPI_Aint" if large else "int", text)
        found = re.fullmatch(r"(?:const )?(\w+) ?(\*?)(\w+)(\[\])?", text)
        if not found:
            raise ValueError(text)
        return cls(found[1], found[3], text, bool(found[2]), bool(found[4]))


def _parameters(call: Call, *, large: bool = False) -> list[_Parameter]:
    return [_Parameter.of(text, large=large) for text in call.parameters.split(",") if text.strip()]


def _with_macros(text: str, forms: dict[str, str]) -> str:
    for name, form in forms.items():
        text = re.sub(rf"\${name}\(((?:[^()]|\([^()]*\))*)\)", form, text)
    return text


_IN_C = {
    "in_place": r"(\1 == MPI_IN_PLACE)",
    "request": r"request_handle(*\1)",
    "value": r"request_handle(\1)",
    "window": r"window_handle(*\1)",
    "the_window": r"window_handle(\1)",
    "message": r"message_handle(*\1)",
    "comm": r"*\1",
    "type": r"IT(\1)",
    "statuses": "statuses",
    "note": r"NOTE(\1)",
}
_STATUS_IN_C = "MPI_Status own_status; if (p.s && status == MPI_STATUS_IGNORE) status = &own_status; "
_STATUSES_IN_C = "if (p.s && statuses == MPI_STATUSES_IGNORE) statuses = p.s->statuses; "


def _c_form(call: Call, *, large: bool) -> str:
    parameters = _parameters(call, large=large) if "argv" not in call.parameters else []
    text = ", ".join(p.text for p in parameters) or call.parameters
    names = [p.name for p in parameters] or re.findall(r"(\w+)(?:\[\])?(?:,|$)", call.parameters)
    before, noted = (_with_macros(t, _IN_C).replace("$base", "0") for t in (call.before, call.noted))
    declared = {p.name for p in parameters}
    status = _STATUS_IN_C if "status" in declared and call.kind < 100 else ""
    status += _STATUSES_IN_C if "statuses" in declared else ""
    name = call.name + ("_c" if large else "")
    return (
        f"int MPI_{name}({text}) {{\n  struct span p = enter();\n  {before} {status}\n"
        f"  int result = PMPI_{name}({', '.join(names)});\n"
        f"  if (p.s) {{ left(&p); {{ {noted} }} done(&p); }}\n  return result;\n}}\n"
    )


_IN_FORTRAN = {
    "in_place": r"fortran_in_place(\1)",
    "request": r"request_handle(PMPI_Request_f2c(*f_\1))",
    "value": r"request_handle(PMPI_Request_f2c(*f_\1))",
    "window": r"window_handle(PMPI_Win_f2c(*f_\1))",
    "the_window": r"window_handle(PMPI_Win_f2c(*f_\1))",
    "message": r"message_handle(PMPI_Message_f2c(*f_\1))",
    "comm": r"PMPI_Comm_f2c(*f_\1)",
    "type": r"FORTRAN_IT(\1)",
    "statuses": r"fortran_statuses(p.s, f_statuses, \1)",
    "note": r"FORTRAN_NOTE(\1)",
}
_FROM_FORTRAN = {"MPI_Datatype": "PMPI_Type_f2c", "MPI_Comm": "PMPI_Comm_f2c", "MPI_Group": "PMPI_Group_f2c"}


def _fortran_form(call: Call) -> str:
    """Return a call's Fortran form, which calls MPI's own Fortran form with the same addresses."""
    parameters = _parameters(call)
    declared, passed, values = [], [], []
    for p in parameters:
        if p.type == "void":
            declared.append(f"void *{p.name}")
            passed.append(p.name)
        elif p.type in {"MPI_Aint", "MPI_Offset"}:
            declared.append(f"{p.type} *f_{p.name}")
            passed.append(f"f_{p.name}")
        else:
            declared.append(f"MPI_Fint *f_{p.name}")
            passed.append(f"f_{p.name}")
            if p.type == "int" and (p.array or p.pointer):
                values.append(f"int *{p.name} = (int *)f_{p.name};")
            elif p.type == "int":
                values.append(f"int {p.name} = (int)*f_{p.name};")
            elif p.type in _FROM_FORTRAN and not p.pointer and not p.array:
                values.append(f"{p.type} {p.name} = {_FROM_FORTRAN[p.type]}(*f_{p.name});")
            elif p.type == "MPI_Datatype":
                values.append(f"MPI_Fint *{p.name} = f_{p.name};")
    before, noted = (_with_macros(t, _IN_FORTRAN).replace("$base", "1") for t in (call.before, call.noted))
    status = after = ""
    names = {p.name for p in parameters}
    if "status" in names and call.kind < 100:
        status = "MPI_Fint own_status[FORTRAN_STATUS]; if (p.s && fortran_ignored(f_status)) f_status = own_status; "
        after = "MPI_Status c_status, *status = &c_status; PMPI_Status_f2c(f_status, status); "
    if "statuses" in names:
        status += "if (p.s && fortran_ignored(f_statuses)) f_statuses = (MPI_Fint *)p.s->statuses; "
    early = "int n = (int)*f_n; (void)n; " if "n" in names and call.before else ""
    lower = call.name.lower()
    types = ", ".join([*(re.sub(r"\w+$", "", one).strip() for one in declared), "MPI_Fint *"])
    body = (
        f"static void fortran_{lower}(void (*real)({types}), {', '.join([*declared, 'MPI_Fint *f_error'])}) {{\n"
        f"  struct span p = enter();\n  MPI_Fint own_error = 0; if (!f_error) f_error = &own_error;\n"
        f"  {early}{before} {status}\n  real({', '.join([*passed, 'f_error'])});\n  int result = (int)*f_error;\n"
        f"  if (p.s) {{ left(&p); (void)result; {' '.join(values)} {after}{{ {noted} }} done(&p); }}\n}}\n"
    )
    arguments = ", ".join([*declared, "MPI_Fint *f_error"])
    return body + fortran_names(call.name, arguments, f"fortran_{lower}", ", ".join([*passed, "f_error"]))


def fortran_names(name: str, declared: str, body: str, passed: str) -> str:
    """Return the entry points of a call under all names that Fortran compilers and modules give it."""
    lower = f"mpi_{name.lower()}"
    text = "".join(
        f'EXPORT void {one}({declared}) {{ static void *real; {body}(fortran_real(&real, "{one}"), {passed}); }}\n'
        for one in (f"{lower}_", f"{lower}_f08_", f"{lower}_f08ts_")
    )
    alias = f'__attribute__((alias("{lower}_")))'
    return text + "".join(f"EXPORT void {one}({declared}) {alias};\n" for one in (f"{lower}__", lower, lower.upper()))


_FORTRAN_BY_HAND = {
    "Init": "f_error",
    "Init_thread": "required provided f_error",
    "Finalize": "f_error",
    "Pcontrol": "level",
}


def source(declared: Container[str] | None = None) -> str:
    """Return the whole recorder, one translation unit in C.

    Parameters
    ----------
    declared : container of str, optional
        Names of the calls that `mpi.h` declares, without `MPI_`. An MPI may have more of them than its version says.
        Default: all of the table.
    """
    shim = files("crosswind.recorder") / "shim"
    parts = [(shim / name).read_text() for name in ("core.c", "communicators.c", "ends.c", "calls.c")]
    present = [call for call in table() if declared is None or call.name in declared]
    for call in present:
        parts.append(_c_form(call, large=False))
        is_large = re.search(r"\bcount\b|\bdisplacement\b", call.parameters)
        if is_large and (declared is None or f"{call.name}_c" in declared):
            parts.append(_c_form(call, large=True))
    parts.append((shim / "fortran.c").read_text())
    for name, parameters in _FORTRAN_BY_HAND.items():
        names = ", ".join(f"MPI_Fint *{one}" for one in parameters.split())
        parts.append(fortran_names(name, names, f"fortran_{name.lower()}", ", ".join(parameters.split())))
    parts += [_fortran_form(call) for call in present if call.fortran]
    return "\n".join(parts)
