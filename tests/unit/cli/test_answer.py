"""What a verb prints: the answer first, a table of few columns, at most three warnings, then files and details."""

import disturbed
import pytest
import reported
import typed

from crosswind.cli import console
from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.fit import answer_of as answer_of_fits
from crosswind.cli.map_answers import answer_of as answer_of_map
from crosswind.cli.map_answers import tell_failures
from crosswind.cli.plan import _answer as answer_of_plan
from crosswind.cli.run_answers import answer_of as answer_of_runs
from crosswind.doctor.finding import Finding
from crosswind.doctor.readiness import readiness, verdict
from crosswind.experiment import Experiment
from crosswind.model.fit import fit
from crosswind.plan import Plan, plan
from crosswind.platform import Platform
from crosswind.run.grid import run
from crosswind.run.results import Run, Runs
from crosswind.terminal.consequences import most_consequential

CODES = ["idle-cost", "costs-not-separable", "drift", "loopback", "not-settled", "unheard-of"]
WARNINGS = [{"code": code, "message": f"it is {code}", "hint": "mend it"} for code in CODES]
ROOT = typed.ROOT


@pytest.fixture(autouse=True)
def usual(monkeypatch):
    monkeypatch.setattr(console, "_wide", False)
    monkeypatch.setattr(console, "_all_warnings", False)
    monkeypatch.setattr(console, "_stdout_is_taken", False)


def test_the_answer_comes_first_and_three_warnings_at_most(capsys):
    """`measure` printed 25 lines before the two sentences that answer."""
    table = Section([("node", "left"), ("tasks", "right")], [["a", "7"]])
    show(Answer(["It is 7."], [table], rest="All nodes"), warnings=WARNINGS, wrote=["a.json"])
    said = capsys.readouterr()
    assert said.out == "It is 7.\n\nnode  tasks\na         7\n"
    assert said.err.splitlines()[::2] == [
        "warning: it is loopback",
        "warning: it is not-settled",
        "warning: it is drift",
        "All nodes: --wide. 3 more: --warnings. Wrote a.json",
    ]


def test_standard_output_is_no_file_that_was_written(capsys):
    show(Answer(["It is 7."]), wrote=["- (6 results)", "trace.json"])
    assert capsys.readouterr().err == "Wrote trace.json\n"


def test_warnings_of_the_step_before_are_counted_and_not_repeated(capsys):
    show(Answer(["It is 7."]), warnings=WARNINGS[:1], earlier=WARNINGS[1:], source="the measurement")
    said = capsys.readouterr().err
    assert "it is idle-cost" in said
    assert "it is drift" not in said
    assert "5 warnings of the measurement: --warnings" in said


def test_all_warnings_come_when_they_are_asked_for(capsys, monkeypatch):
    monkeypatch.setattr(console, "_all_warnings", True)
    show(Answer(["It is 7."]), warnings=WARNINGS[:4], earlier=WARNINGS[4:])
    said = capsys.readouterr().err
    assert all(one["message"] in said for one in WARNINGS)
    assert "--warnings" not in said


def test_what_was_said_while_it_ran_counts(capsys):
    show(None, warnings=WARNINGS, shown=2)
    assert capsys.readouterr().err.count("warning:") == 1


def test_what_withdraws_an_answer_comes_before_a_detail():
    first, *_, last = [one["code"] for one in most_consequential(WARNINGS)]
    assert (first, last) == ("loopback", "costs-not-separable")


def answers():
    fork = Platform.load(ROOT / "examples" / "fork_of_table_4.toml")
    planned = plan(fork, task_size_mb=2, task_work=5, ports="single")
    local = Experiment.load(ROOT / "examples" / "local_scheduling.toml")
    study = Experiment.load(ROOT / "examples" / "fork_graph.toml").fixed({"workload.task_size_mb": 2})
    return {
        "measure": answer_of_fits([fit(reported.measured())]),
        "plan": answer_of_plan(planned, fork, 40),
        "run, a study": answer_of_runs(run(study, "sim"), 40),
        "run, a program": answer_of_runs(run(local, "sim"), 40),
        "run, windows": answer_of_runs(disturbed.program_runs(), 40),
        "run, one": answer_of_runs(Runs("one", "sim", [Run(reported.one_run())]), 40),
    }


def test_no_table_has_more_than_five_columns_or_80_letters():
    for verb, answer in answers().items():
        assert 1 <= len(answer.lines) <= 5, verb
        for table in answer.tables:
            assert len(table.columns) <= 5, verb
            lines = console.Table(table.columns, table.rows).lines()
            assert max(map(len, lines)) <= 80, verb


def test_a_study_says_which_order_was_fastest_and_how_far_it_was_behind_elsewhere():
    first, second = answers()["run, a study"].lines
    assert first.startswith("One send at a time: planned was fastest at ")
    assert second.startswith("Several sends: ")


