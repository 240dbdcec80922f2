"""Pictures of the report.

`make screenshots` writes the picture of README and docs, the top of the report that `make demo` wrote.
`python docs/site/screenshots.py --sections DIRECTORY` writes every kind of section as a whole page, wide and narrow,
light and dark: what a change of the design is judged by.
"""

from __future__ import annotations

import argparse
import base64
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
for room in ("tests", "tests/browser", "tests/unit/report"):
    sys.path.insert(0, str(ROOT / room))

WIDTH = 1100
WIDTHS = (1280, 400)
SCHEMES = ("light", "dark")


def of_the_demo(driver: Any) -> None:
    """Write `docs/images/report.png`: the top of the report, as wide as a reader's window."""
    from chromium import show

    show(driver, ROOT / "demo" / "report.html", WIDTH)
    driver.save_screenshot(str(ROOT / "docs" / "images" / "report.png"))


def of_sections(driver: Any, out: Path, kinds: Sequence[str]) -> None:
    """Write a page of each kind of file, made of results whose numbers are known, and its pictures."""
    from chromium import show
    from test_report_of_every_file import WRITERS

    from crosswind.report import report

    out.mkdir(parents=True, exist_ok=True)
    for kind in kinds or WRITERS:
        name, write = WRITERS[kind]
        with tempfile.TemporaryDirectory() as directory:
            write(Path(directory) / name)
            page = report(Path(directory) / name, out / f"{kind}.html")
        for width in WIDTHS:
            for scheme in SCHEMES:
                show(driver, page, width, scheme)
                (out / f"{kind}-{width}-{scheme}.png").write_bytes(whole(driver))


def whole(driver: Any) -> bytes:
    """Return a picture of the whole page as it is shown."""
    size = driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    return base64.b64decode(shot["data"])


def main() -> None:
    """Take the pictures that the command line asks for."""
    from chromium import chromium

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sections", type=Path, metavar="DIRECTORY", help="Write every kind of section there.")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="Only these kinds of file. [default: all]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as driver:
        if given.sections:
            of_sections(driver, given.sections, given.kinds)
        else:
            of_the_demo(driver)


if __name__ == "__main__":
    main()
