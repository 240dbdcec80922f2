"""Scripts for a pool, parallel and xargs: with Crosswind in their place, the same comes out."""

from __future__ import annotations

import multiprocessing
import operator
import os
import subprocess
import sys
import time
from pathlib import Path
from shutil import which

import numpy as np
import pytest
from executor_cases import Frozen, Model, both, fails, fibonacci, held, same, slowly, square, waits_for

import crosswind

pytestmark = pytest.mark.live


def raised(call):
    """Return the values that come before an error, and the error; the values alone where there is none."""
    found = []
    try:
        for value in call():
            found.append(value)
    except BaseException as error:
        return found, type(error), error.args
    return found


def set_up(value):
    os.environ["SET_UP"] = value
    return value


def number_of(array):
    return int(array.sum())


def mapped(*arguments, **options):
    return list(crosswind.map(*arguments, max_workers=2, **options))


def streamed(*arguments, **options):
    return crosswind.map(*arguments, max_workers=2, **options)


def kind_of(call):
    """Return by which name an error is known; timeouts have several classes."""
    try:
        return call()
    except Exception as error:
        return type(error).__name__


def while_held(call):
    """Call with a file that `waits_for` waits for."""
    with held() as path:
        return call(path)


def wait_for(seen):
    until = time.monotonic() + 60
    while not seen and time.monotonic() < until:
        time.sleep(0.001)
    return seen


def noted(call, seen):
    call.add_done_callback(lambda done: seen.append(done.result()))
    return call


def submitted(farm, function, count):
    return [farm.submit(function, number) for number in range(count)]


def waited(pending):
    pending.wait(60)
    return pending.ready(), pending.successful()


def waited_call(call):
    return call.exception(60) is None and call.done(), call.exception() is None


def called_back(pool):
    seen = []
    pool.apply_async(square, (5,), callback=seen.append).get(9)
    return wait_for(seen)


def called_back_by_a_call(farm):
    seen = []
    noted(farm.submit(square, 5), seen).result(9)
    return wait_for(seen)


