"""Print the words of our files as a dictionary for libFuzzer: without them it would have to guess field names."""

import json
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).parents[1] / "docs" / "reference" / "schemas"


def words(schema: Any) -> set[str]:
    """Names of fields and words among permitted values, wherever they stand in a JSON Schema."""
    if isinstance(schema, list):
        return set().union(*map(words, schema))
    if not isinstance(schema, dict):
        return set()
    values = [*schema.get("enum", []), schema.get("const")] if "properties" not in schema else []
    own = {*schema.get("properties", {}), *(value for value in values if isinstance(value, str))}
    return own.union(*map(words, schema.values()))


if __name__ == "__main__":
    for word in sorted(set().union(*(words(json.loads(path.read_text())) for path in SCHEMAS.glob("*.json")))):
        print(json.dumps(word))
