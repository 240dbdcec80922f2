"""A headless Chromium with a fresh profile, which tells what a page logged and what it asked the network for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

BROWSER, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_S = 120


@contextmanager
def chromium(profile: Path) -> Iterator[webdriver.Chrome]:
    """Start a browser, and end it."""
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def show(
    driver: webdriver.Chrome, page: Path, width: int, scheme: str = "light", drawn: bool = True, media: str = ""
) -> None:
    """Open a page in a window of so many pixels, as on screen or on paper, and wait until its figures are drawn."""
    driver.get("about:blank")
    for kind in ("browser", "performance"):
        driver.get_log(kind)  # what was before does not count
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wish = {"media": media, "features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", wish)
    driver.get(page.absolute().as_uri())
    if drawn:
        done = "return document.documentElement.dataset.figures === 'drawn'"
        WebDriverWait(driver, PATIENCE_S).until(lambda d: d.execute_script(done))


def complaints(driver: webdriver.Chrome) -> list[str]:
    """Return what the page logged as warning or error."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")]


def requests(driver: webdriver.Chrome) -> list[str]:
    """Return every address that the page asked for, itself and data: addresses apart."""
    asked: list[str] = []
    for entry in driver.get_log("performance"):
        message: dict[str, Any] = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.append(message["params"]["request"]["url"])
    loaded = driver.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    own = driver.current_url.split("#")[0]
    return [url for url in [*asked, *loaded] if url.split("#")[0] != own and not url.startswith(("data:", "about:"))]
