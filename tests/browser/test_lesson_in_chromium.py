"""The lesson in a browser: it plays, is worked by keyboard, tells what it shows, and asks for a guess first."""

import pytest

from crosswind import Platform
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


TREE = {
    "schema_version": 1,
    "name": "two racks",
    "node": [
        {"name": "master", "compute_per_s": 0.0},
        {"name": "rack", "parent": "master", "compute_per_s": 4.0, "receive_limit_mb_per_s": 8.0},
        {"name": "old", "parent": "rack", "compute_per_s": 20.0, "receive_limit_mb_per_s": 0.5},
        {"name": "gpu", "parent": "rack", "compute_per_s": 20.0, "receive_limit_mb_per_s": 10.0},
        {"name": "other", "parent": "master", "compute_per_s": 0.0, "receive_limit_mb_per_s": 6.0},
        {"name": "a", "parent": "other", "compute_per_s": 5.0, "receive_limit_mb_per_s": 4.0},
        {"name": "b", "parent": "other", "compute_per_s": 5.0, "receive_limit_mb_per_s": 2.0},
    ],
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return lesson(Platform.from_dict(TREE), tmp_path_factory.mktemp("lesson") / "tree.html")


def heard(browser):
    return browser.execute_script("return document.querySelector('input[type=range]').getAttribute('aria-valuetext')")


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", ["page", "tree"])
def test_it_is_drawn_without_complaint_request_or_sideways_scrolling(browser, request, name, width):
    show(browser, request.getfixturevalue(name), width)
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


def test_in_a_tree_a_reader_hears_who_sends_to_whom_and_each_parent_has_a_token(browser, tree):
    show(browser, tree, 1280)
    slider = browser.find_element("css selector", "input[type=range]")
    browser.execute_script("arguments[0].value = 2000; arguments[0].dispatchEvent(new Event('input'))", slider)
    assert "rack sends to old" in heard(browser)
    assert "of 5 nodes wait for a task" in heard(browser)
    moving = (
        "return [...document.querySelector('.side svg').querySelectorAll('circle[r=\"6\"][visibility=visible]')].length"
    )
    assert browser.execute_script(moving) >= 2
    edges = """const svg = document.querySelector('.side svg');
        const right = (box) => box.getBBox().x + box.getBBox().width;
        return [svg.clientWidth, ...[...svg.querySelectorAll('.box')].map(right)]"""
    width, *boxes = browser.execute_script(edges)
    assert len(boxes) == 7
    assert max(boxes) <= width


def test_a_wrong_guess_is_explained_from_the_model(browser, page):
    show(browser, page, 1280)
    Select(browser.find_element("id", "link")).select_by_value("Tenn")
    Select(browser.find_element("id", "rate")).select_by_value("5")
    setting = _setting(browser, "Tenn", 5)
    arrival, bandwidth = (scene["tasks_per_s"] for scene in setting["scenes"])

    def told(guess_arrival, guess_bandwidth):
        for order, guess in (("arrival", guess_arrival), ("bandwidth", guess_bandwidth)):
            field = browser.find_element("id", f"guess-{order}")
            field.clear()
            field.send_keys(f"{guess:.3f}")
        browser.find_element("css selector", "#experiment button").click()
        return [one.text for one in browser.find_elements("css selector", "#outcome .why")]

    assert told(arrival, bandwidth) == []
    (rate, text) = setting["why"][0]["mistakes"][0]
    assert told(rate, bandwidth)[0] == f"Your guess for arrival. {text}"
    wrong = told(0.3 * arrival, 0.2 * bandwidth)
    assert wrong[0].startswith("Your guess for arrival. Too low: ")
    assert wrong[1].startswith("Your guess for bandwidth. Too low: ")
    assert wrong[2:] == [f"Which order is faster. {setting['why_faster']}"]
