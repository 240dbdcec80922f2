"""Overlapping of Computation and Communication in the Quadrics Network: its tables, what it claims, a model of both.

| question | module |
|---|---|
| tables 1 to 4 | `tables`, `tables.csv` |
| what the text leaves open, and what stands in its place | `calibration` |
| the same cells on simulated processors | `matrix` |
| does a claim hold? | `claims`; `crosswind.lab.papers.grading` |
| all of it, in one directory | `study` |

docs/papers/quadrics-overlap.md: section to function, where we differ and why.
"""
