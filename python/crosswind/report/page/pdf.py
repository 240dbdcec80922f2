"""The page as PDF: printed by a browser of this machine, because figures are drawn in one."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from crosswind.errors import DescriptionError
from crosswind.files.atomic import replaced, write_text

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")
PATIENCE_S = 180.0
DRAWING_MS = 30_000  # virtual time: ends as soon as the page has nothing left to do


def browser() -> str:
    """Return the browser that prints.

    Raises
    ------
    DescriptionError
        When this machine has none.
    """
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise DescriptionError(
            "no browser to print the PDF with: none of " + ", ".join(BROWSERS) + " is on PATH",
            "no-browser",
            "install Chromium, or write HTML (-o report.html) and print it from any browser",
        )
    return found


def write_pdf(page: str, out: Path) -> None:
    """Print a page, given as HTML, to a PDF; an existing file is replaced once the new one is complete.

    Raises
    ------
    DescriptionError
        When there is no browser, or it does not print.
    """
    program = browser()
    with tempfile.TemporaryDirectory(prefix="crosswind-pdf-") as directory:
        source, printed = Path(directory) / "report.html", Path(directory) / "report.pdf"
        write_text(page, source)
        command = [
            program,
            "--headless",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),  # Chromium's sandbox refuses root
            f"--user-data-dir={directory}/profile",
            f"--virtual-time-budget={DRAWING_MS}",
            "--no-pdf-header-footer",
            f"--print-to-pdf={printed}",
            source.as_uri(),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        except subprocess.TimeoutExpired:
            reason = f"no end after {PATIENCE_S:.0f} s"
        if not printed.is_file():
            hint = "write HTML (-o report.html) and print it from any browser"
            raise DescriptionError(f"{program} did not print the report: {reason}", "no-pdf", hint)
        with replaced(out) as file:
            file.write(printed.read_bytes())
