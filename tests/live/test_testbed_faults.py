"""Faults of hosts and of what lies between them, with real agents on nodes that are network namespaces.

Skipped where they cannot be made (no root, no testbed). Faults of processes alone: test_farm_faults.py.
"""

import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import cloudpickle
import farms
import pytest
from farms import Flow, point, slowly, take, tree, value, wait_until

from crosswind.errors import MeasurementError
from crosswind.run.agents import Launch, Limits, LiveFarm, Task, Work, run_farm
from crosswind.run.columns import activities

pytestmark = pytest.mark.live

cloudpickle.register_pickle_by_value(farms)
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from testbed_farms.nodes import Testbed, missing  # noqa: E402

NODES = ("root", "a", "b", "c")
LINKS = (("root", "a"), ("root", "b"), ("a", "c"))
LINK_MBPS = 50
SPEC = {
    "prefix": "xwflt",
    "subnet": "10.79.7.0/24",
    "nodes": {node: {"cpu": 1.0} for node in NODES},
    "links": [{"from": above, "to": below, "MBps": LINK_MBPS} for above, below in LINKS],
}
SILENCE_S = 1.0


@pytest.fixture(scope="module")
def bed():
    if (why := missing()) is not None:
        pytest.skip(f"no testbed: {why}")
    with Testbed(SPEC) as found:
        yield found


@contextmanager
def farm_on(bed, platform, function=slowly, prefix=None, **options):
    """A farm whose root is this process, on the testbed's node `root`."""
    launch = Launch(prefix=prefix or bed.on, address=bed.addresses.__getitem__)
    limits = Limits(start_s=30.0, silence_s=SILENCE_S)
    work = Work("callable", function=function)
    farm = LiveFarm(platform, point(), work, launch=launch, limits=limits, **options)
    with bed.entered("root"):
        farm.start()
    try:
        yield farm
    finally:
        farm.__exit__(None, None, None)


def events(summary, code):
    return [event["node"] for event in summary["events"] if event["code"] == code]


def is_lost(farm, name):
    log = farm.processes.logs / "root.log"
    return lambda _: f"{name} is lost: it was silent" in log.read_text()


def test_a_host_that_is_cut_off_costs_no_task_and_works_again_when_it_is_back(bed):
    with farm_on(bed, tree("root", "a<root", "b<root")) as farm:
        flow = Flow(farm)
        flow.until(lambda result: result.node == "a", "a's first result")
        bed.cable("a", plugged=False)
        try:
            flow.until(is_lost(farm, "a"), "that a is missed")
        finally:
            bed.cable("a", plugged=True)
        flow.until(lambda result: result.node == "a", "a's return")
        summary = flow.end()
    assert events(summary, "agent-lost") == ["a"]
    assert events(summary, "agent-joined") == ["a"]


def test_an_inner_node_that_is_cut_off_comes_back_with_those_below(bed):
    # c reaches a all the while: it must neither end nor go on without the root.
    with farm_on(bed, tree("root", "a<root", "b<root", "c<a")) as farm:
        flow = Flow(farm)
        flow.until(lambda result: result.node == "c", "c's first result")
        pids = {name: farm.processes.pid(name) for name in ("a", "c")}
        bed.way("a", "root", there=False)
        try:
            flow.until(is_lost(farm, "a"), "that a is missed")
        finally:
            bed.way("a", "root", there=True)
        flow.until(lambda result: result.node == "c", "c's return")
        assert {name: farm.processes.pid(name) for name in ("a", "c")} == pids, "no process had to be started again"
        summary = flow.end()
    assert "a" in events(summary, "agent-lost")
    assert "a" in events(summary, "agent-joined")


def test_a_node_that_becomes_slow_gets_fewer_tasks_and_is_not_given_up(bed):
    def burn(number):
        until = time.thread_time() + 0.005
        while time.thread_time() < until:
            pass
        return number * number

    with farm_on(bed, tree("root", "a<root", "b<root"), burn, prefix=lambda node: bed.on(node, shared=True)) as farm:
        flow = Flow(farm)
        flow.until(lambda result: result.node == "a", "a's first result")
        bed.change("a", cpu=0.05)
        try:
            slow = flow.until(lambda _: len(flow.taken) > 300, "300 results")
        finally:
            bed.change("a", cpu=1.0)
        summary = flow.end()
    assert sum(result.node == "a" for result in slow) < sum(result.node == "b" for result in slow)
    assert summary["events"] == []


def test_a_link_that_becomes_slow_takes_longer_than_the_silence_for_a_task_and_no_node_is_given_up(bed):
    size = 1_000_000
    with farm_on(bed, tree("root", "a<root", "b<root"), len) as farm:
        flow = Flow(farm, lambda number: Task(pickle.dumps(bytes(size))), lambda number: size)
        flow.until(lambda result: result.node == "a", "a's first result", ahead=10)
        bed.change("root:a", MBps=0.6)  # a task on it takes 1.7 s
        try:
            # More than a and b held already: the last of them came over the slow link.
            begun = time.monotonic()
            flow.until(lambda _: time.monotonic() > begun + 2 * SILENCE_S, "a task over the slow link", ahead=10)
        finally:
            bed.change("root:a", MBps=LINK_MBPS)
        summary = flow.end()
    assert summary["events"] == []


def needs_root():
    if os.geteuid() != 0:
        pytest.skip("needs root")


