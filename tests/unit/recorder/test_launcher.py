import pytest

from crosswind.errors import DescriptionError
from crosswind.recorder import build, launcher
from crosswind.recorder.launcher import Launcher, find, is_launcher

PRINTED = {
    "open-mpi": "mpirun (Open MPI) 5.0.11",
    "hydra": "HYDRA build details:\n    Version: 4.3.0",
    "slurm": "slurm 23.11.4",
}
VARIABLES = {"LD_PRELOAD": "/c/r.so", "CROSSWIND_TRACE_PARTS": "/p"}


def program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("open-mpi", ["-x", "LD_PRELOAD=/c/r.so", "-x", "CROSSWIND_TRACE_PARTS=/p"]),
        ("hydra", ["-genv", "LD_PRELOAD", "/c/r.so", "-genv", "CROSSWIND_TRACE_PARTS", "/p"]),
        ("slurm", ["--export=ALL,LD_PRELOAD=/c/r.so,CROSSWIND_TRACE_PARTS=/p"]),
    ],
)
def test_each_launcher_sets_variables_in_the_ranks_alone(kind, words, tmp_path):
    path = program(tmp_path / "mpirun", f"echo '{PRINTED[kind]}'")
    found = find(str(path))
    assert found.kind == kind
    assert found.command(VARIABLES, ["-n", "2", "./app"]) == [str(path), *words, "-n", "2", "./app"]


def test_a_launcher_of_an_unknown_mpi_is_refused(tmp_path):
    path = program(tmp_path / "mpirun", "echo 'my MPI 1.0'")
    with pytest.raises(DescriptionError, match=r"not known here: it prints 'my MPI 1\.0'"):
        find(str(path))


def test_a_missing_launcher_is_refused():
    with pytest.raises(DescriptionError, match="nowhere/mpirun was not found"):
        find("/nowhere/mpirun")


def test_launchers_are_known_by_their_names():
    assert all(is_launcher(word) for word in ("mpirun", "/opt/x/bin/mpiexec.hydra", "srun"))
    assert not any(is_launcher(word) for word in ("python", "./mpirun.sh", "torchrun"))


def test_what_is_preloaded_already_stays(monkeypatch, tmp_path):
    monkeypatch.setenv("LD_PRELOAD", "/other.so")
    assert launcher.variables(tmp_path / "r.so", tmp_path)["LD_PRELOAD"] == f"{tmp_path}/r.so:/other.so"


def test_the_compiler_is_the_one_beside_the_launcher(monkeypatch, tmp_path):
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        program(tmp_path / place / "mpicc", "")
    program(tmp_path / "one" / "mpicc.mpich", "")
    monkeypatch.setenv("PATH", str(tmp_path / "two"))
    one = str(tmp_path / "one")
    assert build.mpicc_for(Launcher(f"{one}/mpirun", "hydra")) == f"{one}/mpicc"
    assert build.mpicc_for(Launcher(f"{one}/mpirun.mpich", "hydra")) == f"{one}/mpicc.mpich"
    assert build.mpicc_for(Launcher("/nowhere/mpirun", "hydra")) == str(tmp_path / "two" / "mpicc")
    assert build.mpicc_for(Launcher("/nowhere/mpirun", "hydra"), f"{one}/mpicc") == f"{one}/mpicc"


def test_without_a_compiler_the_error_says_where_to_get_one(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DescriptionError, match="no mpicc was found") as refused:
        build.mpicc_for(Launcher("/nowhere/mpirun", "hydra"))
    assert "--mpicc PATH" in refused.value.hint
    with pytest.raises(DescriptionError, match="--mpicc is 'nope', which is no program"):
        build.mpicc_for(Launcher("/nowhere/mpirun", "hydra"), "nope")


def test_a_compiler_of_another_mpi_is_refused(tmp_path):
    mpicc = program(tmp_path / "mpicc", "echo '#define OMPI_MAJOR_VERSION 5'")
    with pytest.raises(DescriptionError, match=r"is of Open MPI, and /m/mpirun of MPICH"):
        build.built(str(mpicc), Launcher("/m/mpirun", "hydra"))


def test_a_compiler_that_fails_is_named_with_its_message(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    mpicc = program(tmp_path / "mpicc", "echo 'gcc: error: no such thing' >&2; exit 1")
    with pytest.raises(DescriptionError, match="cannot compile the recorder: gcc: error: no such thing"):
        build.built(str(mpicc), Launcher("/m/mpirun", "open-mpi"))


def test_a_recorder_is_built_once_for_each_version_of_an_mpi(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    calls = tmp_path / "calls"
    text = f"""
    echo "$@" >> {calls}
    case "$*" in *-dM*) echo "#define OMPI_MAJOR_VERSION $MAJOR"; exit 0;; *-E*) exit 0;; esac
    while [ "$1" != -o ]; do shift; done
    echo built > "$2"
    """
    mpicc = program(tmp_path / "mpicc", text)
    told = []
    found = Launcher("/m/mpirun", "open-mpi")
    monkeypatch.setenv("MAJOR", "5")
    first = build.built(str(mpicc), found, told.append)
    assert first == build.built(str(mpicc), found, told.append)
    monkeypatch.setenv("MAJOR", "6")
    second = build.built(str(mpicc), found, told.append)
    assert (first != second, len(told)) == (True, 2)
    assert sorted(one.name for one in build.cache().iterdir()) == sorted([first.name, second.name]), (
        "nothing else is kept"
    )
