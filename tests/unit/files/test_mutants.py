"""A few mutants of every kind of file under every verb that reads it; `benchmarks/file_mutants.py` tries hundreds."""

import mutants
import pytest

from crosswind.files.kinds import found_at
from crosswind.report.inputs import _LOADERS

EACH = 4
REPORTS = 1
"""Of a report: drawing it takes a second."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    mutants.import_all()
    return mutants.plant(tmp_path_factory.mktemp("mutants") / "seeds")


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
