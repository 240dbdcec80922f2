"""Recording of programs in Fortran. It needs an MPI with a Fortran library: `apt install gfortran libopenmpi-dev`.

The wheels of Open MPI and MPICH have no Fortran library, so this runs where Debian's are installed: every night.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest
import recorded

ROUNDS, LATE = 20, 1
DECLARED = """
  integer :: rank, size, ierror, round, one(1), sum(1), i
  integer, asynchronous :: memory(1), buffer(2)
  integer(kind=MPI_ADDRESS_KIND) :: bytes
  logical :: flag
"""
HANDLES = {
    "mpi": "integer :: requests(2), world, near, window, status(MPI_STATUS_SIZE)",
    "mpi_f08": "type(MPI_Request) :: requests(2)\n type(MPI_Group) :: world, near\n type(MPI_Win) :: window\n"
    " type(MPI_Status) :: status",
}
PROGRAM = """
program rounds
  use {module}
  implicit none
  {handles}
  {declared}
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
  call MPI_Comm_group(MPI_COMM_WORLD, world, ierror)
  call MPI_Group_incl(world, 1, [mod(rank + 1, size)], near, ierror)
  bytes = 4
  memory = -1
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, ierror)
  do round = 1, {rounds}
    call work(merge(20000000, 5000000, rank == {late}))
    one(1) = rank
    call MPI_Irecv(buffer(1), 1, MPI_INTEGER, mod(rank + size - 1, size), 5, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Isend(one, 1, MPI_INTEGER, mod(rank + 1, size), 5, MPI_COMM_WORLD, requests(2), ierror)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
    call MPI_Sendrecv(one, 1, MPI_INTEGER, mod(rank + 1, size), 6, buffer(2), 1, MPI_INTEGER, &
      mod(rank + size - 1, size), 6, MPI_COMM_WORLD, status, ierror)
    if (buffer(1) /= mod(rank + size - 1, size) .or. buffer(2) /= buffer(1)) call MPI_Abort(MPI_COMM_WORLD, 2, ierror)
    sum = rank
    call MPI_Allreduce(MPI_IN_PLACE, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    if (sum(1) /= size * (size - 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 3, ierror)
    call MPI_Win_post(near, 0, window, ierror)
    call MPI_Win_start(near, 0, window, ierror)
    call MPI_Win_complete(window, ierror)
    flag = .false.
    if (mod(round, 2) == 0) then
      call MPI_Win_wait(window, ierror)
    else
      do while (.not. flag)
        call MPI_Win_test(window, flag, ierror)
      end do
    end if
    call MPI_Pcontrol(2)
  end do
  call MPI_Win_free(window, ierror)
  call MPI_Finalize(ierror)
contains
  subroutine work(count)
    integer, intent(in) :: count
    double precision, volatile :: x
    x = 1
    do i = 1, count
      x = x * 1.0000001d0
    end do
  end subroutine
end program
"""


def both(name):
    return shutil.which(f"mpifort.{name}"), shutil.which(f"mpirun.{name}")


@pytest.mark.live
@pytest.mark.nightly
@pytest.mark.parametrize("module", ["mpi", "mpi_f08"])
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_a_program_in_fortran_is_recorded_and_judged(tmp_path, mpi, module):
    compiler, mpirun = both(mpi)
    if compiler is None or mpirun is None:
        pytest.skip(f"no mpifort.{mpi} and mpirun.{mpi}")
    text = PROGRAM.format(module=module, handles=HANDLES[module], declared=DECLARED, rounds=ROUNDS, late=LATE)
    (tmp_path / "rounds.f90").write_text(text)
    build = [compiler, "-O1", "rounds.f90", "-o", "rounds"]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    command = [mpirun, *(["--oversubscribe"] if mpi == "openmpi" else []), "-n", "2", "./rounds"]
    words = [sys.executable, "-m", "crosswind.cli", "record", "--how", "none", "-o", "app.trace", "--", *command]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    head, ranks, _ = recorded.read(tmp_path / "app.trace")
    assert (head["complete"], sorted(ranks)) == (True, [0, 1])
    for number, rank in ranks.items():
        calls = {name: [call for call in rank.calls if call.name == name] for name in recorded.NAMES.values()}
        for name in ("Isend", "Irecv", "Waitall", "Sendrecv", "Allreduce", "Win_post", "Win_start", "Win_complete"):
            assert len(calls[name]) == ROUNDS, name
        assert len(rank.steps) == len(calls["Win_wait"]) == ROUNDS
        assert {(call.peer, call.tag, call.bytes) for call in calls["Isend"]} == {(1 - number, 5, 4)}
        assert {call.bytes for call in calls["Allreduce"]} == {4}
        received = [entry for call in calls["Waitall"] for entry in call.entries if entry.tag == 5 and entry.bytes]
        assert {entry.peer for entry in received} == {1 - number}
        assert {entry.peer for call in calls["Win_post"] for entry in call.entries} == {1 - number}
    blamed = [sys.executable, "-m", "crosswind.cli", "blame", "app.trace", "--json"]
    done = subprocess.run(blamed, cwd=tmp_path, capture_output=True, text=True, check=False)
    # Which rank is named depends on what else the host does.
    assert done.returncode in (0, 3, 4), done.stderr
    reason = json.loads(done.stdout)["reason"]
    assert not reason.startswith(("events are missing", "collective operation", "operations end")), reason
