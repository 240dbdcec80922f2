"""Checks, costs and comparisons with anything in place of any field: refused by its name, or read without fault."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from checks import checked
from costly import comparison, session

from crosswind.check.cluster_result import ClusterCheck
from crosswind.errors import DescriptionError

JUNK: tuple[Any, ...] = (None, True, -1, 0, 7, 1e300, math.nan, math.inf, "x", "", [], [1], [[1.0, 2.0]], {}, {"a": 1})
ABSENT = object()


def cluster() -> ClusterCheck:
    hosts = ("a", "b", "c", "d")
    ends = [(one, other) for one in hosts for other in hosts if one < other]
    return ClusterCheck(
        {
            "schema_version": 1,
            "kind": "cluster-check",
            "crosswind": "0.0.0",
            "at": "2026-01-01T00:00:00Z",
            "cluster": "a cluster",
            "hosts": {host: f"10.0.0.{k}" for k, host in enumerate(hosts)},
            "tolerance": 0.1,
            "checks": {host: checked(node=host).to_dict() for host in hosts},
            "links": [{"from": one, "to": other, "receive_limit_mb_per_s": 100.0} for one, other in ends],
            "failed": {"e": "it is away"},
            "took_s": 24.0,
            "interrupted": False,
        }
    )


RESULTS = {
    "check": checked(base=checked()),
    "cluster-check": cluster(),
    "cost": session(duties=(0.02, 0.01), names=("a", "b"), quads=6, intervals=True),
    "comparison": comparison(quads=6),
}


def paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of each field; of a list only the first two."""
    inner = (
        list(value.items())[:40]
        if isinstance(value, dict)
        else list(enumerate(value[:2]))
        if isinstance(value, list)
        else []
    )
    for key, each in inner:
        yield (*before, key)
        yield from paths(each, (*before, key))


def changed(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    document = copy.deepcopy(document)
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    if value is ABSENT:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return document


EACH_VALUE = [False, True]
"""One kind of junk for each field, in turn; every night each kind for each field."""


@pytest.mark.parametrize("each_value", EACH_VALUE, ids=["in turn", "each value"])
@pytest.mark.parametrize("kind", RESULTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of 1e300
def test_a_field_that_is_none_is_refused_by_its_name_or_read_without_fault(tmp_path, kind, each_value):
    file, result = tmp_path / f"{kind}.json", RESULTS[kind]
    result.save(file)
    document = json.loads(file.read_text())
    said, accepted, values = list[str](), 0, (*JUNK, ABSENT)
    for number, path in enumerate(paths(document)):
        if path[0] in ("checks", "result") and kind == "cluster-check":
            continue  # the checks are those of the other case
        for value in values if each_value else (values[number % len(values)],):
            file.write_text(json.dumps(changed(document, path, value)))
            try:
                read = type(result).load(file)
            except DescriptionError as error:
                said.append(str(error))
                continue
            try:
                assert isinstance(read.sentence, str)
                assert read.to_dict()
                assert isinstance(read.warnings, list)
            except Exception as error:
                raise AssertionError(f"{'.'.join(map(str, path))} = {value!r}") from error
            accepted += 1
    assert len(said) > (200 if each_value else 200 // len(values))
    assert all(one.startswith(f"{file}: ") and "\n" not in one for one in said)
    assert accepted > (40 if each_value else 40 // len(values))


@pytest.mark.parametrize(
    ("result", "path", "value", "said"),
    [
        (
            RESULTS["check"],
            ("readings", "noise", "values", 0),
            "a",
            "readings.noise.values[0] is 'a': input should be a",
        ),
        (RESULTS["check"], ("tolerance",), 2.0, "tolerance is 2.0: input should be less than 1"),
        (RESULTS["check"], ("load",), ABSENT, "load is missing"),
        (RESULTS["cost"], ("quads", "work"), [], "work has 0 values and at_s 6"),
        (RESULTS["cost"], ("quads", "contrast", 0), 9, "quads.contrast is 9; it must be at most 2"),
        (RESULTS["comparison"], ("cpu_s",), [], "cpu_s has 0 values and wall_s 6"),
        (RESULTS["comparison"], ("by",), "hand", "by is 'hand': input should be 'wall' or 'cpu'"),
    ],
)
def test_the_error_says_what_is_permitted(tmp_path, result, path, value, said):
    file = tmp_path / "a.json"
    result.save(file)
    file.write_text(json.dumps(changed(json.loads(file.read_text()), path, value)))
    with pytest.raises(DescriptionError, match=r"^[^:]*a.json: ") as error:
        type(result).load(file)
    assert said in str(error.value)
    assert error.value.hint


def test_what_a_session_may_save_is_read_again(tmp_path):
    """A log that was cut meanwhile has less in it, and an early look may spend so little that it is 0."""
    found = session(quads=6)
    found.document["quads"]["work"][0] = [-5.0, 3.0]
    found.document["looks"]["taken"] = [[0.1, 0.0], [0.48, 0.05]]
    found.save(tmp_path / "cost.json")
    assert type(found).load(tmp_path / "cost.json").document["quads"] == found.document["quads"]
