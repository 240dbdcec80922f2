"""`schema` has every kind of file that is JSON, and the header of every table; what verbs write fits it."""

import json
import re
from dataclasses import asdict
from typing import get_args

import disturbed
import pytest
from pydantic import TypeAdapter
from recorded_ranks import write_profiles
from typer.testing import CliRunner

from crosswind.blame.recorded import blame_recorded
from crosswind.cli import app
from crosswind.cli.schema import _IN_PYTHON, Kind, described_in_python
from crosswind.experiment import Experiment
from crosswind.files.kinds import WORDS
from crosswind.measure.sweep.index import new_index
from crosswind.measure.sweep.kinds import kind_of
from crosswind.model.flows import fit_contention
from crosswind.plan.queues import plan_queues

OF_OTHERS = {
    "bug-report": "read by people",
    "figure": "an image",
    "goal": "a format of others",
    "hwloc": "a format of others",
    "homework": "filled in by people; `crosswind grade` names what is wrong",
    "noise": "a format of others",
    "simgrid": "a format of others",
    "slurm": "a format of others",
    "watched-page": "read by people",
    "intervals": "a table without a header",
    "joblog": "a table of text",
    "junit": "a format of others",
    "metrics": "a format of others",
    "perfetto": "a format of others",
    "report": "a page",
    "schema": "a schema itself",
    "table": "a table for papers and spreadsheets",
    "tasks": "a table of text",
}
"""Kinds of file without a schema, and why."""
AS = {"recording": "disturbance"}
"""Kinds whose schema is that of another."""
STREAM = {"class": "parallel", "from": 0, "to": 1, "message_bytes": 64, "name": "A"}
BULK = {"class": "local", "from": 0, "to": 2, "message_bytes": 16384, "arrivals": "backlogged", "name": "l"}
STREAMS = {"kind": "streams", "hosts": 3, "stream": [STREAM, BULK]}


def schema_of(kind):
    done = CliRunner().invoke(app, ["schema", kind])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_without_a_kind_all_are_listed_in_80_columns():
    done = CliRunner().invoke(app, ["schema"])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert len(lines) <= 14
    assert all(len(line) <= 80 for line in lines)
    listed = set(re.split(r"[,\s]+", done.stdout))
    assert set(get_args(Kind)) <= listed
    refused = CliRunner().invoke(app, ["schema", "-o", "x.json"])
    assert "no kind is named" in str(refused.exception)


@pytest.mark.parametrize("kind", _IN_PYTHON)
def test_a_result_has_a_schema_with_its_fields(kind):
    schema = schema_of(kind)
    assert schema["title"] == kind
    forms = [schema, *(schema["$defs"][one["$ref"].rpartition("/")[2]] for one in schema.get("anyOf", []))]
    fields = set().union(*(form["properties"] for form in forms))
    assert set(schema["required"]) <= set(schema["properties"])
    assert len(fields) > 4
    if "kind" in schema["properties"]:
        assert schema["properties"]["kind"] == {"const": kind}


@pytest.mark.parametrize("kind", sorted(set(WORDS) - set(OF_OTHERS)))
def test_every_kind_of_file_has_a_schema(kind):
    name = AS.get(kind, kind)
    assert {"properties", "oneOf", "anyOf", "$ref"} & set(schema_of(name))


def test_what_has_no_schema_is_a_kind_of_file():
    assert set(OF_OTHERS) <= set(WORDS)
    assert not set(OF_OTHERS) & {*_IN_PYTHON, *AS}


def contention(folder):
    (folder / "flows.csv").write_text("flows,latency_s\n1,5e-4\n2,5.5e-4\n2,5.4e-4\n3,6e-4\n3,6.1e-4\n")
    return fit_contention([folder / "flows.csv"]).to_dict()


def queues(folder):
    both = Experiment.from_dict({"schema_version": 1, "name": "both", "workload": STREAMS})
    return plan_queues(both, local_slowdown=3.0).to_dict()


def sweep(folder):
    index = new_index(kind_of("streams"), [1, 2], {"seed": 1}, {"name": "a1", "cpu": "c", "kernel": "k"})
    return {"kind": "sweep", **asdict(index)}


MADE = {
    "blame": lambda folder: disturbed.blamed().summary(),
    "recorded-blame": lambda folder: blame_recorded(write_profiles(folder, "late")).to_dict(),
    "contention": contention,
    "queues-plan": queues,
    "sweep": sweep,
}


@pytest.mark.parametrize("kind", MADE)
def test_what_is_written_fits_its_schema(kind, tmp_path):
    document = json.loads(json.dumps(MADE[kind](tmp_path)))
    TypeAdapter(described_in_python(kind)).validate_python(document, strict=True)
    schema = schema_of(kind)
    assert set(schema["required"]) <= set(document) <= set(schema["properties"])
