"""Files of every kind that a verb writes become a report; one bad file among them costs no other."""

import html
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import accelerators
import checks
import costly
import disturbed
import pytest
import recorded_ranks
import reported
from typer.testing import CliRunner

from crosswind.blame.recorded import blame_recorded
from crosswind.cli import app
from crosswind.errors import CrosswindError
from crosswind.overlap import overlap
from crosswind.report.page import document as page_module
from crosswind.report.page.inputs import _LOADERS
from crosswind.report.sections.order import KINDS

ROOT = Path(__file__).parents[3]


def of_a_verb(*arguments):
    """Return a writer that calls the command line, `OUT` for the file."""

    def write(out):
        done = CliRunner().invoke(app, [str(out) if one == "OUT" else one for one in arguments])
        assert done.exception is None, done.exception

    return write


def swept(out):
    reported.swept(out.parent / "swept")
    (out.parent / "swept").rename(out)


def of_recorded_ranks(out):
    recorded = out.with_name("app.trace")
    recorded.write_bytes(recorded_ranks.app_trace()[0])
    blame_recorded([recorded], timeline=True).save(out)


PLAN = ("plan", "examples/fork_of_table_4.toml", "--task-size-mb", "2", "--task-work", "5", "-o", "OUT")
RUNS = ("run", "examples/fork_graph.toml", "--set", "workload.tasks=5", "-o", "OUT")
SMALL = ("--seeds", "2", "--set", "workload.ranks=4", "--set", "workload.parameters.iterations=5")
WRITERS = {
    "blame": ("blame.json", of_a_verb("blame", "examples/barriers_under_daemons.toml", *SMALL, "-o", "OUT")),
    "check": ("check.json", lambda out: checks.checked().save(out)),
    "cluster-check": ("cluster.json", lambda out: checks.of_a_cluster().save(out)),
    "command-blame": ("blame.json", lambda out: disturbed.of_a_command().save(out)),
    "comparison": ("comparison.json", lambda out: costly.comparison(1.1).save(out)),
    "comparison-of-several": ("several.json", lambda out: costly.several(0.1, 0.2, 0.3).save(out)),
    "cost": ("cost.json", lambda out: costly.session((0.02,)).save(out)),
    "gpu-measurement": ("gpu.parquet", lambda out: accelerators.h100(("triad",), ("h2d",)).save(out)),
    "injection": ("injected.json", lambda out: out.write_text(json.dumps(disturbed.injected().to_dict()))),
    "measurement": ("measurement.parquet", lambda out: reported.measured().save(out)),
    "noise": ("osnoise.txt", lambda out: shutil.copy("fuzz/seeds/disturbance/osnoise.txt", out)),
    "overlap": ("overlap.json", lambda out: overlap("sim", waits=["event"], nices=[0], cpus=2).save(out)),
    "plan": ("plan.json", of_a_verb(*PLAN)),
    "platform": ("platform.toml", lambda out: shutil.copy("examples/fork_of_table_4.toml", out)),
    "recorded-blame": ("blame.json", of_recorded_ranks),
    "recording": ("noise.toml", lambda out: out.write_text(disturbed.recorded().to_toml())),
    "runs": ("runs.json", of_a_verb(*RUNS)),
    "study": ("study.json", lambda out: disturbed.studied().save(out)),
    "sweep": ("sweep", swept),
    "trace": ("trace.parquet", lambda out: reported.traced(40).save(out)),
}
"""Kind of file -> the name and the writer of one."""


def written(kind, directory):
    name, write = WRITERS[kind]
    write(directory / name)
    return directory / name


def typed(*arguments):
    """Return the exit code, standard error, and whatever was no error of Crosswind."""
    done = CliRunner().invoke(app, ["report", *map(str, arguments)])
    if isinstance(done.exception, CrosswindError):
        return done.exception.exit_code, f"{done.exception} {done.exception.hint}"
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, re.sub(r"\s+", " ", done.stderr)


def text_of(page):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", page.read_text().split("<main>")[1].split("</main>")[0]))


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "200")


def test_every_kind_that_a_report_reads_is_tried_here():
    assert set(WRITERS) == set(_LOADERS)


@pytest.mark.parametrize("kind", WRITERS)
def test_what_a_verb_writes_becomes_a_report(tmp_path, kind):
    assert typed(written(kind, tmp_path), "-o", tmp_path / "report.html") == (0, "")
    assert "<section id=" in (tmp_path / "report.html").read_text()


def of_a_failed_run(out):
    out.write_text('{"schema_version": 1, "kind": "farm", "experiment": "e", "on": "sim", "runs": []}')


def changed(kind, change):
    """Return a writer of a file of a kind in which something was changed."""

    def write(out):
        made = written(kind, out.parent)
        document = json.loads(made.read_text())
        change(document)
        made.unlink()
        out.write_text(json.dumps(document))

    return write


