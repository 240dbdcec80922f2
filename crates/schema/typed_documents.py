"""Writes `python/crosswind/documents`: what documents hold, as types, from the JSON Schemas in docs/reference.

    python crates/schema/typed_documents.py

`make schemas` runs it. A definition that several kinds share, and that is the same in all, stands in `shared`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "docs" / "reference" / "schemas"
OUT = ROOT / "python" / "crosswind" / "documents"
KINDS = {
    "disturbance": "DisturbanceDocument",
    "hosts": "HostsDocument",
    "links": "LinksDocument",
    "measurement": "MeasurementHeader",
    "overlap": "OverlapDocument",
    "plan": "PlanDocument",
    "platform": "PlatformDocument",
    "program-runs": "ProgramRunsDocument",
    "runs": "RunsDocument",
    "streams-runs": "StreamsRunsDocument",
    "trace": "TraceHeader",
}
"""Kind -> the name of its document. An experiment is read in Rust alone."""
OTHERS = {"Warning": "Notice"}
"""Definitions that Python has already -> their names in `crosswind.errors`."""
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
WIDTH = 120
Schema = Mapping[str, Any]


def type_of(schema: Schema | bool) -> str:
    """Return the type of a value as Python writes it."""
    if isinstance(schema, bool):
        return "Any"
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return OTHERS.get(name, name)
    if "const" in schema:
        return f"Literal[{json.dumps(schema['const'])}]"
    if "enum" in schema:
        return f"Literal[{', '.join(json.dumps(value) for value in schema['enum'])}]"
    for joined in ("oneOf", "anyOf"):
        if joined in schema:
            return either([type_of(one) for one in schema[joined]])
    kinds = schema.get("type", [])
    return either([one_type(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)] or ["Any"])


def one_type(kind: str, schema: Schema) -> str:
    """Return the type of a value of a kind that JSON Schema names."""
    if kind == "array":
        if "prefixItems" in schema:
            return f"list[{either([type_of(one) for one in schema['prefixItems']])}]"
        return f"list[{type_of(schema.get('items', {}))}]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {type_of(values) if isinstance(values, Mapping) else 'Any'}]"
    return SIMPLE[kind]


def either(types: list[str]) -> str:
    """Return the union of types; literals are joined."""
    words = [one.removeprefix("Literal[").removesuffix("]") for one in types if one.startswith("Literal[")]
    others = dict.fromkeys(one for one in types if not one.startswith("Literal["))
    return " | ".join([*([f"Literal[{', '.join(words)}]"] if words else []), *others])


def doc(schema: Schema, name: str) -> str:
    """Return the first sentence of a description, as a doc string."""
    text = " ".join(str(schema.get("description", words(name))).split())
    sentence = text.split(". ")[0].rstrip(".") + "."
    if len(sentence) > WIDTH - 10:
        sentence = text.split(": ")[0].rsplit(", ", 1)[0].rsplit(" (", 1)[0].rstrip(".") + "."
    return f'"""{sentence}"""'


def words(name: str) -> str:
    """Return the name of a definition as words.

    Examples
    --------
    >>> words("RunNode")
    'Run node.'
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize() + "."


def definition(name: str, schema: Schema) -> str:
    """Return the class of an object, or the alias of anything else."""
    fields = schema.get("properties")
    if fields is None or "oneOf" in schema:
        return f"{name}: TypeAlias = {type_of(schema)}\n"
    required = set(schema.get("required", ()))
    types = {
        field: type_of(one) if field in required else f"NotRequired[{type_of(one)}]" for field, one in fields.items()
    }
    if all(field.isidentifier() and field not in ("from", "class") for field in types):
        body = "".join(f"    {field}: {kind}\n" for field, kind in types.items())
        return f"class {name}(TypedDict):\n    {doc(schema, name)}\n\n{body}"
    body = ", ".join(f"{json.dumps(field)}: {kind}" for field, kind in types.items())
    return f'{name} = TypedDict("{name}", {{{body}}})\n'


def references(schema: Any) -> Iterator[str]:
    """Yield the names of the definitions that a schema refers to."""
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            yield str(schema["$ref"]).rpartition("/")[2]
        for one in schema.values():
            yield from references(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from references(one)


def in_order(definitions: Mapping[str, Schema]) -> list[str]:
    """Return the definitions, each after those that it refers to."""
    found: dict[str, None] = {}

    def visit(name: str, above: tuple[str, ...] = ()) -> None:
        for other in references(definitions[name]):
            if other in definitions and other not in above:
                visit(other, (*above, name))
        found[name] = None

    for name in sorted(definitions):
        if name not in found:
            visit(name)
    return list(found)


def module(title: str, definitions: Mapping[str, Schema], shared: Mapping[str, Schema], top: str = "") -> str:
    """Return the text of a module."""
    names = in_order(definitions)
    text = "\n\n".join(definition(name, definitions[name]) for name in names if name not in OTHERS)
    wanted = {name for one in definitions.values() for name in references(one)}
    places = {
        "documents.shared": wanted & shared.keys() - OTHERS.keys(),
        "errors": {OTHERS[name] for name in wanted & OTHERS.keys()},
    }
    lines = [f"from crosswind.{place} import {', '.join(sorted(names))}\n" for place, names in places.items() if names]
    imports = "".join(["\n" if lines else "", *lines])
    head = f'"""{title} Written by crates/schema/typed_documents.py."""\n\nfrom __future__ import annotations\n\n'
    used = [word for word in ("Any", "Literal", "NotRequired", "TypeAlias", "TypedDict") if word in text]
    return f"{head}from typing import {', '.join(used)}\n{imports}\n{text}"


def modules() -> dict[str, str]:
    """Return the text of each module by its name."""
    schemas = {kind: json.loads((SCHEMAS / f"{kind}.schema.json").read_text()) for kind in KINDS}
    places: dict[str, list[Schema]] = {}
    for schema in schemas.values():
        for name, one in schema.get("$defs", {}).items():
            places.setdefault(name, []).append(one)
    alike = {name: found[0] for name, found in places.items() if len(found) > 1 and all(f == found[0] for f in found)}
    while True:  # what is shared refers to nothing else
        kept = {name: one for name, one in alike.items() if set(references(one)) <= alike.keys()}
        if kept == alike:
            break
        alike = kept
    found = {"shared": module("What several kinds of documents hold.", alike, {})}
    for kind, name in KINDS.items():
        schema = schemas[kind]
        own = {key: one for key, one in schema.get("$defs", {}).items() if key not in alike}
        found[kind.replace("-", "_")] = module(f"What a document of kind {kind} holds.", {**own, name: schema}, alike)
    return found


def main() -> int:
    """Write the modules that changed."""
    OUT.mkdir(exist_ok=True)
    for name, text in modules().items():
        (OUT / f"{name}.py").write_text(text)
    files = [str(OUT / f"{name}.py") for name in modules()]
    subprocess.run(["ruff", "format", "--quiet", *files], check=True)
    return subprocess.run(["ruff", "check", "--quiet", "--fix", *files], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
