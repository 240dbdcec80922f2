"""The page of a watched run in a browser: it follows the run, names stay text, and it says when the run is over."""

import pytest

from crosswind.platform import Platform

pytest.importorskip("tornado", reason="tornado is not installed")
selenium = pytest.importorskip("selenium", reason="selenium is not installed")
from browser.chromium import BROWSER, DRIVER, chromium, complaints  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

from crosswind.watch import Watch  # noqa: E402

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not both installed"),
]
HOSTILE = "<img src=x onerror='window.attacked=1'>"
NODES = [
    {"name": "root", "compute_per_s": 1.0},
    {"name": HOSTILE, "parent": "root", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0},
    {"name": "b", "parent": "root", "compute_per_s": 2.0, "receive_limit_mb_per_s": 10.0},
]
TREE = Platform.from_dict({"schema_version": 1, "name": "tree", "node": NODES})
SETTINGS = {"policy": {"ports": "multi"}, "mean_size_mb": 1.0, "mean_work": 1.0}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def shown(browser, identifier):
    return browser.find_element("id", identifier).text


def until(browser, what):
    WebDriverWait(browser, 30).until(lambda _: what())


@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_follows_a_run_to_its_end(browser, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    with Watch() as watch:
        browser.get(watch.address)
        until(browser, lambda: shown(browser, "connection") == "Agents start.")
        watch.begin(TREE, SETTINGS, 100)
        watch.took([HOSTILE] * 8 + ["b"] * 4)
        until(browser, lambda: shown(browser, "done") == "12 of 100")
        watch.happened([("agent-lost", "b", f"b is lost: {HOSTILE}")])
        until(browser, lambda: shown(browser, "alarm") == "lost: b")
        assert HOSTILE in shown(browser, "nodes")
        assert HOSTILE in shown(browser, "events")
        watch.took([HOSTILE] * 8)
        until(browser, lambda: shown(browser, "done") == "20 of 100")
        parts = "(bar) => bar.clientWidth / bar.parentElement.clientWidth"
        bars = browser.execute_script(f"return [...document.querySelectorAll('td .bar span')].map({parts})")
        assert len(bars) == 5  # each processor, and each link
        _, processor, link, *_ = bars
        assert 0 < processor <= 1
        assert 0 < link <= 1
        assert browser.find_element("id", "progress").get_attribute("aria-valuenow") == "20"
        assert browser.execute_script("return window.attacked") is None
        wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert browser.execute_script(wide) == 0
        watch.took([HOSTILE] * 80)
    until(browser, lambda: shown(browser, "connection").startswith("The run is over"))
    assert shown(browser, "done") == "100 of 100"
    assert "works" not in shown(browser, "nodes")
    assert complaints(browser) == []


def test_off_loopback_the_browser_asks_for_the_token_once(browser):
    with Watch("0.0.0.0:0", "a token of 16 bytes") as watch:
        watch.begin(TREE, SETTINGS, 100)
        watch.took(["b"])
        browser.get(watch.address.replace("0.0.0.0", "127.0.0.1"))
        assert "tree" not in browser.find_element("tag name", "body").text
        browser.find_element("name", "token").send_keys("a token of 16 bytes")
        browser.find_element("css selector", "button").click()
        until(browser, lambda: browser.find_elements("id", "done") and shown(browser, "done") == "1 of 100")


def test_a_page_that_is_opened_after_the_run_shows_the_last_state(browser):
    watch = Watch()
    watch.begin(TREE, SETTINGS, 3)
    watch.took(["b"] * 3)
    watch.finish()
    browser.get(watch.address)
    until(browser, lambda: shown(browser, "connection").startswith("The run is over"))
    assert shown(browser, "done") == "3 of 3"
    watch.close()


def test_the_file_of_the_last_state_is_drawn_without_a_server(browser, tmp_path):
    with Watch() as watch:
        watch.begin(TREE, SETTINGS, 100)
        watch.took([HOSTILE] * 8)
        watch.happened([("agent-lost", "b", f"b is lost: {HOSTILE}")])
    watch.save(tmp_path / "run.watch.html")
    complaints(browser)  # of the pages before
    browser.get((tmp_path / "run.watch.html").as_uri())
    assert shown(browser, "connection").startswith("The run is over")
    assert shown(browser, "product").endswith("LAST STATE OF A RUN")
    assert shown(browser, "done") == "8 of 100"
    assert HOSTILE in shown(browser, "nodes")
    assert browser.execute_script("return window.attacked") is None
    assert complaints(browser) == []
