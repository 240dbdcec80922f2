"""Every verb that writes a file, as users type it: what is refused, and left as it was, before the work begins."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import command_line
import disturbed
import pytest
import reported

from crosswind import DescriptionError, Links
from crosswind.cli import app
from crosswind.files.kinds import found_at
from crosswind.measure.cluster.directory import Directory
from crosswind.measure.cluster.pairs import Visit

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
FORK, STREAMS, BLAMED, LINKS, DAEMONS, FARM = (
    str(EXAMPLES / f"{name}.toml")
    for name in (
        "fork_of_table_4",
        "streams_sending_side",
        "barriers_under_daemons",
        "links_of_two_sites",
        "daemons_of_table_1",
        "fork_graph",
    )
)
TASK = ["--task-size-mb", "2", "--task-work", "5"]
ONE = ["--set=platform=fork_of_table_4.toml", "--set=policy.ports=single", "--set=workload.task_size_mb=2"]
ONE += ["--set=workload.task_work=5", "--set=policy.order=planned"]
SMALL_STREAMS = [
    "--local-slowdown",
    "2.5",
    "--set",
    "workload.stream[0].message_bytes=64",
    "--set",
    "workload.stream[1].message_bytes=16384",
]
COMMAND = ["true", "--inputs", "IN/flows.csv", "-o", "IN/results"]
SIMULATED = ["--on", "sim", "--cpus", "2", "--nice", "0", "--ping", "10x1MB"]

# Each command with OUT where its result goes, and the kind of the result. IN/ holds an input of each kind.
VERBS = {
    "measure": (["measure", "-o", "OUT"], "measurement"),
    "fit": (["fit", "IN/m.parquet", "-o", "OUT"], "platform"),
    "fit a trace": (["fit", "IN/trace.parquet", "-o", "OUT"], "platform"),
    "fit flows": (["fit", "contention", "IN/flows.csv", "-o", "OUT"], "contention"),
    "plan": (["plan", "IN/platform.toml", *TASK, "-o", "OUT"], "plan"),
    "plan a tree": (["plan", "tree", "IN/links.toml", *TASK, "-o", "OUT"], "platform"),
    "plan queues": (["plan", "queues", STREAMS, *SMALL_STREAMS, "-o", "OUT"], "queues-plan"),
    "run": (["run", FARM, *ONE, "-o", "OUT"], "runs"),
    "run, trace": (["run", FARM, *ONE, "--trace", "OUT"], "trace"),
    "run, perfetto": (["run", FARM, *ONE, "--perfetto", "OUT"], "perfetto"),
    "map, trace": (["map", *COMMAND, "--trace", "OUT"], "trace"),
    "blame": (["blame", BLAMED, "--seeds", "1", "--set", "workload.parameters.iterations=50", "-o", "OUT"], "blame"),
    "cost": (["cost", "--of", "command:sleep 60", "--seconds", "5", "-o", "OUT"], "cost"),
    "compare": (["compare", "true", "true", "--seconds", "0.2", "--margin", "90%", "-o", "OUT"], "comparison"),
    "compare, junit": (["compare", "true", "true", "--seconds", "0.2", "--margin", "90%", "--junit", "OUT"], "junit"),
    "check": (["check", "--seconds", "10", "--save", "OUT"], "check"),
    "check, metrics": (["check", "--seconds", "10", "--history", "IN/h", "--prometheus", "OUT"], "metrics"),
    "record": (["record", "--seconds", "0.1", "--how", "loop", "-o", "OUT"], "recording"),
    "inject": (["inject", "IN/half.toml", "-o", "OUT", "--", "true"], "recording"),
    "overlap": (["overlap", "--burn-s", "0.05", "-o", "OUT"], "overlap"),
    "overlap, sim": (["overlap", *SIMULATED, "-o", "OUT"], "overlap"),
    "report": (["report", "IN/plan.json", "-o", "OUT"], "report"),
    "reproduce, report": (["reproduce", "quadrics-overlap", "-o", "IN/study", "--report", "OUT"], "report"),
    "schema": (["schema", "plan", "-o", "OUT"], "schema"),
}  # fmt: skip
# What is quick enough to be done for real, and does not depend on how busy the host is.
NOT_QUICK = ("measure", "overlap", "reproduce, report", "map, trace", "cost", "compare", "compare, junit", "check")
NOT_QUICK += ("check, metrics",)
DONE = [verb for verb in VERBS if verb not in NOT_QUICK]
TEXT = [verb for verb in DONE if VERBS[verb][1] not in ("trace", "report")]
DIRECTORIES = {
    "measure a sweep": ["measure", "sweep", "wait", "-o", "OUT"],
    "measure a cluster": ["measure", "cluster", "--on", "dask:tcp://127.0.0.1:1", "-o", "OUT"],
    "report, figures": ["report", "IN/plan.json", "-o", "IN/report.html", "--figures", "OUT"],
    "reproduce": ["reproduce", "quadrics-overlap", "-o", "OUT"],
    "reproduce, figures": ["reproduce", "quadrics-overlap", "-o", "IN/study", "--figures", "OUT"],
    "cert": ["cert", "-o", "OUT", "a"],
}


@pytest.fixture
def inputs(tmp_path):
    there = tmp_path / "in"
    there.mkdir()
    reported.measured().save(there / "m.parquet")
    reported.traced().save(there / "trace.parquet")
    reported.planned().save(there / "plan.json")
    shutil.copy(FORK, there / "platform.toml")
    shutil.copy(LINKS, there / "links.toml")
    (there / "half.toml").write_text(
        'schema_version = 1\nname = "half"\n[[source]]\nkind = "coscheduled"\nquantum_s = 0.01\n'
    )
    (there / "flows.csv").write_text("flows,latency_s\n1,5e-4\n2,5.5e-4\n2,5.4e-4\n3,6e-4\n3,6.1e-4\n")
    return there


def spelt(words: list[str], out: Path | str, inputs: Path) -> list[str]:
    return [word.replace("OUT", str(out)).replace("IN/", f"{inputs}/") for word in words]


def refused(words: list[str]) -> DescriptionError:
    with pytest.raises(DescriptionError) as error:
        app(words, prog_name="crosswind", standalone_mode=False)
    assert error.value.exit_code == 2
    assert error.value.hint
    assert "\n" not in str(error.value)
    return error.value


def perform(words: list[str]) -> int:
    """Have a command done in this process, which is quicker."""
    return app(words, prog_name="crosswind", standalone_mode=False) or 0


ENVIRONMENT = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}


def crosswind(*words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process that was forked for it."""
    return command_line.crosswind(*words, env=ENVIRONMENT, text=False, **options)


