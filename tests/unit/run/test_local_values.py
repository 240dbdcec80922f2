"""Large values that an agent keeps until the root reads them: each as it was, and memory that is given back."""

import os
import pickle
import subprocess
import sys
import textwrap
import time
import weakref
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from crosswind.run import local_values, pieces, process_memory
from crosswind.run.calls import Performer, called, outcome
from crosswind.run.local_values import LARGE, MARK, Keeper, Shared, value_at
from crosswind.run.process_memory import GoneError, ProcessMemory

MB = 1_000_000


def descriptors():
    """Return the descriptors of memory that this process keeps."""
    paths = Path("/proc/self/fd").iterdir()
    return {int(path.name) for path in paths if path.is_symlink() and "crosswind-value" in str(path.readlink())}


def values():
    array = np.arange(MB, dtype="f4").reshape(1000, 1000)
    return {
        "bytes": os.urandom(3 * MB),
        "text": "ä" * 2 * MB,
        "numbers": list(range(MB)),
        "array": array,
        "in the order of Fortran": np.asfortranarray(array),
        "with gaps": array[:, ::2],
        "none of it": np.zeros((0, 7)),
        "of objects": np.array([{"a": 1}] * MB),
        "nested": {"deep": [[(b"x" * 200_000, array[:500], "y" * 200_000)] * 3], "same": [array, array]},
        "array of bytes": bytearray(os.urandom(2 * MB)),
        "table": pd.DataFrame({"a": np.arange(MB), "b": np.arange(MB) / 2, "c": ["x", "yy"] * (MB // 2)}),
        "small": [1, b"x" * 70_000, np.arange(20_000)],
        "number": 7,
    }


@pytest.mark.parametrize("scope", [0, 2], ids=["from memory to memory", "in a file"])
@pytest.mark.parametrize("name", list(values()))
def test_a_value_comes_as_it_was_and_the_memory_is_given_back(name, scope, monkeypatch):
    monkeypatch.setattr(local_values, "_ptrace_scope", lambda: scope)
    value, keeper = values()[name], Keeper()
    before = descriptors()
    place = keeper.pickled(value)
    if place.startswith(MARK):
        assert len(place) < 2_000
        there = value_at(place)
    else:
        assert name in ("none of it", "small", "number")
        there = pieces.loads(place)
    assert pickle.dumps(there) == pickle.dumps(value)
    assert keeper._forget_read() == 0
    assert descriptors() == before
    while keeper._looks:
        time.sleep(0.01)
    assert pickle.dumps(there) == pickle.dumps(value)


@pytest.mark.parametrize("scope", [0, 2])
def test_arrays_may_be_written_as_those_of_a_pickle_may(scope, monkeypatch):
    monkeypatch.setattr(local_values, "_ptrace_scope", lambda: scope)
    array = value_at(Keeper().pickled(np.zeros(MB)))
    array[3] = 5.0
    assert array.sum() == 5.0


def test_what_the_function_changes_later_does_not_change_the_value():
    array, held = np.zeros(MB), bytearray(2 * MB)
    place = Keeper().pickled((array, held))
    array[0], held[0] = 1.0, 1
    there = value_at(place)
    assert (there[0][0], there[1][0]) == (0.0, 0)


def global_array(at, held=np.zeros(MB)):  # noqa: B008 (it is the same one for all calls)
    held[:] = at
    return held


def viewed_array(at, held=np.zeros(MB)):  # noqa: B008
    held[:] = at
    return held[:]


KNOWN = weakref.WeakValueDictionary()


def array_known_elsewhere(at):
    """Return an array that the next call still finds, as caches do."""
    array = KNOWN.get("array")
    if array is None:
        KNOWN["array"] = array = np.zeros(MB)
    array[:] = at
    return array


def fresh_array(at):
    return np.full(MB, at)


@pytest.mark.parametrize("function", [global_array, viewed_array, array_known_elsewhere, fresh_array])
def test_what_later_calls_write_into_their_arrays_does_not_change_values_that_are_not_read_yet(function):
    keeper = Keeper()
    places = [keeper.pickled(function(at)) for at in range(4)]
    assert [set(value_at(place)) for place in places] == [{0}, {1}, {2}, {3}]
    done = Performer(plain=False, local=True)
    outcomes = [done(called((pickle.dumps(function), pickle.dumps(((at,), {}))))) for at in range(4)]
    assert [set(outcome(one.data, True, "a", plain=False)) for one in outcomes] == [{0}, {1}, {2}, {3}]


def test_an_array_that_nothing_else_refers_to_is_not_copied_where_it_is_made():
    def address(array):
        return array.ctypes.data

    where = []

    def made():
        array = np.ones(MB)
        where.append(address(array))
        return array

    keeper = Keeper()
    place = local_values._Place.of_bytes(keeper.pickled(made()))
    assert place.buffers == [(where[0], 8 * MB)]
    array = made()
    place = local_values._Place.of_bytes(keeper.pickled(array))
    assert place.buffers[0][0] != address(array)


def test_with_too_much_kept_a_value_is_sent(monkeypatch):
    monkeypatch.setattr(local_values, "MOST_KEPT", 3 * MB)
    keeper = Keeper()
    places = [keeper.pickled(bytes([at]) * 2 * MB) for at in range(4)]
    assert [place[:1] == MARK for place in places] == [True, True, False, False]
    assert pickle.loads(places[2])[:1] == b"\2"
    assert value_at(places[0])[:1] == b"\0"
    assert keeper.pickled(b"x" * 2 * MB).startswith(MARK)


def test_without_memory_for_it_a_value_is_sent(monkeypatch):
    def full(*_):
        raise OSError(28, "no space left")

    monkeypatch.setattr(os, "memfd_create", full)
    assert pickle.loads(Keeper().pickled(b"x" * 2 * MB)) == b"x" * 2 * MB


def test_a_value_that_cannot_be_pickled_leaves_no_memory():
    before = descriptors()
    with pytest.raises(TypeError, match="generator"):
        Keeper().pickled([b"x" * 2 * MB, (one for one in ())])
    assert descriptors() <= before  # what other tests kept may have been closed meanwhile


def test_of_a_class_that_cannot_be_imported_the_code_comes_along():
    there = value_at(Keeper().pickled((lambda: 5, np.ones(MB))))
    assert (there[0](), there[1].sum()) == (5, MB)


def test_a_value_whose_agent_has_ended_or_whose_number_is_anothers_is_gone():
    code = (
        "import os, sys; from crosswind.run.local_values import KEEPER\n"
        "os.write(1, KEEPER.pickled(b'x' * 2_000_000)); os.close(1); sys.stdin.read()"
    )
    agent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    place = agent.stdout.read()
    pid, descriptor, _, *rest = pickle.loads(place[1:])
    assert pid == agent.pid
    with pytest.raises(GoneError):
        value_at(MARK + pickle.dumps((pid, descriptor, "crosswind-value-of another", *rest)))
    assert value_at(place) == b"x" * 2_000_000
    with pytest.raises(GoneError):
        value_at(place)
    agent.communicate()
    with pytest.raises(GoneError):
        value_at(place)


def test_a_node_that_must_not_run_code_here_is_not_read_from():
    place = Keeper().pickled(b"x" * 2 * LARGE)
    with pytest.raises(Exception, match="damaged"):
        outcome(place, True, "a", plain=True)
    done = Performer(plain=True, local=False)(called((pickle.dumps(bytes), pickle.dumps(((2 * LARGE,), {})))))
    assert not done.data.startswith(MARK)


class Opens:
    """Raises an error of its own where it is read."""

    def __init__(self):
        self.held = b"x" * 2_000_000

    def __setstate__(self, state):
        raise FileNotFoundError("a file of the user's")


def test_what_reading_the_value_raises_is_not_taken_for_a_lost_agent():
    keeper = Keeper()
    with pytest.raises(FileNotFoundError, match="a file of the user's"):
        value_at(keeper.pickled(Opens()))
    assert keeper._forget_read() == 0


def test_functions_that_are_held_take_no_more_than_so_many_descriptors():
    held = [Shared.of(b"x" * 2_000_000, []) for _ in range(80)]
    assert Shared.alive == 64
    assert None in held
    del held
    assert Shared.of(b"x", []) is not None


def test_bytes_stay_where_they_are_until_they_are_read():
    keeper, value = Keeper(), os.urandom(3 * MB)
    place = keeper.pickled(value)
    assert [Path(f"/proc/self/fd/{one}").stat().st_size for one in keeper._kept] == [0]
    assert 3 * MB <= keeper._forget_read() < 3 * MB + 100
    assert value_at(place) == value
    assert keeper._forget_read() == 0
    with pytest.raises(GoneError):
        value_at(place)


class Refused:
    """What the kernel answers where one process may not read another one's memory."""

    def read_process(process, address, into):
        raise PermissionError(1, "operation not permitted")

    class Buffer:
        of_process = staticmethod(lambda process, address, size: Refused.read_process(process, address, None))


@pytest.mark.parametrize("value", [os.urandom(2 * MB), np.arange(MB)], ids=["bytes", "array"])
def test_a_value_of_a_process_whose_memory_may_not_be_read_is_kept_in_a_file(value, monkeypatch):
    keeper = Keeper()
    place = keeper.pickled(value)
    monkeypatch.setattr(process_memory, "_core", Refused)
    with pytest.raises(GoneError, match="not permitted"):
        value_at(place)
    assert pickle.dumps(value_at(keeper.pickled(value))) == pickle.dumps(value)  # a call that is done again


def test_memory_of_a_value_that_is_needed_no_longer_is_used_again_and_that_of_others_is_not():
    script = """
        import numpy as np
        from crosswind.run import local_values

        def address(place):
            ((found, _),) = local_values._Place.of_bytes(place).buffers
            return found

        keeper = local_values.Keeper()
        arrays = [np.full(1_000_000, at) for at in range(2)] + [np.full(999_999, 2), np.full(1_000_000, 3)]
        places = [keeper.pickled(arrays[at]) for at in range(2)]
        first = local_values.value_at(places[0])
        assert keeper._forget_read() > 8_000_000
        places.append(keeper.pickled(arrays[2]))
        assert address(places[2]) == address(places[0])
        places.append(keeper.pickled(arrays[3]))
        assert address(places[3]) not in map(address, places[:3])
        assert [set(local_values.value_at(place)) for place in places[1:]] == [{1}, {2}, {3}]
        assert set(first) == {0}
    """  # in a process whose other memory no other test gives back
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)


def test_what_is_read_while_its_memory_gets_another_value_is_gone():
    place = local_values._Place.of_bytes(Keeper().pickled(np.ones(MB)))
    descriptor = os.dup(place.descriptor)
    memory = ProcessMemory(os.getpid(), f"/proc/self/fd/{place.descriptor}", place.name, descriptor)
    assert memory.copy(*place.buffers[0]).nbytes == 8 * MB
    os.ftruncate(descriptor, 1)  # as another reader does
    with pytest.raises(GoneError, match="read already"):
        memory.copy(*place.buffers[0])
    os.close(descriptor)
    assert not memory.is_refused
