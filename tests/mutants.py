"""Files of every kind with something wrong in them, and every verb that reads such a file, run in a process of its own.

`Target` names the file that is changed, the files beside it, and the command. A mutant is made from a seed, so the same
seed finds the same fault again. Used by `tests/unit/files/test_mutants.py` and `benchmarks/file_mutants.py`.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import accelerators
import costly
import disturbed
import interacting
import pyarrow as pa
import pyarrow.parquet as pq
import recorded_ranks
import reported
import streamed
import synthetic
from checks import checked, of_a_cluster
from command_line import leave, perform, take_streams

from crosswind.blame.recorded import blame_recorded
from crosswind.errors import CrosswindError
from crosswind.files.intervals import save_recording

EXAMPLES = Path(__file__).parent.parent / "examples"
GOAL = Path(__file__).parent.parent / "crates/sim/tests/goal/scatter_8.goal"
MOST_BYTES = 1 << 30
"""Of memory that reading a file may take beyond what the process has."""
MOST_CPU_S = 20
"""Of any verb but `run`: that simulates what the file asks for, days if it is to."""
INTERRUPTED_CPU_S = 10
"""A `run` that takes longer is no fault if it has printed its size, and ctrl-C ends it in this time."""
WAITS_S = 600
"""A command that takes this long without using its processor time waits for something."""
INTERRUPTED = 130
PERMITTED = (0, 1, 2, 3, 4)
"""Exit codes; 70 is a fault of Crosswind."""

ODD: tuple[Any, ...] = (
    *(0, -1, 1, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf"), 2**31, 2**53 + 1, 2**63, 2**64),
    *(
        -(2**63),
        10**400,
        True,
        None,
        "",
        "\u202e\x1b[31m",
        "a" * 70000,
        "\x00",
        "1",
        "nan",
        "-",
        "/dev/zero",
        "é" * 300,
    ),
    *([], {}, [[]], [None], {"a": 1}, [1, 2, 3], [float("nan")] * 3),
)
LITERALS = [
    *(
        b"0",
        b"-1",
        b"nan",
        b"inf",
        b"-inf",
        b"1e308",
        b"1e400",
        b"5e-324",
        b"9223372036854775807",
        b"true",
        b"[]",
        b"{}",
    ),
    *(
        b"9223372036854775808",
        b"1" + b"0" * 400,
        b'"x"',
        b"[1, 2]",
        b"{a = 1}",
        b'""',
        b'"' + b"a" * 70000 + b'"',
        b"2",
    ),
    *(b'"\\u202e\\u0000"', b"1979-05-27", b"0x10", b"1e9", b"1000000000", b'"/dev/zero"', b'"."', b"0.5", b"1e18"),
    b"[" * 3000 + b"]" * 3000,
]
VALUE = re.compile(rb"(?<=[=:,\[ ])[ ]*(-?[0-9][0-9_.e+-]*|\"[^\"\n]*\"|true|false)")


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of each field below a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:40]) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*at, key)
        yield from places(each, (*at, key))


def changed_json(document: Any, draw: random.Random) -> Any:
    """Return a document with one to four fields changed, removed, repeated or of another type."""
    document = json.loads(json.dumps(document))
    every = list(places(document))
    for _ in range(draw.choice([1, 1, 1, 2, 4]) if every else 0):
        *before, last = draw.choice(every)
        inside = document
        with suppress(KeyError, IndexError, TypeError, OverflowError):  # what an earlier change took away
            for key in before:
                inside = inside[key]
            value = inside[last]
            how = draw.randrange(7)
            if how <= 3:
                inside[last] = draw.choice(ODD)
            elif how == 4:
                del inside[last]
            elif how == 5:
                inside[last] = [value] * draw.choice([0, 1, 2, 1000]) if draw.random() < 0.5 else {"x": value}
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                inside[last] = draw.choice([-value, value * 1e300, value * 1e-300, value + 0.5, str(value)])
            else:
                inside[last] = len(value) if isinstance(value, (str, list, dict)) else 7
    return document


def changed_text(text: bytes, draw: random.Random) -> bytes:
    """Return a text with a bit, a value, a line or a part changed."""
    found = bytearray(text)
    if not found:
        return text
    at, how, lines = draw.randrange(len(found)), draw.randrange(16), text.split(b"\n")
    match how:
        case 0:
            found[at] ^= 1 << draw.randrange(8)
        case 1:
            del found[at:]
        case 2:
            found[at:at] = draw.randbytes(draw.choice([1, 8, 100]))
        case 3:
            found[:0] = b"[" * draw.choice([100, 5000, 200_000])
        case 4:
            found[at:at] = b"\xff\xfe\x00"
        case 5:
            found[:0] = b"\xef\xbb\xbf"
        case 6:
            return text.replace(b"\n", b"\r\n")
        case 12:
            lines.insert(draw.randrange(len(lines)), draw.choice(lines))
            return b"\n".join(lines)
        case 13:
            del lines[draw.randrange(len(lines))]
            return b"\n".join(lines)
        case 14:
            draw.shuffle(lines)
            return b"\n".join(lines)
        case 15:
            first, last = sorted((at, draw.randrange(len(found))))
            found[first:last] = found[first:last][:100] * draw.choice([0, 2, 50])
        case _:
            values = list(VALUE.finditer(text))
            if values:
                chosen = draw.choice(values)
                found[chosen.start(1) : chosen.end(1)] = draw.choice(LITERALS)
    return bytes(found)


def json_mutant(content: bytes, draw: random.Random) -> bytes:
    """Return a changed JSON document, or text."""
    if draw.random() < 0.25:
        return changed_text(content, draw)
    document = changed_json(json.loads(content), draw)
    return json.dumps(document, ensure_ascii=draw.random() < 0.5).encode("utf-8", "surrogatepass")


def toml_mutant(content: bytes, draw: random.Random) -> bytes:
    """Return a TOML text, changed once or twice."""
    once = changed_text(content, draw)
    return once if draw.random() < 0.8 else changed_text(once, draw)


def parquet_mutant(content: bytes, draw: random.Random) -> bytes:
    """Return a Parquet file with bytes, its header or a column changed."""
    if draw.random() < 0.3:
        found, how = bytearray(content), draw.randrange(3)
        if how == 0:
            del found[draw.randrange(len(found)) :]
        for _ in range(draw.choice([1, 1, 3, 30]) if how else 0):
            near_end = len(found) - 1 - draw.randrange(min(4000, len(found)))
            found[draw.randrange(len(found)) if how == 1 else near_end] = draw.randrange(256)
        return bytes(found)
    table = pq.read_table(io.BytesIO(content))
    header, what = dict(table.schema.metadata or {}), draw.random()
    if what < 0.5 and header:
        key = draw.choice(sorted(key for key in header if key != b"ARROW:schema"))
        with suppress(ValueError):
            header[key] = json.dumps(changed_json(json.loads(header[key]), draw)).encode("utf-8", "surrogatepass")
        table = table.replace_schema_metadata(header)
    elif what < 0.95:
        table = _changed_column(table, draw).replace_schema_metadata(header)
    else:
        table = table.replace_schema_metadata(None)
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def _changed_column(table: pa.Table, draw: random.Random) -> pa.Table:
    place, rows = draw.randrange(table.num_columns), table.num_rows
    name, column = table.column_names[place], table.column(place)
    match draw.randrange(8):
        case 0:
            return table.remove_column(place)
        case 1:
            words = [draw.choice(["x", "", None, "\x1b[31m"]) for _ in range(rows)]
            return table.set_column(place, name, pa.array(words, pa.string()))
        case 2:
            return table.set_column(place, name, pa.nulls(rows, column.type))
        case 3:
            value = draw.choice([float("nan"), float("inf"), -1.0, 1e308, 0.0])
            return table.set_column(place, name, pa.array([value] * rows, pa.float64()))
        case 4:
            values = [draw.choice([0, 2**31 - 1, 127, 2**62, -1]) for _ in range(rows)]
            return table.set_column(place, name, pa.array(values, pa.int64()))
        case 5:
            return pa.concat_tables([table, table])
        case 6:
            return table.take(pa.array([draw.randrange(rows) for _ in range(rows)])) if rows else table
        case _:
            return table.slice(0, draw.choice([0, 1, 2]))


MUTATE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    ".json": json_mutant,
    ".toml": toml_mutant,
    ".parquet": parquet_mutant,
}


@dataclass(frozen=True)
class Target:
    """A command that reads `file`, with the files beside it, and how it ends (exit codes) when the file is valid."""

    file: str
    words: str
    beside: tuple[str, ...] = ()
    ends: tuple[int, ...] = (0,)


FORK = "fork_of_table_4.toml"
OSNOISE = "# tracer: osnoise\n" + "".join(
    f"       osnoise/{cpu}-96{cpu}     [00{cpu}] d.h.  5789.{n:06d}: irq_noise: local_timer:236 start "
    f"5789.{n:06d}000 duration {1800 + 7 * cpu} ns\n"
    f"    kworker/{cpu}:1-54     [00{cpu}] d...  5789.{n + 9:06d}: thread_noise: kworker/{cpu}:1:54 start "
    f"5789.{n + 2:06d}500 duration 3068 ns\n"
    for n in range(0, 900_000, 90_000)
    for cpu in (0, 1)
)
"""Lines as the page of the kernel on the tracer has them."""
STUDY = ("fork_of_table_4_corrected.toml", FORK)
REPORTED = (
    *("farm.runs.json", "program.runs.json", "streams.runs.json", "blame.json", "cost.json", "comparison.json"),
    *("check.json", "contention.json", "plan.json", "measurement.parquet", "trace.parquet", FORK, "noise.toml"),
    *("links_of_two_sites.toml", "overlap.json", "local_scheduling.json", "interactions.json"),
    *("cluster-check.json", "command-blame.json", "injection.json", "sweep.json", "gpu.parquet"),
    *("several.json", "recorded-blame.json", "osnoise.txt"),
)
"""A file of every kind that `crosswind report` takes, and of some that it refuses."""
SWEPT = tuple(f"message_bytes-{size:08d}.parquet" for size in (64_000, 1_000_000))
TARGETS = {
    "plan": Target(FORK, f"plan {FORK} --task-size-mb 2 --task-work 5"),
    "plan, single": Target(FORK, f"plan {FORK} --task-size-mb 2 --task-work 5 --ports single --json"),
    "lesson": Target(FORK, f"lesson {FORK} -o lesson.html"),
    "plan tree": Target("links_of_two_sites.toml", "plan tree links_of_two_sites.toml --task-size-mb 2 --task-work 5"),
    "plan queues": Target(
        "streams.toml",
        "plan queues streams.toml --local-slowdown 2.5 --set workload.stream[0].message_bytes=64"
        " --set workload.stream[1].message_bytes=16384",
    ),
    "plan tolerance": Target(
        "daemons_of_table_1.toml", "plan tolerance daemons_of_table_1.toml --ranks 64 --work-per-barrier-s 0.007"
    ),
    "plan tolerance of a recording": Target(
        "noise.toml", "plan tolerance noise.toml --ranks 64 --work-per-barrier-s 0.007", ("noise.intervals.parquet",)
    ),
    "plan tolerance of osnoise": Target(
        "osnoise.txt", "plan tolerance osnoise.txt --ranks 64 --work-per-barrier-s 0.007"
    ),
    "run GOAL under netgauge's noise": Target(
        "netgauge.out", "run scatter_8.goal --disturbance netgauge.out --workers 1", ("scatter_8.goal",)
    ),
    "grade": Target("answers.toml", "grade answers.toml", ends=(4,)),
    "inject": Target("daemons_of_table_1.toml", "inject daemons_of_table_1.toml --dry-run -- true"),
    "inject a recording": Target("noise.toml", "inject noise.toml --dry-run -- true", ("noise.intervals.parquet",)),
    "inject intervals": Target("noise.intervals.parquet", "inject noise.toml --dry-run -- true", ("noise.toml",)),
    "run a farm": Target("farm.toml", "run farm.toml --workers 1", STUDY),
    "run streams": Target("streams.toml", "run streams.toml --workers 1"),
    "run a program": Target("program.toml", "run program.toml --workers 1", ("daemons_of_table_1.toml",)),
    "run GOAL": Target("scatter_8.goal", "run goal.toml --workers 1", ("goal.toml",)),
    "run a recording": Target("app.trace", "run app.trace"),
    "blame a recording": Target("app.trace", "blame app.trace", ends=(4,)),
    "run a file of tasks": Target("tasks.csv", "run tasks.toml --workers 1", ("tasks.toml", FORK)),
    "run --resume": Target(
        "begun.runs.json", "run farm.toml --workers 1 --out begun.runs.json --resume", ("farm.toml", *STUDY)
    ),
    "fit": Target("measurement.parquet", "fit measurement.parquet"),
    "fit --earlier": Target(
        "measurement.parquet", "fit other.parquet --earlier measurement.parquet --json", ("other.parquet",)
    ),
    "fit a trace": Target("trace.parquet", "fit trace.parquet -o p.toml"),
    "fit --platform": Target(
        "platform.toml", "fit measurement.parquet --platform platform.toml -o p.toml", ("measurement.parquet",)
    ),
    "fit a GPU": Target("gpu.parquet", "fit gpu.parquet"),
    "plan overlap": Target(
        "gpu.parquet", "plan overlap gpu.parquet --kernel triad --kernel-ms 20 --traffic h2d --mb 600"
    ),
    "fit contention": Target("flows.csv", "fit contention flows.csv"),
    "fit contention of rates": Target("rates.csv", "fit contention rates.csv"),
    "fit contention of runs": Target(
        "streams.runs.json", "fit contention streams.runs.json --by throughput --link-mb-per-s 110"
    ),
    "check --baseline": Target("check.json", "@check check.json"),
    "cost --resume": Target("cost.json", "@cost cost.json"),
    "compare with a base": Target("comparison.json", "@comparison comparison.json"),
    "serve --hosts": Target(
        "hosts.toml", "serve --hosts hosts.toml --name NOBODY --token-file token", ("token",), (2,)
    ),
    "cert --platform": Target(FORK, f"cert --out certs --platform {FORK}"),
    "report a figure": Target(
        "farm.runs.json", "report farm.runs.json --x workload.task_work --series policy.order -o f.svg"
    ),
    **{
        f"report {name}": Target(
            name,
            f"report {name} -o r.html",
            {"noise.toml": ("noise.intervals.parquet",), "sweep.json": SWEPT}.get(name, ()),
        )
        for name in REPORTED
    },
}


def plant(folder: Path) -> Path:
    """Write a valid file of every kind into a folder, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*STUDY, "links_of_two_sites.toml", "daemons_of_table_1.toml", "hosts.toml"):
        shutil.copy(EXAMPLES / name, folder)
    shutil.copy(GOAL, folder)
    synthetic.measurement(cycles=8, together_cycles=2).save(folder / "measurement.parquet")
    synthetic.measurement(cycles=8, together_cycles=0, seed=2).save(folder / "other.parquet")
    reported.traced(60).save(folder / "trace.parquet")
    accelerators.h100().save(folder / "gpu.parquet")
    reported.planned().save(folder / "plan.json")
    reported.ran(works=(1, 5)).save(folder / "farm.runs.json")
    disturbed.program_runs(seeds=1).save(folder / "program.runs.json")
    streamed.streams_runs(seeds=1).save(folder / "streams.runs.json")
    disturbed.blamed(seeds=3).save(folder / "blame.json")
    costly.session(quads=12).save(folder / "cost.json")
    costly.comparison(quads=12).save(folder / "comparison.json")
    costly.several(0.1, 0.2, 0.3).save(folder / "several.json")
    checked(base=checked()).save(folder / "check.json")
    of_a_cluster().save(folder / "cluster-check.json")
    disturbed.of_a_command().save(folder / "command-blame.json")
    (folder / "injection.json").write_text(json.dumps(disturbed.injected().to_dict()))
    (folder / "app.trace").write_bytes(recorded_ranks.app_trace()[0])
    blame_recorded([folder / "app.trace"], timeline=True).save(folder / "recorded-blame.json")
    reported.swept(folder)
    disturbed.studied().save(folder / "local_scheduling.json")
    interacting.studied().save(folder / "interactions.json")
    save_recording(disturbed.recorded().to_toml(), folder / "noise.toml")
    (folder / "osnoise.txt").write_text(OSNOISE)
    (folder / "netgauge.out").write_text(
        "# Selfish Benchmark\n# Time [ns]\tselfish duration [ns]\n"
        + "".join(f"{1e6 * n:.2f}\t{900 + 13 * n:.2f}\n" for n in range(40))
    )
    (folder / "answers.toml").write_text(
        'schema_version = 1\nseed = 7\n[answers]\norder = ["a", "b", "c", "d", "e"]\nmeasurements = 5\nidle = []\n'
        "subtree_tasks_per_s = { r = 5.0, a = 0.5, b = 0.5, c = 0.5, d = 0.5, e = 0.5 }\n"
    )
    (folder / "flows.csv").write_text("flows,latency_s\n1,0.001\n1,0.0011\n2,0.0019\n2,0.002\n4,0.004\n4,0.0042\n")
    (folder / "rates.csv").write_text("flows,mb_per_s\n1,100\n2,90\n4,70\n")
    (folder / "goal.toml").write_text(
        'schema_version = 1\nname = "goal"\nnetwork = "cm5"\n[workload]\nkind = "program"\nprogram = "goal"\n'
        '[workload.parameters]\nfile = "scatter_8.goal"\n'
    )
    (folder / "tasks.toml").write_text(
        f'schema_version = 1\nname = "t"\nplatform = "{FORK}"\n[workload]\nkind = "farm"\ntasks_file = "tasks.csv"\n'
    )
    (folder / "tasks.csv").write_text("size_mb,work\n" + "".join(f"1.{n},{n}\n" for n in range(1, 31)))
    (folder / "token").write_text("x" * 32 + "\n")
    (folder / "token").chmod(0o600)
    (folder / "farm.toml").write_text(
        _small("fork_graph", r"platform = \[[^\]]*\]", 'platform = ["fork_of_table_4.toml"]')
    )
    (folder / "streams.toml").write_text((EXAMPLES / "streams_sending_side.toml").read_text().partition("[sweep]")[0])
    program = (EXAMPLES / "em3d_under_daemons.toml").read_text().partition("[sweep]")[0]
    for field, value in (("steps", 3), ("ranks", 8), ("repetitions", 1)):
        program = re.sub(rf"(?m)^{field} = \d+", f"{field} = {value}", program)
    (folder / "program.toml").write_text(program)
    here = Path.cwd()
    os.chdir(folder)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            for words in (
                "fit measurement.parquet -o platform.toml",
                "run farm.toml -o begun.runs.json",
                "overlap --on sim --cpus 2 --wait event,poll -o overlap.json",
                "fit contention streams.runs.json --by throughput --link-mb-per-s 110 -o contention.json",
            ):
                perform(words.split())
    finally:
        os.chdir(here)
    return folder