POOL = {
    "map": (lambda p: p.map(square, range(9)), lambda f: mapped(square, range(9))),
    "map of a generator": (lambda p: p.map(abs, (-n for n in range(9))), lambda f: mapped(abs, (-n for n in range(9)))),
    "map in chunks": (lambda p: p.map(square, range(99), 10), lambda f: mapped(square, range(99), chunksize=10)),
    "map of nothing": (lambda p: p.map(square, []), lambda f: mapped(square, [])),
    "map of texts": (lambda p: p.map(len, ["a", "bb"]), lambda f: mapped(len, ["a", "bb"])),
    "imap": (lambda p: list(p.imap(slowly, range(12))), lambda f: mapped(slowly, range(12))),
    "imap that fails": (
        lambda p: raised(lambda: p.imap(fails, range(6))),
        lambda f: raised(lambda: streamed(fails, range(6))),
    ),
    "imap unordered": (
        lambda p: sorted(p.imap_unordered(slowly, range(12))),
        lambda f: sorted(mapped(slowly, range(12), ordered=False)),
    ),
    "imap in chunks": (lambda p: list(p.imap(square, range(40), 7)), lambda f: mapped(square, range(40), chunksize=7)),
    "next": (lambda p: next(p.imap(square, [3, 4])), lambda f: next(streamed(square, [3, 4]))),
    "starmap": (lambda p: p.starmap(both, [(1, 2), (3, 4)]), lambda f: mapped(both, [1, 3], [2, 4])),
    "apply": (lambda p: p.apply(both, (1,), {"other": 2}), lambda f: f.submit(both, 1, other=2).result()),
    "apply_async": (lambda p: p.apply_async(square, (5,)).get(9), lambda f: f.submit(square, 5).result(9)),
    "apply_async that fails": (
        lambda p: raised(lambda: [p.apply_async(fails, (3,)).get(9)]),
        lambda f: raised(lambda: [f.submit(fails, 3).result(9)]),
    ),
    "a callback": (called_back, called_back_by_a_call),
    "map_async": (
        lambda p: p.map_async(square, range(5)).get(9),
        lambda f: [c.result(9) for c in submitted(f, square, 5)],
    ),
    "ready": (lambda p: waited(p.apply_async(square, (5,))), lambda f: waited_call(f.submit(square, 5))),
    "starmap_async": (
        lambda p: p.starmap_async(both, [(1, 2)]).get(9),
        lambda f: [f.submit(both, *one).result(9) for one in [(1, 2)]],
    ),
    "methods": (lambda p: p.map(Model().predict, [1, 2]), lambda f: mapped(Model().predict, [1, 2])),
    "classes": (lambda p: p.map(Frozen, "ab"), lambda f: mapped(Frozen, "ab")),
    "arrays": (lambda p: p.map(number_of, list(np.ones((4, 5)))), lambda f: mapped(number_of, list(np.ones((4, 5))))),
    "large arrays": (
        lambda p: [one.tolist()[-1] for one in p.map(np.cumsum, [np.ones(300_000)] * 3)],
        lambda f: [one.tolist()[-1] for one in mapped(np.cumsum, [np.ones(300_000)] * 3)],
    ),
    "large texts": (lambda p: p.map(len, ["x" * 3_000_000] * 3), lambda f: mapped(len, ["x" * 3_000_000] * 3)),
    "many": (lambda p: sum(p.map(square, range(20_000))), lambda f: sum(mapped(square, range(20_000)))),
    "recursion": (lambda p: p.map(fibonacci, range(12)), lambda f: mapped(fibonacci, range(12))),
    "items that are pairs": (lambda p: p.map(sum, [(1, 2), (3, 4)]), lambda f: mapped(sum, [(1, 2), (3, 4)])),
    "items of all kinds": (
        lambda p: p.map(same, [1, "a", None, (2, 3), [4], {5: 6}, b"7"]),
        lambda f: mapped(same, [1, "a", None, (2, 3), [4], {5: 6}, b"7"]),
    ),
    "a dict of futures": (
        lambda p: {key: one.get(9) for key, one in {n: p.apply_async(square, (n,)) for n in range(4)}.items()},
        lambda f: {key: one.result(9) for key, one in {n: f.submit(square, n) for n in range(4)}.items()},
    ),
    "operators": (lambda p: p.map(operator.neg, range(4)), lambda f: mapped(operator.neg, range(4))),
    "a timeout": (
        lambda p: kind_of(lambda: while_held(lambda path: p.apply_async(waits_for, (path,)).get(0.01))),
        lambda f: kind_of(lambda: while_held(lambda path: f.submit(waits_for, path).result(0.01))),
    ),
}


@pytest.fixture(scope="module")
def pool():
    with multiprocessing.Pool(2) as made:
        yield made


@pytest.mark.parametrize("case", POOL)
def test_what_a_pool_does(case, pool, farm):
    there, here = POOL[case]
    assert here(farm) == there(pool)


