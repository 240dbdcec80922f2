"""On the Interference of Communication on Computation in Java: its table, and what it claims.

| question | module |
|---|---|
| table 2 | `crosswind.lab.papers.table_2` |
| figures that only the text gives | `printed` |
| Java beside C, measured by this project | `measured_here` |
| does a claim hold? | `linearity`, `both_directions`, `nodes`; `crosswind.lab.papers.grading` |
| all of it, in one directory | `study` |

docs/papers/interference-in-java.md: section to function, where we differ and why.
"""
