"""`map --resume`: what changed is done again, what is gone is named, nothing is skipped or overwritten."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.live

COMMAND = "tr a-z A-Z < {input}"


@pytest.fixture
def inputs(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.txt").write_text(f"text {number}")
    return folder


def run(inputs, *options, command=COMMAND, out="out"):
    words = [sys.executable, "-m", "crosswind.cli", "map", command, "--inputs", f"{inputs}/*", "--json"]
    words += ["--out", str(inputs.parent / out), *options]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)


def resumed(inputs, *options, **kinds):
    done = run(inputs, "--resume", *options, **kinds)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["runs"][0]["resumed"], done.stderr


def held(inputs, suffix=".txt"):
    return {file.stem: file.read_text() for file in (inputs.parent / "out").glob(f"*{suffix}")}


def test_inputs_that_changed_came_or_lost_their_result_are_done_again_and_one_that_is_gone_is_named(inputs):
    assert run(inputs).returncode == 0
    (inputs / "1.txt").write_text("other")
    (inputs / "2.txt").rename(inputs / "7.txt")
    (inputs.parent / "out" / "3.txt").unlink()
    (inputs.parent / "out" / "4.txt").write_text("cut")
    found, told = resumed(inputs)
    again = {"input changed": 1, "result changed": 1, "result is missing": 1}
    assert found == {"done": 1, "again": again, "new": 1, "gone": 1}
    assert (
        "1 done before, 3 made again (input changed 1, result changed 1, result is missing 1), 1 new, 1 missing" in told
    )
    assert f"{inputs / '2.txt'}" in " ".join(told.split())
    names = held(inputs)
    assert {name: names[name] for name in "01347"} == {
        "0": "TEXT 0", "1": "OTHER", "3": "TEXT 3", "4": "TEXT 4", "7": "TEXT 2",
    }  # fmt: skip
    assert resumed(inputs)[0] == {"done": 5, "again": {}, "new": 0, "gone": 1}


def test_another_command_or_name_makes_all_again(inputs):
    assert run(inputs).returncode == 0
    assert resumed(inputs, "--name", "{stem}.up")[0]["again"] == {"command or --name changed": 5}
    assert len(held(inputs, ".up")) == 5
    assert resumed(inputs, "--name", "{stem}.up", command="cat {input}")[0]["again"] == {"command or --name changed": 5}
    assert held(inputs, ".up")["0"] == "text 0"


def test_what_failed_is_tried_again(inputs):
    (inputs / "2.txt").write_text("bad")
    line = "grep text {input}"
    assert run(inputs, command=line).returncode == 3
    os.utime(inputs / "2.txt")
    (inputs / "2.txt").write_text("text at last")
    assert resumed(inputs, command=line)[0] == {"done": 4, "again": {"failed before": 1}, "new": 0, "gone": 0}


def test_by_content_a_touched_input_counts_as_the_same(inputs):
    assert run(inputs, "--by-content").returncode == 0
    os.utime(inputs / "0.txt")
    before = (inputs / "1.txt").stat()
    (inputs / "1.txt").write_text("TEXT 1")
    os.utime(inputs / "1.txt", ns=(before.st_atime_ns, before.st_mtime_ns))  # same size, same time
    found, _ = resumed(inputs, "--by-content")
    assert found == {"done": 4, "again": {"input changed": 1}, "new": 0, "gone": 0}


def test_a_result_never_replaces_an_input(inputs):
    refused = run(inputs, out="in")
    assert refused.returncode == 2
    assert "would replace an input" in refused.stderr
    os.link(inputs / "0.txt", inputs.parent / "link")
    (inputs.parent / "other").mkdir()
    os.link(inputs / "0.txt", inputs.parent / "other" / "3.txt")
    refused = run(inputs, "--force", out="other")
    assert refused.returncode == 2
    assert "would replace an input" in refused.stderr
    assert (inputs / "0.txt").read_text() == "text 0"


def test_files_that_no_run_has_made_are_not_replaced_unless_forced(inputs):
    (inputs.parent / "out").mkdir()
    (inputs.parent / "out" / "3.txt").write_text("mine")
    refused = run(inputs)
    assert refused.returncode == 2
    assert "3.txt would be replaced, and no run has made them" in " ".join(refused.stderr.split())
    assert held(inputs) == {"3": "mine"}
    assert run(inputs, "--force").returncode == 0
    assert held(inputs)["3"] == "TEXT 3"


def test_two_resumes_at_once_do_nothing_twice(inputs):
    log = inputs.parent / "log"
    line = f"echo >> {log}; sleep 0.2; cat {{input}}"
    words = [sys.executable, "-m", "crosswind.cli", "map", line, "--inputs", f"{inputs}/*"]
    words += ["--out", str(inputs.parent / "out"), "--resume"]
    both = [subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) for _ in range(2)]
    told = [process.communicate(timeout=120)[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], told
    loser = told[0] if both[0].returncode == 2 else told[1]
    winner = both[0] if both[0].returncode == 0 else both[1]
    assert f"process {winner.pid} on " in " ".join(loser.split())
    assert len(log.read_text().splitlines()) == 5


def test_a_journal_of_version_0_1_is_refused_with_what_to_do(inputs):
    (inputs.parent / "out").mkdir()
    (inputs.parent / "out" / ".crosswind-journal").write_bytes(b"XWJRNL1\n\0\0\0\0\0\0\0\0")
    refused = run(inputs, "--resume")
    assert refused.returncode == 2
    assert "written by version 0.1" in refused.stderr
    assert "remove it" in refused.stderr


def test_a_journal_whose_head_is_damaged_is_set_aside_and_the_run_goes_on(inputs):
    """Without --resume, and with it, each message sent one to the other."""
    assert run(inputs).returncode == 0
    journal = inputs.parent / "out" / ".crosswind-journal"
    whole = journal.read_bytes()
    for suffix, damaged in (("", b""), ("-2", whole[:5]), ("-3", b"\0" + whole[1:])):
        journal.write_bytes(damaged)
        assert "--resume" in run(inputs).stderr
        found, told = resumed(inputs)
        assert (found["done"], found["new"]) == (0, 5)
        assert "journal of the earlier run is damaged at its head" in " ".join(told.split())
        assert journal.with_name(f".crosswind-journal.damaged{suffix}").read_bytes() == damaged
        assert resumed(inputs)[0]["done"] == 5
        assert len(held(inputs)) == 5


def test_a_journal_cut_at_any_byte_or_damaged_costs_work_and_no_result(inputs):
    assert run(inputs).returncode == 0
    journal = inputs.parent / "out" / ".crosswind-journal"
    whole = journal.read_bytes()
    for damaged in (whole[:-7], whole[: len(whole) // 2], whole[:-40] + b"\0" * 40):
        journal.write_bytes(damaged)
        found, _ = resumed(inputs)
        assert found["done"] + found["new"] == 5
        assert found["new"] >= 1
        assert len(held(inputs)) == 5
