"""Which of several commands is fastest, from known times."""

import json
import os
import signal
import sys

import pytest
from costly import several as of
from typer.testing import CliRunner

from crosswind.cli import app
from crosswind.cli.compare import _in_markdown, _parameters
from crosswind.compare.several import Several, compare_several, expanded
from crosswind.errors import DescriptionError, MeasurementError
from crosswind.tables import Column, Table


def test_the_fastest_is_found_and_each_other_is_compared_with_it():
    found = of(0.4, 0.3, 0.6)
    assert found.name(found.best) == "B"
    assert found.is_settled
    (line,) = found.sentences
    assert line.startswith("B is the fastest: A takes 33.")
    assert "; C takes " in line
    assert [row[0] for row in found.tables()[0].rows] == ["A", "B", "C"]
    assert found.tables()[0].rows[1][4] == "1"


def test_what_is_alike_is_not_called_slower():
    found = of(0.3, 0.3, 0.6, noise=0.001)
    assert found.sentences[0].startswith("A and B are the fastest, alike within 2 %: C takes ") or found.sentences[
        0
    ].startswith("B and A are the fastest, alike within 2 %: C takes ")


def test_what_is_not_known_says_how_many_more_runs_it_needs():
    found = of(0.300, 0.303, 0.6, noise=0.2)
    assert not found.is_settled
    assert found.sentences[0].startswith("Not settled: ")
    assert "more runs of each are needed" in found.sentences[-1]


def test_few_rounds_settle_nothing_and_print_no_infinity():
    found = of(0.3, 0.6, rounds=3)
    assert found.sentences == ["Not settled: too few runs; 10 of each are the fewest, 6 were made."]
    assert found.tables()[0].rows[1][4] == "too few runs"
    assert not found.is_settled


@pytest.mark.parametrize("seed", range(20))
def test_the_fastest_of_commands_that_are_alike_is_no_winner(seed):
    """The best is chosen by its times, so the intervals hold for all pairs at once."""
    found = of(0.3, 0.3, 0.3, 0.3, 0.3, noise=0.05, seed=seed)
    assert "slower" not in {found.against_best(place).outcome for place in found.others}


def test_parameters_stand_in_the_commands():
    assert expanded(["a {n} {m}"], {"n": ["1", "2"], "m": ["x"]}) == ["a 1 x", "a 2 x"]
    with pytest.raises(DescriptionError, match=r"no command has \{n\}"):
        expanded(["a"], {"n": ["1"]})
    assert _parameters(["workers=1,2, 4"]) == {"workers": ["1", "2", "4"]}
    with pytest.raises(DescriptionError, match="a name and its values"):
        _parameters(["workers"])


def test_markdown_begins_with_the_answer():
    columns = [Column("", numeric=False), Column("command", numeric=False), Column("ms")]
    lines = _in_markdown(["A is the fastest."], Table("Times", columns, [["A", "a | b", "1"]])).splitlines()
    assert lines[0] == "**A is the fastest.**"
    assert lines[2:] == ["|  | command | ms |", "| :-- | :-- | --: |", "| A | `a \\| b` | 1 |"]


def test_commands_are_run(tmp_path):
    mark = tmp_path / "prepared"
    how = {"seconds": 1e6, "progress": lambda *_: os.kill(os.getpid(), signal.SIGINT)}  # ends after a round
    found = compare_several(["false", "true"], prepare=f"touch {mark}", ignore_failure=True, **how)
    assert (found.runs, found.interrupted) == (2, True)
    assert mark.exists()
    with pytest.raises(MeasurementError, match="status 1"):
        compare_several(["false", "true"], **how)


def test_the_line_that_hyperfine_users_type(monkeypatch):
    asked = []

    def known(commands, **options):
        asked.extend(commands)
        return of(0.1, 0.2, 0.3)

    monkeypatch.setattr(sys.modules["crosswind.compare.several"], "compare_several", known)
    done = CliRunner().invoke(app, ["compare", "sleep {n}", "-L", "n", "1,2,3", "--seconds", "5"])
    assert asked == ["sleep 1", "sleep 2", "sleep 3"]
    assert (done.exit_code, done.output[:17]) == (0, "A is the fastest:")


def test_a_file_of_several_says_what_they_did_and_is_not_run_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["crosswind.compare.several"], "compare_several", lambda *_, **__: known)
    known, out = of(0.1, 0.2, 0.3), tmp_path / "c.json"
    for times in (1, 2):
        done = CliRunner().invoke(app, ["compare", *known.commands, "-o", str(out)])
        assert done.exit_code == 0, done.output
        assert ("an older one was replaced" in done.stderr) == (times == 2)
    assert Several.load(out) == known
    again = CliRunner().invoke(app, ["compare", str(out)])
    assert "only one of two runs again" in str(again.exception)
    other = CliRunner().invoke(app, ["compare", "a", "b", "other", "-o", str(out)])
    assert "but of another" in str(other.exception)
    page = tmp_path / "c.html"
    done = CliRunner().invoke(app, ["report", str(out), "-o", str(page)])
    assert done.exit_code == 0, done.output
    assert "Which of 3 commands is fastest?" in page.read_text()


def test_what_needs_a_verdict_on_b_is_refused_of_several(tmp_path):
    done = CliRunner().invoke(app, ["compare", "a", "b", "c", "--junit", str(tmp_path / "c.xml")])
    assert isinstance(done.exception, DescriptionError)
    assert "--junit" in str(done.exception)
    assert "-o" in done.exception.hint


@pytest.mark.parametrize(("field", "value"), [("wall_s", [[1.0, 2.0]]), ("commands", {"A": "a"}), ("by", "sun")])
def test_a_file_that_is_none_of_several_is_refused_with_the_field(tmp_path, field, value):
    out = tmp_path / "c.json"
    of(0.1, 0.2, 0.3).save(out)
    out.write_text(json.dumps(json.loads(out.read_text()) | {field: value}))
    with pytest.raises(DescriptionError, match=field):
        Several.load(out)
