"""What a page really paints: the pixels of each mark of its figures, counted in screenshots."""

from __future__ import annotations

from typing import Any

from selenium import webdriver

MOST_HEIGHT = 3000  # px of one screenshot: taller ones are cut off by the browser
MOST_DRAWINGS = 5

_MARKS = """
const shown = (e, root) => {
    let opacity = 1;
    for (let at = e; at && at !== root; at = at.parentElement) opacity *= +getComputedStyle(at).opacity;
    return opacity > 0.02;
};
const inked = (value, opacity) => value !== "none" && value !== "transparent" && value !== "rgba(0, 0, 0, 0)"
    && +opacity > 0.02;
// Figures alone, one below the other: fewer and smaller screenshots.
document.head.append(Object.assign(document.createElement("style"), {textContent:
    ".table-box, .explained, .facts, .downloads, p, ul, dl, .also, .limits { display: none !important }"}));
window.shots = new Map();
window.marks = [...document.querySelectorAll(".chart")].map((box) => {
    const svg = box.querySelector("svg");
    const leaves = [...svg.querySelectorAll("path, text, rect, line")]
        .filter((e) => e.closest("[class*='role-mark']") && !e.closest("clipPath, defs") && e.parentElement);
    const groups = new Map();
    for (const leaf of leaves) {
        const style = getComputedStyle(leaf);
        const stroke = inked(style.stroke, style.strokeOpacity) && parseFloat(style.strokeWidth) > 0;
        const fill = inked(style.fill, style.fillOpacity);
        const at = leaf.getBBox();
        const wide = at.width >= 1 && at.height >= 1, long = at.width >= 1 || at.height >= 1;
        if (!shown(leaf, box) || !((fill && wide) || (stroke && long))) continue;
        if (leaf.tagName === "text" && !leaf.textContent.trim()) continue;
        const group = leaf.closest("[class*='mark-']");
        if (!groups.has(group)) groups.set(group, []);
        groups.get(group).push({leaf, fill: fill && wide});
    }
    return {name: box.dataset.spec ?? box.id, groups: [...groups]};
});
return [Math.max(0, ...window.marks.map((chart) => chart.groups.length)), document.documentElement.scrollHeight];
"""

_ONLY = """
window.marks.forEach(({groups}) => groups.forEach(([, leaves], k) => leaves.forEach(({leaf}) => {
    leaf.style.visibility = k === arguments[0] ? "visible" : "hidden";
})));
"""

_TOPS = """
const [number, height] = [...arguments], tops = new Set();
for (const {groups} of window.marks) for (const {leaf} of groups[number]?.[1] ?? []) {
    const above = leaf.getBoundingClientRect().top + scrollY - 1;
    tops.add(height * Math.floor(Math.max(0, above) / height));
}
return [...tops].sort((a, b) => a - b);
"""

_COUNT = """
const [number, top, height, bare, painted] = [...arguments], done = arguments[arguments.length - 1];
const pixels = async (data) => {
    const image = new Image();
    image.src = "data:image/png;base64," + data;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.width; canvas.height = image.height;
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height);
};
(async () => {
    if (bare) window.shots.set(top, await pixels(bare));
    const [a, b] = [window.shots.get(top), await pixels(painted)];
    const found = [];
    for (const {name, groups} of window.marks) {
        const [group, leaves] = groups[number] ?? [null, []];
        leaves.forEach(({leaf, fill}, place) => {
            if (!leaf.isConnected) throw new Error(`${name} was drawn again meanwhile`);
            const at = leaf.getBoundingClientRect();
            const [left, above] = [at.left + scrollX - 1, at.top + scrollY - 1 - top];
            if (Math.floor(Math.max(0, above + top) / height) * height !== top) return;  // of another screenshot
            const [x0, y0] = [Math.max(0, Math.floor(left)), Math.max(0, Math.floor(above))];
            const x1 = Math.min(a.width, Math.ceil(left + at.width + 2));
            const y1 = Math.min(a.height, Math.ceil(above + at.height + 2));
            let count = 0;
            for (let y = y0; y < y1; y++) for (let x = x0; x < x1; x++) {
                const k = 4 * (y * a.width + x);
                const apart = Math.abs(a.data[k] - b.data[k]) + Math.abs(a.data[k + 1] - b.data[k + 1])
                    + Math.abs(a.data[k + 2] - b.data[k + 2]);
                count += apart > 12;
            }
            const type = /mark-(\\w+)/.exec(group.getAttribute("class"))[1];
            const area = fill && type === "rect" ? at.width * at.height : 0;
            found.push([name, type, place, count, area]);
        });
    }
    done(found);
})().catch((error) => done(String(error)));
"""


def painted(driver: webdriver.Chrome) -> list[dict[str, Any]]:
    """Return each mark that should be seen, with the pixels that it changes: alone, beside the page without any mark.

    `area` is that of the box of a bar, and 0 for marks that fill no box. The page needs one figure per `.chart`. A page
    that draws a figure again meanwhile, as when its width settles, is looked at from the start.
    """
    for _ in range(MOST_DRAWINGS):
        try:
            return _painted(driver)
        except DrawnAgainError:
            continue
    raise AssertionError("the page does not come to rest")


class DrawnAgainError(Exception):
    """A figure was drawn again while its marks were counted."""


def _painted(driver: webdriver.Chrome) -> list[dict[str, Any]]:
    groups, height = driver.execute_script(_MARKS)
    driver.execute_script(_ONLY, -1)
    bare = {top: _shot(driver, top, height) for top in range(0, height, MOST_HEIGHT)}
    found = []
    for number in range(groups):
        driver.execute_script(_ONLY, number)
        for top in driver.execute_script(_TOPS, number, MOST_HEIGHT):
            without = bare.pop(top, None)  # the page keeps it
            counted = driver.execute_async_script(_COUNT, number, top, MOST_HEIGHT, without, _shot(driver, top, height))
            if isinstance(counted, str) and "drawn again" in counted:
                raise DrawnAgainError(counted)
            assert isinstance(counted, list), counted
            found += counted
    names = ("figure", "type", "place", "pixels", "area")
    return [dict(zip(names, row, strict=True)) for row in found]


def unseen(marks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the marks that are not painted: no pixel, or of a bar less than half of its box."""
    return [mark for mark in marks if mark["pixels"] < max(1.0, 0.5 * mark["area"])]


def _shot(driver: webdriver.Chrome, top: int, height: int) -> str:
    # A mark across the lower edge is seen whole in its screenshot.
    clip = {"x": 0, "y": top, "width": 1280, "height": min(MOST_HEIGHT + 800, height - top), "scale": 1}
    options = {"format": "png", "clip": clip, "captureBeyondViewport": True, "optimizeForSpeed": True}
    taken = driver.execute_cdp_cmd("Page.captureScreenshot", options)
    return str(taken["data"])
