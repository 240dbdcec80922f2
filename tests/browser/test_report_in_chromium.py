"""The report in a browser: everything is drawn, nothing is fetched, nothing overflows, no name becomes a program."""

import html
import re
from dataclasses import dataclass
from pathlib import Path

import disturbed
import interacting
import pytest
import recorded_ranks
import reported
import streamed

from crosswind.blame.recorded import blame_recorded
from crosswind.overlap import overlap
from crosswind.report import report

selenium = pytest.importorskip("selenium", reason="selenium is not installed")
from browser.chromium import BROWSER, DRIVER, chromium, complaints, requests, show  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not both installed"),
]
WIDTHS = [1280, 390]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    directory = tmp_path_factory.mktemp("report")
    items = [
        reported.measured(),
        reported.swept(directory / "message-size"),
        reported.swept(directory / "placement", "placement", ("same-core", "other-core")),
        reported.planned(),
        reported.platform(),
        reported.ran(),
        reported.ran("local", slower=1.02, works=(5,)),
        reported.traced(),
        reported.traced(5000),
    ]
    return report(items, directory / "report.html")


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory):
    items = [reported.measured(hostile=True), reported.planned(reported.HOSTILE), reported.platform(reported.HOSTILE)]
    items += [reported.ran(hostile=True), reported.traced(40, hostile=True), disturbed.program_runs(hostile=True)]
    items += [disturbed.blamed(causes=(reported.BREAKS_SCRIPT, reported.BREAKS_ATTRIBUTE, "c" * 255))]
    items += [disturbed.injected(hostile=True), streamed.streams_runs(hostile=True)]
    return report(items, tmp_path_factory.mktemp("hostile") / "report.html")


def slow_rank(directory):
    """Return the verdict on a recorded program with a slow rank."""
    (directory / "app.trace").write_bytes(recorded_ranks.app_trace()[0])
    return blame_recorded([directory / "app.trace"], timeline=True)


@pytest.fixture(scope="module")
def disturbed_page(tmp_path_factory):
    items = [
        disturbed.studied(),
        disturbed.program_runs(),
        disturbed.program_runs("local", slower=1.05, seeds=1),
        disturbed.blamed(),
        disturbed.injected("nothing", 0.0, 1.0),
        disturbed.injected("half"),
        disturbed.injected("local", 0.25, 1.5),
        disturbed.recorded(),
        slow_rank(tmp_path_factory.mktemp("recorded")),
    ]
    return report(items, tmp_path_factory.mktemp("disturbed") / "report.html")


@pytest.fixture(scope="module")
def messages_page(tmp_path_factory):
    items = [
        overlap("sim", waits=["event", "poll", "buffered"], cpus=2),
        overlap("sim", waits=["event", "poll"], nices=[0], pings=[(640, 1_000_000)], cpus=2, scheduler="decay"),
        streamed.streams_runs(),
        streamed.streams_runs("local", slower=1.2, seeds=1),
        interacting.studied(),
    ]
    return report(items, tmp_path_factory.mktemp("messages") / "report.html")


FIGURES = {"page": 20, "disturbed_page": 66, "messages_page": 32}
"""Page -> how many figures it has."""


@dataclass
class Drawn:
    """A page that is drawn, and what was noted until then."""

    name: str
    file: Path
    complaints: list[str]
    requests: list[str]


def drawn_in(request, browser):
    which, width = request.param
    file = request.getfixturevalue(which)
    show(browser, file, width)
    return Drawn(which, file, complaints(browser), requests(browser))


def each_width(*pages):
    """Return parameters for a fixture: each page in a wide and in a narrow window."""
    looks = [(page, width) for page in pages for width in WIDTHS]
    return {"scope": "class", "params": looks, "ids": [f"{page}-{width}" for page, width in looks]}


@pytest.fixture(**each_width(*FIGURES))
def drawn(request, browser):
    """A page that the tests of a class look at and leave as it is: to draw it takes longer than to look."""
    return drawn_in(request, browser)


@pytest.fixture(**each_width("hostile_page"))
def drawn_hostile(request, browser):
    return drawn_in(request, browser)


