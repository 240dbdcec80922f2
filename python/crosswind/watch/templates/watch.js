// Shows the state that the run sends twice a second, or the one that was kept in this file. Names from files are put in as text, never as markup.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const pick = (id) => document.getElementById(id);
  const text = (id, value) => { const box = pick(id); if (box.textContent !== value) box.textContent = value; };
  const number = (value) => (value === 0 ? "0" : value >= 100 ? value.toFixed(0) : value < 0.01 ? value.toFixed(3) : value.toPrecision(3));
  const percent = (value) => `${(100 * value).toFixed(0)} %`;
  const time = (s) => (s < 100 ? `${s.toFixed(0)} s` : s < 6000 ? `${(s / 60).toFixed(0)} min` : `${(s / 3600).toFixed(1)} h`);
  const add = (name, parent, attributes = {}, words) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (words !== undefined) element.textContent = words;
    parent?.append(element);
    return element;
  };
  const draw = (name, parent, attributes, words) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (words !== undefined) element.textContent = words;
    parent.append(element);
  };

  const use = (cell, now, planned) => {
    if (now === null) { add("span", cell, {}, "–"); return; }
    const bar = add("div", cell, { class: "bar", "aria-hidden": "true" });
    add("span", bar).style.width = `${100 * Math.min(now, 1)}%`;
    if (planned !== null) add("i", bar).style.left = `calc(${100 * Math.min(planned, 1)}% - 1px)`;
    add("small", cell, {}, planned === null ? percent(now) : `${percent(now)}, plan ${percent(planned)}`);
  };

  const tree = (nodes) => {
    const body = document.createDocumentFragment();
    for (const node of nodes) {
      const row = add("tr", body, { role: "row" });
      add("th", row, { scope: "row", role: "rowheader" }, node.name).style.paddingLeft = `${10 + 18 * node.depth}px`;
      const cell = (label, kind, words) => add("td", row, { role: "cell", class: kind, "data-label": label }, words);
      cell("", node.state, node.state);
      cell("tasks", "number", String(node.tasks));
      cell("tasks/s", "number", number(node.tasks_per_s));
      use(cell("processor", "use"), node.processor, node.planned_processor);
      use(cell("link", "use"), node.link, node.planned_link);
    }
    pick("nodes").replaceChildren(body);
  };

  const history = (state) => {
    const box = pick("history"), points = state.history;
    if (points.length < 2) return;
    const width = Math.max(box.clientWidth, 240), height = 150, left = 44, foot = 18;
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-hidden", "true");
    const bound = state.bound_tasks_per_s, from = points[0][0], to = Math.max(points.at(-1)[0], from + 1e-9);
    const top = 1.12 * Math.max(bound ?? 0, ...points.map((point) => point[1]), 1e-9);
    const x = (s) => left + ((width - left - 2) * (s - from)) / (to - from), y = (r) => (height - foot) * (1 - r / top);
    draw("path", svg, { class: "rate", d: points.map(([s, r], i) => `${i ? "L" : "M"}${x(s).toFixed(1)} ${y(r).toFixed(1)}`).join("") });
    if (bound !== null) {
      draw("line", svg, { class: "bound", x1: left, x2: width, y1: y(bound), y2: y(bound) });
      draw("text", svg, { x: width - 2, y: y(bound) - 4, "text-anchor": "end" }, `bound ${number(bound)}`);
    }
    draw("text", svg, { x: left - 6, y: height - foot, "text-anchor": "end" }, "0");
    draw("text", svg, { x: left - 6, y: y(top / 1.12) + 4, "text-anchor": "end" }, number(top / 1.12));
    draw("text", svg, { x: left, y: height - 3 }, time(from));
    draw("text", svg, { x: width - 2, y: height - 3, "text-anchor": "end" }, time(to));
    box.replaceChildren(svg);
    box.setAttribute("aria-label", `Tasks per second over time: now ${number(state.tasks_per_s)}${bound === null ? "" : `, bound ${number(bound)}`}`);
  };

  const named = (nodes, state) => nodes.filter((node) => node.state === state).map((node) => node.name);

  const show = (state) => {
    document.documentElement.dataset.state = state.state;
    if (state.state === "starting") { text("connection", "Agents start."); return; }
    const bound = state.bound_tasks_per_s;
    text("name", state.name);
    document.title = `${state.name}: ${state.done} done`;
    const on = state.platform ? ` on ${state.platform}` : "";
    text("connection", state.state === "ended" ? `The run is over after ${time(state.elapsed_s)}${on}.` : `Running for ${time(state.elapsed_s)}${on}.`);
    text("done", state.total === null ? String(state.done) : `${state.done} of ${state.total}`);
    text("rate", number(state.tasks_per_s));
    text("bound", bound === null ? "not known" : `${percent(state.tasks_per_s / bound)} of ${number(bound)}`);
    text("left", state.left_s === null ? "not known" : time(state.left_s));
    text("explained", bound === null
      ? "The work of these tasks is not known, so there is no plan to compare with."
      : "Bars: share of each processor's and link's capacity in use, counted from finished tasks. A link carries what its node and all below it compute. The mark is the plan's share.");
    const part = state.total ? (100 * state.done) / state.total : null, progress = pick("progress");
    progress.hidden = part === null;
    if (part !== null) { progress.firstElementChild.style.width = `${part}%`; progress.setAttribute("aria-valuenow", part.toFixed(0)); }
    const alarms = ["lost", "behind"].map((word) => [word, named(state.nodes, word)]).filter(([, names]) => names.length);
    text("alarm", alarms.map(([word, names]) => `${word}: ${names.join(", ")}`).join("; "));
    tree(state.nodes);
    history(state);
    if (state.events.length) {
      const list = document.createDocumentFragment();
      for (const event of state.events) add("li", list, {}, `${time(event.t_s)}: ${event.message}`);
      pick("events").replaceChildren(list);
    }
  };

  const kept = pick("kept").textContent;
  if (kept) {
    text("product", "Crosswind, the last state of a run");
    show(JSON.parse(kept));
    return;
  }
  let over = false;
  const source = new EventSource("/events");
  source.addEventListener("message", (event) => show(JSON.parse(event.data)));
  source.addEventListener("over", () => { over = true; source.close(); });
  source.addEventListener("error", () => { if (!over) text("connection", "The run cannot be reached: it has ended, or the connection is lost."); });
})();
