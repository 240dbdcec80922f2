"""Large values and arguments between hosts: each is what it was, and belongs to the one that gets it."""

import numpy as np
import pytest
from tests.live.farms import tree

import crosswind
from crosswind import Farm
from crosswind.run import call_run
from crosswind.run.agents import Launch

_NODES = ("r", "a<r", "b<a", "c<r")


class Elsewhere(Launch):
    """Agents of this machine that are taken for those of another, with or without the right to send objects."""

    trusted = True


class Untrusted(Launch):
    trusted = False


def doubled(value):
    value["array"][0] += 1  # it is the call's own
    return {"array": value["array"] * 2, "bytes": value["bytes"] + b"!", "few": [1, "two"], "order": value["order"]}


def value(number, size):
    order = np.asfortranarray(np.full((size // 100, 100), number, "f4"))
    return {"array": np.full(size, number), "bytes": bytes([number]) * size, "order": order}


def check(found, number, size):
    assert (found["array"][:2].tolist(), len(found["array"])) == ([2 * number + 2, 2 * number], size)
    assert found["bytes"] == bytes([number]) * size + b"!"
    assert found["few"] == [1, "two"]
    assert found["order"].flags.f_contiguous
    assert (found["order"] == number).all()
    found["array"][:] = 0  # it is the caller's own


@pytest.mark.parametrize("launch", [Elsewhere, Untrusted])
@pytest.mark.parametrize("size", [1_000, 300_000])
def test_values_and_arguments_are_what_they_were(launch, size, monkeypatch):
    values = [value(number, size) for number in range(24)]
    with Farm(tree(*_NODES), launch=launch()) as farm:
        futures = [farm.submit(doubled, one) for one in values]
        for one in values:
            one["array"][:] = 99  # the call was submitted before
        for number, future in enumerate(futures):
            check(future.result(), number, size)
    monkeypatch.setattr(call_run, "Launch", launch)
    monkeypatch.setattr(call_run, "_is_local", lambda *_: False)
    for number, found in enumerate(crosswind.map(doubled, (value(n, size) for n in range(24)), on=tree(*_NODES))):
        check(found, number, size)


SCRATCH = np.zeros(50_000)


def reuses(number):
    """A function that returns the same array again and again."""
    SCRATCH[:] = number
    return SCRATCH


@pytest.mark.parametrize("launch", [Elsewhere, Untrusted])
def test_a_value_is_what_it_was_when_the_call_returned_it(launch):
    with Farm(tree("r", "a<r"), launch=launch()) as farm:
        futures = [farm.submit(reuses, number) for number in range(60)]
        assert [set(future.result()) for future in futures] == [{float(number)} for number in range(60)]


def large_and_loud(size):
    print("a line")
    return np.arange(size)


def test_a_call_that_prints_returns_a_large_value(capfd):
    with Farm(tree("r", "a<r"), launch=Untrusted()) as farm:
        found = farm.submit(large_and_loud, 30_000_000).result()
    assert (found[0], found[-1], found.flags.writeable) == (0, 29_999_999, True)


@pytest.mark.parametrize("launch", [Elsewhere, Untrusted])
@pytest.mark.parametrize("size", [64 << 10, 5_000_000])
def test_large_bytes_alone_stay_bytes(launch, size):
    with Farm(tree("r", "a<r"), launch=launch()) as farm:
        found = farm.submit(bytes, b"x" * size).result()
    assert (type(found), found) == (bytes, b"x" * size)


@pytest.mark.parametrize("size", [3_000, 70_000, 500_000, 1_500_000])
def test_values_of_every_size_come_in_batches_on_this_machine_too(size):
    for kind in (bytes, np.zeros):
        found = list(crosswind.map(kind, [size] * 60, max_workers=2))
        assert {(type(one), len(one)) for one in found} == {(type(kind(1)), size)}


def raises_much(number):
    if number % 7 == 0:
        raise ValueError("x" * 100_000)
    return number


@pytest.mark.parametrize("launch", [Launch, Elsewhere, Untrusted])
def test_exceptions_that_say_much_come_in_batches(launch):
    with Farm(tree("r", "a<r"), launch=launch()) as farm:
        futures = [farm.submit(raises_much, number) for number in range(200)]
        found = [future.exception() for future in futures]
    assert [str(one) for one in found if one is not None] == ["x" * 100_000] * 29
