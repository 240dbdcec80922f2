"""The lesson in a browser: it plays, is worked by keyboard, tells what it shows, and asks for a guess first."""

import pytest

from crosswind.lab.lesson import lesson

selenium = pytest.importorskip("selenium", reason="selenium is not installed")
from browser.chromium import BROWSER, DRIVER, chromium, complaints, requests, show  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not both installed"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return lesson(out=tmp_path_factory.mktemp("lesson") / "lesson.html")


def heard(browser):
    return browser.execute_script("return document.querySelector('input[type=range]').getAttribute('aria-valuetext')")


@pytest.mark.parametrize("width", [1280, 400])
def test_it_is_drawn_without_complaint_request_or_sideways_scrolling(browser, page, width):
    show(browser, page, width)
    assert complaints(browser) == []
    assert requests(browser) == []
    wide = browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide == 0
    drawn = browser.execute_script("return [...document.querySelectorAll('.side svg')].map((s) => s.childElementCount)")
    assert len(drawn) == 2
    assert min(drawn) > 120


def test_the_keyboard_moves_the_time_and_a_reader_hears_what_each_port_does(browser, page):
    show(browser, page, 1280)
    slider = browser.find_element("css selector", "input[type=range]")
    slider.send_keys(Keys.HOME)
    assert heard(browser).startswith("0.0 s. arrival: the port sends to Lab3, 0 tasks done")
    browser.execute_script("arguments[0].value = 20000; arguments[0].dispatchEvent(new Event('input'))", slider)
    assert "arrival: the port sends to Tenn" in heard(browser)
    slider.send_keys(Keys.ARROW_RIGHT)
    assert heard(browser).startswith("20.1 s")


def test_it_plays_from_the_keyboard_and_pauses_where_it_is(browser, page):
    show(browser, page, 1280)
    slider = browser.find_element("css selector", "input[type=range]")
    slider.send_keys(Keys.HOME, " ")
    WebDriverWait(browser, 20).until(lambda d: float(slider.get_attribute("value")) > 500)
    slider.send_keys(" ")
    button = browser.find_element("css selector", ".controls button")
    assert button.text == "Play"
    told = browser.find_element("css selector", ".heard").get_attribute("textContent")
    assert "arrival: the port" in told
    assert told == heard(browser)


def test_with_less_motion_no_token_slides(browser, page):
    show(browser, page, 1280)
    wish = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wish)
    slider = browser.find_element("css selector", "input[type=range]")
    places = set()
    for time in (18000, 19000, 20000):  # one long send
        browser.execute_script(f"arguments[0].value = {time}; arguments[0].dispatchEvent(new Event('input'))", slider)
        places.add(
            browser.execute_script("return document.querySelector('.side svg circle:last-of-type').getAttribute('cx')")
        )
    assert len(places) == 1


def test_the_outcome_needs_a_guess_and_is_the_simulated_one(browser, page):
    show(browser, page, 1280)
    run = browser.find_element("css selector", "#experiment button")
    outcome = browser.find_element("id", "outcome")
    run.click()
    assert "State both guesses first" in outcome.text
    assert not browser.find_elements("css selector", "#outcome table")
    Select(browser.find_element("id", "link")).select_by_value("Tenn")
    Select(browser.find_element("id", "rate")).select_by_value("5")
    browser.find_element("id", "guess-arrival").send_keys("2")
    browser.find_element("id", "guess-bandwidth").send_keys("6")
    run.click()
    told = [scene["tasks_per_s"] for scene in _setting(browser, "Tenn", 5)["scenes"]]
    rows = [row.text for row in browser.find_elements("css selector", "#outcome tbody tr")]
    assert [f"{rate:.2f}" in row for rate, row in zip(told, rows, strict=True)] == [True, True]
    assert "too low" in rows[0]
    assert "within 10 %" in rows[1]
    assert len(browser.find_elements("css selector", ".side svg")) == 4
    browser.find_element("id", "guess-arrival").clear()
    browser.find_element("id", "guess-arrival").send_keys("99")
    run.click()
    bound = _setting(browser, "Tenn", 5)["bound"]
    assert f"more than the bound of {bound:.2f} allows" in outcome.text
    assert complaints(browser) == []


def _setting(browser, link, rate):
    settings = browser.execute_script("return JSON.parse(document.getElementById('data').textContent).settings")
    return next(one for one in settings if one["link"] == link and one["rate"] == rate)
