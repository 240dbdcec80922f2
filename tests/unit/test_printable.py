"""Nothing in a file's names, a peer's words or a program's output is obeyed by a terminal or a page."""

import json
import os
import pty
import re
import subprocess
import sys

import pytest

import crosswind
from crosswind.cli.console import tell, tell_error, tell_warnings
from crosswind.platform import Platform
from crosswind.report import report
from crosswind.terminal.printable import printable, printable_values

EVIL = "a\x1b[2J\x1b]0;owned\x07\x9b31m\r\u202egnp.exe\u2066\u200f\u2028z"
SHOWN = r"a\x1b[2J\x1b]0;owned\x07\x9b31m\r\u202egnp.exe\u2066\u200f\u2028z"
OBEYED = [sign for sign in EVIL if printable(sign) != sign]
COMMAND = [sys.executable, "-m", "crosswind.cli"]


def test_what_is_obeyed_is_escaped_and_names_of_people_are_not():
    assert printable(EVIL) == SHOWN
    assert printable("a\nb\tc") == r"a\nb\tc"
    assert printable("a\nb\tc", lines=True) == "a\nb\tc"
    assert printable("lone \udc80 half") == r"lone \udc80 half"
    for name in ("Rechner-Ä", "机器-1", "کتاب‌خانه", "👩‍💻 [bold]", "שלום"):  # a joiner is a letter's, not a command
        assert printable(name) == name
    assert printable_values({"a": [EVIL, 1, None, {"b": EVIL}]}) == {"a": [SHOWN, 1, None, {"b": SHOWN}]}


def test_errors_hints_warnings_and_words_are_shown_escaped(capfd):
    tell(EVIL)
    tell_error(EVIL, EVIL)
    tell_warnings([{"message": EVIL, "hint": EVIL}])
    said = capfd.readouterr().err
    assert said.count(SHOWN) == 5
    assert not [sign for sign in OBEYED if sign in said]


def test_tell_keeps_lines(capfd):
    tell("one\n  two")
    assert capfd.readouterr().err == "one\n  two\n"


def platform(name=EVIL):
    nodes = [
        {"name": "r", "compute_per_s": 1.0},
        {"name": name, "parent": "r", "compute_per_s": 1.0, "receive_limit_mb_per_s": 5.0},
    ]
    return {"schema_version": 1, "name": name, "node": nodes}


def on_terminal(words, cwd):
    """Return the exit code of a command and what a terminal gets of it."""
    parent, child = pty.openpty()
    process = subprocess.Popen([*COMMAND, *words], cwd=cwd, stdin=child, stdout=child, stderr=child)
    os.close(child)
    got = b""
    while True:
        try:
            more = os.read(parent, 65536)
        except OSError:  # the other end is closed
            break
        got += more
    os.close(parent)
    return process.wait(), got.decode()


@pytest.mark.parametrize("words", [["plan", "p.json", "--task-size-mb", "1", "--task-work", "1"], ["run", "e.json"]])
def test_tables_on_a_terminal_obey_no_name(words, tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(platform()))
    farm = {"kind": "farm", "tasks": 5, "task_size_mb": 1.0, "task_work": 1.0}
    experiment = {"schema_version": 1, "name": EVIL, "platform": platform(), "workload": farm}
    (tmp_path / "e.json").write_text(json.dumps(experiment))
    code, got = on_terminal(words, tmp_path)
    assert code == 0, got
    assert r"a\x1b[2J\x1b]0;owned" in got
    # Of these the table and the progress bar have some of their own.
    own = ("\x1b", "\r")
    assert not [sign for sign in ("\x1b[2J", "\x1b]0", *OBEYED) if sign in got and sign not in own]


def test_an_error_about_a_file_obeys_neither_its_name_nor_its_content(tmp_path):
    (tmp_path / f"{EVIL}.json").write_text(json.dumps({"schema_version": 1, EVIL: 1}))
    done = subprocess.run(
        [*COMMAND, "plan", f"{EVIL}.json", "--task-size-mb", "1", "--task-work", "1"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    said = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b"")
    assert said.count(SHOWN) >= 2
    assert not [sign for sign in OBEYED if sign in said]


def strings(value):
    """Return all texts of nested lists and dictionaries, one after the other."""
    if isinstance(value, dict):
        value = list(value.values())
    return "|".join(map(strings, value)) if isinstance(value, list) else str(value)


def planned(name):
    """Return the plan of a root and a node of that name."""
    return crosswind.plan(Platform.from_dict(platform(name)), task_size_mb=1.0, task_work=1.0)


def test_a_page_shows_names_escaped_in_its_text_and_in_its_figures(tmp_path):
    page = report(planned(EVIL), tmp_path / "report.html").read_text()
    own = report(planned("plain"), tmp_path / "own.html").read_text()
    assert SHOWN in page
    assert [page.count(sign) for sign in OBEYED] == [own.count(sign) for sign in OBEYED]
    charts = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert any(SHOWN in strings(json.loads(chart)) for chart in charts)
    assert not [sign for sign in OBEYED for chart in charts if sign in strings(json.loads(chart))]


def test_json_output_stays_json_with_the_name_as_it_is(tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(platform()))
    words = [*COMMAND, "plan", "p.json", "--task-size-mb", "1", "--task-work", "1", "--json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.isascii()
    assert EVIL in [node["name"] for node in json.loads(done.stdout)["nodes"]]