def _small(example: str, pattern: str, replacement: str) -> str:
    return re.sub(pattern, replacement, (EXAMPLES / f"{example}.toml").read_text())


def mutant(folder: Path, target: Target, seed: object) -> bytes:
    """Return a target's file with something wrong in it."""
    draw = random.Random(f"{seed}")
    content = (folder / target.file).read_bytes()
    return MUTATE.get(Path(target.file).suffix, changed_text)(content, draw)


def _load(kind: str, path: str) -> int:
    from crosswind.check.metrics import metrics
    from crosswind.check.result import Check
    from crosswind.compare.result import Comparison
    from crosswind.cost.result import Cost

    found = {"check": Check, "cost": Cost, "comparison": Comparison}[kind]
    try:
        loaded = found.load(path)  # type: ignore[attr-defined]
        _ = loaded.sentence
        if kind == "check":
            now, good = checked().document, Check(checked().document)
            for one in (
                loaded,
                Check(now, loaded),
                Check(now, None, [loaded] * 12),
                Check(now, None, [good, loaded] * 6),
                Check(loaded.document, good),
                Check(loaded.document, None, [good] * 12),
            ):
                _ = one.to_dict(), one.warnings, metrics(one), metrics(one, per_cpu=True)
    except CrosswindError as error:
        print("error:", error, file=sys.stderr)
        return 2
    return 0


