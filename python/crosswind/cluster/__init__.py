"""A Dask cluster that is there already: reached, looked at, checked, and left as it was.

| question | module |
|---|---|
| how is it reached, and do all its workers fit to this process? | `client` |
| which hosts has it, and which worker speaks for each? | `hosts` |

What runs there: `crosswind.run.dask`.
"""
