"""What users type first, in a terminal of 80 x 30: the answer begins in the first 10 lines, and one screen has all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typed
from recorded_ranks import write_profiles

FIRST = 10
"""Lines in which the answer begins."""
WARNINGS = 3
LIMIT_S = 600
"""A command that takes longer hangs."""
TASK = "--task-size-mb 2 --task-work 5"

pytestmark = pytest.mark.live

ANSWERS = {
    "crosswind blame examples/barriers_under_daemons.toml --seeds 8 --set workload.parameters.iterations=50": (
        0,
        "All causes slow the program by # % ± #",
    ),
    "crosswind blame examples/barriers_under_daemons.toml --seeds 2": (0, "All causes slow the program by # % ± #"),
    "crosswind blame examples/barriers_under_daemons.toml --seeds 8": (
        0,
        "# runs with # seeds; -o FILE keeps them after ctrl-C",
    ),
    "crosswind blame traces": (4, "Rank # costs # s ± # of # s (# %), in # of # steps."),
    "crosswind record --seconds 0.5 --how loop -o noise.toml": (0, "of the CPUs' time|Nothing kept a program"),
    f"crosswind plan examples/fork_of_table_4.toml {TASK}": (0, "# tasks/s, # times as many as the root alone."),
    "crosswind run ring.goal": (0, "# ranks"),
    "crosswind fit examples/gpu/h100.parquet": (0, "d2h-sm costs most: at # GB/s the chase kernel loses # ± # %"),
    "crosswind plan overlap examples/gpu/h100.parquet --kernel triad --kernel-ms 20 --traffic h2d --mb 600": (
        0,
        "Fastest: ",
    ),
    "crosswind map 'gzip -c {input} > {output}' --inputs 'data/*'": (0, "# of # files in # s"),
    "crosswind map 'wc -c < {input}' --inputs data/*": (0, "# of # files in # s"),
    "crosswind lesson -o lesson.html": (0, "Wrote lesson.html. Open it in a browser."),
    "crosswind reproduce quadrics-overlap -o study": (0, "# of # claims of the paper hold"),
    "crosswind report plan.json -o report.html": (0, "Wrote report.html. Its answers:"),
    "crosswind schema": (0, "# kinds of file have a schema. Print one: crosswind schema platform"),
    "crosswind doctor": ((0, 3), "Ready. Nothing here will disturb a measurement.|Not ready to measure: "),
    "crosswind inject half.toml --compare 2 -- sleep 0.05": ((0, 3), "slows the command by "),
    "crosswind inject half.toml --ranks 2 -- sleep 0.05": (3, "of # ranks # was found"),
    "crosswind blame half.toml --blocks 2 -- sleep 0.05": ((0, 3), "ll causes slow the command by "),
    "crosswind record --how none -o app.trace -- python steps.py": (0, "Recorded # rank."),
    "crosswind compare 'sleep 0.01' 'sleep 0.02' 'sleep 0.03' --seconds 5": ((0, 3), "is the fastest|Not settled: "),
    "crosswind overlap --quick --burn-s 0.05 --repetitions 1 --ping 20x1MB": (
        (0, 3),
        "Messages and computation overlap in # of # cases",
    ),
    "crosswind overlap --quick": ((0, 3), "Messages and computation overlap in # of # cases"),
    "crosswind blame steps.csv": (4, "Rank # costs # s ± # of # s (# %), in # of # steps."),
    "crosswind plan tolerance small.toml --ranks 1024 --work-per-barrier-s 0.01": (
        0,
        "of at most # by each source alone",
    ),
    "crosswind lesson forked.toml -o lesson.html --figures slides": (0, "Figures for slides: slides"),
    "crosswind lpt --tight --machines 3 -o lpt.svg": (0, "Longest first ends at #, # times the optimum, #"),
    "crosswind report study.json --x policy.order -o figure.pdf": (0, "Wrote figure.pdf."),
    "crosswind run examples/fork_graph.toml --set platform=fork_of_table_4.toml --set repetitions=2": (
        0,
        "One send at a time: planned was fastest at # of # points",
    ),
}
"""Line -> exit codes, and what must stand in the first lines; # stands for any number. 3: a host may leave it open."""
BEFORE = {
    "plan.json": f"crosswind plan examples/fork_of_table_4.toml {TASK}",
    "study.json": "crosswind run examples/fork_graph.toml --set platform=fork_of_table_4.toml "
    "--set policy.ports=single --set workload.task_size_mb=2 --set workload.task_work=5",
}
"""File -> what is typed first to make it."""
FORGOTTEN = {
    "crosswind inject half.toml true -n 2": "put -- before the command: crosswind inject half.toml -- true -n 2",
    "crosswind blame --ranks 2 -- true": "error: the disturbance file is missing before --",
    "crosswind compare true": "error: a second command is missing",
    "crosswind compare 'true | cat' true --seconds 1": "'|' is shell syntax, and no shell runs it",
    "crosswind map 'wc -c < {input}' --inputs data": "--inputs 'data/*'",
    "crosswind schema blam": "'blame'",
    "crosswind schema -o x.json": "name one, as in `crosswind schema platform -o x.json`",
    "crosswind report nosuch": "error: nosuch: no such file or directory",
    "crosswind cost --of 1234 -- true": "hint: --of pid:1234",
    "crosswind run ring.goal --perfetto t.json": "`crosswind blame app.trace --perfetto FILE`",
    "crosswind run ring.goal --trace t.parquet": "an experiment of kind program has none",
    "crosswind run ring.goal --set policy.window=8": "is fixed or follow; for a number: policy.window_packets",
    "crosswind report plan.json --figures plan.json": "plan.json",
}
"""Line with something missing -> what the error says."""


