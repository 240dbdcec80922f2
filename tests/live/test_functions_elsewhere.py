"""Functions of calls on other hosts: each travels once to each node, as it is when the call is submitted."""

import os

import pytest
from tests.live.farms import tree

from crosswind import Farm
from crosswind.run.agents import Launch

LARGE = 2 << 20
_NODES = ("r", "a<r", "b<a", "c<a", "d<r")


class Elsewhere(Launch):
    """Agents of this machine that are taken for those of another: all that they get comes by TCP."""


def received_bytes(farm):
    return {node["name"]: round(node["received_mb"] * 1e6) for node in farm.run.nodes if node["name"] != "r"}


def large(number, size=LARGE):
    """Return a function that holds `size` bytes, a different one for each number."""
    data = number.to_bytes(2) * (size // 2)
    return lambda index: (data[index], number)


@pytest.mark.parametrize("calls", [12, 3_000])
def test_a_large_function_travels_once_to_each_node_of_a_tree(calls):
    function = large(7)
    with Farm(tree(*_NODES, rate=1000.0), launch=Elsewhere()) as farm:
        futures = [farm.submit(function, 1) for _ in range(calls)]
        assert {future.result() for future in futures} == {(7, 7)}
    received = received_bytes(farm)
    assert sum(received.values()) > LARGE
    assert all(size < 2 * LARGE for size in received.values()), received


def test_what_a_function_holds_may_change_between_calls():
    seen, data = [], bytes(LARGE)

    def function():
        return len(seen), len(data)

    with Farm(tree(*_NODES), launch=Elsewhere()) as farm:
        futures = []
        for _ in range(6):
            futures.append(farm.submit(function))
            seen.append(None)
        assert [future.result() for future in futures] == [(count, LARGE) for count in range(6)]


def test_more_functions_than_a_node_keeps_are_sent_again_while_calls_of_them_wait():
    functions = [large(number, 20_000) for number in range(150)]
    with Farm(tree(*_NODES), launch=Elsewhere(), buffer_tasks=8) as farm:
        futures = [farm.submit(functions[number * 7 % 150], 1) for number in range(600)]
        assert [future.result()[1] for future in futures] == [number * 7 % 150 for number in range(600)]


def test_a_node_that_is_started_again_gets_the_function_again(tmp_path):
    data = bytes(LARGE)

    def function(number):
        if number == 20 and not (tmp_path / "ended").exists():
            (tmp_path / "ended").touch()
            os._exit(3)
        return number, len(data)

    with Farm(tree("r", "a<r", "b<a"), launch=Elsewhere()) as farm:
        futures = [farm.submit(function, number) for number in range(40)]
        assert [future.result() for future in futures] == [(number, LARGE) for number in range(40)]


def test_calls_that_are_withdrawn_and_submitted_again_find_their_function(tmp_path):
    first, second, held = large(1), large(2), tmp_path / "held"
    held.touch()

    def waits():
        while held.exists():
            pass

    with Farm(tree("r", "a<r", "b<r"), launch=Elsewhere()) as farm:
        waiting = [farm.submit(waits) for _ in range(2)]
        withdrawn = [farm.submit(first, 1) for _ in range(30)]
        cancelled = [future.cancel() for future in withdrawn]
        held.unlink()
        again = [farm.submit(function, 1) for function in (first, second) * 10]
        assert {future.result() for future in again} == {(1, 1), (2, 2)}
        assert not any(future.result() for future in waiting)
        assert all(future.result() == (1, 1) for future, gone in zip(withdrawn, cancelled, strict=True) if not gone)