def test_agents_whose_clocks_differ_agree_on_when_things_happened():
    # Another monotonic clock is what another host has; the wall clock, which a user may step, is not read.
    # (crates/live/clippy.toml), and no namespace could step it for us alone.
    needs_root()
    ahead_s = 1_000_000
    words = ["unshare", "--time", "--monotonic", str(ahead_s), "--"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no time namespaces here")
    launch = Launch(prefix=lambda node: words if node == "a" else ())
    limits = Limits(start_s=30.0, silence_s=SILENCE_S)

    def monotonic_s(number):
        time.sleep(0.005)
        return time.monotonic()

    work = Work("callable", function=monotonic_s)
    platform = tree("r", "a<r", "b<r", "c<a")
    with LiveFarm(platform, point(), work, launch=launch, limits=limits, trace=True) as farm:
        for number in range(100):
            farm.submit(Task(pickle.dumps(number)))
        farm.end_of_tasks()
        taken = take(farm, 100)
        summary, columns = farm.close()
        assert set(farm.replay()) == {"r", "a", "b", "c"}
    clocks = {node: min(value(r) for r in taken.values() if r.node == node) for node in ("a", "b")}
    assert clocks["a"] - clocks["b"] > ahead_s / 2, "the clock was another"
    assert summary["events"] == []
    seen = activities(columns, platform).to_pylist()
    assert {row["node"] for row in seen if row["kind"] == "compute"} == {"a", "b", "c"}
    assert all(0 <= row["start_s"] <= row["end_s"] <= summary["makespan_s"] + SILENCE_S for row in seen)


@contextmanager
def small_disk(at, size):
    """A disk that is soon full."""
    needs_root()
    at.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(at)], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


def test_an_agent_whose_disk_is_full_ends_and_the_others_do_its_tasks(tmp_path, monkeypatch):
    needs_root()
    large = tmp_path / "large"
    large.write_bytes(bytes(3_000_000))
    # Of a's own, in place of the directory for temporary files, which is not /tmp: this package may lie there.
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    small = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size=1m none {temporary} && exec "$@"', "sh"]
    launch = Launch(prefix=lambda node: small if node == "a" else (), logs=tmp_path / "logs")
    sizes = []
    summary, _ = run_farm(
        tree("r", "a<r", "b<r"),
        point(),
        Work("command", command="wc -c < {input}"),
        source=[Task(large) for _ in range(20)],
        sink=lambda result: sizes.append((result.node, int(result.data))),
        launch=launch,
        limits=Limits(silence_s=SILENCE_S),
    )
    assert sizes == [("b", 3_000_000)] * 20
    assert set(events(summary, "agent-lost")) == {"a"}  # it is started again, some times
    assert "No space left on device" in (tmp_path / "logs" / "a.log").read_text()


def test_a_root_whose_disk_is_full_goes_on_from_its_journal_once_there_is_room(tmp_path):
    def run(out, resume):
        work = Work("command", command="head -c 50000 /dev/zero; : {input}")
        source = [Task(b"", 0.0, f"{number}.out") for number in range(60)]
        return run_farm(
            tree("r", "a<r"), point(), work, source=source, out=out, journal=out / "journal", resume=resume
        )[0]

    with small_disk(tmp_path / "disk", "1m") as out:
        with pytest.raises(MeasurementError) as full:
            run(out, False)
        assert (full.value.code, full.value.exit_code) == ("disk-full", 1)
        there = {path.name for path in out.glob("*.out")}
        assert 0 < len(there) < 60
        assert not list(out.glob("*.part"))
        subprocess.run(["mount", "-o", "remount,size=10m", str(out)], check=True)
        summary = run(out, True)
        assert summary["tasks"] == 60 - len(there)
        assert [(out / f"{number}.out").stat().st_size for number in range(60)] == [50_000] * 60


@contextmanager
def memory_group(limit_bytes):
    """A control group that may have no more memory than that."""
    needs_root()
    group = Path(f"/sys/fs/cgroup/memory/crosswind-test-{os.getpid()}")
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control groups of memory here: {error}")
    try:
        (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
        yield group
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text(), "the end of the agents' watchdogs")
        group.rmdir()


def test_a_task_for_which_the_kernel_kills_its_agent_is_given_up_and_the_others_are_done():
    def greedy(number):
        return len(b"x" * 1_000_000_000) if number == 5 else number

    with memory_group(300_000_000) as group:
        within = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group)]
        launch = Launch(prefix=lambda node: within)
        work = Work("callable", function=greedy)
        with LiveFarm(tree("r", "a<r", "b<r"), point(), work, launch=launch) as farm:
            for number in range(40):
                farm.submit(Task(pickle.dumps(number)))
            farm.end_of_tasks()
            taken = take(farm, 40)
            summary, _ = farm.close()
    assert {task for task, result in taken.items() if not result.ok} == {5}
    assert "task-given-up" in [event["code"] for event in summary["events"]]
    assert len(events(summary, "agent-lost")) >= 5


def test_a_task_that_wants_more_memory_than_it_may_have_is_an_ordinary_error():
    def greedy(number):
        if number != 5:
            return number
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000, before[1]))
        try:
            return len(bytes(100_000_000_000))
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)

    with LiveFarm(tree("r", "a<r"), point(), Work("callable", function=greedy)) as farm:
        for number in range(20):
            farm.submit(Task(pickle.dumps(number)))
        farm.end_of_tasks()
        taken = take(farm, 20)
        summary, _ = farm.close()
    assert {task for task, result in taken.items() if not result.ok} == {5}
    assert "MemoryError" in taken[5].data.decode()
    assert summary["events"] == []
