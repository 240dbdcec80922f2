"""One node of a live farm as a process: `python -m crosswind.run.agent`.

Started by `crosswind.run.local`, or by hand as `crosswind serve --parent HOST:PORT --name NODE --token-file FILE`.
Imports nothing but the compiled half, so that a tree of many nodes starts at once.
"""