def beyond_the_margin(browser):
    """Return by how much a page is too wide, and what sticks out, with all of it unfolded; it is folded again."""
    return browser.execute_script("""
        const folded = [...document.querySelectorAll("details:not([open])")];
        folded.forEach((d) => { d.open = true; });
        const limit = document.documentElement.clientWidth;
        const boxed = (e) => e.closest(".table-box") || e.closest("svg");
        const beyond = [...document.body.querySelectorAll("*")]
            .filter((e) => !boxed(e) && e.getBoundingClientRect().right > limit + 1);
        const found = [document.documentElement.scrollWidth - limit, beyond.map((e) => e.outerHTML.slice(0, 90))];
        folded.forEach((d) => { d.open = false; });
        return found;
    """)


class TestPages:
    def test_every_figure_is_drawn_without_complaint(self, browser, drawn):
        found = browser.execute_script("""
            return [...document.querySelectorAll(".chart")].map((box) => {
                const marks = [...box.querySelectorAll("svg .role-mark *")].filter((mark) => {
                    const size = mark.getBBox ? mark.getBBox() : {width: 0, height: 0};
                    return mark.childElementCount === 0 && (size.width > 0 || size.height > 0);
                });
                const svg = box.querySelector("svg");
                return [box.dataset.spec, svg ? svg.clientWidth / box.clientWidth : 0, marks.length];
            });
        """)
        assert len(found) == FIGURES[drawn.name]
        for name, share, marks in found:
            assert 0.85 < share <= 1.0, (name, share)
            assert marks >= 1, name
        assert drawn.complaints == []

    def test_no_request_leaves_the_page(self, drawn):
        assert drawn.requests == []

    def test_the_page_never_scrolls_sideways(self, browser, drawn):
        assert beyond_the_margin(browser) == [0, []]

    def test_no_words_of_a_figure_are_cut_off_or_lie_on_each_other(self, browser, drawn):
        cut, crossed = browser.execute_script("""
            const cut = [], crossed = [];
            for (const box of document.querySelectorAll(".chart")) {
                const frame = box.getBoundingClientRect();
                const words = [...box.querySelectorAll("svg text")]
                    .filter((t) => t.textContent.trim() && getComputedStyle(t).opacity !== "0")
                    .map((t) => [t.textContent, t.getBoundingClientRect()]);
                for (const [text, at] of words)
                    if (at.left < frame.left - 2 || at.right > frame.right + 2) cut.push([box.dataset.spec, text]);
                words.forEach(([a, p], k) => words.slice(k + 1).forEach(([b, q]) => {
                    const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
                    const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
                    if (across > 2 && down > 4) crossed.push([box.dataset.spec, a, b]);
                }));
            }
            return [cut, crossed];
        """)
        assert cut == []
        assert crossed == []

    def test_a_screen_reader_is_told_what_each_figure_shows(self, browser, drawn):
        labels = re.findall(r'class="chart" role="img" aria-label="([^"]+)"', drawn.file.read_text())
        tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        images = [node["name"]["value"] for node in tree if node.get("role", {}).get("value") in ("image", "img")]
        assert images == [html.unescape(label) for label in labels]
        assert not [node for node in tree if "Vega" in str(node.get("name", {}).get("value"))]


class TestHostileNames:
    def test_the_page_never_scrolls_sideways(self, browser, drawn_hostile):
        assert beyond_the_margin(browser) == [0, []]

    def test_they_stay_text(self, browser, drawn_hostile):
        assert drawn_hostile.complaints == []
        assert drawn_hostile.requests == []
        assert browser.execute_script("return window.attacked") is None
        assert browser.execute_script("return document.querySelectorAll('img, .chart script').length") == 0
        text = browser.execute_script("return document.body.textContent")
        for name in reported.HOSTILE:
            assert name in text


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_figures_stand_out_from_the_page(browser, page, scheme, width):
    show(browser, page, width, scheme)
    ratios = browser.execute_script("""
        const light = (colour) => {
            const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map((v) => v / 255)
                .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const page = light(getComputedStyle(document.documentElement).backgroundColor);
        const contrast = (element, property) => {
            const own = light(getComputedStyle(element)[property]);
            return (Math.max(own, page) + 0.05) / (Math.min(own, page) + 0.05);
        };
        const least = (selector, property) =>
            Math.min(...[...document.querySelectorAll(selector)].map((e) => contrast(e, property)));
        return {
            words: least("p, h1, h2, h3, h4, li, td, dt, dd, figcaption, .answer b, .answer small", "color"),
            labels: least(".chart text", "fill"),
            dots: least(".chart:not([data-spec$='both-directions']) .role-mark.mark-symbol path", "fill"),
            scale: least(".chart[data-spec$='both-directions'] .role-mark.mark-symbol path", "fill"),
        };
    """)
    assert ratios["words"] >= 4.5
    assert ratios["labels"] >= 4.5
    assert ratios["dots"] >= 3.0
    # A scale of lightness cannot stand out everywhere on light and on dark; position and shape tell the rest.
    assert ratios["scale"] >= 1.5


