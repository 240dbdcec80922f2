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
  page.dataset.figures = "drawn";

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
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
})();
