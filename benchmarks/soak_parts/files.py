"""A command over files that become what no task can read or write, while it runs."""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from crosswind.run.command import map_command

FILES = 40
ODD = ("a FIFO as input", "a directory as input", "a missing input", "a FIFO as output", "a directory as output")


def map_changing_files(folder: Path, draw: random.Random, **where: Any) -> dict[str, Any]:
    """Run a command whose inputs and outputs become what no task can read or write, while it runs.

    `where` is of `map_command`: where the command runs.
    """
    inputs, out = folder / "in", folder / "out"
    inputs.mkdir(parents=True)
    odd: dict[str, str] = {}
    for file in range(FILES):
        (inputs / f"{file:03}").write_text(f"{file}")
        if draw.random() < 0.3:
            odd[f"{file:03}"] = draw.choice(ODD)
    over = threading.Event()

    def change() -> None:
        while not over.wait(0.01) and not (out / "000").exists():
            pass
        for name, kind in odd.items():
            if kind.endswith("input"):
                (inputs / name).unlink(missing_ok=True)
            if kind == "a FIFO as input":
                os.mkfifo(inputs / name)
            elif kind == "a directory as input":
                (inputs / name).mkdir()

    odd.pop("000", None)
    makes = "".join(
        f"case {{name}} in {name}) {make} {{output}}; exit 0;; esac; "
        for name, kind in odd.items()
        if (make := {"a FIFO as output": "mkfifo", "a directory as output": "mkdir"}.get(kind))
    )
    changing = threading.Thread(target=change)
    changing.start()
    try:
        line = f"{makes}sleep 0.02; cat {{input}} > {{output}}"
        map_command(line, [str(inputs / "*")], out, task_timeout_s=20.0, quiet=True, **where)
    finally:
        over.set()
        changing.join()
    wrong: list[str] = []
    for file in range(FILES):
        name = f"{file:03}"
        result = (out / name).read_text() if (out / name).exists() else None
        # What became odd may have been read before.
        if result != f"{file}" and not (result is None and name in odd):
            wrong.append(f"{folder}: the result of {name}, {odd.get(name, 'a file')}, is {result!r}")
    return {"wrong": wrong, "odd": Counter(odd.values())}