def fault(folder: Path, target: Target, content: bytes, permitted: tuple[int, ...] = PERMITTED) -> str | None:
    """Return what is wrong with how a command takes a file, or None; of a traceback its place and last line."""
    with tempfile.TemporaryDirectory(prefix="crosswind-mutant-") as place:
        for name in target.beside:
            shutil.copy(folder / name, place)
        Path(place, target.file).write_bytes(content)
        child = os.fork()
        if child == 0:
            _child(place, target.words)
        interrupted, status, used = _ended(child, target.words)
        text = Path(place, "_out").read_text(errors="replace")
    code = os.waitstatus_to_exitcode(status)
    if -code in (signal.SIGXCPU, signal.SIGALRM):
        return "it does not end, not even by ctrl-C" if interrupted else "it does not end"
    if interrupted and code == INTERRUPTED:
        return None if announced(text) else f"it takes more than {MOST_CPU_S} s, and did not say so: {text[-200:]}"
    if "panicked" in text:
        return text[text.index("panicked") :][:200]
    if code == 70 or "Traceback" in text:
        lines = text.splitlines()
        where = [
            re.sub(r'.*/(crosswind/.*?)", line (\d+).*', r"\1:\2", line) for line in lines if "/crosswind/" in line
        ]
        what = [line for line in lines if re.match(r"[A-Za-z_.]*(Error|Exception|Iteration)\b", line)]
        return f"{(where or ['?'])[-1]} {(what or [text[-200:]])[-1][:120]}"
    if code not in permitted:
        return f"exit code {code}: {text[-300:]}"
    return f"{used.ru_maxrss >> 10} MiB" if used.ru_maxrss << 10 > _RSS + MOST_BYTES else None


