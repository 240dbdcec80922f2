"""Take the pictures of README and docs from the report that `make demo` wrote: `make screenshots`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "browser"))

WIDTH = 1100


def main() -> None:
    """Write `docs/images/report.png`: the top of the report, as wide as a reader's window."""
    import tempfile

    from chromium import chromium, show

    with tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as driver:
        show(driver, ROOT / "demo" / "report.html", WIDTH)
        driver.save_screenshot(str(ROOT / "docs" / "images" / "report.png"))


if __name__ == "__main__":
    main()
