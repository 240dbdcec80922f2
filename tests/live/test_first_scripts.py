"""Scripts of pool and Dask users as they write them at first: what they see in a terminal of 80 x 30."""

from __future__ import annotations

from pathlib import Path

import pytest
import typed

pytestmark = pytest.mark.live

HANGS_S = 300
LAST = 6
"""Lines at the end of a traceback in which the error and its hint stand."""

POOL = {
    "one line of a pool": ("print(sum(crosswind.map(lambda item: item * item, range(1000))))", 0, "332833500"),
    "several lists": ("print(list(crosswind.map(pow, [2, 3], [3, 2])))", 0, "[8, 9]"),
    "four at a time": ("print(list(crosswind.map(abs, [-1, 2], max_workers=4)))", 0, "[1, 2]"),
    "print in a task": ("def task(item):\n    print('item', item)\nlist(crosswind.map(task, [7]))", 0, "item 7"),
    "a task that raises": (
        "for value in crosswind.map(lambda item: 1 // item, [1, 0]):\n    print('value', value)",
        1,
        "ZeroDivisionError: integer division or modulo by zero",
    ),
    "a task that ends its process": (
        "import os\nprint(crosswind.Farm(max_workers=1).submit(os._exit, 1).exception())",
        0,
        "was being computed # times when an agent was lost",
    ),
    "an executor": ("with crosswind.Farm() as farm:\n    print(farm.submit(pow, 2, 5).result())", 0, "32"),
    "an executor by its place": (
        "with crosswind.Farm('local') as farm:\n    print(farm.submit(abs, -5).result())",
        0,
        "5",
    ),
    "a number of workers": ("crosswind.Farm(4)", 1, "hint: Farm(max_workers=4) has 4 nodes on this machine"),
    "an address alone": ("crosswind.Farm('tcp://127.0.0.1:1')", 1, "hint: Farm('dask:tcp://127.0.0.1:1')"),
    "a map on an address alone": (
        "list(crosswind.map(abs, [1], on='tcp://127.0.0.1:1'))",
        1,
        "dask:tcp://SCHEDULER:PORT",
    ),
    "a timeout": (
        "import time\nlist(crosswind.map(time.sleep, [60], task_timeout_s=0.5))",
        1,
        "over its time of 0.5 s (task_timeout_s)",
    ),
}
"""What is written after `import crosswind`, how Python ends, and what is on the screen; # stands for any number."""

DASK = {
    "a client": ("print(crosswind.Farm(client).submit(pow, 2, 5).result())", 0, "32"),
    "an address": ("print(list(crosswind.map(abs, [-5], on='dask:ADDRESS')))", 0, "[5]"),
    "futures in a list": (
        "farm = crosswind.Farm(client)\nprint(farm.submit(sum, [farm.submit(abs, -2), farm.submit(abs, 3)]).result())",
        0,
        "5",
    ),
    "a future of Dask": ("print(crosswind.Farm(client).submit(pow, client.submit(abs, -3), 2).result())", 0, "9"),
    "Dask's key": (
        "crosswind.Farm(client).submit(lambda item: item, 1, key='word')",
        1,
        "hint: a call is known by its future: keep that",
    ),
    "Dask's gather": ("crosswind.Farm(client).gather([])", 1, "[future.result() for future in futures]"),
    "Dask's scatter": ("crosswind.Farm(client).scatter([1])", 1, "submit the value itself"),
    "Dask's status": ("crosswind.Farm(client).submit(abs, 1).status", 1, "done(), running() and cancelled()"),
    "an error with arguments of its own": (
        "class MyError(Exception):\n    def __init__(self, one, other):\n        super().__init__(f'{one}-{other}')\n"
        "def task():\n    raise MyError(1, 2)\n"
        "try:\n    crosswind.Farm(client).submit(task).result()\nexcept MyError as error:\n    print('caught', error)",
        0,
        "caught 1-2",
    ),
}
"""The same, with a client of a cluster; ADDRESS is its scheduler's."""


def screen_of(text: str, folder: Path) -> tuple[int, str]:
    (folder / "script.py").write_text(text)
    code, screen, _ = typed.type_in("python script.py", folder, HANGS_S)
    return code, screen


def is_shown(words: str, screen: str, code: int) -> bool:
    """Whether words are on the first lines or, below a traceback, on the last ones."""
    lines = screen.splitlines()
    seen = " ".join(lines[-LAST:] if code else lines[:10])
    return typed.plain(words) in typed.plain(seen)


@pytest.mark.parametrize("name", POOL)
def test_a_user_of_a_pool_sees_the_answer_or_what_to_write(name, tmp_path):
    text, expected, words = POOL[name]
    code, screen = screen_of(f"import crosswind\n{text}\n", tmp_path)
    assert code == expected, screen
    assert is_shown(words, screen, code), screen


@pytest.mark.parametrize("name", DASK)
def test_a_user_of_dask_sees_the_answer_or_what_to_write(name, cluster, tmp_path):
    text, expected, words = DASK[name]
    address = cluster.scheduler_address
    head = f"import crosswind\nfrom distributed import Client\nclient = Client({address!r})\n"
    code, screen = screen_of(f"{head}{text.replace('ADDRESS', address)}\n", tmp_path)
    assert code == expected, screen
    assert is_shown(words, screen, code), screen
