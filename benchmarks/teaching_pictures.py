"""The pictures of the lesson and of a watched run in the docs, from a real lesson and a real run, in Chromium.

    python benchmarks/teaching_pictures.py

Writes `docs/images/lesson.png` and `docs/images/watch.png`. Needs chromium, chromedriver, selenium and tornado.
"""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from browser.chromium import chromium, show  # noqa: E402

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

from crosswind.lab.lesson import lesson  # noqa: E402

IMAGES = ROOT / "docs" / "images"
RUN = ["run", "examples/fork_graph_emulated.toml", "--set", "policy.order=interference", "--set", "workload.tasks=2500"]
RUN += ["--set", "execution.time_scale=10", "--on", "local", "--watch"]
WATCHED_S = 15.0


def picture(driver: Chrome, name: str, width: int, height: int | None = None) -> None:
    """Write the page as it is shown, down to a height."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    time.sleep(1.0)
    high = height or driver.execute_script("return document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": width, "height": high, "scale": 1}
    taken = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    (IMAGES / name).write_bytes(base64.b64decode(taken["data"]))


def main() -> None:
    """Take both pictures."""
    with tempfile.TemporaryDirectory() as directory, chromium(Path(directory) / "profile") as driver:
        show(driver, lesson(out=Path(directory) / "lesson.html"), 1180)
        end = "return document.querySelector('section .finding').getBoundingClientRect().bottom + window.scrollY + 16"
        picture(driver, "lesson.png", 1180, int(driver.execute_script(end)))
        command = [sys.executable, "-m", "crosswind.cli", *RUN]
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as run:
            assert run.stderr is not None  # asked for
            address = re.search(r"http\S+", run.stderr.readline())
            assert address is not None, "the run did not start"
            driver.get(address[0])
            time.sleep(WATCHED_S)
            picture(driver, "watch.png", 1080)
            run.terminate()


if __name__ == "__main__":
    main()
