"""Re-examining Scheduling and Communication in Parallel Programs: its table, its figures and what it claims.

| question | module |
|---|---|
| table 1 | `daemons` |
| what the text leaves open, and what stands in its place | `calibration` |
| which runs a figure needs, and their results | `figures` |
| does a claim hold? | `claims`; `crosswind.lab.papers.grading` |
| all of it, resumable, one directory | `study` |

docs/papers/scheduling-and-communication.md: equation to function, where we differ and why.
"""
