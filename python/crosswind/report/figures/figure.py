"""A figure of the report: a chart with a stable name, a title, words for readers who cannot see it, and its JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from crosswind.files.pages import script_json
from crosswind.report.figures.look import EXPORT_WIDTH, Drawing, Spec
from crosswind.report.figures.touch import touchable
from crosswind.terminal.printable import printable_values


@dataclass(frozen=True)
class Figure:
    """A chart on the page and, with `figures=DIR`, in files `ID.png` and `ID.svg`.

    Attributes
    ----------
    id : str
        Letters, digits and hyphens: safe in HTML, in a URL and as a file's name.
    title : str
        What stands above it.
    alt : str
        What it shows, in a sentence.
    chart : altair chart
        The chart itself.
    export_width : int
        Width of the drawing in files, px; on the page it is as wide as its place.
    """

    id: str
    title: str
    alt: str
    chart: Drawing
    export_width: int = EXPORT_WIDTH

    @cached_property
    def spec(self) -> Spec:
        """The Vega-Lite specification, without a configuration: the page brings one for all."""
        spec: Spec = printable_values(self.chart.to_dict(validate=False))
        spec.pop("config", None)
        spec.pop("$schema", None)
        return touchable(spec)

    @property
    def height(self) -> int:
        """Height of the drawing, px, to keep the page still while figures are drawn."""
        return int(self.spec.get("height", 200))

    @property
    def json(self) -> str:
        """The specification as JSON that may stand inside a script element."""
        return script_json(self.spec)


def identifier(*parts: str) -> str:
    """Return words as one identifier: lower case letters, digits, hyphens.

    Examples
    --------
    >>> identifier("measured 1", "Receive: host:7117", "scatter")
    'measured-1-receive-host-7117-scatter'
    """
    words = (re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-")[:40] for part in parts)
    return "-".join(word for word in words if word)
