// Plays timelines that were simulated before: it draws and looks up, and decides nothing about tasks.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const COLOURS = ["#829197", "#347ff5", "#c7741f", "#018c67", "#de6391", "#896840", "#7064ba", "#d50074", "#2b8aa0", "#7d8a1e", "#a0522d", "#5a6fd8", "#b0407f"];
  const SVG = "http://www.w3.org/2000/svg";
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  const SPEED = 4; // simulated seconds a second
  const LABEL = 58, ROW = 30, LANE = 13, PORT = 28, ROOT = 72;
  const last = data.window_ms;
  // The tree: who sends to whom, how deep each node lies, and its row; leaves lie below each other.
  const below = data.nodes.map((_, node) => data.nodes.flatMap((_, child) => (data.parents[child] === node ? [child] : [])));
  const senders = data.nodes.flatMap((_, node) => (below[node].length ? [node] : []));
  const isFork = senders.length === 1;
  const level = [], row = [];
  data.nodes.forEach((_, node) => { level[node] = node === 0 ? 0 : level[data.parents[node]] + 1; });
  const leaves = data.nodes.flatMap((_, node) => (below[node].length ? [] : [node]));
  for (let node = data.nodes.length - 1; node >= 0; node -= 1) {
    row[node] = below[node].length ? below[node].reduce((sum, child) => sum + row[child], 0) / below[node].length : leaves.indexOf(node);
  }
  const levels = Math.max(...level);

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
  const short = (name, most = 9) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

  // What a run looks like at one moment.
  const at = (scene, ms) => {
    // `sent`: the part of the current task that a child has received; -1 while none is sent to it.
    const now = { sent: data.nodes.map(() => -1), done: 0, tasks: data.nodes.map(() => 0), busy: data.nodes.map(() => false) };
    each(scene.sends, (child, start, length) => {
      if (start <= ms && start + length > ms) now.sent[child] = (ms - start) / length;
    });
    each(scene.computes, (node, start, length) => {
      if (start + length <= ms) { now.done += 1; now.tasks[node] += 1; } else if (start <= ms) now.busy[node] = true;
    });
    return now;
  };
  // Nodes that could compute and have no task; one that is being sent to does not wait, it receives.
  const idle = (now) => data.nodes.filter((_, node) => node > 0 && data.computing[node] && !now.busy[node] && now.sent[node] < 0).length;
  const waits = (now) => {
    const words = isFork ? ["child waits", "children wait"] : ["node waits", "nodes wait"];
    return `${idle(now)} ${words[idle(now) === 1 ? 0 : 1]} for a task`;
  };
  const receivers = (now) => data.nodes.flatMap((_, node) => (now.sent[node] >= 0 ? [node] : []));
  const spoken = (scene, now) => {
    const to = receivers(now), computing = data.computing.filter((one, node) => one && node > 0).length;
    const sent = to.map((child) => `${isFork ? "the port" : data.nodes[data.parents[child]]} sends to ${data.nodes[child]}`).join(", ");
    const free = isFork ? "the port is free" : "all ports are free";
    return `${scene.order}: ${sent || free}, ${now.done} tasks done, ${idle(now)} of ${computing} ${isFork ? "children" : "nodes"} wait for a task`;
  };

  const drawSide = (box, scene, rates) => {
    const width = Math.max(box.clientWidth, 260);
    const children = data.nodes.length - 1;
    const top = leaves.length * ROW + 10, lanes = top + 34, rows = lanes + senders.length * PORT + 2;
    const floor = rows + (children + 1) * LANE, height = floor + 22;
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true" }, null);
    const wires = [], dots = [], counts = [], tokens = [];
    // A column of boxes per level: as wide as there is room for beside the links.
    const box0 = Math.min(117, Math.floor((width - ROOT - 26 * levels) / levels)), gap = (width - 1 - ROOT - levels * box0) / levels;
    const left = (node) => (node === 0 ? 1 : ROOT + (level[node] - 1) * (box0 + gap) + gap);
    const out = (node) => left(node) + (node === 0 ? ROOT - 1 : box0);
    const middle = (node) => (row[node] + 0.5) * ROW;
    for (let child = 1; child <= children; child += 1) {
      const from = data.parents[child];
      wires[child] = make("line", { class: "wire", x1: out(from), y1: middle(from), x2: left(child), y2: middle(child), "stroke-width": 1 }, svg);
    }
    for (let child = 1; child <= children && gap > 70; child += 1) {
      make("text", { class: "quiet rate", x: left(child) - 6, y: middle(child) - 4, "text-anchor": "end" }, svg, `${rates[child]} MB/s`);
    }
    make("rect", { class: "box", x: 1, y: middle(0) - 20, width: ROOT, height: 40, rx: 6 }, svg);
    make("text", { x: 37, y: middle(0) - 3, "text-anchor": "middle" }, svg, short(data.nodes[0]));
    counts[0] = make("text", { class: "quiet", x: 37, y: middle(0) + 13, "text-anchor": "middle" }, svg);
    for (let child = 1; child <= children; child += 1) {
      const x = left(child), y = middle(child);
      make("rect", { class: "box", x, y: y - 12, width: box0, height: 24, rx: 5 }, svg);
      dots[child] = make("circle", { cx: x + 12, cy: y, r: 5, stroke: COLOURS[child], "stroke-width": 2 }, svg);
      make("text", { x: x + 23, y: y + 4 }, svg, short(data.nodes[child], Math.max(2, Math.min(9, Math.floor((box0 - 46) / 7)))));
      counts[child] = make("text", { class: "quiet", x: x + box0 - 5, y: y + 4, "text-anchor": "end" }, svg);
    }
    for (const sender of senders) tokens[sender] = make("circle", { r: 6, visibility: "hidden" }, svg);
    // The time line of each port, and when each node computes.
    const x = (ms) => LABEL + ((width - LABEL - 2) * Math.min(ms, last)) / last;
    const lane = [];
    senders.forEach((sender, place) => {
      lane[sender] = lanes + place * PORT;
      make("text", { x: 0, y: lane[sender] + 15 }, svg, isFork ? "port" : short(data.nodes[sender], 8));
      make("rect", { class: "lane", x: LABEL, y: lane[sender], width: x(last) - LABEL, height: 22 }, svg);
    });
    each(scene.sends, (child, start, length) => {
      const wide = x(start + length) - x(start), y = lane[data.parents[child]];
      make("rect", { x: x(start), y, width: Math.max(wide - 0.4, 0.4), height: 22, fill: COLOURS[child] }, svg);
      if (wide > 40) make("text", { class: "in-block", x: x(start) + wide / 2, y: y + 15, "text-anchor": "middle" }, svg, short(data.nodes[child]));
    });
    data.nodes.forEach((name, node) => {
      make("text", { class: "quiet", x: 0, y: rows + node * LANE + 9 }, svg, short(name));
      make("rect", { class: "lane", x: LABEL, y: rows + node * LANE, width: x(last) - LABEL, height: LANE - 3 }, svg);
    });
    each(scene.computes, (node, start, length) => {
      const wide = x(start + length) - x(start);
      make("rect", { x: x(start), y: rows + node * LANE, width: Math.max(wide, 0.4), height: LANE - 3, fill: COLOURS[node] }, svg);
    });
    const step = last / 1000 / (width > 420 ? 6 : 3), tick = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((one) => one >= step) ?? step;
    for (let s = 0; s * 1000 <= last; s += tick) make("text", { class: "quiet", x: x(s * 1000), y: floor + 12, "text-anchor": "middle" }, svg, `${s} s`);
    const later = make("rect", { class: "later", x: LABEL, y: lanes - 1, width: 0, height: floor - lanes + 1 }, svg);
    const cursor = make("line", { class: "cursor", y1: lanes - 4, y2: floor }, svg);
    box.replaceChildren(svg);
    return (ms, now) => {
      for (let child = 1; child <= children; child += 1) {
        const sends = now.sent[child] >= 0;
        wires[child].style.stroke = sends ? COLOURS[child] : "";
        wires[child].setAttribute("stroke-width", sends ? 3 : 1);
        dots[child].setAttribute("fill", now.busy[child] ? COLOURS[child] : "none");
        counts[child].textContent = `${now.tasks[child]}`;
      }
      counts[0].textContent = `${now.tasks[0]} done`;
      for (const sender of senders) tokens[sender].setAttribute("visibility", "hidden");
      for (const child of receivers(now)) {
        const from = data.parents[child], token = tokens[from], part = still.matches ? 0.5 : now.sent[child];
        token.setAttribute("visibility", "visible");
        token.setAttribute("cx", out(from) + (left(child) - out(from)) * part);
        token.setAttribute("cy", middle(from) + (middle(child) - middle(from)) * part);
        token.setAttribute("fill", COLOURS[child]);
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
        const m = moments[i], name = isFork ? "port" : "ports", to = receivers(m).map((child) => data.nodes[child]).join(", ");
        const port = to ? `${name}: ${to}` : `${name} free`;
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
    if (guess > bound) return "above the bound";
    return Math.abs(off) <= data.close ? "within 10 %" : `${Math.abs(100 * off).toFixed(0)} % too ${off > 0 ? "high" : "low"}`;
  };
  // Why a guess is wrong: the mistake whose rate is nearest, where one is within 5 % of the guess.
  const because = (guess, found, bound, why) => {
    if (Math.abs(guess - found) <= data.close * found) return "";
    const over = guess > bound ? `It is more than the bound of ${bound.toFixed(2)} allows. ` : "";
    const away = ([rate]) => Math.abs(guess - rate) / rate;
    const [nearest] = [...why.mistakes].sort((one, other) => away(one) - away(other));
    if (nearest && away(nearest) <= 0.05) return nearest[1];
    return over + (guess > found ? why.high : why.low);
  };
  const ahead = (arrival, bandwidth) => (bandwidth > 1.05 * arrival ? "bandwidth" : arrival > 1.05 * bandwidth ? "arrival" : "");
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
    setting.scenes.forEach((scene, i) => {
      const why = because(guesses[i], scene.tasks_per_s, setting.bound, setting.why[i]);
      if (why) add("p", outcome, { class: "why" }, `Your guess for ${scene.order}. ${why}`);
    });
    if (ahead(...guesses) !== setting.faster) add("p", outcome, { class: "why" }, `Which order is faster. ${setting.why_faster}`);
    const parts = setting.scenes.map((scene) => `${scene.order} gives it ${(100 * scene.port[node]).toFixed(0)} % of the port's time`).join(", ");
    add("p", outcome, {}, `Bound: ${setting.bound.toFixed(2)} tasks/s (before: ${data.bound.toFixed(2)}). One task for ${setting.link} now holds the port for ${(data.task_size_mb / setting.rate).toPrecision(3)} s, before for ${(data.task_size_mb / now).toPrecision(3)} s; ${parts}.`);
    second.hidden = false;
    player(second, setting.scenes, data.rates.map((one, i) => (i === node ? setting.rate : one)), Math.round(0.45 * last / 100) * 100);
  });
  document.documentElement.dataset.figures = "drawn";
})();
