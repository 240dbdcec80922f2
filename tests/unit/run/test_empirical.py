"""Task times, sizes and gaps drawn from measured amounts."""

from __future__ import annotations

import pytest

import crosswind
from crosswind.errors import DescriptionError
from crosswind.experiment import Experiment

HEAD = """schema_version = 1
name = "measured"
[platform]
schema_version = 1
name = "p"
[[platform.node]]
name = "r"
compute_per_s = 1.0
"""


def write(tmp_path, workload, **files):
    for name, content in files.items():
        (tmp_path / f"{name}.csv").write_text(content)
    (tmp_path / "e.toml").write_text(f'{HEAD}[workload]\nkind = "farm"\n{workload}')
    return tmp_path / "e.toml"


FARM = "tasks = 4000\ntask_size_mb = 1.0\n"
TIMES = 'task_work = { distribution = "empirical", file = "times.csv" }\n'


def test_works_are_drawn_from_the_file_each_as_often_as_the_others(tmp_path):
    path = write(tmp_path, FARM + TIMES, times='seconds\n# from Monday\n1\n"2"\n\n6\n')
    (run,) = crosswind.run(path)
    # 4,000 draws of mean 3 and standard deviation 2.16: that of the sum is 137.
    assert run.makespan_s == pytest.approx(12_000, abs=600)
    inline = path.read_text().replace('file = "times.csv"', "values = [1, 2, 6]")
    (same,) = crosswind.run(Experiment.from_toml(inline))
    assert same.makespan_s == run.makespan_s
    assert run.bound_tasks_per_s == pytest.approx(1 / (run.makespan_s / 4000))


def test_gaps_and_sizes_are_drawn_too(tmp_path):
    workload = 'tasks = 100\ntask_size_mb = { distribution = "empirical", values = [2.5] }\ntask_work = 1.0\n'
    gap = 'arrival_gap_s = { distribution = "empirical", file = "gaps.csv" }\n'
    (run,) = crosswind.run(write(tmp_path, workload + gap, gaps="2\n"))
    assert run.makespan_s == pytest.approx(199.0)


def test_a_sweep_varies_the_file_and_a_run_again_needs_none(tmp_path):
    path = write(tmp_path, FARM + TIMES, times="1\n", slow="10\n")
    runs = crosswind.run(Experiment.load(path).fixed({"repetitions": 1}))
    assert runs[0].makespan_s == pytest.approx(4000)
    text = path.read_text() + '[sweep]\n"workload.task_work.file" = ["times.csv", "slow.csv"]\n'
    path.write_text(text)
    swept = crosswind.run(path)
    assert [run.makespan_s for run in swept] == pytest.approx([4000, 40_000])
    swept.save(tmp_path / "runs.json")
    for name in ("times.csv", "slow.csv"):
        (tmp_path / name).unlink()
    assert crosswind.run_again(tmp_path / "runs.json").verdict == "same"


def test_another_content_is_another_experiment(tmp_path):
    path = write(tmp_path, FARM + TIMES, times="1\n")
    first = Experiment.load(path).digest("sim")
    (tmp_path / "times.csv").write_text("2\n")
    assert Experiment.load(path).digest("sim") != first


@pytest.mark.parametrize(
    ("amount", "content", "said"),
    [
        ('file = "times.csv"', "1\nx\n", r"times.csv:2: 'x' is no number"),
        ('file = "times.csv"', "1;2\n3\n", r"times.csv:1: '1;2' is no number"),
        ('file = "times.csv"', "1\n-2\n", r"times.csv:2: -2 must be finite and greater than 0"),
        ('file = "times.csv"', "seconds\n", r"times.csv: 0 numbers; there must be 1 to 1,000,000"),
        ('file = "other.csv"', "1\n", r"other.csv: no such file"),
        ('file = "times.csv", values = [1]', "1\n", "with both file and values"),
        ("values = []", "1\n", "without any amounts"),
        ("values = [1, 0]", "1\n", "is 0 work units; it must be finite and greater than 0"),
        ("values = [1], mean = 2", "1\n", 'with mean; a distribution "empirical" takes file or values'),
    ],
)
def test_what_is_wrong_is_refused(tmp_path, amount, content, said):
    work = f'task_work = {{ distribution = "empirical", {amount} }}\n'
    with pytest.raises(DescriptionError, match=said):
        crosswind.run(write(tmp_path, FARM + work, times=content))


def test_streams_take_values_and_no_file():
    stream = {"class": "parallel", "from": 0, "to": 1, "name": "A", "arrivals": "closed"}
    local = {"class": "local", "from": 0, "to": 2, "message_bytes": 16384, "arrivals": "backlogged", "name": "l"}

    def of(amount):
        sized = {**stream, "message_bytes": {"distribution": "empirical", **amount}}
        workload = {"kind": "streams", "hosts": 3, "stream": [sized, local]}
        return Experiment.from_dict({"schema_version": 1, "name": "s", "workload": workload})

    (run,) = crosswind.run(of({"values": [64, 64]}))
    assert run.streams[0]["bytes"] == 64 * run.streams[0]["messages"]
    with pytest.raises(DescriptionError, match="is of farms only"):
        of({"file": "sizes.csv"})
