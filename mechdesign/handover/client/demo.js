// The page to try a table on: its cells on a canvas, a click reports. No tiles, no requests.
"use strict";

(async () => {
  const PER_DAY = 10;
  const element = (id) => document.getElementById(id);
  const say = (text, warn = false) => {
    element("said").textContent = text.charAt(0).toUpperCase() + text.slice(1);
    element("said").classList.toggle("warn", warn);
  };
  const { memoryStorage, openClient } = globalThis.mechdesignReports;

  let client;
  try {
    client = await openClient({ perDay: PER_DAY });
  } catch (error) {
    if (error.code !== "storage") return say(error.message, true);
    client = await openClient({ perDay: PER_DAY, storage: memoryStorage() });
    say("This browser keeps nothing for this page: memory and budget last until it is closed.", true);
  }

  const { places } = client;
  const points = Array.from({ length: places.count }, (_, cell) => places.point(cell));
  const grid = places.kind === "grid";
  const across = (axis) => points.map((point) => point[axis] ?? 0);
  const sides = grid ? [places.sides[0], places.sides[1] ?? places.sides[0]] : [0, 0];
  const [west, east] = bounds(across(0), sides[0] / 2);
  const [south, north] = bounds(across(1), sides[1] / 2);
  const canvas = element("map");
  const context = canvas.getContext("2d");
  let view = { scale: 1, left: 0, top: 0 };
  const middle = [(west + east) / 2, (south + north) / 2];
  let cursor = places.nearest(points[0].map((value, axis) => middle[axis] ?? value));
  let you = null; // {cell, at, chances}
  let report = null;

  element("promise").textContent = `${client.about.promise ?? ""} The true position is sent nowhere.`.trim();
  element("claim").textContent = client.claim;
  const { problem, program, mechanism } = client.about;
  const made = `Problem ${problem}, program ${program}, ${places.count} cells`;
  element("about").textContent = `${made}; seal of the contents of the mechanism ${mechanism}.`;

  function bounds(values, margin) {
    const wider = ([low, high], value) => [Math.min(low, value), Math.max(high, value)];
    const [low, high] = values.reduce(wider, [Infinity, -Infinity]);
    const pad = margin || (high - low) * 0.04 || 0.5;
    return [low - pad, high + pad];
  }

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const toScreen = ([x, y = 0]) => [view.left + (x - west) * view.scale, view.top + (north - y) * view.scale];
  const toMap = (left, top) => [west + (left - view.left) / view.scale, north - (top - view.top) / view.scale];

  function layout() {
    const width = canvas.clientWidth;
    const room = Math.min(window.innerHeight * 0.72, 760);
    const scale = Math.min((width - 8) / (east - west), Math.max((room - 44) / (north - south), 1e-12));
    const height = (north - south) * scale + 44;
    const ratio = window.devicePixelRatio || 1;
    canvas.style.height = `${height}px`;
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    view = { scale, left: (width - (east - west) * scale) / 2, top: 4, width, height };
    draw();
  }

  function draw() {
    context.clearRect(0, 0, view.width, view.height);
    const chances = you && (you.chances ??= ofCells(client.probabilities(you.cell)));
    const most = chances ? chances.reduce((a, b) => Math.max(a, b)) : 0;
    const [wide, high] = sides.map((side) => side * view.scale);
    const gap = wide > 7 ? 1 : 0;
    const shade = colour("--shade").replaceAll(" ", ",");
    context.fillStyle = colour("--cell");
    points.forEach((point) => mark(point, wide, high, gap));
    if (most) {
      points.forEach((point, cell) => {
        const share = Math.sqrt(chances[cell] / most);
        if (share < 0.02) return;
        context.fillStyle = `rgba(${shade},${share})`;
        mark(point, wide, high, gap);
      });
    }
    if (document.activeElement === canvas) outline(points[cursor], wide, high, colour("--accent"), 2);
    if (you) {
      outline(points[you.cell], wide, high, colour("--you"), 1.5);
      ring(toScreen(you.at));
    }
    if (report) diamond(toScreen([report.x, report.y ?? 0]));
    scaleBar();
  }

  /** Chances of reports as chances of cells; null where reports are no cells. */
  function ofCells(chances) {
    const found = new Float64Array(points.length);
    for (let report = 0; report < chances.length; report++) {
      const cell = client.cellOfReport(report);
      if (cell < 0) return null;
      found[cell] += chances[report];
    }
    return found;
  }

  function mark(point, wide, high, gap) {
    const [left, top] = toScreen(point);
    if (!grid) {
      context.beginPath();
      context.arc(left, top, 4, 0, 7);
      context.fill();
      return;
    }
    context.fillRect(left - wide / 2, top - high / 2, wide - gap + (gap ? 0 : 0.4), high - gap + (gap ? 0 : 0.4));
  }

  function outline(point, wide, high, style, width) {
    const [left, top] = toScreen(point);
    context.strokeStyle = style;
    context.lineWidth = width;
    const [across, along] = [Math.max(wide, 10), Math.max(high, 10)];
    context.strokeRect(left - across / 2, top - along / 2, across - 1, along - 1);
  }

  function ring([left, top]) {
    for (const [style, width] of [[colour("--card"), 6], [colour("--you"), 2.5]]) {
      context.beginPath();
      context.arc(left, top, 6, 0, 7);
      context.strokeStyle = style;
      context.lineWidth = width;
      context.stroke();
    }
  }

  function diamond([left, top]) {
    context.beginPath();
    context.moveTo(left, top - 8);
    context.lineTo(left + 8, top);
    context.lineTo(left, top + 8);
    context.lineTo(left - 8, top);
    context.closePath();
    context.strokeStyle = colour("--card");
    context.lineWidth = 4;
    context.stroke();
    context.fillStyle = colour("--report");
    context.fill();
  }

  /** A bar of a round length, at most a third of the map. */
  function scaleBar() {
    const longest = (east - west) / 3;
    const power = 10 ** Math.floor(Math.log10(longest));
    const bar = [5, 2, 1].map((digit) => digit * power).find((value) => value <= longest);
    const [left, top] = [view.left, view.height - 14];
    context.strokeStyle = context.fillStyle = colour("--soft");
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(left + 1, top - 6);
    context.lineTo(left + 1, top);
    context.lineTo(left + bar * view.scale, top);
    context.lineTo(left + bar * view.scale, top - 6);
    context.stroke();
    context.font = "13px system-ui, sans-serif";
    context.fillText(length(bar), left + bar * view.scale + 8, top + 3);
    if (places.plane) context.fillText("north is up", view.width - view.left - 68, top + 3);
  }

  /** A length in words, two digits. */
  function length(value) {
    if (places.unit === "m" && value >= 1000) return `${Number((value / 1000).toPrecision(2))} km`;
    const plain = { 1: "unit", cell: "cell" }[places.unit];
    const unit = plain ? plain + (value === 1 ? "" : "s") : places.unit;
    return `${Number(value.toPrecision(2))} ${unit}`;
  }

  async function reportFrom(cell, at) {
    try {
      const given = grid && places.axes === 2 ? await client.reportAt(...at) : await client.reportCell(cell);
      you = { cell: cell < 0 ? places.nearest(at) : cell, at };
      report = given.report;
      element("sent").textContent = JSON.stringify(report, null, 1);
      const off = Math.hypot(...points[you.cell].map((value, axis) => value - (report["xyz"[axis]] ?? 0)));
      const lies = off === 0 ? " It is your own cell." : ` It lies ${length(off)} from your cell.`;
      const known = "Remembered: the same report as before, at no cost.";
      say((given.remembered ? known : "Drawn anew, paid and remembered.") + (places.kind === "nodes" ? "" : lies));
      log(given);
    } catch (error) {
      you = cell < 0 ? null : { cell, at };
      report = null;
      element("sent").textContent = "nothing";
      say(`${error.message}.`, true);
    }
    element("again").disabled = you === null;
    await budget();
    draw();
  }

  function log({ report: found, remembered }) {
    const row = document.createElement("tr");
    const metric = [found.x, found.y, found.z].filter((value) => value !== undefined);
    const where = found.longitude === undefined ? metric : [found.longitude, found.latitude];
    for (const text of [found.number, where.join(", "), remembered ? "none" : "1"]) {
      row.append(Object.assign(document.createElement("td"), { textContent: text }));
    }
    const body = element("log");
    if (body.querySelector("[colspan]")) body.replaceChildren();
    body.prepend(row);
    while (body.children.length > 6) body.lastChild.remove();
  }

  async function budget() {
    try {
      const { left, spent, remembered } = await client.status();
      element("left").textContent = `${left} of ${PER_DAY} new reports left in 24 hours`;
      element("left").title = `${spent} paid in all, ${remembered} remembered`;
      const bars = Array.from({ length: PER_DAY }, () => document.createElement("i"));
      bars.forEach((bar, k) => bar.classList.toggle("spent", k >= left));
      element("meter").replaceChildren(...bars);
    } catch (error) {
      say(`${error.message}.`, true);
    }
  }

  /** The cell that a point of the canvas shows, -1 off the map. */
  function shown(at) {
    const flat = [...at, ...points[0].slice(2)].slice(0, places.axes);
    return grid && places.axes === 2 ? places.cellAt(at) : places.nearest(flat);
  }

  function step(dx, dy) {
    const [x, y = 0] = points[cursor];
    const ahead = points.map((point, cell) => {
      const [a, b] = [point[0] - x, (point[1] ?? 0) - y];
      const along = a * dx + b * dy;
      return [along > 1e-9 ? along + 4 * Math.abs(a * dy - b * dx) : Infinity, cell];
    });
    const [distance, next] = ahead.reduce((best, one) => (one[0] < best[0] ? one : best));
    if (distance < Infinity) cursor = next;
    say(`Mark at cell ${cursor}: Enter reports from here.`);
    draw();
  }

  canvas.addEventListener("click", (event) => {
    const box = canvas.getBoundingClientRect();
    const at = toMap(event.clientX - box.left, event.clientY - box.top);
    const cell = shown(at);
    if (cell >= 0) cursor = cell;
    reportFrom(cell, at);
  });
  const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  canvas.addEventListener("keydown", (event) => {
    if (STEPS[event.key]) step(...STEPS[event.key]);
    else if (event.key === "Enter" || event.key === " ") reportFrom(cursor, points[cursor]);
    else return;
    event.preventDefault();
  });
  canvas.addEventListener("focus", draw);
  canvas.addEventListener("blur", draw);
  element("again").addEventListener("click", () => reportFrom(you.cell, you.at));
  element("forget").addEventListener("click", async () => {
    await client.forget();
    say("Forgotten: the next report of a cell is another one, and costs. What was paid stays paid.");
    await budget();
  });
  window.addEventListener("resize", layout);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  await budget();
  layout();
  document.documentElement.dataset.ready = "yes";
})();
