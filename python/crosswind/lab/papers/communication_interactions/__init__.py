"""Characterizing and Scheduling Communication Interactions: its tables, its figures and what it claims.

| question | module |
|---|---|
| what the text leaves open, and what stands in its place | `calibration` |
| what the paper prints | `printed` |
| which runs a figure needs | `figures` |
| their results | `rows` |
| does a claim hold? | `claims`; `crosswind.lab.papers.grading` |
| tables and drawings | `parts` |
| all of it, resumable, one directory | `study` |

docs/papers/communication-interactions.md: equation to function, where we differ and why.
"""
