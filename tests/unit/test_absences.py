"""What a recording and an injection say of themselves: warnings, and whether they can be trusted."""

import tomllib
from pathlib import Path

import crosswind
from crosswind import Disturbance, _core, absences
from crosswind.cli import inject
from crosswind.inject import Injected
from crosswind.noise import Noise, _with_warnings

DOCS = Path(__file__).parents[2] / "docs" / "guides"
RANK = {
    "rank": 0,
    "intervals": 3,
    "late_mean_s": 0.0,
    "too_short": 0,
    "too_short_s": 0.0,
    "away_s": 1.0,
    "complaints": [],
}
INJECTED = {"start_s": 0.0, "ended": "exited", "exit_status": 0, "ranks_told_by": "RANK", "keep_running": False}
RECORDED = """schema_version = 1
name = "kind = \\"recorded\\""

[[source]]
kind = "recorded"
length_s = 1.0
causes = ["timer"]
aligned = false

[[source.cpu]]
cpu = 0
intervals = [[0.1, 0.001, 0]]
"""


def injected(asked, found, told_by="RANK"):
    ranks = [RANK | {"rank": rank} for rank in range(found)]
    return Injected(INJECTED | {"ranks_asked": asked, "ranks": ranks, "ranks_told_by": told_by}, "")


def test_fewer_ranks_than_were_asked_for_are_not_trusted():
    for asked, found, said in [(2, 1, "of 2 ranks 1 was found"), (8, 3, "of 8 ranks 3 were found")]:
        few = injected(asked, found)
        assert [told["code"] for told in few.warnings] == ["missing-ranks"]
        assert said in few.warnings[0]["message"]
        assert not few.trustworthy
    [told] = injected(2, 1, None).warnings
    assert "no process says which rank it is" in told["message"]
    assert "RANK" in told["hint"]


def test_as_many_ranks_as_were_asked_for_or_any_number_are_trusted():
    for asked, found in [(None, 1), (1, 1), (2, 2), (None, 5)]:
        assert injected(asked, found).warnings == []
        assert injected(asked, found).trustworthy


def test_a_launcher_may_set_any_of_the_variables_that_are_read():
    [told] = injected(2, 1, None).warnings
    assert all(name in told["hint"] for name in _core.RANK_VARIABLES)
    texts = [crosswind.inject.__doc__, inject.EXAMPLES, (DOCS / "record-and-inject.md").read_text()]
    assert all(name in text for text in texts for name in _core.RANK_VARIABLES)


def test_a_rank_that_only_a_watchdog_would_have_continued_is_named_and_trusted():
    one = Injected(injected(1, 1).summary | {"ranks": [RANK | {"exposed": True}]}, "")
    [told] = one.warnings
    assert told["code"] == "watchdog-only"
    assert told["message"].startswith("rank 0 may not be traced")
    assert one.trustworthy


def test_an_earlier_injection_that_left_something_does_not_make_this_one_doubtful():
    removed = [{"code": "leftovers-removed", "message": "m", "hint": "h"}]
    one = Injected(injected(1, 1).summary | {"removed": removed}, "")
    assert one.warnings == removed
    assert one.trustworthy


def test_what_was_removed_is_named(monkeypatch):
    monkeypatch.setattr(absences._core, "remove_leftovers", lambda: '[{"kind": "trace", "name": "/t/crosswind-7"}]')
    [told] = absences.remove_leftovers()
    assert (told["code"], "/t/crosswind-7" in told["message"]) == ("leftovers-removed", True)
    monkeypatch.setattr(absences._core, "remove_leftovers", lambda: "[]")
    assert absences.remove_leftovers() == []


def test_what_was_wrong_with_a_recording_stands_in_its_file(tmp_path):
    said = ['the kernel could not keep 7 events: "x" \\ ü', "another"]
    text = _with_warnings(RECORDED, said)
    assert tomllib.loads(text)["source"][0]["warnings"] == said
    file = tmp_path / "noise.toml"
    Noise({}, text).save(file)
    assert tomllib.loads(file.read_text())["source"][0]["warnings"] == said
    read = Disturbance.load(file).to_dict()
    assert read["source"][0]["warnings"] == said
    assert Disturbance.from_toml(RECORDED).to_dict()["source"][0] == {
        name: value for name, value in read["source"][0].items() if name != "warnings"
    }
    assert _with_warnings(RECORDED, []) == RECORDED
