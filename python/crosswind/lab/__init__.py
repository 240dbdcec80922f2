"""The lab: papers run again, their homework, and a page that teaches. It uses Crosswind; no part of Crosswind needs it.

| question | package |
|---|---|
| do a paper's figures and claims hold when they are run again? | `papers` |
| why is the child with the fastest link served first? | `lesson` |
| are a student's answers to the homework right? | `grade` |

The lab uses Crosswind as a user's program does: names of `import crosswind`, and beside them only `errors`, `files`,
`statistics` and `terminal`. What it needs of the extension module beyond that is in one module, `engine`. Of the rooms
only `cli` and `report` import it, to show it: the verbs `reproduce`, `lesson` and `grade`, and the section of a study.
"""
