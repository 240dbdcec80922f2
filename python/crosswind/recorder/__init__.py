"""Record a parallel program: what each rank did when, and what kept it from running.

| question | module |
|---|---|
| which program starts the ranks, and how are they given the recorder? | `launcher`, `stand_in` |
| where is the recorder built and kept? | `build` |
| which MPI calls are recorded, and how? | `wrappers`, `shim/` |
| how does a program of any kind mark its steps? | `steps` |
| how do the ranks' parts become one file? | `parts` |
| how does a recording run? | `program` |
"""