FOUND = "find in -type f -print0 | sort -z"
SHELL = {
    "parallel: names": ("parallel -k echo {/} ::: in/*", "crosswind map 'echo {/}' in/*"),
    "parallel: pipes": (
        "parallel -k 'cat {} | tr a-z A-Z | rev' ::: in/*",
        "crosswind map 'cat {} | tr a-z A-Z | rev' in/*",
    ),
    "parallel: variables": ("A=5 parallel -k 'echo $A; cat {}' ::: in/*", "A=5 crosswind map 'echo $A; cat {}' in/*"),
    "parallel: values with blanks": (
        "printf 'a b\\nc  d\\n' | parallel -k echo {}",
        "printf 'a b\\nc  d\\n' | crosswind map 'echo {}' --values -",
    ),
    "parallel: one fails": ("parallel -k 'grep -v beta {}' ::: in/*", "crosswind map 'grep -v beta {}' in/*"),
    "xargs: contents": ("ls in/* | xargs -n 1 cat", "ls in/* | crosswind map 'cat {}' --inputs -"),
    "xargs: values": ("seq 4 | xargs -n 1 expr 1 +", "seq 4 | crosswind map 'expr 1 + {}' --values -"),
    "xargs: names after zeros": (f"{FOUND} | xargs -0 -n 1 cat", f"{FOUND} | crosswind map 'cat {{}}' --inputs -"),
}
SHELL_AT_NIGHT = {
    "parallel: contents": ("parallel -k cat {} ::: in/*", "crosswind map 'cat {}' in/*"),
    "parallel: sizes": ("parallel -k wc -c '<' {} ::: in/*", "crosswind map 'wc -c < {}' in/*"),
    "parallel: stems": ("parallel -k echo {/.} ::: in/*", "crosswind map 'echo {stem}' in/*"),
    "parallel: several commands": ("parallel -k 'echo a; cat {}' ::: in/*", "crosswind map 'echo a; cat {}' in/*"),
    "parallel: values": (
        "seq 5 | parallel -k 'echo $(({} * 2))'",
        "seq 5 | crosswind map 'echo $(({} * 2))' --values -",
    ),
    "parallel: values with signs": (
        r"printf '$HOME\n`id`\n' | parallel -k echo {}",
        r"printf '$HOME\n`id`\n' | crosswind map 'echo {}' --values -",
    ),
    "parallel: names from a list": ("ls in/* | parallel -k cat {}", "ls in/* | crosswind map 'cat {}' --inputs -"),
    "parallel: names after zeros": (
        f"{FOUND} | parallel -0 -k cat {{}}",
        f"{FOUND} | crosswind map 'cat {{}}' --inputs -",
    ),
    "parallel: used twice": ("parallel -k 'cat {} {}' ::: in/*", "crosswind map 'cat {} {}' in/*"),
    "parallel: all fail": ("parallel -k 'false {}' ::: in/*", "crosswind map 'false {}' in/*"),
    "parallel: awk": (
        "parallel -k \"awk '{print NR, \\$1}' {}\" ::: in/*",
        "crosswind map \"awk '{print NR, \\$1}' {}\" in/*",
    ),
    "parallel: sed": ("parallel -k \"sed -n '1{p}' {}\" ::: in/*", "crosswind map \"sed -n '1{p}' {}\" in/*"),
    "parallel: no input": ("parallel -k 'cat - {} < /dev/null' ::: in/*", "crosswind map 'cat - {}' in/*"),
    "xargs: braces": (
        "ls in/* | xargs -I{} wc -c {} | cut -d' ' -f1",
        "ls in/* | crosswind map 'wc -c {} | cut -d\" \" -f1' --inputs -",
    ),
    "xargs: a shell": (
        "ls in/* | xargs -I{} sh -c 'cat {} | rev'",
        "ls in/* | crosswind map 'cat {} | rev' --inputs -",
    ),
    "xargs: one fails": ("ls in/* | xargs -n 1 grep -v beta", "ls in/* | crosswind map 'grep -v beta {}' --inputs -"),
    "xargs: options": ("ls in/* | xargs -n 1 head -c 3", "ls in/* | crosswind map 'head -c 3 {}' --inputs -"),
}


def shell(line, directory):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    command = ["bash", "-c", line]
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("case", [*SHELL, *(pytest.param(case, marks=pytest.mark.nightly) for case in SHELL_AT_NIGHT)])
def test_what_parallel_and_xargs_do(case, tmp_path):
    tool = case.partition(":")[0]
    if which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    (tmp_path / "in").mkdir()
    for name, text in {"a b.txt": "alpha\n", "it's.txt": "beta\n", "c.d.txt": "gamma\ndelta\n"}.items():
        # xargs takes names apart at blanks and quotes.
        called = name if tool == "parallel" or "zeros" in case else name.replace(" ", "").replace("'", "")
        (tmp_path / "in" / called).write_text(text)
    there, here = {**SHELL, **SHELL_AT_NIGHT}[case]
    status, said, _ = shell(there, tmp_path)
    own_status, _, complaint = shell(here, tmp_path)
    assert own_status == (3 if status else 0), complaint
    results = sorted(path for path in (tmp_path / "results").glob("*") if not path.name.startswith("."))
    assert "".join(path.read_text() for path in results) == said
