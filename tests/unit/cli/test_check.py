"""What `crosswind check` prints, writes and exits with, for a check that was drawn."""

import sys

import pytest
from checks import checked

from crosswind.cli import app
from crosswind.errors import CrosswindError, DescriptionError


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Call the verb with what `measure` returns or raises; the exit code."""

    def call(found, *words):
        def performed(**_):
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(sys.modules["crosswind.check"], "check", performed)
        return app(["check", *map(str, words)], standalone_mode=False) or 0

    return call


GOOD = checked(failed={})
BUSY = checked(failed={}, others=0.9)


def test_a_baseline_of_a_busy_host_asks_for_force(run, tmp_path):
    with pytest.raises(CrosswindError, match="the host is busy; other processes use 90 % of the CPUs") as raised:
        run(BUSY, "--save", tmp_path / "a.json")
    assert (raised.value.exit_code, "--force" in raised.value.hint) == (3, True)
    assert not (tmp_path / "a.json").exists()
    assert run(BUSY, "--save", tmp_path / "a.json", "--force") == 0
    assert run(GOOD, "--save", tmp_path / "b.json") == 0


def test_a_baseline_without_a_measure_asks_for_force(run, tmp_path):
    part = checked(failed={"noise": "not done within the limit of 45 s"})
    with pytest.raises(CrosswindError, match="noise was not measured"):
        run(part, "--save", tmp_path / "a.json")
    assert run(part, "--save", tmp_path / "a.json", "--force") == 0


def test_a_refused_baseline_costs_no_metrics(run, tmp_path):
    with pytest.raises(CrosswindError, match="the host is busy"):
        run(BUSY, "--save", tmp_path / "a.json", "--prometheus", tmp_path / "m.prom")
    assert "crosswind_check_others 0.9" in (tmp_path / "m.prom").read_text()


def test_a_node_that_was_never_judged_is_unknown(run, tmp_path, capsys):
    never = checked(failed={})
    object.__setattr__(never, "past", [])
    assert run(never, "--history", tmp_path / "h") == 3
    assert capsys.readouterr().out == "No verdict: no baseline, and 0 of the 5 quiet-host checks needed so far\n"


@pytest.mark.parametrize("form", ["text", "nhc", "npd"])
@pytest.mark.parametrize("error", [ZeroDivisionError("float division by zero"), CrosswindError("no kernel runs")])
def test_a_fault_is_unknown_in_one_line_and_in_the_metrics(run, tmp_path, capsys, error, form):
    GOOD.save(tmp_path / "good.json")
    words = ["--baseline", tmp_path / "good.json", "--format", form, "--prometheus", tmp_path / "m.prom"]
    assert run(error, *words) == (2 if form == "npd" else 3)
    said = capsys.readouterr()
    assert said.out.count("\n") == 1
    assert "unknown: " in said.out
    assert "Traceback" not in said.out + said.err
    assert 'crosswind_check_state{state="unknown"} 1' in (tmp_path / "m.prom").read_text()


@pytest.mark.parametrize("seconds", ["4", "301", "-1"])
def test_the_permitted_seconds_are_named(run, tmp_path, seconds):
    with pytest.raises(DescriptionError, match=r"seconds is .* s; it must be 10 to 300 s"):
        run(GOOD, "--seconds", seconds, "--save", tmp_path / "a.json")
