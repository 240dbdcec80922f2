"""The types that are written from the JSON Schemas are those of the schemas as they are now."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "crates" / "schema" / "typed_documents.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("typed_documents", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_make_schemas_would_write_what_is_there(script, tmp_path):
    there = ROOT / "python" / "crosswind" / "documents"
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, text in script.modules().items():
        (tmp_path / f"{name}.py").write_text(text)
    names = [f"{name}.py" for name in script.modules()]
    subprocess.run(["ruff", "format", "--quiet", *names], cwd=tmp_path, check=True)
    subprocess.run(["ruff", "check", "--quiet", "--fix", *names], cwd=tmp_path, check=True)
    assert [name for name in names if (tmp_path / name).read_text() != (there / name).read_text()] == []


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": ["number", "null"]}, "float | None"),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, 'Literal["a", "b"]'),
        ({"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}, "Node | None"),
        (
            {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}}},
            "list[dict[str, int]]",
        ),
        ({"$ref": "#/$defs/Warning"}, "Notice"),
        (True, "Any"),
    ],
)
def test_a_schema_becomes_the_type_of_its_values(script, schema, written):
    assert script.type_of(schema) == written


def test_a_field_that_may_be_absent_is_not_required_and_one_that_is_no_name_is_quoted(script):
    two = {"properties": {"at": {"type": "string"}, "to": {"type": "string"}}, "required": ["at"]}
    assert (
        script.definition("Link", two)
        == 'class Link(TypedDict):\n    """Link."""\n\n    at: str\n    to: NotRequired[str]\n'
    )
    quoted = {"properties": {"from": {"type": "string"}}, "required": ["from"]}
    assert script.definition("Link", quoted) == 'Link = TypedDict("Link", {"from": str})\n'
