"""The elements of an XML file, each with its line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from crosswind.errors import DescriptionError
from crosswind.files.reading import read_bytes

DEEPEST = 100
"""Elements inside of each other that are read."""


@dataclass
class Element:
    """An element of the file."""

    file: str
    line: int
    tag: str
    attributes: dict[str, str]
    inside: list[Element] = field(default_factory=list)
    code: str = ""
    """Of its errors."""

    def refuse(self, what: str, hint: str) -> DescriptionError:
        """Return the error that names this element."""
        name = (
            self.attributes.get("id")
            or self.attributes.get("type")
            or " -> ".join(self.attributes[k] for k in ("src", "dst") if k in self.attributes)
        )
        called = f"<{self.tag}>" + (f" {name}" if name else "")
        return DescriptionError(f"{self.file}:{self.line}: {called}: {what}", self.code, hint)

    def text(self, name: str, otherwise: str | None = None) -> str:
        """Return an attribute."""
        value = self.attributes.get(name, otherwise)
        if value is None:
            raise self.refuse(f"no attribute `{name}`", f'write <{self.tag} {name}="..." ...>')
        return value

    def parts(self, *tags: str) -> Iterator[Element]:
        """Return the elements inside with one of these tags."""
        return (one for one in self.inside if one.tag in tags)


def elements_of(path: str | Path, code: str, what_it_is: str) -> Element:
    """Return the outermost element of a file, which is to be `what_it_is`; `code` is that of its errors.

    Raises
    ------
    DescriptionError
        With the line: it is no XML, or it declares entities.
    """
    file = str(path)
    whole = Element(file, 0, "", {})
    open_elements = [whole]
    parser = expat.ParserCreate()

    def begin(tag: str, attributes: dict[str, str]) -> None:
        one = Element(file, parser.CurrentLineNumber, tag, attributes, code=code)
        if len(open_elements) > DEEPEST:
            raise one.refuse(f"more than {DEEPEST} elements inside of each other", f"is it {what_it_is}?")
        open_elements[-1].inside.append(one)
        open_elements.append(one)

    def entity(name: str, *_: object) -> None:
        what = f"{file}:{parser.CurrentLineNumber}: entity {name} is declared"
        raise DescriptionError(what, code, "write what it stands for where it is used")

    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda tag: open_elements.pop()
    parser.EntityDeclHandler = entity
    try:
        parser.Parse(read_bytes(path), True)
    except expat.ExpatError as error:
        what = f"{file}:{error.lineno}: {expat.ErrorString(error.code)}"
        raise DescriptionError(what, code, f"is it {what_it_is}?") from None
    (outermost,) = whole.inside
    return outermost
