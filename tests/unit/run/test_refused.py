"""Arguments of `map`, `Farm` and `map_command` that are refused before any agent starts."""

from pathlib import Path

import pytest

import crosswind
from crosswind import DescriptionError, Placing
from crosswind.cli.console import number_of


def test_an_address_is_no_file_of_a_platform():
    with pytest.raises(DescriptionError, match=r"must be a platform.s file") as caught:
        crosswind.Farm("tcp://127.0.0.1:8786")
    assert caught.value.hint.startswith("Farm('dask:tcp://127.0.0.1:8786')")


def test_results_go_to_a_directory_not_to_standard_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    for out, says in (("-", "standard output; several files are written"), ("file", "no directory")):
        with pytest.raises(DescriptionError, match=says):
            crosswind.map(abs, [1], out=out)
        with pytest.raises(DescriptionError, match=says):
            crosswind.map_command("echo {}", values=["1"], out=out)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_paths_of_a_placing_may_be_text():
    placing = Placing(token_file="token", tls="certs", links="links.toml")  # type: ignore[arg-type]
    assert placing == Placing(token_file=Path("token"), tls=Path("certs"), links=Path("links.toml"))


def test_one_thing_is_not_called_several():
    assert [number_of(count, "result") for count in (0, 1, 2)] == ["0 results", "1 result", "2 results"]


@pytest.mark.parametrize("given", [{"max_workers": 0}, {"max_workers": -2}, {"halt": 0}, {"retries": -1}])
def test_numbers_of_a_command_are_refused_before_its_directory_is_made(tmp_path, given):
    with pytest.raises(DescriptionError, match="it must be at least"):
        crosswind.map_command("echo {}", values=["1"], out=tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


def test_what_a_client_of_dask_has_and_a_farm_has_not_is_named_with_what_to_do():
    farm = object.__new__(crosswind.Farm)
    with pytest.raises(AttributeError, match=r"has no 'gather'.*\[future.result\(\) for future in futures\]"):
        farm.gather([])
    with pytest.raises(AttributeError, match=r"a farm has no 'nothing'$"):
        farm.nothing()
    assert not hasattr(farm, "scatter")
