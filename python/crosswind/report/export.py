"""Figures as files: PNG and SVG at a fixed width, made without a browser."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import vl_convert

from crosswind.files.stored import made, replaced, write_text
from crosswind.report.figure import Figure
from crosswind.report.figures.look import dressed

SCALE = 2.0  # pixels per unit of the drawing: sharp on paper


def write_figures(figures: Iterable[Figure], directory: Path, vega_lite: str) -> list[Path]:
    """Write `ID.png` and `ID.svg` of each figure; return their paths.

    Raises
    ------
    DescriptionError
        When the directory cannot be made.
    """
    made(directory, "figures")
    written = []
    for figure in figures:
        spec = dressed(figure.chart, figure.title, figure.export_width)
        svg, png = directory / f"{figure.id}.svg", directory / f"{figure.id}.png"
        write_text(vl_convert.vegalite_to_svg(spec, vl_version=vega_lite, allowed_base_urls=[]), svg)
        with replaced(png) as file:
            file.write(vl_convert.vegalite_to_png(spec, vl_version=vega_lite, scale=SCALE, allowed_base_urls=[]))
        written += [png, svg]
    return written