def test_a_figure_that_is_drawn_again_keeps_its_words(browser, page):
    show(browser, page, 1280)
    words = "return [...document.querySelectorAll('.chart')].map((box) => [box.role, box.ariaLabel])"
    before = browser.execute_script(words)
    # What was wide is drawn again once it is narrow.
    browser.execute_script("""
        const wide = [...document.querySelectorAll(".chart")].filter((box) => box.clientWidth >= 560);
        wide.forEach((box) => box.querySelector("svg").classList.add("wide"));
    """)
    size = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    gone = "return document.querySelectorAll('.chart svg.wide').length === 0"
    selenium.webdriver.support.ui.WebDriverWait(browser, 60).until(lambda d: d.execute_script(gone))
    assert browser.execute_script(words) == before
    assert {role for role, _ in before} == {"img"}


def test_figures_follow_the_window(browser, page):
    show(browser, page, 1280)
    width = "return document.querySelector('.chart svg').clientWidth"
    before = browser.execute_script(width)
    size = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    selenium.webdriver.support.ui.WebDriverWait(browser, 60).until(lambda d: d.execute_script(width) < 390)
    assert before > 500
    assert complaints(browser) == []


def test_the_watch_sees_a_request_and_a_complaint(browser, tmp_path):
    loud = tmp_path / "loud.html"
    loud.write_text("<img src='http://127.0.0.1:9/picture.png'><script>console.error('loud')</script>")
    show(browser, loud, 1280, drawn=False)
    assert "http://127.0.0.1:9/picture.png" in requests(browser)
    assert any("loud" in line for line in complaints(browser))


def test_a_table_is_sorted_by_a_click_on_a_head(browser, page):
    show(browser, page, 1280)
    column = """
        const table = document.querySelector("#plan-1 table");
        table.closest("details").open = true;
        const head = table.tHead.rows[0].cells[2];
        const cells = () => [...table.tBodies[0].rows].map((row) => parseFloat(row.cells[2].textContent));
        const told = () => [head.ariaSort, cells()];
        head.querySelector("button").click();
        const once = told();
        head.querySelector("button").click();
        return [once, told()];
    """
    (up, rising), (down, falling) = browser.execute_script(column)
    assert (up, down) == ("ascending", "descending")
    assert len(set(rising)) > 1
    assert rising == sorted(rising)
    assert falling == sorted(rising, reverse=True)


def test_a_figures_data_and_picture_are_downloaded_and_no_cell_is_a_formula(browser, tmp_path):
    show(browser, report(reported.planned(("=1+1", "Lab3", "-Lab4", "Tenn")), tmp_path / "report.html"), 1280)
    saved, text = browser.execute_async_script("""
        const done = arguments[arguments.length - 1], saved = [];
        let blob = null;
        HTMLAnchorElement.prototype.click = function () { saved.push([this.download, this.href]); };
        URL.createObjectURL = (made) => { blob = blob ?? made; return "blob:made"; };
        document.querySelectorAll("#plan-1-nodes .downloads button").forEach((button) => button.click());
        const wait = () => saved.length < 3 ? setTimeout(wait, 50) : blob.text().then((text) => done([saved, text]));
        wait();
    """)
    kinds = {name: address.split(",")[0] for name, address in saved}
    assert sorted(kinds) == ["plan-1-nodes.csv", "plan-1-nodes.png", "plan-1-nodes.svg"]
    assert kinds["plan-1-nodes.png"] == "data:image/png;base64"
    rows = text.split("\r\n")
    assert rows[0] == '"name","rate","words","limit"'
    assert any(row.startswith('"\'=1+1",') for row in rows)
    assert any(row.startswith('"\'-Lab4",') for row in rows)
    assert complaints(browser) == []


