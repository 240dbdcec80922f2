import re

from crosswind.recorder.wrappers import NONBLOCKING, PERSISTENT, source, table


def test_each_call_has_a_number_of_its_own():
    kinds = [call.kind for call in table() if call.kind < 200 and call.kind != 136]
    kinds += [call.kind for call in table() if call.kind > 203 and call.kind not in (205, 211)]
    assert len(kinds) == len(set(kinds))
    names = [call.name for call in table()]
    assert len(names) == len(set(names))


def test_collectives_have_three_forms():
    by_name = {call.name: call.kind for call in table()}
    for name, kind in by_name.items():
        if 70 <= kind < 100:
            assert by_name[f"I{name[0].lower()}{name[1:]}"] == kind + NONBLOCKING
            assert by_name[f"{name}_init"] == kind + PERSISTENT


def test_nothing_of_the_table_is_left_unwritten():
    text = source()
    assert not re.search(r"\$\w+\(", text), "every $name was replaced"
    for call in table():
        assert f"int MPI_{call.name}(" in text
        assert (f"EXPORT void mpi_{call.name.lower()}_(" in text) == call.fortran
