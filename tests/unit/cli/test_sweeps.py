"""`--sweep`: lists and ranges become values, and what is none is refused by name."""

from itertools import pairwise

import pytest

from crosswind import DescriptionError, Experiment
from crosswind.cli.sweeps import sweeps_of, swept

PAIR = {
    "schema_version": 1,
    "name": "pair",
    "node": [
        {"name": "r", "compute_per_s": 2.0},
        {"name": "10.0.0.2", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0},
    ],
}
FARM = {"kind": "farm", "tasks": 10, "task_size_mb": 1.0, "task_work": 1.0}
CHANGE = [{"at_s": 1.0, "node": "10.0.0.2", "compute_per_s": 1.0}]


def experiment(**other):
    return Experiment.from_dict({"schema_version": 1, "name": "e", "platform": PAIR, "workload": FARM} | other)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,2,5", [1, 2, 5]),
        ("arrival,planned", ["arrival", "planned"]),
        ("1..4", [1, 2, 3, 4]),
        ("-2..1", [-2, -1, 0, 1]),
        ("0..1:5", [0, 0.25, 0.5, 0.75, 1]),
        ("0.1..0.3:3", [0.1, 0.2, 0.3]),
        ("1..100:log:3", [1, 10, 100]),
        ("1..100:log", [1, 2.15, 4.64, 10, 21.5, 46.4, 100]),
        ("1,2,8..10", [1, 2, 8, 9, 10]),
        ("[true, null]", [True, None]),
        ('{"distribution": "uniform", "low": 1, "high": 2},3', [{"distribution": "uniform", "low": 1, "high": 2}, 3]),
        ("../a.toml,../b.toml", ["../a.toml", "../b.toml"]),
        ("1e-3..1:log:4", [0.001, 0.01, 0.1, 1]),
    ],
)
def test_values_and_ranges(text, values):
    assert sweeps_of([f"seed={text}"]) == {"seed": values}


def test_a_logarithmic_range_has_equal_ratios_and_both_ends():
    values = sweeps_of(["seed=3..70:log:9"])["seed"]
    ratios = [later / earlier for earlier, later in pairwise(values)]
    assert (values[0], values[-1], len(values)) == (3, 70, 9)
    assert max(ratios) / min(ratios) < 1.02


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("5..1", "must ascend"),
        ("1..1", "must ascend"),
        ("0..10:log", "must begin above 0"),
        ("0.5..2", "needs the number of values"),
        ("1..10:1", "must be 2 to"),
        ("1..10:x", "has 'x' values"),
        ("1..x", "no range of numbers"),
        ("1..1000000", "more than 100000"),
        ("1,,2", "a value is empty"),
        ("1,2,1", "is in it twice"),
        ("[1", "no list in JSON"),
        ("[]", "no list in JSON"),
    ],
)
def test_what_is_no_range_is_refused(text, words):
    with pytest.raises(DescriptionError, match=words):
        sweeps_of([f"seed={text}"])


def test_a_path_is_given_once():
    with pytest.raises(DescriptionError, match="beside --sweep seed"):
        sweeps_of(["seed=1,2", "seed=3"])
    with pytest.raises(DescriptionError, match="beside --set seed"):
        sweeps_of(["seed=1,2"], ["seed"])


def test_fields_of_nodes_by_name_and_by_place_reach_the_platform():
    sweeps = sweeps_of(["node[10.0.0.2].link=1,100", "node[0].compute=2..3"])
    found = swept(experiment(), sweeps)
    limits = [
        (point.platform.nodes[0]["compute_per_s"], point.platform.nodes[1]["receive_limit_mb_per_s"])
        for point in found.points()
    ]
    assert limits == [(2.0, 1.0), (3.0, 1.0), (2.0, 100.0), (3.0, 100.0)]
    assert next(found.points()).params == {"node[10.0.0.2].receive_limit_mb_per_s": 1, "node[0].compute_per_s": 2}


def test_fields_of_changes_by_place_and_by_the_name_of_their_node():
    found = swept(experiment(change=CHANGE), sweeps_of(["change[10.0.0.2].compute=1,3", "change[0].at_s=0.5,2"]))
    changes = [point.description["change"][0] for point in found.points()]
    assert [(one["compute_per_s"], one["at_s"]) for one in changes] == [(1, 0.5), (1, 2), (3, 0.5), (3, 2)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("node[n9].link=1,2", "is no node of"),
        ("node[7].link=1,2", "2 nodes, counted from 0"),
        ("node[r].lnk=1,2", "lnk"),
        ("node[10.0.0.2].link=1,-2", "-2"),
        ("change[3].at_s=1,2", "has 1, counted from 0"),
        ("change[r].at_s=1,2", "none of that node"),
        ("policy.ordr=arrival,planned", "policy.order"),
        ("policy.order=arrival,bandwith", "bandwidth"),
    ],
)
def test_fields_that_there_are_not_are_refused_before_anything_runs(text, words):
    with pytest.raises(DescriptionError, match=words) as caught:
        swept(experiment(change=CHANGE), sweeps_of([text])).check_files()
    assert "sweep.sweep" not in str(caught.value)


def test_a_platform_in_a_file_is_changed_as_well(tmp_path):
    import json

    (tmp_path / "pair.json").write_text(json.dumps(PAIR))
    description = experiment().to_dict() | {"platform": "pair.json"}
    found = swept(Experiment.from_dict(description, tmp_path), sweeps_of(["node[1].link=5,6"]))
    assert [point.platform.nodes[1]["receive_limit_mb_per_s"] for point in found.points()] == [5.0, 6.0]
    with pytest.raises(DescriptionError, match='is no node of "pair"'):
        swept(Experiment.from_dict(description, tmp_path), sweeps_of(["node[q].link=5,6"])).check_files()
