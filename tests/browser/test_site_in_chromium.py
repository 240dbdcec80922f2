"""The site of the docs: it builds without a warning, its links lead somewhere, it opens and searches from a file."""

import importlib.util
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from chromium import BROWSER, DRIVER, chromium, complaints, requests, show
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="no mkdocs: pip install --group docs"),
]


class _Page(HTMLParser):
    def __init__(self, path: Path):
        super().__init__()
        self.links, self.ids, self.loaded = [], set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.ids |= {known[name] for name in ("id", "name") if known.get(name)}
        if tag == "a" and known.get("href"):
            self.links.append(known["href"])
        if tag in ("img", "script", "iframe") and known.get("src"):
            self.loaded.append(known["src"])
        if tag == "link" and known.get("rel") in ("stylesheet", "icon"):
            self.loaded.append(known["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("site")
    variables = os.environ | {"PYTHONPATH": str(ROOT / "python"), "NO_MKDOCS_2_WARNING": "1"}
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(place)]
    done = subprocess.run(build, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return place


def test_every_link_of_the_site_leads_to_a_page_and_a_heading(site):
    pages = {path: _Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 60
    broken = []
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            ok = target.is_file() and (
                not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].ids
            )
            if not ok:
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_no_page_loads_anything_from_another_host(site):
    loaded = {source for path in site.rglob("*.html") for source in _Page(path).loaded}
    assert [source for source in loaded if urlsplit(source).scheme or urlsplit(source).netloc] == []


def test_the_references_name_every_verb_and_every_public_function(site):
    from crosswind import _HOMES
    from crosswind.cli.verbs import PARTS, VERBS

    commands = _Page(site / "reference" / "commands.html").ids
    verbs = [*VERBS, *(f"{verb}-{part}" for verb, parts in PARTS.items() for part in parts)]
    assert [verb for verb in verbs if f"crosswind-{verb}" not in commands] == []
    functions = _Page(site / "reference" / "python.html").ids
    public = [
        f"crosswind.{home}.{name}" for home, names in _HOMES.items() for name in names if not name.startswith("_")
    ]
    assert [name for name in public if name not in functions] == []


SOUGHT = {
    "bandwidth-centric": "start/(teacher|researcher)",
    "straggler": "start/ml|guides/(slow-rank|your-own)",
    "noisy neighbour": "start/ml",
    "OS jitter": "start/ml|guides/your-own-program",
    "tail": "start/ml|guides/your-own-program",
    "GOAL": "concepts/engine|guides/your-own-program|guides/run-a-program|reference/files",
    "PyTorch": "start/ml|guides/slow-rank-pytorch",
    "loader": "start/ml|guides/(gpu|your-own-program|what-a-process-costs)",
    "steal": "start/ml|guides/(record-and-inject|your-own-program|check-a-node)",
}
"""A word that a reader looks for -> pages of which one must be among the results."""


@pytest.mark.skipif(not (BROWSER and DRIVER), reason="no Chromium")
def test_a_reader_searches_and_finds_without_a_server(site, tmp_path):
    with chromium(tmp_path) as driver:
        show(driver, site / "start" / "researcher.html", 1280, drawn=False)
        box = driver.find_element(By.CSS_SELECTOR, ".md-search__input")
        # All at once: typed letter by letter on a slow host, the search also runs for "bandwidth-" and logs an error.
        paste = """
            arguments[0].focus(); arguments[0].select();
            document.execCommand("insertText", false, arguments[1]);
            arguments[0].dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
        """
        for sought, pages in SOUGHT.items():
            driver.execute_script(paste, box, sought)
            led_to = "return [...document.querySelectorAll('.md-search-result__item a')].map((link) => link.href)"
            wanted = re.compile(rf"/({pages})[^/]*\.html")
            WebDriverWait(driver, 60).until(
                lambda d: any(wanted.search(link) for link in d.execute_script(led_to)),  # noqa: B023 (called here)
                f"{sought}: none of {pages}",
            )
        assert complaints(driver) == []
        assert [url for url in requests(driver) if not url.startswith("file:")] == []
