// Draws every figure of the page from the specification that stands beside it. Nothing is fetched.
"use strict";
(async () => {
  const NARROW = 560;
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const page = document.documentElement;

  const look = (width) => {
    const config = read("configuration");
    config.axisX = { ...config.axisX, tickCount: Math.max(3, Math.round(width / 90)) };
    if (width < NARROW) {
      const layout = { top: { direction: "vertical", anchor: "start" } };
      config.legend = { ...config.legend, columns: 2, labelLimit: width / 2 - 40, layout };
    }
    return config;
  };

  // A click in a legend chooses a series. Buttons that show while one of them has the focus do the same by keyboard.
  const offerChoices = (box, view) => {
    const symbols = () => [...box.querySelectorAll(".role-legend-symbol path")].filter((symbol) => symbol.__data__?.datum);
    if (!("chosen_store" in view.getState({ data: () => true, signals: () => false }).data) || !symbols().length) return;
    const figure = box.closest("figure"), chosen = () => view.data("chosen_store").flatMap((one) => one.values);
    const group = document.createElement("div");
    group.className = "choices";
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", `Show only these: ${figure.firstElementChild.textContent}`);
    const buttons = symbols().map((symbol, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = symbol.__data__.datum.label;
      button.setAttribute("aria-pressed", "false");
      // Shift adds to what is chosen, or takes away.
      button.addEventListener("click", () => symbols()[at].dispatchEvent(new MouseEvent("click", { bubbles: true, shiftKey: true })));
      return [button, symbol.__data__.datum.value];
    });
    group.append(...buttons.map(([button]) => button));
    const mark = () => buttons.forEach(([button, value]) => button.setAttribute("aria-pressed", String(chosen().includes(value))));
    view.addDataListener("chosen_store", mark);
    figure.querySelector(".choices")?.remove();
    box.after(group);
  };

  const draw = async (box) => {
    const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
    const label = box.getAttribute("aria-label");
    const spec = { ...read(box.dataset.spec), config: look(box.clientWidth), description: label };
    // `ast`: expressions are interpreted, not compiled, so that the page's policy can forbid eval.
    const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, tooltip: { theme: dark ? "dark" : "light" } };
    try {
      const drawn = await vegaEmbed(box, spec, options);
      // The box's own label says what the figure shows; a reader need not walk through every dot. Vega puts its own
      // role and words there.
      box.setAttribute("role", "img");
      box.setAttribute("aria-label", label);
      box.removeAttribute("aria-roledescription");
      box.querySelector("svg").setAttribute("aria-hidden", "true");
      box.style.minHeight = "";
      offerChoices(box, drawn.view);
      return drawn;
    } catch (error) {
      const note = document.createElement("p");
      note.className = "failed";
      note.textContent = `This figure could not be drawn: ${error.message}`;
      box.replaceChildren(note);
      console.error(error);
      return null;
    }
  };

  const boxes = [...document.querySelectorAll(".chart")];
  const drawn = new Map();
  for (const box of boxes) drawn.set(box, { result: await draw(box), narrow: box.clientWidth < NARROW });
  // Widths follow by themselves; legends are laid out again when a figure becomes narrow or wide.
  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      for (const [box, state] of drawn) {
        const narrow = box.clientWidth < NARROW;
        if (narrow === state.narrow) continue;
        state.result?.finalize();
        drawn.set(box, { result: await draw(box), narrow });
      }
    }, 200);
  });
  // What a figure shows, as a table and as a picture. A spreadsheet runs a cell that begins with =, +, - or @: text that does is quoted.
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = String(value);
    return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  };
  const rowsOf = (box) => {
    const spec = read(box.dataset.spec);
    const parts = [spec, ...(spec.layer ?? [])].map((part) => part.data?.values ?? spec.datasets?.[part.data?.name]);
    return [...new Set(parts.filter((values) => values?.length))];
  };
  const csv = (box) => rowsOf(box).map((rows) => {
    const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    return [columns.map(cell), ...rows.map((row) => columns.map((name) => cell(row[name])))].map((row) => row.join(",")).join("\r\n");
  }).join("\r\n\r\n") + "\r\n";
  const save = (name, address) => {
    const link = document.createElement("a");
    link.download = name;
    link.href = address;
    link.click();
  };
  const picture = async (box, format) => {
    const view = drawn.get(box).result?.view;
    if (view) save(`${box.closest("figure").id}.${format}`, await view.toImageURL(format, 2));
  };
  for (const box of boxes) {
    const figure = box.closest("figure");
    const bar = document.createElement("p");
    bar.className = "downloads";
    const offer = (label, act) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.setAttribute("aria-label", `Download ${label} of this figure: ${figure.firstElementChild.textContent}`);
      button.addEventListener("click", act);
      bar.append(button);
    };
    offer("CSV", () => save(`${figure.id}.csv`, URL.createObjectURL(new Blob([csv(box)], { type: "text/csv" }))));
    offer("SVG", () => picture(box, "svg"));
    offer("PNG", () => picture(box, "png"));
    figure.append(bar);
  }

  // A click on a column's head sorts by it, numbers as numbers; another turns the order.
  const value = (row, at) => {
    const text = (row.cells[at]?.textContent ?? "").trim();
    const number = parseFloat(text.replaceAll(",", "").replace("−", "-").replace(/^[<+]\s*/, ""));
    return Number.isNaN(number) ? text : number;
  };
  const compare = (a, b) => {
    if (typeof a === typeof b) return typeof a === "number" ? a - b : a.localeCompare(b);
    return typeof a === "number" ? -1 : 1;
  };
  for (const table of document.querySelectorAll(".table-box table")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.setAttribute("aria-label", `Sort by ${head.textContent.trim()}`);
      button.addEventListener("click", () => {
        const way = head.ariaSort === "ascending" ? "descending" : "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", way);
        const rows = [...table.tBodies[0].rows].sort((a, b) => compare(value(a, at), value(b, at)));
        table.tBodies[0].append(...(way === "ascending" ? rows : rows.reverse()));
      });
      head.insertBefore(button, head.querySelector(".unit"));
    });
  }

  // A term's link leads to its explanation, which is folded; so may be what is around it.
  const reveal = (target) => {
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };
  for (const link of document.querySelectorAll("a.term")) {
    link.addEventListener("click", () => reveal(document.getElementById(link.hash.slice(1))));
  }

  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
  page.dataset.figures = "drawn";
})();
