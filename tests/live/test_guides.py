"""The guides' commands, page by page: each is run, or the reason why not stands here and is printed."""

import re
import shutil
from pathlib import Path

import pytest
import typed

pytestmark = pytest.mark.live

PAGES = [page for room in ("guides", "concepts", "reference") for page in (typed.ROOT / "docs" / room).glob("*.md")]
SECONDS = 60

# The first that matches counts. Options and verbs of all of them are checked in tests/unit/test_docs_commands.py.
NOT_RUN = {
    r"--in-kernel": "takes over a network device; tests/live/test_filter_in_kernel.py does, between namespaces",
    r"\d+\.\d+\.\d+\.\d+|there:|host:7117|HOST:|dask:|hosts:": "needs another host",
    r"osnoise\.txt|netgauge\.out": "needs a recording of another tool; tests/unit/test_noise_files.py",
    r"mpirun": "takes minutes; tests/live/test_mpi.py",
    r"\./\w|pid:|cgroup:|daemon\.py|'A' 'B'|base\.json": "needs the reader's own program",
    r"(experiment|sweep|disturbance|cluster/links|links)\.toml|a-with-b|today\.parquet|trace\.parquet -o": (
        "needs the reader's own file"
    ),
    r"crosswind measure|measurement\.parquet": "takes a minute or more; the tutorial types a shorter one",
    r"overlap( *$| +#| --ping| --quick)|overlap\.json|reproduce": "takes minutes",
    r"blame (traces|app\.trace|steps|nccl)": "needs a recording of the reader's; tests/unit/blame/test_recorded.py",
    r"\.swf": "needs a recorded workload; tests/unit/exchange/test_workloads.py",
    r"(run|tolerance) app\.trace": "needs a recording of the reader's; tests/unit/run/test_recorded_runs.py",
    r"crosswind serve": "runs until it is interrupted",
    r"record": "takes 20 s; the start page of MPI developers types a shorter one",
    r"crosswind check": "takes 25 s; tests/live/test_check.py",
    r"compare 'taskset": "takes 20 s; tests/live/test_compare.py",
    r"streams_sending_side\.toml --on local|local\.json": "takes a minute; test_run.py runs streams for real",
    r"--beside|shared\.json": "takes minutes; tests/live/test_jobs.py",
    r"em3d_here\.toml --on local|here\.json": "takes a minute; tests/live/test_ranks.py",
}


MACHINE = Path(__file__).parents[1] / "unit" / "exchange" / "topologies" / "two-packages.xml"
CLUSTER = """<platform version="4.1"><zone id="z" routing="Full">
<cluster id="c" prefix="node-" suffix="" radical="0-3" speed="1Gf" bw="1Gbps" lat="50us"/></zone></platform>
"""


def reason(line: str) -> str | None:
    return next((why for pattern, why in NOT_RUN.items() if re.search(pattern, line)), None)


def _settled(page: Path, folder: Path) -> None:
    """Give a folder what guides take for granted: a platform, a table of flows, files to work on."""
    typed.settle(page, folder)
    shutil.copy(folder / "examples" / "fork_of_table_4.toml", folder / "platform.toml")
    (folder / "flows.csv").write_text("flows,latency_s\n1,500e-6\n2,550e-6\n2,543e-6\n3,602e-6\n3,617e-6\n4,667e-6\n")
    (folder / "cluster.xml").write_text(CLUSTER)
    shutil.copy(MACHINE, folder / "machine.xml")
    (folder / "topology.conf").write_text("SwitchName=s0 Nodes=n[0-3]\n")
    (folder / "src").mkdir()
    (folder / "src" / "one.c").write_text("int one(void) { return 1; }\n")
    (folder / "data").mkdir()
    for number in range(3):
        (folder / "data" / f"{number}.txt").write_text("a line of text\n" * 1000)


@pytest.mark.parametrize("page", [page for page in PAGES if typed.lines_of(page)], ids=lambda page: page.stem)
def test_the_commands_of_a_guide_run(page, tmp_path):
    _settled(page, tmp_path)
    made_elsewhere = []
    for line in typed.lines_of(page):
        if why := reason(line):
            print(f"not run: {line}\n  {why}")
            made_elsewhere += re.findall(r"(?:-o|--out) (\S+)", line)
            continue
        if any(name in line for name in made_elsewhere):
            print(f"not run: {line}\n  takes what a command makes that is not run")
            continue
        code, screen, _ = typed.type_in(line, tmp_path, SECONDS)
        assert code in (0, 3), f"$ {line}\n{screen}"


def test_no_reason_is_left_over():
    lines = [line for page in PAGES for line in typed.lines_of(page)]
    used = {reason(line) for line in lines}
    assert [why for why in NOT_RUN.values() if why not in used] == []
    assert sum(reason(line) is None for line in lines) > 25
