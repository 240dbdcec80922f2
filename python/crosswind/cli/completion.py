"""What the shell completes of `--set PATH=VALUE`: fields of an experiment, and the words that a field takes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crosswind.documents import Document

_NOT_SET = frozenset({"schema_version", "name", "repetitions", "sweep", "change", "warning"})
_FILES = frozenset({"platform", "disturbance"})
_before_equals: str | None = None
"""The path that stands before the word to complete, where the shell has split them."""


def rejoin_words() -> None:
    """Undo what bash does to `--set PATH=VALUE` before it asks: three words, of which the last is completed."""
    global _before_equals  # noqa: PLW0603 (a process completes once)
    words = os.environ.get("COMP_WORDS", "").split(" ")
    at = int(os.environ.get("COMP_CWORD") or 0)
    if os.environ.get("_CROSSWIND_COMPLETE") != "complete_bash" or at >= len(words):
        return
    first = at - 1 if words[at] == "=" else at - 2 if words[at - 1] == "=" else 0
    if first > 1 and words[first - 1] == "--set":
        _before_equals = words[first]
        value = "" if words[at] == "=" else words[at]
        os.environ["COMP_WORDS"] = " ".join([*words[:first], value])
        os.environ["COMP_CWORD"] = str(first)


def settings(ctx: Any, incomplete: str) -> list[str]:
    """Return the paths that begin so, each with its `=`; after that, the path with each value that it takes."""
    # While an option has no value yet, values and arguments cannot be distinguished.
    words = [ctx.params.get("experiment"), ctx.params.get("streams"), *ctx.args]
    experiment = next((word for word in words if word and Path(word).is_file()), None)
    description = _description(experiment)
    fields = dict(_fields(description))
    if _before_equals is not None:
        return [value for value in _values(_before_equals, fields, experiment) if value.startswith(incomplete)]
    path, equals, _ = incomplete.partition("=")
    if not equals:
        return [f"{path}=" for path in fields]
    return [f"{path}={value}" for value in _values(path, fields, experiment)]


def hint_for(description: Document, path: str) -> str:
    """Return which words a field takes, and the longer field that may be meant; nothing where it takes others."""
    fields = dict(_fields(description))
    words = (
        _values(path, fields, None) if any("const" in form for form in fields.get(path, {}).get("forms", [])) else []
    )
    longer = [field for field in fields if field.startswith(f"{path}_")]
    known = f"{path} is {' or '.join(words)}" if words else ""
    meant = f"for a number: {', '.join(longer)}" if longer else ""
    return "; ".join(part for part in (known, meant) if part)


def _description(experiment: Any) -> Document:
    from crosswind.errors import CrosswindError
    from crosswind.experiment import Experiment

    try:
        return Experiment.load(experiment).to_dict() if experiment else {}
    except CrosswindError:
        return {}


def _fields(description: Document) -> Iterator[tuple[str, Document]]:
    """Yield each path that the experiment's kind has, with its schema; without a kind, those of all kinds."""
    from crosswind import _core

    schema = json.loads(_core.schema_of("experiment"))
    kind = description.get("workload", {}).get("kind")
    of = {"farm": "Experiment", "program": "ProgramExperiment", "streams": "StreamsExperiment"}
    walk = _Walk(schema["$defs"])
    for name in [of[kind]] if kind else of.values():
        for field, below in schema["$defs"][name]["properties"].items():
            if field not in _NOT_SET:
                yield from walk.fields(field, below, description.get(field))


class _Walk:
    def __init__(self, definitions: Document) -> None:
        self._definitions = definitions

    def fields(self, path: str, schema: Document, value: Any) -> Iterator[tuple[str, Document]]:
        """Yield a field and those below it; of what may be a word or a table, the table's only where there is one."""
        forms = list(self._forms(schema))
        tables = [form for form in forms if "properties" in form]
        lists = [form for form in forms if form.get("type") == "array"]
        if lists and isinstance(value, list):
            for place, item in enumerate(value):
                yield from self.fields(f"{path}[{place}]", lists[0]["items"], item)
        elif tables and (len(tables) == len(forms) or isinstance(value, dict)):
            known = {name: below for form in tables for name, below in form["properties"].items()}
            for name, below in known.items():
                if name != "kind":
                    yield from self.fields(f"{path}.{name}", below, value.get(name) if value else None)
        else:
            yield path, {"forms": forms, **schema}

    def _forms(self, schema: Document) -> Iterator[Document]:
        if "$ref" in schema:
            yield from self._forms(self._definitions[schema["$ref"].rpartition("/")[2]])
        elif "anyOf" in schema or "oneOf" in schema:
            for form in schema.get("anyOf") or schema["oneOf"]:
                yield from self._forms(form)
        elif schema.get("type") != "null":
            yield schema


def _values(path: str, fields: Document, experiment: Any) -> list[str]:
    if path in _FILES:
        here = Path(experiment).parent if experiment else Path()
        return sorted(file.name for file in here.glob("*.toml"))
    schema = fields.get(path, {})
    words = [form["const"] for form in schema.get("forms", []) if "const" in form]
    words += [word for form in schema.get("forms", []) for word in form.get("enum", [])]
    if any(form.get("type") == "boolean" for form in schema.get("forms", [])):
        words += ["true", "false"]
    if not words and isinstance(schema.get("default"), int | float | str):
        words = [schema["default"]]
    return list(dict.fromkeys(map(str, words)))
