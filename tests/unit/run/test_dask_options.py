"""Options of Dask's submit and map: refused with what to write instead, unless the function takes them."""

import pytest

import crosswind
from crosswind import DescriptionError
from crosswind.run.dask_options import OF_DASK, refuse_of_map, refuse_of_submit


@pytest.mark.parametrize("name", sorted(OF_DASK))
def test_each_is_refused_by_name_with_the_alternative(name):
    for refused in (lambda: refuse_of_submit(lambda number: number, {name: 1}), lambda: refuse_of_map({name: 1})):
        with pytest.raises(DescriptionError, match=f"^{name} is an option of Dask's") as error:
            refused()
        assert error.value.hint


def test_those_that_a_function_takes_are_its_own():
    refuse_of_submit(lambda item, key: item, {"key": 1})
    refuse_of_submit(lambda item, **options: item, {"workers": 1})
    refuse_of_submit(max, {"key": abs})


def test_what_dask_does_not_have_either_is_an_error_of_python():
    refuse_of_map({})
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        refuse_of_map({"colour": 1})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"workers": ["a"]}, "workers is an option of Dask's map"),
        ({"key": "name"}, "key is 'name'; it must be"),
    ],
)
def test_a_map_with_options_of_dask_is_refused_before_it_starts(options, says):
    with pytest.raises(DescriptionError, match=says):
        crosswind.map(abs, [1], **options)
