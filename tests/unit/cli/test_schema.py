"""`schema` has the fields of the results that people ask about, not only of the files that they write."""

import json

import pytest
from typer.testing import CliRunner

from crosswind.cli import app
from crosswind.cli.schema import _SHAPES


@pytest.mark.parametrize("kind", _SHAPES)
def test_a_result_has_a_schema_with_its_fields(kind):
    done = CliRunner().invoke(app, ["schema", kind])
    assert done.exit_code == 0, done.output
    schema = json.loads(done.stdout)
    assert schema["title"] == kind
    assert schema["properties"]["kind"] == {"const": kind}
    assert {"schema_version", "kind"} <= set(schema["required"]) <= set(schema["properties"])
    assert len(schema["properties"]) > 4
