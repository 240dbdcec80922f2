"""Tables of points: every figure against numpy, and files that other programs read."""

import csv

import numpy as np
import pytest

from crosswind import DescriptionError, Experiment
from crosswind.files.kinds import found_at
from crosswind.files.output import writable
from crosswind.run import grid
from crosswind.run.point_table import point_rows, spread, write_points, write_ranks
from crosswind.run.ranking import ranking

PAIR = {
    "schema_version": 1,
    "name": "pair_of_two",
    "node": [
        {"name": "r", "compute_per_s": 2.0},
        {"name": "a", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0},
    ],
}
WORK = {"distribution": "exponential", "mean": 1.0}
FARM = {"kind": "farm", "tasks": 20, "task_size_mb": 1.0, "task_work": WORK}
SWEEP = {"policy.order": ["bandwidth", "root-only"], "workload.task_size_mb": [1.0, 2.0]}


@pytest.fixture(scope="module")
def runs():
    description = {"schema_version": 1, "name": "50 % & more", "platform": PAIR, "workload": FARM, "sweep": SWEEP}
    return grid.run(Experiment.from_dict(description | {"repetitions": 7}))


@pytest.mark.parametrize("count", [1, 2, 3, 10, 31])
def test_quartiles_are_numpys(count):
    values = list(np.random.default_rng(count).lognormal(size=count))
    found = spread(values)
    for part, share in (("min", 0), ("q25", 0.25), ("median", 0.5), ("q75", 0.75), ("max", 1)):
        assert found[part] == pytest.approx(np.quantile(values, share))
    assert found["mean"] == pytest.approx(np.mean(values))


def test_csv_has_a_row_per_point_and_every_figure(runs, tmp_path):
    file = tmp_path / "points.csv"
    write_points(runs, file)
    rows = list(csv.DictReader(file.open()))
    frame = runs.to_pandas()
    assert [(row["policy.order"], float(row["workload.task_size_mb"])) for row in rows] == [
        (order, size) for order in SWEEP["policy.order"] for size in SWEEP["workload.task_size_mb"]
    ]
    for row in rows:
        chosen = (frame["policy.order"] == row["policy.order"]) & (
            frame["workload.task_size_mb"] == float(row["workload.task_size_mb"])
        )
        own = frame[chosen]
        assert int(row["runs"]) == 7
        for name in ("makespan_s", "throughput_tasks_per_s", "of_bound"):
            assert float(row[f"{name}.mean"]) == pytest.approx(own[name].mean())
            assert float(row[f"{name}.q75"]) == pytest.approx(own[name].quantile(0.75))
    assert len({tuple(row) for row in rows}) == 1


def test_latex_has_no_letter_that_ends_a_table(runs, tmp_path):
    file = tmp_path / "points.tex"
    write_points(runs, file)
    lines = file.read_text().splitlines()
    assert lines[0].startswith("% Crosswind: 50 % & more")
    body = lines[lines.index("\\midrule") + 1 : lines.index("\\bottomrule")]
    assert len(body) == 4
    for line in [lines[lines.index("\\toprule") + 1], *body]:
        assert line.endswith(" \\\\")
        assert len(line.split(" & ")) == 4
        assert "_" not in line.replace("\\_", "")


def test_ranks_as_csv_and_latex(runs, tmp_path):
    found = ranking(runs)
    write_ranks(found, tmp_path / "ranks.csv")
    rows = list(csv.DictReader((tmp_path / "ranks.csv").open()))
    assert [(row["policy.order"], float(row["behind"])) for row in rows] == [
        (row.value, row.behind) for row in found.rows
    ]
    write_ranks(found, tmp_path / "ranks.tex")
    assert "\\pm" in (tmp_path / "ranks.tex").read_text()


def test_a_table_may_replace_a_table_and_nothing_else(runs, tmp_path):
    for name in ("points.csv", "points.tex"):
        write_points(runs, tmp_path / name)
        assert found_at(tmp_path / name).kind == "table"
        writable(tmp_path / name, "table")
    (tmp_path / "mine.csv").write_text("size_mb,work\n1,1\n")
    with pytest.raises(DescriptionError, match="would take its place"):
        writable(tmp_path / "mine.csv", "table")


def test_other_suffixes_are_refused(runs, tmp_path):
    with pytest.raises(DescriptionError, match=r"\.csv or \.tex"):
        write_points(runs, tmp_path / "points.xlsx")


def test_every_point_has_its_row_once(runs):
    assert len(point_rows(runs)) == 4