def test_the_losses_at_the_measured_rates_are_shown():
    """The loss at 200 MB/s stood in --json only: it is the answer that most applications need."""
    found = fit(reported.measured())
    (table,) = answer_of_fits([found]).tables
    rates = [name for name, _ in table.columns[1:-1]]
    assert rates == [
        f"{loss.mb_per_s / 1000:g} GB/s" if loss.mb_per_s >= 1000 else f"{loss.mb_per_s:g} MB/s"
        for loss in found.channels[0].losses
    ]


def test_a_plan_of_two_nodes_on_one_machine_is_not_promised():
    planned = reported.planned().to_dict()
    planned["warnings"] = [{"code": "same-machine", "message": "b is this same machine", "hint": "measure another"}]
    fork = Platform.load(ROOT / "examples" / "fork_of_table_4.toml")
    assert answer_of_plan(Plan(planned), fork, 40).lines[1].startswith("Not reachable: ")


def failure(number, reason):
    message = f"data/{number}: failed on cpu0: {reason}"
    return {"t_s": 1.0 * number, "code": "task-failed", "node": "cpu0", "tasks": 1, "message": message}


def test_failures_with_the_same_reason_are_said_once(capsys, tmp_path):
    reason = "exit status: 2; the end of its stderr:\nbad magic number"
    events = [*(failure(number, reason) for number in range(12)), failure(12, "it was ended from outside")]
    done = Runs("gzip", "local", [Run(reported.one_run() | {"tasks": 24, "events": events})])
    lines = answer_of_map(done, tmp_path, 40, "file").lines
    assert lines[0].startswith("11 of 24 files in ")
    assert f"13 failed. Results: {tmp_path}/" in lines[0]
    tell_failures(done, wide=False)
    said = capsys.readouterr().err
    assert said.count("bad magic number") == 1
    assert "12 failed with exit status: 2" in said
    assert "data/9 and 2 more" in " ".join(said.split())
    assert "12.000 s: data/12: failed on cpu0: it was ended from outside" in said


def test_failures_that_differ_in_the_name_of_the_input_only_are_said_once(capsys):
    spool = "/tmp/crosswind-spool-a1/crosswind-17-b2/1/in"
    events = [failure(n, f"exit status: 1; the end of its stderr:\ngzip: {spool}/{n}: bad") for n in range(3)]
    events.append(failure(3, f"exit status: 1; the end of its stderr:\ngzip: {spool}/3: worse"))
    tell_failures(Runs("gzip", "local", [Run(reported.one_run() | {"tasks": 4, "events": events})]), wide=False)
    said = capsys.readouterr().err
    assert (
        "3 failed with exit status: 1; the end of its stderr:\n    gzip: {name}: bad\n  data/0, data/1, data/2" in said
    )
    assert "gzip: 3: worse" in said
    assert "spool" not in said


def test_a_sweep_over_many_fields_names_each_value_and_fits_a_screen():
    """Of 72 points 40 rows were shown, without the values that they belong to."""
    described = {
        "schema_version": 1,
        "name": "study",
        "platform": Platform.load(ROOT / "examples" / "fork_of_table_4.toml").to_dict(),
        "workload": {"kind": "farm", "tasks": 5, "task_size_mb": 1, "task_work": 1},
        "sweep": {"workload.tasks": [5, 10], "workload.task_size_mb": [1, 2, 4], "workload.task_work": [1, 2, 3]},
    }
    done = run(Experiment.from_dict(described), "sim")
    answer = answer_of_runs(done, 40)
    (table,) = answer.tables
    assert [name for name, _ in table.columns] == ["swept", "value", "makespan s", "% of upper bound"]
    assert [row[:2] for row in table.rows] == [
        ["tasks", "5"],
        ["", "10"],
        ["task_size_mb", "1"],
        ["", "2"],
        ["", "4"],
        ["task_work", "1"],
        ["", "2"],
        ["", "3"],
    ]
    of_five = [one.makespan_s for one in done if one.params["workload.tasks"] == 5]
    assert float(table.rows[0][2]) == pytest.approx(sum(of_five) / len(of_five), rel=0.01)
    fewer = answer_of_runs(Runs(done.experiment, "sim", list(done)[:9]), 40)
    assert len(fewer.tables[0].rows) == 9


def test_the_doctor_says_which_verbs_are_ready():
    """60 lines were printed, and the only warning, the first line, scrolled off."""
    fine = [Finding("clock", "ok", "clock source tsc")]
    assert verdict(fine).startswith("Ready.")
    busy = [*fine, Finding("foreign-load", "warning", "others use 1.97 of 2 CPUs", "wait")]
    assert verdict(busy) == "Not ready to measure: the host is busy."
    assert [(one.ready, one.why) for one in readiness(busy)] == [
        (False, "the host is busy"),
        (False, 'the host is busy: expect "not settled"'),
        (True, ""),
        (True, ""),
    ]
    left = [Finding("leftovers", "warning", "a group was left"), Finding("left-frozen", "problem", "a group is frozen")]
    assert [one.ready for one in readiness(left)] == [False, False, False, True]
