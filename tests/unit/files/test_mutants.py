"""A few mutants of every kind of file under every verb that reads it; `benchmarks/file_mutants.py` tries hundreds."""

import gc
import re

import command_line
import mutants
import pytest

from crosswind.files.kinds import found_at
from crosswind.report.page.inputs import _LOADERS

EACH = 4
REPORTS = 1
"""Of a report: drawing it takes a second."""
FOUND = (
    *("7 run a program 251", "7 cost --resume 30", "7 cost --resume 80"),
    *(
        "7 report a figure 67",
        "7 report a figure 132",
        "7 report a figure 191",
        "7 report measurement.parquet 294",
        "11 fit a GPU 66",
    ),
)
"""Mutants that ended a verb with exit code 70 once."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    command_line.import_all()
    yield mutants.plant(tmp_path_factory.mktemp("mutants") / "seeds")
    gc.unfreeze()


def test_every_kind_that_a_report_takes_is_tried(folder):
    assert set(_LOADERS) <= {found_at(folder / name).kind for name in mutants.REPORTED}


@pytest.mark.parametrize("name", mutants.TARGETS)
def test_a_file_with_something_wrong_in_it_ends_a_verb_with_an_exit_code_of_its_own(folder, name):
    target = mutants.TARGETS[name]
    faults = {}
    for number in range(REPORTS if target.words.startswith("report") else EACH):
        content = mutants.mutant(folder, target, f"daily {name} {number}")
        if wrong := mutants.fault(folder, target, content):
            faults[number] = wrong
    assert not faults


@pytest.mark.parametrize("name", [name for name, target in mutants.TARGETS.items() if "report" not in target.words])
def test_the_file_as_it_is_is_taken(folder, name):
    target = mutants.TARGETS[name]
    assert mutants.fault(folder, target, (folder / target.file).read_bytes(), permitted=target.ends) is None


def test_a_long_simulation_is_a_fault_unless_it_says_its_size_and_ends_by_ctrl_c(folder, monkeypatch):
    monkeypatch.setattr(mutants, "MOST_CPU_S", 0.5)
    target = mutants.TARGETS["run a farm"]
    content = re.sub(rb"(?m)^tasks = \d+", b"tasks = 1000000000", (folder / target.file).read_bytes())
    assert mutants.fault(folder, target, content) is None
    monkeypatch.setattr(mutants, "announced", lambda text: False)
    assert "did not say so" in mutants.fault(folder, target, content)


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_a_fault_once_is_none(folder, seed):
    target = mutants.TARGETS[seed.split(" ", 1)[1].rsplit(" ", 1)[0]]
    assert mutants.fault(folder, target, mutants.mutant(folder, target, seed)) is None
