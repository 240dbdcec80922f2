"""What this host is, and every setting of it that is known to move interference.

Reads `/proc`, `/sys` and the kernel's answers to questions that need no privilege. Changes nothing.
`crosswind.doctor` judges what is described here.

| question | module |
|---|---|
| the whole host, as a header holds it | `description` |
| CPUs, control groups, priorities, interrupts | `processor`, `cgroup`, `priority`, `interrupts` |
| interfaces, and the way to another host | `network`, `route` |
| processes, and what they do | `processes`, `activity` |

Imports nothing here: a run of short commands needs `processes` only.
"""