def interpreted(*words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command in an interpreter of its own, where how that ends is part of what is tested."""
    command = [sys.executable, "-m", "crosswind.cli", *words]
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(command, check=False, env=ENVIRONMENT, timeout=120, **how)


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_no_place_for_a_file_is_refused_before_the_work(tmp_path, inputs, verb):
    words, _ = VERBS[verb]
    before = sorted(inputs.iterdir())
    place = tmp_path / "place"
    place.mkdir()
    os.mkfifo(place / "fifo")
    (place / "dangling").symlink_to("nowhere")
    (place / "null").symlink_to("/dev/null")
    cases = {
        place / "no" / "such": "in a directory that does not exist",
        place: "a directory",
        place / "fifo": "a FIFO",
        place / "dangling": "which does not exist",
        place / "null": "a device",
        Path("/dev/null"): "a device",
        Path("/proc/x"): "in a directory",  # of mode 0555, which root passes, but in which no file can be made
    }
    for out, what in cases.items():
        error = refused([*spelt(words, out, inputs), "--force"])
        assert f"is {str(out)!r}, " in str(error)
        assert what in str(error)
    assert sorted(path.name for path in place.iterdir()) == ["dangling", "fifo", "null"]
    assert stat.S_ISFIFO((place / "fifo").stat().st_mode)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert sorted(inputs.iterdir()) == before


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_of_another_kind_is_refused_and_stays(tmp_path, inputs, verb):
    words, kind = VERBS[verb]
    others = {"experiment": Path(BLAMED).read_bytes(), "measurement": (inputs / "m.parquet").read_bytes()}
    others |= {"disturbance": Path(DAEMONS).read_bytes(), "": b"my notes\n"}
    for other, content in others.items():
        if other != kind:
            out = tmp_path / "out"
            out.write_bytes(content)
            assert found_at(out).kind == other
            error = refused(spelt(words, out, inputs))
            assert (error.code, "--force" in (error.hint or "")) == ("other-kind", True)
            assert out.read_bytes() == content


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        ("fit", "m.parquet"),
        ("fit a trace", "trace.parquet"),
        ("fit flows", "flows.csv"),
        ("plan", "platform.toml"),
        ("plan a tree", "links.toml"),
        ("inject", "half.toml"),
        ("report", "plan.json"),
    ],
)
def test_an_input_of_the_same_command_is_refused_by_any_name(tmp_path, inputs, verb, name):
    file, words = inputs / name, VERBS[verb][0]
    content = file.read_bytes()
    (tmp_path / "soft").symlink_to(file)
    (tmp_path / "hard").hardlink_to(file)
    for out in (file, tmp_path / "soft", tmp_path / "hard"):
        at = words.index("-o")
        error = refused(spelt([*words[:at], "--force", *words[at:]], out, inputs))
        assert "an input of the same command" in str(error)
    assert file.read_bytes() == content


@pytest.mark.parametrize(("verb", "named"), [("run", "fork_of_table_4.toml"), ("blame", "daemons_of_table_1.toml")])
def test_a_file_that_the_experiment_names_is_an_input(tmp_path, inputs, verb, named):
    for file in EXAMPLES.glob("*.toml"):
        shutil.copy(file, tmp_path)
    words = [word.replace(str(EXAMPLES), str(tmp_path)) for word in VERBS[verb][0]]
    error = refused([*spelt(words, tmp_path / named, inputs), "--force"])
    assert "an input of the same command" in str(error)
    assert (tmp_path / named).read_bytes() == (EXAMPLES / named).read_bytes()


@pytest.mark.parametrize("verb", DIRECTORIES)
def test_what_is_no_place_for_a_directory_is_refused_before_the_work(tmp_path, inputs, verb):
    (tmp_path / "file").write_text("mine")
    os.mkfifo(tmp_path / "fifo")
    for out in (
        tmp_path / "file",
        tmp_path / "fifo",
        tmp_path / "file" / "deeper",
        Path("/dev/null"),
        Path("/proc/x"),
        Path("-"),
    ):
        error = refused(spelt(DIRECTORIES[verb], out, inputs))
        assert f"is {str(out)!r}, " in str(error)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("verb", DONE)
def test_a_result_goes_into_a_new_file_over_its_own_kind_and_by_force_over_any(tmp_path, inputs, verb):
    words, kind = VERBS[verb]
    out = tmp_path / "out"
    for before in (None, "own", "other"):
        if before == "other":
            out.write_text("my notes\n")
        at = words.index("-o") if "-o" in words else 1
        force = ["--force"] if before == "other" else []
        assert perform(spelt([*words[:at], *force, *words[at:]], out, inputs)) in (0, 3)
        assert found_at(out).kind == kind
    beside = ["out.intervals.parquet"] if verb == "record" else []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out", *beside]


@pytest.mark.parametrize("verb", TEXT)
def test_a_dash_is_standard_output_which_then_holds_nothing_else(tmp_path, inputs, verb):
    words, kind = VERBS[verb]
    with (tmp_path / "out").open("wb") as out:
        done = crosswind(*spelt(words, "-", inputs), stdout=out.fileno())
    assert done.returncode in (0, 3), done.stderr.decode()
    assert found_at(tmp_path / "out").kind == kind
    perform(spelt(words, tmp_path / "file", inputs))
    lines = [path.read_bytes().count(b"\n") for path in (tmp_path / "out", tmp_path / "file")]
    assert lines[0] == lines[1] or kind == "recording"
    assert not (ROOT / "-").exists()


def test_samples_go_to_a_pipe_but_not_to_a_terminal(tmp_path, inputs):
    words = spelt(VERBS["run, trace"][0], "-", inputs)
    done = crosswind(*words)
    assert (done.returncode, done.stdout[:4], done.stdout[-4:]) == (0, b"PAR1", b"PAR1")
    own, terminal = os.openpty()
    done = crosswind(*words, stdout=terminal)
    os.close(terminal)
    os.close(own)
    assert done.returncode == 2
    assert b"a trace is binary, and standard output is a terminal" in done.stderr


@pytest.mark.parametrize("verb", DONE)
def test_a_limit_on_the_size_of_files_ends_it_without_a_traceback_and_keeps_the_old_file(tmp_path, inputs, verb):
    words, kind = VERBS[verb]
    out = tmp_path / "out"
    perform(spelt(words, out, inputs))
    content = out.read_bytes()
    assert found_at(out).kind == kind
    limit = min(200, len(content) // 2)
    done = crosswind(*spelt(words, out, inputs), file_limit_bytes=limit)
    assert done.returncode == 1
    beside = ["out.intervals.parquet"] if verb == "record" else []  # written first
    first = tmp_path / beside[0] if beside else out
    assert f"error: {first} cannot be written: file too large".encode() in done.stderr
    assert b"Traceback" not in done.stderr
    assert out.read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out", *beside]


def test_a_full_disk_ends_it_with_one_line(tmp_path, inputs):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], check=False, capture_output=True
    ).returncode:
        pytest.skip("cannot mount a tmpfs")
    try:
        words = ["run", FARM, "-o", str(disk / "runs.json"), "--set", "policy.order=planned"]
        done = crosswind(*words)
        left = [path.name for path in disk.iterdir()]
    finally:
        subprocess.run(["umount", disk], check=True)
    assert done.returncode == 1
    assert f"error: no space left on {disk}\n".encode() in done.stderr
    assert b"Traceback" not in done.stderr
    assert left in ([], ["runs.json"])  # whatever was complete


def test_runs_of_another_experiment_are_kept(tmp_path, inputs):
    out = tmp_path / "runs.json"
    words = spelt(VERBS["run"][0], out, inputs)
    assert crosswind(*words).returncode == 0
    content = out.read_bytes()
    for more in (["--set", "workload.tasks=7"], ["--on", "local"]):
        error = refused([*words, *more])
        assert (error.code, "--force" in (error.hint or "")) == ("runs-differ", True)
    other = refused(["run", str(EXAMPLES / "local_scheduling.toml"), "-o", str(out)])
    assert "runs of an experiment, but of another: 'fork graph', on sim" in str(other)
    assert out.read_bytes() == content
    assert crosswind(*words).returncode == 0
    assert crosswind(*words, "--set", "workload.tasks=7", "--force").returncode == 0
    assert out.read_bytes() != content


def test_a_plan_takes_no_experiment_s_place_and_a_report_not_its_own_input(tmp_path, inputs):
    """As they were found: both destroyed files without a word."""
    experiment = tmp_path / "experiment.toml"
    shutil.copy(BLAMED, experiment)
    done = crosswind(*spelt(VERBS["plan"][0], experiment, inputs))
    assert (done.returncode, done.stdout) == (2, b"")
    shown = f"error: --out is {str(experiment)!r}, an experiment; a plan would take its place\n\n"
    assert done.stderr.decode() == shown + "hint: name another file, or replace it with --force\n"
    assert experiment.read_bytes() == Path(BLAMED).read_bytes()
    done = crosswind("report", str(inputs / "plan.json"), "-o", str(inputs / "plan.json"))
    assert done.returncode == 2
    assert b"an input of the same command" in done.stderr


def test_a_study_takes_no_other_study_s_place(tmp_path):
    disturbed.studied().save(tmp_path / "study.json")
    error = refused(["reproduce", "quadrics-overlap", "-o", str(tmp_path)])
    assert "a study, but of another: 'scheduling-and-communication', quick form" in str(error)


def test_a_measured_cluster_takes_no_place_of_what_it_did_not_write(tmp_path):
    Links.load(LINKS).save(tmp_path / "links.toml")

    def taken_up(*hosts: str, force: bool = False, resume: bool = True, **arguments: object) -> Directory:
        return Directory.taken_up(tmp_path, hosts, arguments, [visit], resume, force)

    visit = Visit("a", "b", "receive")
    with pytest.raises(DescriptionError, match=r"holds a links.toml that no measurement wrote"):
        taken_up("a", "b")
    taken_up("a", "b", force=True, seed=1).write_index(hosts={"a": "", "b": ""}, ended="done")
    reported.measured().save(taken_up("b", "c", seed=1).file(visit))
    assert taken_up("b", "c", seed=1).measurements.keys() == {visit}
    with pytest.raises(DescriptionError, match="of another cluster, with the hosts a, b"):
        taken_up("c", "d", resume=False, seed=1)
    with pytest.raises(DescriptionError, match="seed is 1 there, 2 now") as error:
        taken_up("a", "b", resume=False, seed=2)
    assert "--no-resume --force" in (error.value.hint or "")
    assert taken_up("a", "b", seed=1).file(visit).exists()
    assert not taken_up("c", "d", resume=False, force=True, seed=2).file(visit).exists()


# Every verb that prints; each quick, each successful.
PRINTS = {
    "plan": ["plan", FORK, *TASK],
    "fit": ["fit", "IN/m.parquet"],
    "run": ["run", FARM, *ONE],
    "blame": VERBS["blame"][0][:-2],
    "overlap": VERBS["overlap, sim"][0][:-2],
    "schema": ["schema", "plan"],
    "report": ["report", "IN/plan.json", "-o", "IN/report.html"],
    "record": ["record", "--seconds", "0.1", "--how", "loop", "-o", "IN/noise.toml"],
    "filter": ["filter", "--export", "tc"],
    "plan json": ["plan", FORK, *TASK, "--json"],
    "run json": ["run", FARM, *ONE, "--json"],
    "fit json": ["fit", "IN/m.parquet", "--json"],
    "overlap json": [*VERBS["overlap, sim"][0][:-2], "--json"],
    "plan to standard output": ["plan", FORK, *TASK, "-o", "-"],
    "help": ["--help"],
    "version": ["--version"],
}


def ends_quietly(words: list[str], run: Callable[..., subprocess.CompletedProcess[bytes]]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    gone = run(*words, stdout=writing)
    os.close(writing)
    assert (gone.returncode, b"Traceback" in gone.stderr, b"Exception" in gone.stderr) == (141, False, False)
    assert b"error" not in gone.stderr
    with Path("/dev/full").open("wb") as device:
        full = run(*words, stdout=device.fileno())
    assert (full.returncode, b"Traceback" in full.stderr, b"Exception" in full.stderr) == (1, False, False)
    assert b"error: standard output: no space left on device\n" in full.stderr


@pytest.mark.parametrize("verb", PRINTS)
def test_standard_output_that_is_gone_or_full_ends_it_quietly(inputs, verb):
    ends_quietly(spelt(PRINTS[verb], "", inputs), crosswind)


@pytest.mark.parametrize("verb", PRINTS)
def test_an_interpreter_whose_standard_output_is_gone_or_full_ends_quietly(inputs, verb):
    ends_quietly(spelt(PRINTS[verb], "", inputs), interpreted)


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)])
def test_streams_that_are_closed_from_the_beginning_crash_nothing(tmp_path, inputs, closed):
    def close() -> None:
        for number in closed:
            os.close(number)

    out = tmp_path / "plan.json"
    for words, code in ((spelt(VERBS["plan"][0], out, inputs), 0), (["plan", "no/such.toml", *TASK], 2)):
        done = interpreted(*words, preexec_fn=close)
        assert done.returncode == (141 if 1 in closed and code == 0 else code)
        assert b"Traceback" not in done.stderr
    assert found_at(out).kind == "plan"


def test_standard_error_that_is_gone_or_full_changes_nothing(inputs):
    for words, code in ((["plan", FORK, *TASK], 0), (["plan", "no/such.toml", *TASK], 2)):
        said = interpreted(*words).stdout
        with Path("/dev/full").open("wb") as device:
            full = interpreted(*words, stderr=device)
        reading, writing = os.pipe()
        os.close(reading)
        gone = interpreted(*words, stderr=writing)
        os.close(writing)
        assert [(done.returncode, done.stdout) for done in (full, gone)] == [(code, said)] * 2


def test_certificates_on_a_disk_that_fills_up_leave_no_half_of_a_key(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "none", disk]  # room for the authority, not for a node
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("cannot mount a tmpfs")
    try:
        done = crosswind("cert", "-o", str(disk / "certs"), "a", "b")
        left = sorted(path.name for path in (disk / "certs").iterdir())
        subprocess.run(["mount", "-o", "remount,size=1m", disk], check=True)
        again = crosswind("cert", "-o", str(disk / "certs"), "a", "b")
    finally:
        subprocess.run(["umount", disk], check=True)
    assert (done.returncode, left) == (1, ["ca"])
    assert f"error: no space left on {disk / 'certs'}\n".encode() in done.stderr
    assert again.returncode == 0