BAD = {
    "a failed run": (of_a_failed_run, "holds no run"),
    "an empty file": (lambda out: out.write_text(""), "is empty"),
    "half a file": (lambda out: out.write_text('{"kind": "plan", "schema'), ":1:24"),
    "an unknown kind": (lambda out: out.write_text('{"kind": "chess"}'), ""),
    "a file of another verb": (lambda out: out.write_text('{"traceEvents": []}'), "which a report does not show"),
    "a directory": (lambda out: out.mkdir(), "is a directory without sweep.json"),
    "no file": (lambda out: None, "no such file"),
    "a cause that is in no run": (
        changed("blame", lambda d: d["runs"][3]["params"]["causes"].append("nobody")),
        "runs[3].params.causes is",
    ),
    "causes that are none": (changed("blame", lambda d: d.update(causes=["a", "a"])), "causes is ['a', 'a']"),
    "causes of another file": (changed("blame", lambda d: d.update(causes=["a"])), "runs["),
    "a cause without times": (
        changed("command-blame", lambda d: d["elapsed_s"].pop("without cron")),
        "its causes need undisturbed, disturbed, without agent, without cron",
    ),
    "times of different blocks": (
        changed("command-blame", lambda d: d["elapsed_s"]["without cron"].pop()),
        "has 3 values",
    ),
    "no time at all": (changed("command-blame", lambda d: d.pop("elapsed_s")), "elapsed_s is missing"),
    "an injection without ranks": (changed("injection", lambda d: d.pop("ranks")), "KeyError"),
    "a number in the place of a word": (
        changed("study", lambda d: d["claims"][0]["checks"][1].update(text=1e-300)),
        "claims[0].checks[1].text is 1e-300",
    ),
    "a figure without rows": (
        changed("study", lambda d: d["figures"]["figure-3"].update(rows=[])),
        "figures.figure-3.rows is []",
    ),
    "a word in the place of a number": (
        changed("study", lambda d: d["figures"]["figure-1"]["rows"][1].update(slowdown="much")),
        "figures.figure-1.rows[1].slowdown is 'much'",
    ),
    "a plan without nodes": (changed("plan", lambda d: d.pop("nodes")), ""),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_file_is_named_on_the_page_and_costs_no_other(tmp_path, bad):
    write, why = BAD[bad]
    good, page = written("platform", tmp_path), tmp_path / "report.html"
    write(tmp_path / "bad.json")
    code, told = typed(tmp_path / "bad.json", good, "-o", page)
    assert code == 3
    for text in (told, text_of(page)):
        assert "bad.json" in text
        assert why in html.unescape(text)
    assert "Not in this report" in text_of(page)
    assert 'id="platform-1"' in page.read_text()


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_file_alone_is_an_error_with_its_name(tmp_path, bad):
    write, why = BAD[bad]
    write(tmp_path / "bad.json")
    code, told = typed(tmp_path / "bad.json", "-o", tmp_path / "report.html")
    assert code == 2
    assert "bad.json" in told
    assert why in told
    assert not (tmp_path / "report.html").exists()


def test_a_fault_in_one_section_costs_its_own_file_only(tmp_path, monkeypatch):
    (kind,) = [one for one in KINDS if one.noun == "plan"]
    monkeypatch.setattr(type(kind), "__setattr__", object.__setattr__)
    monkeypatch.setattr(kind, "sections", lambda items, contents: [] if not items else 1 / 0)
    plan, platform = written("plan", tmp_path), written("platform", tmp_path)
    code, told = typed(plan, platform, "-o", tmp_path / "report.html")
    assert code == 3
    assert "plan.json: this plan cannot be shown: ZeroDivisionError" in told
    assert 'id="platform-1"' in (tmp_path / "report.html").read_text()


def test_a_fault_while_a_section_is_rendered_costs_its_own_file_only(tmp_path):
    study = disturbed.studied()
    claim = study.claims[0]
    wrong = replace(claim, checks=[replace(claim.checks[0], text=1e-300), *claim.checks[1:]])
    page = tmp_path / "report.html"
    bad = replace(study, claims=[wrong, *study.claims[1:]])
    found = page_module.written([bad, reported.platform()], page, partial=True)
    assert [(one.name, "has no len" in one.message) for one in found.unread] == [("Study", True)]
    assert [section.id for section in found.sections] == ["platform-1"]
    assert 'id="platform-1"' in page.read_text()


def test_a_file_that_fails_beside_another_only_is_named_and_the_other_is_shown(tmp_path, monkeypatch):
    (kind,) = [one for one in KINDS if one.noun == "plan"]
    make = kind.sections

    def together(items, contents):
        return make(items, contents) if len(items) < 2 else 1 / 0

    monkeypatch.setattr(type(kind), "__setattr__", object.__setattr__)
    monkeypatch.setattr(kind, "sections", together)
    plan, other = written("plan", tmp_path), tmp_path / "other.json"
    shutil.copy(plan, other)
    code, told = typed(plan, other, "-o", tmp_path / "report.html")
    assert code == 3
    assert "other.json: this plan cannot be shown: ZeroDivisionError" in told
    assert 'id="plan-1"' in (tmp_path / "report.html").read_text()


def test_a_run_that_fails_leaves_no_file(tmp_path):
    (tmp_path / "bad.goal").write_text("num_ranks 1\nrank 0 {\nl1: calc 5 cpu 256\n}\n")
    head = 'schema_version = 1\nname = "e"\n[workload]\nkind = "program"\nprogram = "goal"\n'
    (tmp_path / "e.toml").write_text(head + '[workload.parameters]\nfile = "bad.goal"\n')
    done = CliRunner().invoke(app, ["run", str(tmp_path / "e.toml"), "-o", str(tmp_path / "runs.json")])
    assert isinstance(done.exception, CrosswindError)
    assert not (tmp_path / "runs.json").exists()


def test_the_blame_of_a_command_says_only_what_its_intervals_settle(tmp_path):
    settled = disturbed.of_a_command()
    settled.save(tmp_path / "blame.json")
    typed(tmp_path / "blame.json", "-o", tmp_path / "report.html")
    text = text_of(tmp_path / "report.html")
    assert "Removing agent saves most: 20 %" in text
    assert "two ranks were expected" in text
    disturbed.of_a_command(saved_s=0.0).save(tmp_path / "blame.json")
    typed(tmp_path / "blame.json", "-o", tmp_path / "report.html")
    text = text_of(tmp_path / "report.html")
    assert "is the cost of the disturbance, not distinguishable from 0." in text
    assert "saves most" not in text
