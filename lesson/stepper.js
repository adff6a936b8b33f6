// Steps through the timeline of one block. Each .tma-stepper on the page carries its own data as
// JSON and a still picture; the picture is hidden once the controls stand in its place. Nothing is
// loaded, and no element has an id, so that any number of steppers can share a page.
(function () {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const CONTEXT_LINES = 2;
  const LANE_HEIGHT = 26;
  const NAME_WIDTH = 190;
  const LANES_WIDTH = 1060;
  const LANE_COLOURS = ["var(--orange)", "var(--sky)", "var(--blue)", "var(--green)"];

  function element(parent, name, attributes, text) {
    const isSvg = name === "svg" || parent.namespaceURI === SVG;
    const made = isSvg ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const key of Object.keys(attributes || {})) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  }

  function rect(parent, x, y, width, height, fill, more) {
    const place = { x: x, y: y, width: width, height: height, fill: fill };
    return element(parent, "rect", Object.assign(place, more));
  }

  // Everything that happened up to a step, of one kind of runs: land or store.
  function upTo(data, at, name) {
    return data.steps.slice(0, at + 1).flatMap(function (step) { return step[name]; });
  }

  function sizeOf(data, runs) {
    const seen = new Set();
    for (const [row, column, n] of runs) {
      for (let i = 0; i < n; i++) seen.add(row * data.tile[0] + column + i);
    }
    return seen.size;
  }

  function drawTile(svg, data, done, now, doneColour) {
    svg.replaceChildren();
    const [width, height] = data.tile;
    svg.setAttribute("viewBox", `-0.5 -0.5 ${width + 1} ${height + 1}`);
    rect(svg, 0, 0, width, height, "var(--pale)");
    for (const [row, column, n] of done) rect(svg, column, row, n, 1, doneColour);
    for (const [row, column, n] of now) rect(svg, column, row, n, 1, "var(--orange)");
    rect(svg, 0, 0, width, height, "none", { stroke: "var(--ink)", "stroke-width": 0.4 });
  }

  function tilePanel(panels, name) {
    const panel = element(panels, "div", { class: "tma-panel" });
    element(panel, "p", { class: "tma-name" }, name);
    const svg = element(panel, "svg", { "aria-hidden": "true" });
    const says = element(panel, "p");
    return { svg: svg, says: says };
  }

  function count(panel, name) {
    const line = element(panel, "div", { class: "tma-count" });
    element(line, "span", {}, name);
    return element(line, "b");
  }

  function gauge(panel, name) {
    const number = count(panel, name);
    const bar = element(element(panel, "div", { class: "tma-gauge" }), "div");
    return function (value, most) {
      number.textContent = value === null ? "–" : value;
      bar.style.width = `${most ? (100 * Math.abs(value || 0)) / most : 0}%`;
      bar.style.background = value < 0 ? "var(--red)" : "var(--sky)";
    };
  }

  function lanes(parent, data, choose) {
    const pitch = (LANES_WIDTH - NAME_WIDTH) / data.steps.length;
    const height = data.lanes.length * LANE_HEIGHT;
    const svg = element(parent, "svg", {
      class: "tma-lanes", viewBox: `0 0 ${LANES_WIDTH} ${height}`, "aria-hidden": "true",
    });
    const cursor = rect(svg, 0, 0, pitch, height, "var(--peach)");
    data.lanes.forEach(function (name, lane) {
      const y = lane * LANE_HEIGHT;
      element(svg, "text", { x: NAME_WIDTH - 10, y: y + 18, "text-anchor": "end" }, name);
      element(svg, "line", {
        x1: NAME_WIDTH, x2: LANES_WIDTH, y1: y + 13, y2: y + 13, stroke: "var(--grey)",
      });
    });
    for (const [lane, from, to] of data.spans) {
      rect(svg, NAME_WIDTH + (from + 0.5) * pitch, lane * LANE_HEIGHT + 9, (to - from) * pitch, 8,
        "var(--pale)", { stroke: "var(--grey)" });
    }
    data.steps.forEach(function (step, at) {
      const x = NAME_WIDTH + at * pitch;
      for (const lane of step.by) {
        rect(svg, x + 0.15 * pitch, lane * LANE_HEIGHT + 4, 0.7 * pitch, LANE_HEIGHT - 8,
          LANE_COLOURS[lane], { stroke: "var(--ink)" });
      }
      const target = rect(svg, x, 0, pitch, height, "transparent", { style: "cursor: pointer" });
      target.addEventListener("click", function () { choose(at); });
    });
    return function (at) { cursor.setAttribute("x", NAME_WIDTH + at * pitch); };
  }

  function showCode(pre, data, step) {
    pre.replaceChildren();
    const at = step.line;
    if (at < 0) {
      element(pre, "div", {}, step.note);
      return;
    }
    const first = Math.max(0, Math.min(at - CONTEXT_LINES, data.lines.length - 2 * CONTEXT_LINES - 1));
    data.lines.slice(first, first + 2 * CONTEXT_LINES + 1).forEach(function (line, i) {
      const isNow = first + i === at;
      const row = element(pre, "div", isNow ? { class: "tma-now", "aria-current": "step" } : {});
      row.textContent = `${String(line[0]).padStart(4)}  ${line[1]}`;
    });
  }

  function start(root) {
    const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
    const last = data.steps.length - 1;
    const total = data.tile[0] * data.tile[1];
    const box = element(root, "div", { role: "group", "aria-label": data.title });
    element(box, "p", { class: "tma-title" }, data.title);
    const says = element(box, "p", { class: "tma-says", "aria-live": "polite" });
    const controls = element(box, "div", { class: "tma-controls" });
    const back = element(controls, "button", { type: "button" }, "Back");
    const slider = element(controls, "input", {
      type: "range", min: 0, max: last, step: 1, value: 0, "aria-label": "Step of the timeline",
    });
    const next = element(controls, "button", { type: "button" }, "Next");
    const moveCursor = lanes(box, data, show);
    const panels = element(box, "div", { class: "tma-panels" });
    const shared = tilePanel(panels, "Shared memory");
    const output = tilePanel(panels, "Output");
    const counts = element(panels, "div", { class: "tma-panel tma-counts" });
    element(counts, "p", { class: "tma-name" }, "The mbarrier");
    const phase = count(counts, "phase");
    const arrivals = gauge(counts, "missing arrivals");
    const bytes = gauge(counts, "missing bytes");
    const code = element(box, "pre", { class: "tma-code", "aria-label": "Source line of this step" });

    function show(at) {
      const step = data.steps[at];
      const text = `Step ${at + 1} of ${last + 1}: ${step.says}.`;
      slider.value = at;
      slider.setAttribute("aria-valuetext", text);
      says.textContent = text;
      back.disabled = at === 0;
      next.disabled = at === last;
      moveCursor(at);
      const landed = upTo(data, at, "land");
      const stored = upTo(data, at, "store");
      drawTile(shared.svg, data, landed, step.read, "var(--sky)");
      drawTile(output.svg, data, stored, step.store, "var(--blue)");
      const isUnderWay = !landed.length && data.steps.slice(0, at + 1).some((s) => s.kind === "issue");
      shared.says.textContent = isUnderWay
        ? "asked for, under way" : `${sizeOf(data, landed)} of ${total} elements`;
      output.says.textContent = `${sizeOf(data, stored)} of ${total} elements`;
      const [phaseNow, pending, missing] = step.barrier || [null, null, null];
      phase.textContent = phaseNow === null ? "–" : phaseNow;
      arrivals(pending, data.arrivals);
      bytes(missing, data.nbytes);
      showCode(code, data, step);
    }

    slider.addEventListener("input", function () { show(Number(slider.value)); });
    back.addEventListener("click", function () { show(Number(slider.value) - 1); });
    next.addEventListener("click", function () { show(Number(slider.value) + 1); });
    // Keys pressed here are no shortcuts of the notebook or the slides around.
    box.addEventListener("keydown", function (event) { event.stopPropagation(); });
    box.setAttribute("data-lm-suppress-shortcuts", "true");
    show(0);
    root.querySelector("figure").hidden = true;
    root.setAttribute("data-ready", "true");
  }

  document.querySelectorAll(".tma-stepper:not([data-ready])").forEach(start);
})();
