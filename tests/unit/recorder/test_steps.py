import json
import os
import subprocess
import sys

import recorded

STEPS = """
import os, crosswind
for _ in range(4):
    crosswind.record_step()
if os.fork() == 0:
    crosswind.record_step()
    os._exit(0)
os.wait()
"""
RANKS = """
for rank in 0 1; do RANK=$rank WORLD_SIZE=2 "$PYTHON" steps.py & done
wait
"""


def run(tmp_path, words, code=0, **variables):
    (tmp_path / "steps.py").write_text(STEPS)
    (tmp_path / "ranks.sh").write_text(RANKS)
    environment = {**os.environ, "PYTHON": sys.executable, **variables}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


def test_a_program_without_mpi_is_recorded_by_its_steps(tmp_path):
    record = [sys.executable, "-m", "crosswind.cli", "record", "--how", "none", "-o", "app.trace", "--"]
    run(tmp_path, [*record, "sh", "ranks.sh"])
    head, ranks, _ = recorded.read(tmp_path / "app.trace")
    assert (head["library"], head["complete"], head["world_size"]) == (None, True, 2)
    for rank in ranks.values():
        assert [step.number for step in rank.steps] == [0, 1, 2, 3], "a forked child is not the rank"
        assert [step.t for step in rank.steps] == sorted(step.t for step in rank.steps)
        assert rank.info["init_ns"] <= rank.steps[0].t
        assert rank.steps[-1].t <= rank.info["finalize_ns"]
    assert not [entry for entry in tmp_path.iterdir() if entry.name.startswith(".")], "no parts are left"


def test_two_processes_of_one_rank_are_refused(tmp_path):
    record = [sys.executable, "-m", "crosswind.cli", "record", "--how", "none", "-o", "app.trace", "--"]
    done = run(tmp_path, [*record, "sh", "-c", f"{sys.executable} steps.py; {sys.executable} steps.py"], code=1)
    assert "2 processes say that they are rank 0" in done.stderr
    assert not (tmp_path / "app.trace").exists()


def test_steps_are_lines_where_a_directory_is_named(tmp_path):
    run(tmp_path, ["sh", "ranks.sh"], CROSSWIND_STEPS="steps")
    for rank in range(2):
        lines = [json.loads(line) for line in (tmp_path / "steps" / f"rank-{rank}.jsonl").read_text().splitlines()]
        assert [line["step"] for line in lines] == [1, 2, 3]
        assert {(line["rank"], line["world_size"]) for line in lines} == {(rank, 2)}
        assert [line["end_s"] for line in lines[:-1]] == [line["start_s"] for line in lines[1:]]


def test_without_a_recording_a_mark_does_nothing(tmp_path):
    run(tmp_path, [sys.executable, "steps.py"])
    assert sorted(one.name for one in tmp_path.iterdir()) == ["ranks.sh", "steps.py"]
