"""Figures for slides without a browser: rectangles, lines and text, as SVG, PNG or PDF."""

from __future__ import annotations

from html import escape
from pathlib import Path

from crosswind import DescriptionError
from crosswind.files.atomic import replaced
from crosswind.terminal.printable import printable_values

INK, MUTED, IDLE, WIRE = "#1c2126", "#56606a", "#e3e7eb", "#aab2ba"
COLOURS = (
    *("#829197", "#347ff5", "#c7741f", "#018c67", "#de6391", "#896840", "#7064ba", "#d50074", "#2b8aa0", "#7d8a1e"),
    *("#a0522d", "#5a6fd8", "#b0407f"),
)
"""Those of the lesson's page: the root, then its nodes in order."""
SUFFIXES = (".svg", ".png", ".pdf")
_FONT = "Liberation Sans, Arial, sans-serif"
_SCALE = 2.0  # pixels per unit: sharp on a projector
_LETTER = 0.56  # mean width of a letter, as a share of its size


class Drawing:
    """A picture of a size in pixels, on white.

    Examples
    --------
    >>> drawing = Drawing(100, 40)
    >>> drawing.rect(0, 0, 50, 20, INK)
    >>> drawing.text(5, 35, "a < b")
    >>> "a &lt; b" in drawing.svg()
    True
    """

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, stroke: str = "none", radius: float = 0.0
    ) -> None:
        """Draw a rectangle by its upper left corner."""
        at = f'x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" rx="{radius:g}"'
        self._parts.append(f'<rect {at} fill="{fill}" stroke="{stroke}"/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str = WIRE, width: float = 1.5) -> None:
        """Draw a straight line."""
        at = f'x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}"'
        self._parts.append(f'<line {at} stroke="{colour}" stroke-width="{width:g}"/>')

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 16.0,
        anchor: str = "start",
        colour: str = INK,
        over: bool = False,
    ) -> None:
        """Write a line of text; `y` is its baseline, `anchor` start, middle or end; `over`: with a white edge."""
        at = f'x="{x:.2f}" y="{y:.2f}" font-size="{size:g}" text-anchor="{anchor}" fill="{colour}"'
        edge = ' stroke="#ffffff" stroke-width="5" paint-order="stroke"' if over else ""
        self._parts.append(f"<text {at}{edge}>{escape(str(printable_values(text)))}</text>")

    def svg(self) -> str:
        """Return the picture as SVG."""
        size = f'width="{self.width:g}" height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{_FONT}">'
        return "\n".join([head, '<rect width="100%" height="100%" fill="#ffffff"/>', *self._parts, "</svg>\n"])


def fits(text: str, width: float, size: float) -> bool:
    """Whether a text of this size is about as wide as `width`, or less."""
    return len(text) * size * _LETTER <= width


def refuse_suffix(out: str | Path) -> None:
    """Refuse a path whose suffix is that of no figure.

    Raises
    ------
    DescriptionError
        With the suffixes that are taken.
    """
    if Path(out).suffix.lower() not in SUFFIXES:
        message = f"--out is {str(out)!r}; its suffix must be one of {', '.join(SUFFIXES)}"
        raise DescriptionError(message, "out", "for example -o figure.svg")


def write_drawing(drawing: Drawing, out: str | Path) -> None:
    """Write a picture; the suffix, one of `SUFFIXES`, decides how."""
    import vl_convert

    svg, suffix = drawing.svg(), Path(out).suffix.lower()
    if suffix == ".svg":
        content = svg.encode()
    else:
        content = vl_convert.svg_to_png(svg, scale=_SCALE) if suffix == ".png" else vl_convert.svg_to_pdf(svg)
    with replaced(out) as file:
        file.write(content)
