"""What a recording and an injection say of themselves: warnings, and whether they can be trusted."""

import tomllib
from pathlib import Path

import pytest

import crosswind
from crosswind import Disturbance, _core, absences
from crosswind.cli import inject
from crosswind.inject import Injected, _is_a_rank
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


def test_the_processes_that_took_most_are_named_with_group_or_container():
    def process(pid, share, container=None):
        command = "/usr/bin/python3 /opt/agent.py" if container else "rustc --crate-name"
        return {"pid": pid, "command": command, "cgroup": "/a.slice/b", "container": container, "share": share}

    causes = [
        {"cause": "thread:python3 (docker 3f2a)", "processes": [process(7, 0.02, "docker 3f2a")]},
        {"cause": "timer", "processes": []},
        {"cause": "thread:opt", "processes": [process(8, 0.5), process(9, 0.001), process(10, 0.0001)]},
    ]
    assert Noise({"total": {"causes": causes}}, "").processes == [
        "thread:opt: rustc, process 8 in /a.slice/b, 50.000 %",
        "thread:python3: python3 agent.py, process 7 in docker container 3f2a, 2.000 %",
        "thread:opt: rustc, process 9 in /a.slice/b, 0.100 %",
    ]
    assert Noise({"total": {"causes": [{"cause": "another thread"}]}}, "").processes == []


def test_a_rank_that_the_disturbance_names_and_that_is_not_found_is_not_trusted():
    ranks = [RANK | {"rank": rank} for rank in (0, 1)]
    struck = Injected(INJECTED | {"ranks": ranks, "ranks_told_by": "RANK", "ranks_struck": [1, 3, 4]}, "")
    [told] = struck.warnings
    assert (told["code"], struck.trustworthy) == ("missing-ranks", False)
    assert told["message"] == "the disturbance strikes ranks 3, 4, not found; found were 0, 1, by RANK"
    alone = Injected(INJECTED | {"ranks": ranks[:1], "ranks_told_by": None, "ranks_struck": [1]}, "")
    said = "the disturbance strikes rank 1, not found; found was 0, since no process says which rank it is"
    assert alone.warnings[0]["message"] == said


@pytest.mark.parametrize(
    ("environment", "is_rank"),
    [
        ({}, False),
        ({"RANK": "1"}, False),
        ({"RANK": "1", "WORLD_SIZE": "2"}, True),
        ({"SLURM_PROCID": "0"}, False),
        ({"SLURM_PROCID": "0", "SLURM_STEP_ID": "0"}, True),
        ({"PMI_RANK": "0"}, True),
    ],
)
def test_an_injector_that_is_a_rank_itself_misses_no_other(environment, is_rank):
    assert _is_a_rank(environment) == is_rank


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
