"""Values of options: what is plainly right is taken as typer takes it, what it refuses is refused with the range."""

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.core import TyperCommand
from typer.exceptions import TyperException

from crosswind.cli import app
from crosswind.cli.groups import command_of
from crosswind.cli.usage import refusal
from crosswind.cli.values import PlainValues
from crosswind.cli.verbs import PARTS, VERBS
from crosswind.errors import DescriptionError

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
    except (TyperException, DescriptionError):
        return "refused", DescriptionError
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


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("cost --seconds 4 --of pid:1", "--seconds is 4; it must be a number, at least 5", None),
        ("cost --seconds soon --of pid:1", "--seconds is 'soon'; it must be a number, at least 5", None),
        ("measure --nice 55", "--nice is 55; it must be a whole number, -20 to 19", None),
        ("blame a.toml --blocks 1.5 -- true", "--blocks is 1.5; it must be a whole number, at least 2", None),
        (
            "filter --policy drrr",
            "--policy is 'drrr'; it must be one of fifo, threshold, drr, strict",
            "nearest is 'drr'",
        ),
        ("schema platfrom", "KIND is 'platfrom'; it must be one of platform", "nearest is 'platform'"),
    ],
)
def test_what_is_refused_is_named_with_its_value_and_what_is_permitted(line, message, hint):
    with pytest.raises(DescriptionError) as error:
        app(line.split(), prog_name="crosswind", standalone_mode=False)
    assert message in str(error.value)
    assert hint is None or hint in error.value.hint


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("plan", "PLATFORM.toml is missing", "such as crosswind plan platform.toml --task-size-mb 2 --task-work 5"),
        ("inject half.toml", "the command is missing after --", "such as crosswind inject disturbance.toml -- ./app"),
        ("compare", "an argument is missing: A|BASE_FILE B...", "such as crosswind compare './app-before input'"),
        ("measure sweep", "KIND is missing", "such as crosswind measure sweep message-size"),
        ("run --again", "Option '--again' requires an argument.", "--help` shows what it takes"),
    ],
)
def test_what_is_missing_is_named_with_a_line_to_type(line, message, hint):
    with pytest.raises(TyperException) as error:
        app(line.split(), prog_name="crosswind", standalone_mode=False)
    what, how = refusal(error.value)
    assert what == message
    assert hint in how


VERBS_AND_PARTS = [*VERBS, *(f"{verb}_{part}" for verb, parts in PARTS.items() for part in parts)]


@pytest.mark.parametrize("module", VERBS_AND_PARTS)
def test_every_verb_that_needs_an_argument_has_a_line_to_type(module):
    words, refused = module.replace("_", " "), None
    try:
        command_of(module).make_context(words, [])
    except TyperException as error:
        refused = error
    assert refused is None or refusal(refused)[1].startswith(f"such as crosswind {words} ")
