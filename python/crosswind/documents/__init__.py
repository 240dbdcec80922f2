"""What documents hold, as types.

What Rust reads (platforms, plans, runs, measurements, overlaps) is described in `crates/schema`; its modules here are
written from the JSON Schemas (`make schemas`). What only Python reads is described here, with the range of each value.

| question | module |
|---|---|
| what does a document of a kind hold? | that of its kind |
| what do several kinds have in common? | `shared`, `values` |
| how is one read, and refused where a field is wrong? | `reading` |

A module that needs pydantic is imported where a file is read, and not before: pydantic takes 50 ms. Type checkers need
no import at run time.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]
"""A row of a table, column -> value, where what was swept or asked decides on the columns."""
Params: TypeAlias = dict[str, Any]
"""What a sweep set: dotted path -> value."""
Document: TypeAlias = dict[str, Any]
"""A document, or a part of one, as TOML or JSON has it, before it is checked."""
Arguments: TypeAlias = dict[str, Any]
"""Keyword arguments of a function."""
