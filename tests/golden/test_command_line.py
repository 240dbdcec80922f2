"""Exit code, stdout and stderr of commands as users type them, right and wrong.

`CROSSWIND_WRITE_GOLDEN=1 pytest tests/golden` writes the snapshots anew; look at the difference before you commit it.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import command_line
import pytest

ROOT = Path(__file__).parent.parent.parent
SNAPSHOTS = Path(__file__).parent / "snapshots"
FORK = "examples/fork_of_table_4.toml"
TASK = ["--task-size-mb", "2", "--task-work", "5"]

WRONG = {
    "empty.toml": "",
    "two_roots.toml": 'schema_version = 1\nname = "t"\n'
    '[[node]]\nname = "a"\ncompute_per_s = 1\n[[node]]\nname = "b"\ncompute_per_s = 1\n',
    "negative.toml": 'schema_version = 1\nname = "t"\n'
    '[[node]]\nname = "a"\ncompute_per_s = 1\nsend_limit_mb_per_s = -1\n',
    "misspelt.toml": 'schema_version = 1\nname = "t"\n[[node]]\nname = "a"\ncompute_pers = 1\n',
    "version.toml": 'schema_version = 7\nname = "t"\n[[node]]\nname = "a"\ncompute_per_s = 1\n',
    "steep.toml": 'schema_version = 1\nname = "t"\n[[node]]\nname = "r"\ncompute_per_s = 1\n'
    '[[node]]\nname = "a"\nparent = "r"\ncompute_per_s = 1\nreceive_limit_mb_per_s = 10\nir_send_s_per_mb = 0.2\n',
}

HEAD = 'schema_version = 1\nname = "pair"\n[[node]]\nname = "root"\ncompute_per_s = '
LEAF = '\n[[node]]\nname = "leaf"\nparent = "root"\ncompute_per_s = 25\nreceive_limit_mb_per_s = 20\n'
PAIRS = {
    "losses.toml": f"{HEAD}50{LEAF}send_losses = [[10.0, 0.4], [20.0, 0.5]]\n",
    "idle_root.toml": HEAD + "0" + LEAF,
}

STUDY = "examples/fork_graph.toml"
ONE = [f"--set={path}" for path in ("platform=fork_of_table_4.toml", "policy.ports=single", "workload.task_size_mb=2")]
ONE += ["--set", "workload.task_work=5"]
LOCAL = "examples/local_scheduling.toml"
BLAMED = "examples/barriers_under_daemons.toml"
PHASES, QUANTUM = "disturbance.source[0].phases=spread", "disturbance.source[0].quantum_s=0.1"
RUN_HEAD = 'schema_version = 1\nname = "e"\nplatform = "steep.toml"\n'
RUN_FARM = '[workload]\nkind = "farm"\ntasks = 10\ntask_size_mb = 2\ntask_work = 5\n'
WRONG_RUNS = {
    "order.toml": RUN_HEAD + RUN_FARM + '[policy]\norder = "interferense"\n',
    "sweep.toml": RUN_HEAD + RUN_FARM + '[sweep]\n"policy.odrer" = ["planned"]\n',
    "value.toml": RUN_HEAD + RUN_FARM + '[sweep]\n"workload.tasks" = [5, -5]\n',
    "no_platform.toml": RUN_HEAD.replace("steep", "stepe") + RUN_FARM,
    "no_tasks.toml": RUN_HEAD + '[workload]\nkind = "farm"\ntasks_file = "tasks.csv"\n',
    "bad_tasks.toml": RUN_HEAD + '[workload]\nkind = "farm"\ntasks_file = "bad.csv"\n',
}

RANKS = ["--ranks", "64", "--work-per-barrier-s", "0.0071"]
HALF = 'schema_version = 1\nname = "half"\n[[source]]\n'
DISTURBANCES = {
    "half.toml": HALF + 'kind = "coscheduled"\nquantum_s = 0.01\n',
    "third.toml": HALF + 'kind = "daemon"\ninterval_s = 1\nduration_s = 0.01\nranks = [2]\n',
    "two_jobs.toml": 'schema_version = 1\nname = "two jobs, table 1"\nswitch_cost_s = 1e-5\n'
    '[[source]]\nkind = "coscheduled"\ncause = "other job"\nquantum_s = 0.1\nskew_s = 0.01\n'
    '[[source]]\nkind = "local"\nquantum_s = 0.1\n'
    '[[source]]\nkind = "daemon"\ncause = "cron"\ninterval_s = 60\n'
    'duration_s = { distribution = "uniform", low = 0.003, high = 0.006 }\n'
    '[[source]]\nkind = "job"\nranks = [17]\nshare = 0.5\nslice_s = 0.1\n',
    "overlapping.toml": 'schema_version = 1\nname = "noise"\n[[source]]\nkind = "recorded"\nlength_s = 1\n'
    'causes = ["timer"]\n[[source.cpu]]\ncpu = 0\nintervals = [[0.1, 0.2, 0], [0.2, 0.1, 0]]\n',
}

SIMULATED = ["--on", "sim", "--cpus", "2"]
SENDING = "examples/streams_sending_side.toml"
TEST_OF_64 = ["--set", "workload.stream[0].message_bytes=64"]
LOCAL_OF_16 = ["--set", "workload.stream[1].message_bytes=16384"]
SITES = "examples/links_of_two_sites.toml"
LINKS = 'schema_version = 1\nname = "l"\n[[host]]\nname = "north"\ncompute_per_s = 1\n'
LINKS += '[[link]]\nfrom = "nort"\nto = "north"\nreceive_limit_mb_per_s = 1\n'
# Flows of type A, section 4.2 and table 2 of communication-interactions.
FLOWS = "flows,latency_s\n1,500e-6\n2,550e-6\n2,543e-6\n3,602e-6\n3,617e-6\n4,667e-6\n"

COMMANDS = {
    "nothing": [],
    "help": ["--help"],
    "plan help": ["plan", "--help"],
    "measure help": ["measure", "--help"],
    "measure runtime with an unknown option": ["measure", "--runtime", "java io=fast"],
    "measure beside nothing": ["measure", "--beside", "native"],
    "measure carriers of nothing": ["measure", "--carriers", "1"],
    "probe help": ["probe", "--help"],
    "unknown verb": ["pln"],
    "unknown option": ["plan", FORK, *TASK, "--port", "single"],
    "plan single": ["plan", FORK, *TASK, "--ports", "single"],
    "plan multi": ["plan", FORK, *TASK, "--ports", "multi"],
    "plan greedy": ["plan", FORK, *TASK, "--ports", "single", "--method", "greedy"],
    "plan json": ["plan", FORK, *TASK, "--ports", "single", "--json"],
    "plan nothing to gain": ["plan", FORK, "--task-size-mb", "10", "--task-work", "1"],
    "plan task of no size": ["plan", FORK, "--task-size-mb", "0", "--task-work", "5"],
    "plan task not finite": ["plan", FORK, "--task-size-mb", "2", "--task-work", "nan"],
    "plan missing file": ["plan", "no/such.toml", *TASK],
    "plan a directory": ["plan", "examples", *TASK],
    **{f"plan {name}": ["plan", f"TMP/{name}", *TASK] for name in WRONG},
    "plan losses": ["plan", "TMP/losses.toml", *TASK],
    "plan root that computes nothing": ["plan", "TMP/idle_root.toml", *TASK],
    "plan tolerance": ["plan", "tolerance", "TMP/two_jobs.toml", *RANKS],
    "plan tolerance json": ["plan", "tolerance", "TMP/two_jobs.toml", *RANKS, "--slowdown", "1.2", "--json"],
    "plan tolerance of too few ranks": ["plan", "tolerance", "TMP/two_jobs.toml", *RANKS, "--ranks", "3"],
    "plan tolerance of no program": ["plan", "tolerance", "TMP/two_jobs.toml"],
    "plan tolerance overlapping": ["plan", "tolerance", "TMP/overlapping.toml", *RANKS],
    "plan tree help": ["plan", "tree", "--help"],
    "plan queues help": ["plan", "queues", "--help"],
    "plan tolerance help": ["plan", "tolerance", "--help"],
    "plan of nothing": ["plan"],
    "plan queues": ["plan", "queues", SENDING, *TEST_OF_64, *LOCAL_OF_16, "--local-slowdown", "2.5"],
    "plan queues beyond": ["plan", "queues", SENDING, *TEST_OF_64, *LOCAL_OF_16, "--local-slowdown", "1.01"],
    "plan queues without a limit": ["plan", "queues", SENDING],
    "plan queues of a sweep": ["plan", "queues", SENDING, "--local-slowdown", "2"],
    "plan tree": ["plan", "tree", SITES, *TASK, "--ports", "single", "--root", "a2"],
    "plan tree of any root": ["plan", "tree", SITES, *TASK, "--ports", "multi"],
    "plan tree json": ["plan", "tree", SITES, *TASK, "--ports", "single", "--json"],
    "plan tree of no host": ["plan", "tree", SITES, *TASK, "--root", "a9"],
    "plan tree of no task": ["plan", "tree", SITES],
    "plan tree of a platform": ["plan", "tree", FORK, *TASK],
    "plan tree of an unknown host": ["plan", "tree", "TMP/links.toml", *TASK],
    "plan root of a platform": ["plan", FORK, *TASK, "--root", "Lab0"],
    "lesson help": ["lesson", "--help"],
    "lpt help": ["lpt", "--help"],
    "lpt tight": ["lpt", "--tight", "--machines", "3"],
    "lpt nothing": ["lpt"],
    "run help": ["run", "--help"],
    "run nothing": ["run"],
    "map help": ["map", "--help"],
    "map nothing": ["map"],
    "map on sim": ["map", "true", "--inputs", "Makefile", "--on", "sim"],
    "run on nowhere": ["run", STUDY, "--on", "mars"],
    "run missing file": ["run", "no/such.toml"],
    "run a plan": ["run", FORK],
    "run set nothing": ["run", STUDY, "--set", "policy.order"],
    "run set unknown": ["run", STUDY, "--set", "policy.odrer=planned"],
    "run set wrong": ["run", STUDY, "--set", "policy.order=plan"],
    "run trace of many": ["run", STUDY, "--trace", "TMP/trace.parquet"],
    "run out nowhere": ["run", STUDY, "--out", "/no/such/place/runs.json"],
    "run resume nothing": ["run", STUDY, "--resume"],
    "run orders": ["run", STUDY, *ONE],
    "run one": ["run", STUDY, *ONE, "--set", "policy.order=planned"],
    "run json": ["run", STUDY, *ONE, "--set", "policy.order=planned", "--json"],
    "map no input": ["map", "cat {}", "--inputs", "no/such/*"],
    "run timeout on sim": ["run", STUDY, "--task-timeout", "10"],
    "map no timeout": ["map", "cat {input}", "--inputs", "Makefile", "--task-timeout", "0"],
    "map wrong memory": ["map", "cat {input}", "--inputs", "Makefile", "--task-memory", "much"],
    **{f"run {name}": ["run", f"TMP/{name}"] for name in WRONG_RUNS},
    "cert help": ["cert", "--help"],
    "cert nothing": ["cert"],
    "cert a name that is none": ["cert", "--out", "TMP/certs", "Lab0", "a b"],
    "serve off loopback": ["serve", "--listen", "0.0.0.0:7117"],
    "serve agent without a token": ["serve", "--parent", "127.0.0.1:1", "--name", "a"],
    "filter help": ["filter", "--help"],
    "filter nothing": ["filter"],
    "filter bad forward": ["filter", "--peer", "127.0.0.1:7200", "--local", "8001=db"],
    "filter off loopback": ["filter", "--listen", "0.0.0.0:7200"],
    "filter bad policy": ["filter", "--listen", "127.0.0.1:0", "--policy", "drrr"],
    "filter check help": ["filter", "check", "--help"],
    "filter check nothing": ["filter", "check"],
    "filter check off loopback": ["filter", "check", "--listen", "0.0.0.0:0"],
    "filter in kernel by colour": ["filter", "--in-kernel", "eth0", "--parallel", "colour:red", "--rate", "10"],
    "filter in kernel with credits": ["filter", "--in-kernel", "eth0", "--parallel", "8001", "--credits", "receiver"],
    "filter in kernel at no rate": ["filter", "--in-kernel", "eth0", "--parallel", "8001", "--rate", "fast"],
    "filter dry run of nothing": ["filter", "--dry-run", "--listen", "127.0.0.1:0"],
    "filter auto in user space": ["filter", "--listen", "127.0.0.1:0", "--rate", "auto"],
    "filter export tc": ["filter", "--export", "tc", "--dev", "ens3", "--threshold", "4"],
    "filter export tc shaped": ["filter", "--export", "tc", "--policy", "strict", "--rate", "110"],
    "filter export cilium": ["filter", "--export", "cilium"],
    "filter export nccl": ["filter", "--export", "nccl", "--json"],
    "filter export fifo": ["filter", "--export", "tc", "--policy", "fifo"],
    "record help": ["record", "--help"],
    "record out nowhere": ["record", "--out", "/no/such/place/noise.toml"],
    "record bad cpus": ["record", "--cpus", "0-x", "--out", "TMP/noise.toml"],
    "inject help": ["inject", "--help"],
    "inject nothing": ["inject"],
    "inject no command": ["inject", "TMP/half.toml"],
    "inject missing file": ["inject", "no/such.toml", "--", "true"],
    "inject a platform": ["inject", FORK, "--", "true"],
    "inject no program": ["inject", "TMP/half.toml", "--", "no/such/program"],
    "inject no time": ["inject", "TMP/half.toml", "--limit-s", "0", "--", "true"],
    "inject a rank too many": ["inject", "TMP/third.toml", "--ranks", "2", "--", "true"],
    "run program": ["run", LOCAL],
    "run streams": ["run", "examples/streams_sending_side.toml"],
    "run streams trace": ["run", "examples/streams_sending_side.toml", "--trace", "TMP/trace.parquet"],
    "run streams json": [
        "run",
        "examples/streams_one_to_all.toml",
        *TEST_OF_64,
        "--set",
        "policy.threshold=4",
        "--json",
    ],
    "run streams wrong": ["run", "examples/streams_sending_side.toml", "--set", "workload.stream[1].class=remote"],
    "run program json": ["run", LOCAL, "--set", PHASES, "--set", QUANTUM, "--json"],
    "run program trace": ["run", LOCAL, "--trace", "TMP/trace.parquet", "--set", PHASES, "--set", QUANTUM],
    "blame help": ["blame", "--help"],
    "blame a farm": ["blame", STUDY],
    "blame a sweep": ["blame", LOCAL],
    "blame without seeds": ["blame", BLAMED, "--seeds", "0"],
    "blame missing file": ["blame", "no/such.toml"],
    "blame out nowhere": ["blame", BLAMED, "--out", "/no/such/place/blame.json"],
    "blame daemons": ["blame", BLAMED, "--seeds", "2", "--set", "workload.parameters.iterations=500"],
    "cost help": ["cost", "--help"],
    "cost nothing": ["cost"],
    "cost of no target": ["cost", "--of", "1234"],
    "cost of no process": ["cost", "--of", "pid:999999999"],
    "cost beside two jobs": ["cost", "--of", "command:sleep 60", "--job", "pid:5", "--", "true"],
    "cost by no progress": ["cost", "--of", "command:sleep 60", "--progress", "steps", "--", "sleep", "60"],
    "cost without a margin": ["cost", "--of", "command:sleep 60", "--margin", "0"],
    "cost of too little time": ["cost", "--of", "command:sleep 60", "--seconds", "1"],
    "cost at scale of no program": ["cost", "--of", "command:sleep 60", "--ranks", "64", "--program", "bsp:work"],
    "cost out nowhere": ["cost", "--of", "command:sleep 60", "--out", "/no/such/place/cost.json"],
    "compare help": ["compare", "--help"],
    "compare nothing": ["compare"],
    "compare one command": ["compare", "./app"],
    "compare a platform": ["compare", FORK],
    "compare no program": ["compare", "true", "no/such/program"],
    "compare without a margin": ["compare", "true", "true", "--margin", "200%"],
    "compare junit nowhere": ["compare", "true", "true", "--junit", "/no/such/place/compare.xml"],
    "compare a command that fails": ["compare", "true", "false", "--seconds", "1"],
    "check help": ["check", "--help"],
    "check nothing": ["check"],
    "check a platform": ["check", "--baseline", FORK],
    "check without a tolerance": ["check", "--save", "good.json", "--tolerance", "0"],
    "check out nowhere": ["check", "--save", "/no/such/place/good.json"],
    "check metrics nowhere": ["check", "--save", "good.json", "--prometheus", "/no/such/place/crosswind.prom"],
    "check two results in one": ["check", "--save", "good.json", "--prometheus", "good.json"],
    "check a wrong format": ["check", "--save", "good.json", "--format", "xml"],
    "overlap help": ["overlap", "--help"],
    "overlap bad messages": ["overlap", "--ping", "1MB"],
    "overlap bad wait": ["overlap", "--wait", "event,pol", "--nice", "0"],
    "overlap bad levels": ["overlap", "--nice", "low"],
    "overlap a level too high": ["overlap", "--nice", "20"],
    "overlap out nowhere": ["overlap", "--out", "/no/such/place/overlap.json"],
    "overlap resume nothing": ["overlap", "--resume"],
    "overlap without a peer": ["overlap", "--nice", "0", "--peer", "127.0.0.1:1"],
    "overlap sim with a peer": ["overlap", "--on", "sim", "--peer", "host:7117"],
    "overlap sim on a list of processors": ["overlap", "--on", "sim", "--cpus", "0,1"],
    "overlap sim with a constant that is none": ["overlap", "--on", "sim", "--set", "network.mb=3"],
    "overlap sim buffered": [
        "overlap",
        *SIMULATED,
        "--nice",
        "0",
        "--ping",
        "640x1MB",
        "--wait",
        "event,poll,buffered",
    ],
    "overlap live buffered": ["overlap", "--wait", "buffered", "--nice", "0"],
    "reproduce help": ["reproduce", "--help"],
    "reproduce another": ["reproduce", "quadrics"],
    "fit no measurement": ["fit", FORK],
    "fit contention help": ["fit", "contention", "--help"],
    "fit contention": ["fit", "contention", "TMP/flows.csv"],
    "fit contention of a platform": ["fit", "contention", FORK],
    "report unknown kind": ["report", "Makefile"],
    "schema": ["schema", "experiment"],
    "schema of nothing": ["schema", "platfrom"],
    "measure without a peer": ["measure", "--peer", "127.0.0.1:1", "--out", "TMP/m.parquet"],
    "measure bad size": ["measure", "--message-size", "lots"],
    "measure cluster on nowhere": ["measure", "cluster", "--on", "mars"],
    "measure cluster nowhere": ["measure", "cluster"],
    "measure cluster help": ["measure", "cluster", "--help"],
    "measure sweep help": ["measure", "sweep", "--help"],
    "measure sweep of no kind": ["measure", "sweep", "colour"],
    "measure bad out": ["measure", "--out", "/no/such/place/m.parquet"],
}


def crosswind(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    return command_line.crosswind(*arguments, cwd=ROOT, env=environment)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_said(name, tmp_path):
    more = {"bad.csv": "size_mb,work\n1,2\n1,two\n", "flows.csv": FLOWS, "links.toml": LINKS}
    for file, text in (WRONG | PAIRS | WRONG_RUNS | DISTURBANCES | more).items():
        (tmp_path / file).write_text(text)
    done = crosswind(*(a.replace("TMP", str(tmp_path)) for a in COMMANDS[name]))
    lines = f"exit code {done.returncode}\n--- stdout\n{done.stdout}--- stderr\n{done.stderr}"
    said = "\n".join(line.rstrip() for line in lines.replace(str(tmp_path), "TMP").splitlines()) + "\n"
    snapshot = SNAPSHOTS / f"{name.replace(' ', '_')}.txt"
    if os.environ.get("CROSSWIND_WRITE_GOLDEN"):
        snapshot.write_text(said)
    assert said == snapshot.read_text()


def test_json_is_exactly_one_document_with_the_names_that_scripts_rely_on():
    done = crosswind("plan", FORK, *TASK, "--ports", "single", "--json")
    plan = json.loads(done.stdout)
    assert {"throughput_tasks_per_s", "method", "gap_to_exact", "nodes"} <= set(plan)
    names = {"name", "computed_tasks_per_s", "received_tasks_per_s", "rank", "never_send", "limited_by"}
    assert all(names <= set(node) for node in plan["nodes"])


def test_runs_as_json_are_one_document_with_the_names_that_scripts_rely_on(tmp_path):
    out = tmp_path / "runs.json"
    done = crosswind("run", STUDY, *ONE, "--out", str(out), "--json")
    runs = json.loads(done.stdout)
    assert {"experiment", "on", "runs"} <= set(runs)
    names = {"params", "seed", "makespan_s", "throughput_tasks_per_s", "bound_tasks_per_s", "nodes"}
    assert all(names <= set(run) for run in runs["runs"])
    assert all({"name", "tasks", "busy_s", "received_mb"} <= set(n) for run in runs["runs"] for n in run["nodes"])
    assert runs == json.loads(out.read_text())


def test_the_same_seed_gives_the_same_bytes_whatever_the_number_of_workers(tmp_path):
    files = []
    for workers in ("1", "4"):
        files.append(tmp_path / f"{workers}.json")
        assert crosswind("run", STUDY, "--workers", workers, "--out", str(files[-1])).returncode == 0
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_trace_becomes_a_platform_a_time_line_and_a_report(tmp_path):
    trace, line, page = (tmp_path / name for name in ("trace.parquet", "trace.json", "report.html"))
    one = [*ONE, "--set", "policy.order=interference"]
    assert crosswind("run", STUDY, *one, "--trace", str(trace), "--perfetto", str(line)).returncode == 0
    assert json.loads(line.read_text())["traceEvents"]
    assert crosswind("fit", str(trace), "--out", str(tmp_path / "platform.toml")).returncode == 0
    assert crosswind("plan", str(tmp_path / "platform.toml"), *TASK).returncode == 0
    assert crosswind("report", str(trace), "--out", str(page)).returncode == 0
    assert "What each node did when" in page.read_text()


@pytest.mark.parametrize("rubbish", [b"\xff", b"a", b"[", b"a = {", b"k = 1\n", b'[[node]]\nname = "x"\n'])
def test_100_mb_of_rubbish_is_refused_in_bounded_memory(rubbish, tmp_path):
    file = tmp_path / "rubbish.toml"
    file.write_bytes(rubbish * (100_000_000 // len(rubbish)))

    def limit_memory():
        # 100 MB of file beside the 1.5 GB of address space that Python and its libraries map.
        resource.setrlimit(resource.RLIMIT_AS, (2_500_000_000, 2_500_000_000))

    command = [sys.executable, "-m", "crosswind.cli", "plan", str(file), *TASK]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, preexec_fn=limit_memory)
    assert done.returncode == 2, done.stderr[-500:]
    assert done.stderr.startswith(f"error: {file}")
    assert len(done.stderr) < 2000
