"""Interference-Aware Scheduling: figure 5, tables 3 and 4, and what the paper claims.

| question | module |
|---|---|
| tables 2 to 4 | `crosswind.lab.papers.table_2`, `table_3`, `table_4` |
| what the text leaves open, and what stands in its place | `calibration` |
| the runs of figure 5 | `figures` |
| their results | `rows` |
| does a claim hold? | `fork_claims`, `model_claims`, `grading`; of section 2: `interference_in_java` |
| all of it, in one directory | `study` |

docs/papers/interference-aware-scheduling-runs.md: what came out, where we differ and why.
"""