RING = """num_ranks 2
rank 0 {
l1: calc 1000
l2: send 8b to 1 tag 0
l2 requires l1
}
rank 1 {
l1: recv 8b from 0 tag 0
}
"""


SMALL = """schema_version = 1
name = "recorded"
[[source]]
kind = "recorded"
length_s = 1
causes = ["thread:python3 (exporter.service)", "timer"]
[[source.cpu]]
cpu = 0
intervals = [[0.1, 0.002, 0], [0.5, 0.0001, 1], [0.7, 0.001, 0]]
"""
FORKED = """schema_version = 1
name = "a master that computes nothing"
[[node]]
name = "master"
compute_per_s = 0
""" + "".join(
    f"""[[node]]
name = "n{number}"
parent = "master"
compute_per_s = {number}
receive_limit_mb_per_s = {number}
"""
    for number in (1, 2, 3)
)
STEPS = "rank,step,seconds\n" + "".join(
    f"{rank},{step},{0.1 + 0.0001 * ((7 * step + 3 * rank) % 5) + 0.02 * (rank == 1 and step % 2 == 0)}\n"
    for step in range(40)
    for rank in range(4)
)
"""What each rank computes in a step, without the waiting; rank 1 takes 20 ms longer in every other one."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    typed.settle(typed.ROOT / "docs" / "start" / "mpi.md", tmp_path)
    (tmp_path / "data").mkdir()
    for number in range(3):
        (tmp_path / "data" / f"{number}.log").write_text("a line\n")
    (tmp_path / "half.toml").write_text(
        'schema_version = 1\nname = "half"\n[[source]]\nkind = "coscheduled"\nquantum_s = 0.01\n'
    )
    (tmp_path / "ring.goal").write_text(RING)
    (tmp_path / "steps.py").write_text("import crosswind\nfor _ in range(3):\n    crosswind.record_step()\n")
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "forked.toml").write_text(FORKED)
    (tmp_path / "steps.csv").write_text(STEPS)
    (tmp_path / "traces").mkdir()
    write_profiles(tmp_path / "traces", "late")
    return tmp_path


def seen(screen: str, lines: int | None = None) -> str:
    """Return the first lines of a screen as one; words are compared without the breaks of the terminal."""
    return typed.plain(" ".join(screen.splitlines()[:lines]))


@pytest.mark.parametrize("line", ANSWERS)
def test_the_answer_is_on_the_first_screen(line, folder):
    for file, first in BEFORE.items():
        if file in line:
            typed.type_in(f"{first} -o {file}", folder, LIMIT_S)
    expected, answer = ANSWERS[line]
    code, screen, _ = typed.type_in(line, folder, LIMIT_S)
    assert code in (expected if isinstance(expected, tuple) else (expected,)), screen
    assert any(typed.plain(one) in seen(screen, FIRST) for one in answer.split("|")), screen
    assert screen.count("warning: ") <= WARNINGS, screen
    assert len(screen.splitlines()) <= typed.ROWS, screen
    assert not re.search(r"\d+ more columns with --wide: .*(verdict|costs|slowdown)", screen), screen


@pytest.mark.parametrize("line", FORGOTTEN)
def test_what_was_forgotten_is_said_with_the_line_to_type(line, folder):
    code, screen, _ = typed.type_in(line, folder, LIMIT_S)
    assert code == 2, screen
    assert typed.plain(FORGOTTEN[line]) in seen(screen, FIRST), screen


def test_the_last_line_says_that_an_older_result_was_replaced(folder):
    line = f"crosswind plan examples/fork_of_table_4.toml {TASK} -o plan.json"
    _, first, _ = typed.type_in(line, folder, LIMIT_S)
    _, second, _ = typed.type_in(line, folder, LIMIT_S)
    assert first.splitlines()[-1].endswith("Wrote plan.json")
    assert "Wrote plan.json (an older one was replaced)" in seen(second)
