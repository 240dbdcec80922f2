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