def announced(text: str) -> bool:
    """Return whether a command printed how much it simulates before it began."""
    return re.search(r"^simulating [0-9,]+ runs? of up to [0-9,]+ ", text, re.MULTILINE) is not None


def _ended(child: int, words: str) -> tuple[bool, int, resource.struct_rusage]:
    """Wait for a command, and end `run` by ctrl-C after `MOST_CPU_S`; return whether that was done."""
    interrupted, fd = False, os.pidfd_open(child)
    waiting = select.poll()
    waiting.register(fd, select.POLLIN)
    while not waiting.poll(500):
        if words.startswith("run ") and not interrupted and _cpu_s(child) > MOST_CPU_S:
            os.kill(child, signal.SIGINT)
            interrupted = True
    os.close(fd)
    _, status, used = os.wait4(child, 0)
    return interrupted, status, used


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


_RSS = 600 << 20
"""What the process that forks has in memory at most; a child begins with that."""


def _child(place: str, words: str) -> None:
    """Run a command in a forked process with bounded memory and processor time; never returns."""
    code = 70
    try:
        os.setsid()
        os.chdir(place)
        out = os.open("_out", os.O_CREAT | os.O_RDWR)
        take_streams([os.open(os.devnull, os.O_RDONLY), out, out])
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.alarm(WAITS_S)
        has = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

        if "f.svg" not in words:  # V8, which draws figures, reserves terabytes and uses little of them
            resource.setrlimit(resource.RLIMIT_AS, (has + 4 * MOST_BYTES,) * 2)
        limit_s = int(MOST_CPU_S) + (INTERRUPTED_CPU_S if words.startswith("run ") else 0)
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 2))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        kind, _, path = words.partition(" ")
        code = _load(kind[1:], path) if kind.startswith("@") else perform(words.split())
    except BaseException:
        traceback.print_exc()
    leave(code)


__all__ = ["TARGETS", "Target", "fault", "mutant", "plant"]
