"""Statistics that several rooms share, by scipy where it has them.

| question | module |
|---|---|
| between what does a mean lie? | `interval` |
"""