def test_a_click_in_a_legend_leaves_one_and_ctrl_with_the_wheel_zooms(browser, tmp_path):
    show(browser, report([reported.traced()], tmp_path / "report.html"), 1280)
    box = "[...document.querySelectorAll('.chart')].find((c) => c.querySelector('.role-legend-symbol'))"
    opacities = f"return [...{box}.querySelectorAll('.role-mark *')].map((m) => getComputedStyle(m).opacity)"
    ticks = f"return [...{box}.querySelectorAll('.role-axis-label text')].map((t) => t.textContent)"
    before, labels = browser.execute_script(opacities), browser.execute_script(ticks)
    symbol = browser.execute_script(f"return {box}.querySelector('.role-legend-symbol path')")
    ActionChains(browser).click(symbol).perform()
    after = browser.execute_script(opacities)
    assert len(set(after)) > len(set(before))
    svg = browser.execute_script(f"return {box}.querySelector('svg')")
    wheel = ActionChains(browser).key_down(Keys.CONTROL)
    wheel.scroll_from_origin(ScrollOrigin.from_element(svg), 0, -300).key_up(Keys.CONTROL).perform()
    WebDriverWait(browser, 10).until(lambda _: browser.execute_script(ticks) != labels)
    assert complaints(browser) == []


def test_a_legend_chooses_by_keyboard(browser, tmp_path):
    show(browser, report([reported.traced()], tmp_path / "report.html"), 1280)
    group = next(one for one in browser.find_elements("css selector", ".choices"))
    buttons = group.find_elements("css selector", "button")
    figure = group.find_element("xpath", "ancestor::figure")
    labels = [
        one.get_attribute("textContent") for one in figure.find_elements("css selector", ".role-legend-label text")
    ]
    assert [one.get_attribute("textContent") for one in buttons] == labels
    pressed = lambda: [one.get_attribute("aria-pressed") for one in buttons]  # noqa: E731
    faint = "return [...arguments[0].querySelectorAll('.role-mark *')].map((m) => getComputedStyle(m).opacity)"
    before = browser.execute_script(faint, figure)
    assert pressed() == ["false"] * len(buttons)
    assert (
        group.size["height"] == 0
        or not group.is_displayed()
        or browser.execute_script("return getComputedStyle(arguments[0]).clipPath", group) == "inset(50%)"
    )
    browser.execute_script("arguments[0].focus()", buttons[0])
    outline = "return getComputedStyle(arguments[0]).outlineStyle"
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    WebDriverWait(browser, 10).until(lambda _: pressed()[0] == "true")
    WebDriverWait(browser, 10).until(lambda _: browser.execute_script(faint, figure) != before)
    assert browser.execute_script(outline, buttons[0]) == "solid"
    assert browser.execute_script("return getComputedStyle(arguments[0]).clipPath", group) == "none"
    ActionChains(browser).send_keys(Keys.TAB).send_keys(Keys.SPACE).perform()
    WebDriverWait(browser, 10).until(lambda _: pressed()[:2] == ["true", "true"])
    ActionChains(browser).send_keys(Keys.SPACE).perform()
    ActionChains(browser).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).send_keys(Keys.SPACE).perform()
    WebDriverWait(browser, 10).until(lambda _: pressed() == ["false"] * len(buttons))
    WebDriverWait(browser, 10).until(lambda _: browser.execute_script(faint, figure) == before)
    assert complaints(browser) == []


def test_a_click_in_a_legend_presses_its_button(browser, tmp_path):
    show(browser, report([reported.traced()], tmp_path / "report.html"), 400)
    group = next(one for one in browser.find_elements("css selector", ".choices"))
    figure = group.find_element("xpath", "ancestor::figure")
    symbol = figure.find_element("css selector", ".role-legend-symbol path")
    ActionChains(browser).move_to_element(symbol).click().perform()
    first = group.find_element("css selector", "button")
    WebDriverWait(browser, 10).until(lambda _: first.get_attribute("aria-pressed") == "true")
