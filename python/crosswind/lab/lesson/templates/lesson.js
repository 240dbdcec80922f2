// Plays timelines that were simulated before: it draws and looks up, and decides nothing about tasks.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const COLOURS = ["#829197", "#347ff5", "#c7741f", "#018c67", "#de6391", "#896840", "#7064ba", "#d50074", "#2b8aa0", "#7d8a1e", "#a0522d", "#5a6fd8", "#b0407f"];
  const SVG = "http://www.w3.org/2000/svg";
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  const SPEED = 4; // simulated seconds a second
  const LABEL = 58, ROW = 30, LANE = 13;
  const last = data.window_ms;

  const make = (name, attributes, parent, text) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    parent?.append(element);
    return element;
  };
  const add = (name, parent, attributes = {}, text) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    parent?.append(element);
    return element;
  };
  const each = (flat, call) => { for (let i = 0; i < flat.length; i += 3) call(flat[i], flat[i + 1], flat[i + 2]); };
  const seconds = (ms) => (ms / 1000).toFixed(1);
  const short = (name) => (name.length > 9 ? `${name.slice(0, 8)}…` : name);

  // What a run looks like at one moment.
  const at = (scene, ms) => {
    const now = { port: -1, part: 0, done: 0, tasks: data.nodes.map(() => 0), busy: data.nodes.map(() => false), held: data.nodes.map(() => 0) };
    each(scene.sends, (child, start, length) => {
      if (start > ms) return;
      now.held[child] += Math.min(length, ms - start);
      if (start + length > ms) { now.port = child; now.part = (ms - start) / length; }
    });
    each(scene.computes, (node, start, length) => {
      if (start + length <= ms) { now.done += 1; now.tasks[node] += 1; } else if (start <= ms) now.busy[node] = true;
    });
    return now;
  };
  // Children that compute nothing; the one that is being sent to does not wait, it receives.
  const idle = (now) => data.nodes.filter((_, node) => node > 0 && !now.busy[node] && node !== now.port).length;
  const waits = (now) => `${idle(now)} ${idle(now) === 1 ? "child waits" : "children wait"} for a task`;
  const spoken = (scene, now) => {
    const port = now.port < 0 ? "the port is free" : `the port sends to ${data.nodes[now.port]}`;
    return `${scene.order}: ${port}, ${now.done} tasks done, ${idle(now)} of ${data.nodes.length - 1} children wait for a task`;
  };

  const drawSide = (box, scene, rates) => {
    const width = Math.max(box.clientWidth, 260);
    const children = data.nodes.length - 1;
    const top = children * ROW + 10, lanes = top + 34, height = lanes + 26 + (children + 1) * LANE + 26;
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true" }, null);
    const wires = [], dots = [], counts = [];
    const rootY = (children * ROW) / 2, right = width - 118;
    for (let child = 1; child <= children; child += 1) {
      const y = (child - 0.5) * ROW;
      wires[child] = make("line", { class: "wire", x1: 72, y1: rootY, x2: right, y2: y, "stroke-width": 1 }, svg);
    }
    for (let child = 1; child <= children; child += 1) {
      const y = (child - 0.5) * ROW;
      make("text", { class: "quiet rate", x: right - 6, y: y - 4, "text-anchor": "end" }, svg, `${rates[child]} MB/s`);
    }
    make("rect", { class: "box", x: 1, y: rootY - 20, width: 72, height: 40, rx: 6 }, svg);
    make("text", { x: 37, y: rootY - 3, "text-anchor": "middle" }, svg, short(data.nodes[0]));
    counts[0] = make("text", { class: "quiet", x: 37, y: rootY + 13, "text-anchor": "middle" }, svg);
    for (let child = 1; child <= children; child += 1) {
      const y = (child - 0.5) * ROW;
      make("rect", { class: "box", x: right, y: y - 12, width: 117, height: 24, rx: 5 }, svg);
      dots[child] = make("circle", { cx: right + 12, cy: y, r: 5, stroke: COLOURS[child], "stroke-width": 2 }, svg);
      make("text", { x: right + 23, y: y + 4 }, svg, short(data.nodes[child]));
      counts[child] = make("text", { class: "quiet", x: right + 112, y: y + 4, "text-anchor": "end" }, svg);
    }
    const token = make("circle", { r: 6, visibility: "hidden" }, svg);
    // The port's time line, and when each node computes.
    const x = (ms) => LABEL + ((width - LABEL - 2) * Math.min(ms, last)) / last;
    make("text", { x: 0, y: lanes + 15 }, svg, "port");
    make("rect", { class: "lane", x: LABEL, y: lanes, width: x(last) - LABEL, height: 22 }, svg);
    each(scene.sends, (child, start, length) => {
      const wide = x(start + length) - x(start);
      make("rect", { x: x(start), y: lanes, width: Math.max(wide - 0.4, 0.4), height: 22, fill: COLOURS[child] }, svg);
      if (wide > 40) make("text", { class: "in-block", x: x(start) + wide / 2, y: lanes + 15, "text-anchor": "middle" }, svg, short(data.nodes[child]));
    });
    const below = lanes + 30;
    data.nodes.forEach((name, node) => {
      make("text", { class: "quiet", x: 0, y: below + node * LANE + 9 }, svg, short(name));
      make("rect", { class: "lane", x: LABEL, y: below + node * LANE, width: x(last) - LABEL, height: LANE - 3 }, svg);
    });
    each(scene.computes, (node, start, length) => {
      const wide = x(start + length) - x(start);
      make("rect", { x: x(start), y: below + node * LANE, width: Math.max(wide, 0.4), height: LANE - 3, fill: COLOURS[node] }, svg);
    });
    const floor = below + (children + 1) * LANE;
    const step = last / 1000 / (width > 420 ? 6 : 3), tick = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((one) => one >= step) ?? step;
    for (let s = 0; s * 1000 <= last; s += tick) make("text", { class: "quiet", x: x(s * 1000), y: floor + 12, "text-anchor": "middle" }, svg, `${s} s`);
    const later = make("rect", { class: "later", x: LABEL, y: lanes - 1, width: 0, height: floor - lanes + 1 }, svg);
    const cursor = make("line", { class: "cursor", y1: lanes - 4, y2: floor }, svg);
    box.replaceChildren(svg);
    return (ms, now) => {
      for (let child = 1; child <= children; child += 1) {
        const sends = now.port === child;
        wires[child].style.stroke = sends ? COLOURS[child] : "";
        wires[child].setAttribute("stroke-width", sends ? 3 : 1);
        dots[child].setAttribute("fill", now.busy[child] ? COLOURS[child] : "none");
        counts[child].textContent = `${now.tasks[child]}`;
      }
      counts[0].textContent = `${now.tasks[0]} done`;
      token.setAttribute("visibility", now.port > 0 ? "visible" : "hidden");
      if (now.port > 0) {
        const part = still.matches ? 0.5 : now.part, y = (now.port - 0.5) * ROW;
        token.setAttribute("cx", 72 + (right - 72) * part);
        token.setAttribute("cy", rootY + (y - rootY) * part);
        token.setAttribute("fill", COLOURS[now.port]);
      }
      cursor.setAttribute("x1", x(ms)); cursor.setAttribute("x2", x(ms));
      later.setAttribute("x", x(ms)); later.setAttribute("width", Math.max(x(last) - x(ms), 0));
    };
  };

  const player = (place, scenes, rates, start) => {
    place.replaceChildren();
    const controls = add("div", place, { class: "controls", role: "group", "aria-label": "Time of both runs" });
    const button = add("button", controls, { type: "button" }, "Play");
    const slider = add("input", controls, { type: "range", min: 0, max: last, step: 100, "aria-label": "Time" });
    const clock = add("span", controls, { class: "clock", "aria-hidden": "true" });
    const heard = add("p", place, { class: "heard", role: "status" });
    const sides = add("div", place, { class: "sides" });
    const boxes = scenes.map((scene) => {
      const side = add("div", sides, { class: "side" });
      add("h3", side, {}, scene.order === "arrival" ? "arrival: first come, first served" : "bandwidth: fastest link first");
      const now = add("p", side, { class: "now" });
      const what = `${scene.order}: ${scene.tasks_per_s.toFixed(2)} tasks/s over the whole run, which takes ${scene.makespan_s.toFixed(1)} s. The slider above says what happens when.`;
      return { scene, now, box: add("div", side, { role: "img", "aria-label": what }) };
    });
    let time = start, playing = false, frame = 0, timer = 0, before = 0, updates = [];
    const show = () => {
      const moments = boxes.map(({ scene }) => at(scene, time));
      boxes.forEach(({ now, scene }, i) => {
        const m = moments[i], port = m.port < 0 ? "port free" : `port: ${data.nodes[m.port]}`;
        now.textContent = `${m.done} of ${data.tasks} tasks done · ${port} · ${waits(m)}`;
        updates[i](time, m);
      });
      slider.value = time;
      slider.setAttribute("aria-valuetext", `${seconds(time)} s. ${boxes.map(({ scene }, i) => spoken(scene, moments[i])).join(". ")}`);
      clock.textContent = `${seconds(time)} of ${seconds(last)} s`;
    };
    const draw = () => { updates = boxes.map(({ box, scene }) => drawSide(box, scene, rates)); show(); };
    const pause = () => {
      playing = false; button.textContent = "Play"; cancelAnimationFrame(frame); clearInterval(timer);
      heard.textContent = slider.getAttribute("aria-valuetext");
    };
    const moved = (to) => { time = Math.min(to, last); show(); if (time >= last) pause(); };
    const step = (now) => { moved(time + (now - before) * SPEED); before = now; if (playing) frame = requestAnimationFrame(step); };
    const play = () => {
      if (time >= last) time = 0;
      playing = true; button.textContent = "Pause"; heard.textContent = "";
      // Less motion: a picture a second, and no token that slides.
      if (still.matches) timer = setInterval(() => moved(time + last / 20), 1000);
      else { before = performance.now(); frame = requestAnimationFrame(step); }
    };
    button.addEventListener("click", () => (playing ? pause() : play()));
    slider.addEventListener("input", () => { if (playing) pause(); time = Number(slider.value); show(); });
    place.addEventListener("keydown", (event) => {
      if (event.key === "k" || (event.key === " " && event.target === slider)) { event.preventDefault(); button.click(); }
    });
    draw();
    let waiting = 0;
    window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(() => place.isConnected && !place.hidden && draw(), 150); });
  };

  const [first, second] = [...document.querySelectorAll(".player")];
  player(first, data.given, data.rates, Math.round(0.45 * last / 100) * 100);

  // Change a link, predict, run.
  const pick = (id) => document.getElementById(id);
  const link = pick("link"), rate = pick("rate"), outcome = pick("outcome");
  data.nodes.slice(1).forEach((name, i) => add("option", link, { value: name }, `${name} (now ${data.rates[i + 1]} MB/s)`));
  const slowest = data.rates.indexOf(Math.min(...data.rates.slice(1)));
  link.value = data.nodes[slowest];
  const rated = () => {
    rate.replaceChildren();
    for (const one of data.settings) if (one.link === link.value) add("option", rate, { value: one.rate }, `${one.rate} MB/s`);
    const rates = [...rate.options].map((one) => Number(one.value)), now = data.rates[data.nodes.indexOf(link.value)];
    rate.value = rates.find((one) => one >= 5 * now) ?? rates[0];
  };
  link.addEventListener("change", rated);
  rated();
  const against = (guess, found, bound) => {
    const off = (guess - found) / found;
    if (guess > bound) return `more than the bound of ${bound.toFixed(2)} allows`;
    return Math.abs(off) <= 0.1 ? "within 10 %" : `${Math.abs(100 * off).toFixed(0)} % too ${off > 0 ? "high" : "low"}`;
  };
  pick("experiment").addEventListener("submit", (event) => {
    event.preventDefault();
    const fields = data.given.map((scene) => pick(`guess-${scene.order}`)), guesses = fields.map((field) => field.valueAsNumber);
    const missing = fields[guesses.findIndex((guess) => !(guess >= 0))];
    outcome.replaceChildren();
    if (missing) {
      add("p", outcome, {}, "State both guesses first: tasks per second, 0 or more.");
      missing.focus();
      return;
    }
    const setting = data.settings.find((one) => one.link === link.value && one.rate === Number(rate.value));
    const node = data.nodes.indexOf(setting.link), now = data.rates[node];
    add("p", outcome, {}, `${setting.link}'s link at ${setting.rate} MB/s, ${now} before:`);
    const table = add("table", add("div", outcome, { class: "table-box", tabindex: 0, role: "region", "aria-label": "Outcome" }));
    const head = add("tr", add("thead", table));
    for (const name of ["order", "before", "my guess", "simulated", "my guess is"]) add("th", head, { scope: "col" }, name);
    const body = add("tbody", table);
    setting.scenes.forEach((scene, i) => {
      const row = add("tr", body);
      add("th", row, { scope: "row" }, scene.order);
      for (const cell of [data.given[i].tasks_per_s.toFixed(2), guesses[i].toFixed(2), scene.tasks_per_s.toFixed(2), against(guesses[i], scene.tasks_per_s, setting.bound)]) add("td", row, {}, cell);
    });
    const held = setting.scenes.map((scene) => at(scene, last).held[node] / Math.min(last, 1000 * scene.makespan_s));
    const parts = setting.scenes.map((scene, i) => `${scene.order} gives it ${(100 * held[i]).toFixed(0)} % of the port's time`).join(", ");
    add("p", outcome, {}, `Bound: ${setting.bound.toFixed(2)} tasks/s (before: ${data.bound.toFixed(2)}). One task for ${setting.link} now holds the port for ${(data.task_size_mb / setting.rate).toPrecision(3)} s, before for ${(data.task_size_mb / now).toPrecision(3)} s; ${parts}.`);
    second.hidden = false;
    player(second, setting.scenes, data.rates.map((one, i) => (i === node ? setting.rate : one)), Math.round(0.45 * last / 100) * 100);
  });
  document.documentElement.dataset.figures = "drawn";
})();
