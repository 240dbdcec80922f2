"""Values of options: those that are plainly right are taken as typer takes them, the others are refused as it does."""

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.core import TyperCommand
from typer.exceptions import TyperException

from crosswind.cli.values import PlainValues

OPTIONS = {
    "number": Annotated[int, typer.Option(min=1, max=9)],
    "any": Annotated[int, typer.Option()],
    "rate": Annotated[float, typer.Option(min=0.001)],
    "word": Annotated[Literal["host", "worker"], typer.Option()],
    "file": Annotated[Path, typer.Option()],
    "text": Annotated[str, typer.Option()],
    "files": Annotated[list[Path], typer.Option()],
}
GIVEN = ["1", "9", "10", "0", "-3", "+3", "007", " 4", "1_000", "1.5", "1e3", "1E3", ".5", "5.", "inf", "nan", "1e400"]
GIVEN += ["99999999999999999999", "host", "HOST", "", "x", "/", "no/such", "-", "٣"]


def command(option: str, plain: bool) -> TyperCommand:
    def verb(value: Any = None) -> None: ...

    verb.__annotations__ = {"value": OPTIONS[option]}
    app = typer.Typer(add_completion=False)
    app.command(cls=type("Plain", (PlainValues, TyperCommand), {}) if plain else TyperCommand)(verb)
    made = typer.main.get_command(app)
    assert isinstance(made, TyperCommand)
    return made


def taken(option: str, given: str, plain: bool) -> tuple[Any, type]:
    try:
        context = command(option, plain).make_context("verb", [f"--value={given}"])
    except TyperException as error:
        return error.format_message(), type(error)
    value = context.params["value"]
    return repr(value), type(value)


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("option", OPTIONS)
def test_a_value_is_taken_or_refused_as_typer_alone_does(option, given):
    assert taken(option, given, plain=True) == taken(option, given, plain=False)


def test_a_value_that_is_plainly_right_does_not_reach_typers_check(monkeypatch):
    def refuse(descriptor: Any) -> Any:
        raise AssertionError(descriptor)

    monkeypatch.setattr("typer._coercion.build_runtime_param", refuse)
    monkeypatch.setattr("typer.core.build_runtime_param", refuse)
    monkeypatch.setattr("crosswind.cli.values.build_runtime_param", refuse)
    for option, given in {"number": "3", "rate": "1.5", "word": "host", "file": "x", "text": "x", "files": "x"}.items():
        assert taken(option, given, plain=True)[0] == repr(
            {"number": 3, "rate": 1.5, "word": "host", "file": Path("x"), "text": "x", "files": [Path("x")]}[option]
        )
