"""Homework with marks: another platform for each seed, and answers held against plan, search and simulation."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest
from scipy.optimize import linprog
from typer.testing import CliRunner

from crosswind.cli import app
from crosswind.errors import DescriptionError
from crosswind.lab.grade import ORDERS, SIZE_MB, WORK, grade, questions, sheet_of
from crosswind.lab.papers import homework

SEEDS = (0, 7, 4711, 20241103)


def fields(seed=7):
    return [mark.field for mark in grade({"schema_version": 1, "seed": seed})]


def right(seed):
    """Return right answers, each computed in another way than by the grader where there is one."""
    sheet = sheet_of(seed)
    links = sheet.platform.links_mb_per_s
    order = sorted(sheet.children, key=lambda name: -links[name])
    _, machine = homework.engine.makespan([float(job) for job in sheet.jobs], sheet.machines, 10**7)
    schedule = [[job for job, at in zip(sheet.jobs, machine, strict=True) if at == m] for m in range(sheet.machines)]
    losses = {node["name"]: node["ir_send_s_per_mb"] for node in sheet.platform.nodes[1:]}
    return {
        "schedule": schedule,
        "promised_tasks_per_s": round(sheet.promised, 3),
        "kept_tasks_per_s": round(sheet.kept, 3),
        "compute_share": 1.0 - 3.0 * sum(losses[name] for name in order[:2]),
        "order": order,
        "subtree_tasks_per_s": homework.subtree_rates(sheet.platform, SIZE_MB, WORK),
        "measurements": 1 + len(sheet.children),
        "idle": list(homework.without_a_part(sheet.platform, SIZE_MB, WORK)),
        "best_order": max(sheet.simulated, key=lambda one: sheet.simulated[one]),
    }


def one(field, answer, seed=7):
    marks = grade({"schema_version": 1, "seed": seed, "answers": {field: answer}})
    return next(mark for mark in marks if mark.field == field)


@pytest.mark.parametrize("seed", SEEDS)
def test_right_answers_are_right(seed):
    marks = grade({"schema_version": 1, "seed": seed, "answers": right(seed)})
    assert {mark.field: mark.why for mark in marks if mark.verdict != "right"} == {}


@pytest.mark.parametrize("seed", SEEDS[1:])
def test_the_answers_of_one_student_are_not_those_of_another(seed):
    marks = grade({"schema_version": 1, "seed": SEEDS[0], "answers": {"order": right(seed)["order"]}})
    own = right(SEEDS[0])["order"]
    assert (marks[4].verdict == "right") == (right(seed)["order"] == own)
    rates = grade(
        {"schema_version": 1, "seed": SEEDS[0], "answers": {"subtree_tasks_per_s": right(seed)["subtree_tasks_per_s"]}}
    )
    assert [mark.verdict for mark in rates if mark.field == "subtree_tasks_per_s"] == ["wrong"]


def test_a_seed_gives_one_sheet():
    assert questions(sheet_of(4711)) == questions(sheet_of(4711))
    assert len({json.dumps(sheet_of(seed).platform.to_dict()) for seed in range(30)}) == 30
    assert [node["receive_limit_mb_per_s"] for node in sheet_of(7).platform.nodes[1:]] == LINKS_OF_7


LINKS_OF_7 = [8.76, 2.28, 1.0, 14.52, 4.93]


def test_a_sheet_without_answers_is_read_and_each_example_is_an_answer():
    text = questions(sheet_of(7))
    assert {mark.verdict for mark in grade(tomllib.loads(text))} == {"missing"}
    for field in fields():
        assert f"# {field} = " in text
    filled = "\n".join(
        line[2:] if line.startswith(tuple(f"# {field} = " for field in fields()[1:])) else line
        for line in text.splitlines()
    )
    verdicts = [mark.verdict for mark in grade(tomllib.loads(filled))]
    assert verdicts[0] == "missing"
    assert set(verdicts[1:]) <= {"right", "wrong"}


def test_a_wrong_answer_is_explained():
    sheet = sheet_of(7)
    links = sheet.platform.links_mb_per_s
    worst = sorted(sheet.children, key=lambda name: links[name])
    assert "the shorter transfer goes first" in one("order", worst).why
    assert one("order", right(7)["order"][1:]).why.endswith("missing")
    bad = one("schedule", [sheet.jobs, [], []])
    assert (bad.verdict, "times the optimum" in bad.why) == ("wrong", True)
    assert "r, sending" not in one("measurements", 1).why
    assert "it is 6: alone" in one("measurements", 1).why
    assert "losses of several children add up" in one("compute_share", 0.5).why
    slow = min(ORDERS, key=lambda order: sheet.simulated[order])
    assert f"{slow} reaches" in one("best_order", slow).why


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"schema_version": 1}, "seed is missing"),
        ({"schema_version": 2, "seed": 1}, "schema_version is 2; it must be 1"),
        ({"schema_version": 1, "seed": -1}, "seed is -1; it must be a whole number"),
        ({"schema_version": 1, "seed": True}, "seed is True"),
        ({"schema_version": 1, "seed": 1, "sed": 2}, "unknown field sed; known fields: answers, schema_version, seed"),
        ({"schema_version": 1, "seed": 1, "answers": []}, r"answers is \[\]; it must be a table"),
        ({"schema_version": 1, "seed": 1, "answers": {"ordr": []}}, "unknown field answers.ordr"),
    ],
)
def test_what_is_no_answer_is_refused_by_its_field(document, said):
    with pytest.raises(DescriptionError, match=said):
        grade(document)


@pytest.mark.parametrize(
    ("field", "answer", "said"),
    [
        ("order", ["z"], "each one of a, b, c, d, e"),
        ("order", [["a"]], "each one of a, b, c, d, e"),
        ("order", ["a", "a"], "each child once"),
        ("compute_share", "x", 'it is "x"; it must be a finite number'),
        ("compute_share", float("nan"), "a finite number"),
        ("measurements", True, "a finite number"),
        ("schedule", [[1], [2]], "all jobs, each once"),
        ("schedule", [["x"]], "a finite number"),
        ("best_order", ["arrival"], "one of interference,"),
        ("subtree_tasks_per_s", {"r": 1}, "a rate for each of r, a"),
    ],
)
def test_an_answer_of_the_wrong_kind_is_wrong_and_the_others_keep_their_marks(field, answer, said):
    answers = right(1) | {field: answer}
    marks = {mark.field: mark for mark in grade({"schema_version": 1, "seed": 1, "answers": answers})}
    assert (marks[field].verdict, said in marks[field].why) == ("wrong", True)
    assert [mark.field for mark in marks.values() if mark.verdict == "wrong"] == [field]


@pytest.mark.parametrize("seed", range(0, 30, 3))
def test_what_a_plan_keeps_has_one_right_answer_and_promises_the_most_that_a_linear_program_finds(seed):
    sheet = sheet_of(seed)
    root, *children = sheet.platform.nodes
    links = [child["receive_limit_mb_per_s"] / SIZE_MB for child in children]
    speeds = [child["compute_per_s"] / WORK for child in children]
    most = np.minimum(links, speeds)
    shared = root["send_limit_mb_per_s"] / SIZE_MB
    best = linprog(-np.ones(5), np.ones((1, 5)), [shared], bounds=[(0.0, one) for one in most])
    assert root["compute_per_s"] / WORK - best.fun == pytest.approx(sheet.promised)
    received = dict.fromkeys(sheet.children, 0.0)
    for place in np.argsort(links)[::-1]:
        received[children[place]["name"]] = min(most[place], shared - sum(received.values()))
    left = 1.0 - sum(child["ir_send_s_per_mb"] * SIZE_MB * received[child["name"]] for child in children)
    kept = max(left, 0.0) * root["compute_per_s"] / WORK
    for child in children:
        tasks = received[child["name"]]
        kept += min(tasks, child["compute_per_s"] / WORK * (1.0 - child["ir_receive_s_per_mb"] * SIZE_MB * tasks))
    assert kept == pytest.approx(sheet.kept)


def test_the_verb_writes_a_sheet_and_marks_it(tmp_path):
    runner, path = CliRunner(), tmp_path / "answers.toml"
    assert runner.invoke(app, ["grade", "--seed", "7", "-o", str(path)]).exit_code == 0
    with pytest.raises(DescriptionError, match="a file of another kind"):  # it may have answers
        runner.invoke(app, ["grade", "--seed", "8", "-o", str(path)], catch_exceptions=False)
    marked = runner.invoke(app, ["grade", str(path)])
    assert (marked.exit_code, marked.output.splitlines()[0]) == (4, "0 of 9 answers are right.")
    path.write_text("seed = ")
    for words in (["grade"], ["grade", str(path)], ["grade", str(path), "--seed", "7"]):
        with pytest.raises(DescriptionError):
            runner.invoke(app, words, catch_exceptions=False)
