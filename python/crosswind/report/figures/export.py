"""Figures as files: PDF, PNG and SVG at a fixed width, made without a browser."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import altair as alt
import vl_convert

from crosswind.files.atomic import made, replaced
from crosswind.report.figures.figure import Figure
from crosswind.report.figures.look import dressed, sized

SCALE = 2.0  # pixels per unit of the drawing: sharp on paper


FORMATS = {
    ".pdf": lambda spec, version: vl_convert.vegalite_to_pdf(spec, vl_version=version, allowed_base_urls=[]),
    ".png": lambda spec, version: vl_convert.vegalite_to_png(
        spec, vl_version=version, scale=SCALE, allowed_base_urls=[]
    ),
    ".svg": lambda spec, version: vl_convert.vegalite_to_svg(spec, vl_version=version, allowed_base_urls=[]).encode(),
}
VEGA_LITE = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def write_figure(figure: Figure, out: Path, size_mm: tuple[float, float] | None = None) -> None:
    """Write one figure; the suffix, one of `FORMATS`, decides how. `size_mm`: width and height with all labels."""
    spec = dressed(figure.chart, figure.title, figure.export_width)
    if size_mm is not None:
        spec = sized(spec, *size_mm)
    with replaced(out) as file:
        file.write(FORMATS[out.suffix.lower()](spec, VEGA_LITE))


def write_figures(figures: Iterable[Figure], directory: Path) -> list[Path]:
    """Write `ID.png` and `ID.svg` of each figure; return their paths.

    Raises
    ------
    DescriptionError
        When the directory cannot be made.
    """
    made(directory, "figures")
    written = []
    for figure in figures:
        for suffix in (".png", ".svg"):
            written.append(directory / f"{figure.id}{suffix}")
            write_figure(figure, written[-1])
    return written
