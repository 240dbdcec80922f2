"""Claim: a new user has the first useful answer after 20 s (engineer) to 2 minutes, with one or two commands.

Each kind of user types the first commands of a page in a terminal of 80 columns, up to the answer that the page
promises. What must stand in the first ten lines is a test's (tests/live/test_first_hour.py); this records the seconds.
Writes records/first_answer.json:
    python benchmarks/first_answer.py [rounds]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import record

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
HANGS_S = 600.0
FINE = (0, 3, 4)
"""Exit codes with an answer: it is fine, it cannot be said, it is above the margin."""
USERS = {
    "engineer": ("start/engineer", 2, 20.0),
    "pool": ("guides/coming-from", 1, 60.0),
    "dask": ("start/dask", 1, 60.0),
    "mpi": ("start/mpi", 2, 60.0),
    "ml": ("start/ml", 1, 120.0),
    "researcher": ("start/researcher", 1, 120.0),
    "teacher": ("start/teacher", 1, 20.0),
}
"""Kind of user -> the page, its commands until the first useful answer, and the seconds they may take."""


def first_answer(user: str) -> dict[str, Any]:
    """Type a user's first commands; return the seconds of each, and the first line of the last one's screen."""
    import typed

    name, count, most_s = USERS[user]
    page = ROOT / "docs" / f"{name}.md"
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        typed.settle(page, folder)
        took: list[float] = []
        for command in list(typed.commands_of(page))[:count]:
            code, screen, seconds = typed.type_in(command.line, folder, HANGS_S)
            if code not in FINE:
                raise SystemExit(f"error: `{command.line}` ended with {code}\n{screen}")
            took.append(round(seconds, 2))
    shown = [typed.plain(line) for line in command.shown]
    lines = [line for line in screen.splitlines() if line.strip()]
    answer = next((line for line in lines if any(one in typed.plain(line) for one in shown)), lines[-1])
    return {"seconds": round(sum(took), 2), "each_s": took, "most_s": most_s, "line": command.line, "answer": answer}


def main(rounds: int = 3) -> None:
    found: dict[str, list[dict[str, Any]]] = {user: [] for user in USERS}
    for _ in range(rounds):
        for user, several in found.items():
            several.append(first_answer(user))
            print(f"{user}: {several[-1]['seconds']:.1f} s of {several[-1]['most_s']:g}: {several[-1]['answer']}")
    users = {
        user: {**several[-1], "seconds": record.spread([one["seconds"] for one in several])}
        for user, several in found.items()
    }
    print(record.write("first_answer", [], rounds=rounds, users=users))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
