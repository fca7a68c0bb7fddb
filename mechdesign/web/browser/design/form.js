// The page that designs: a form, a map on which a box is drawn, and a worker that designs and proves.

const byId = (id) => document.getElementById(id);
const SIDES = ["west", "south", "east", "north"];
const AROUND_BOX = 0.25; // of the box, on the map around it
const CLICK = 4; // pixels: a shorter drag is a click

let view = null; // degrees that the map shows
let table = null; // { page, text } of the last design
let chosen = 0; // cell
let worker = null;
let people = null; // { name, points }, the prior
let lines = []; // of [longitude, latitude], on the map

function numberOf(id) {
  return byId(id).value.trim() === "" ? NaN : Number(byId(id).value);
}

function boxOf() {
  return Object.fromEntries(SIDES.map((side) => [side, numberOf(side)]));
}

function formNumbers() {
  const [cells, factor, within] = ["cells", "factor", "within"].map(numberOf);
  return { box: boxOf(), cells, factor, within, kind: byId("kind").value, loss: byId("loss").value, places: people };
}

function badge(kind, verdict, saying) {
  byId("proof").className = `badge ${kind}`;
  byId("verdict").textContent = verdict;
  byId("saying").textContent = saying;
  byId("progress").hidden = kind !== "waiting";
}

/** Remove the table, which belongs to the numbers before. */
function forget() {
  worker?.terminate();
  [worker, table] = [null, null];
  byId("save").disabled = true;
  byId("sentence").textContent = "Draw a box, choose a factor and a radius, and design.";
  byId("claim").textContent = "No table was designed yet.";
  byId("place").textContent = "";
  for (const id of ["faults", "proved", "assumed"]) byId(id).parentElement.hidden = true;
  badge("partly", "No table yet", "Nothing was computed.");
  draw();
}

function design() {
  forget();
  badge("waiting", "Designing", "starting");
  const told = formNumbers();
  const onProgress = ({ words, share }) => {
    byId("saying").textContent = words;
    byId("progress").value = share;
  };
  try {
    worker = new Worker(URL.createObjectURL(new Blob([byId("program").textContent], { type: "text/javascript" })));
  } catch {
    designAndProve(told, onProgress).then(show);
    return;
  }
  worker.onerror = () => show({ refused: "the worker of this page stopped" });
  worker.onmessage = ({ data }) => (data.progress ? onProgress(data.progress) : show(data.answer));
  worker.postMessage(told);
}

/** Show the answer of a design. */
function show(answer) {
  worker?.terminate();
  worker = null;
  if (answer.refused) {
    badge("refused", "No table", answer.refused);
    return;
  }
  const { outcome } = answer;
  for (const id of ["faults", "proved", "assumed"]) {
    const texts = id === "faults" ? outcome.faults.map(({ text }) => text) : id === "proved" && outcome.faults.length ? [] : outcome[id];
    byId(id).replaceChildren(...texts.map((text) => element("li", text)));
    byId(id).parentElement.hidden = texts.length === 0;
  }
  if (outcome.faults.length) {
    badge("refused", "Refused", outcome.faults[0].text);
    return;
  }
  table = answer;
  const [columns, rows] = jsonAttribute(table.page, "domain").shape;
  chosen = Math.floor(columns / 2) * rows + Math.floor(rows / 2);
  byId("sentence").textContent = answer.headline;
  byId("claim").textContent = answer.claim;
  byId("save").disabled = !answer.text;
  const { inequalities } = outcome.figures;
  badge("proved", "Proved in this browser", `${short(columns * rows)} rows, ${inequalities.toLocaleString("en")} inequalities, in integers.`);
  draw();
}

function save() {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([table.text], { type: "application/json" }));
  link.download = "table.json";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// --- the map ---

/** The degrees around a box. */
function around({ west, south, east, north }) {
  const [wide, high] = [(east - west) * AROUND_BOX, (north - south) * AROUND_BOX];
  return { west: west - wide, south: south - high, east: east + wide, north: north + high };
}

/** Pixels of degrees; x and y of the canvas. */
function pixelOf(longitude, latitude) {
  const { width, height } = byId("map");
  return [((longitude - view.west) / (view.east - view.west)) * width, ((view.north - latitude) / (view.north - view.south)) * height];
}

/** Degrees of an event on the map. */
function degreesOf(event) {
  const at = byId("map").getBoundingClientRect();
  const [x, y] = [(event.clientX - at.left) / at.width, (event.clientY - at.top) / at.height];
  return [view.west + x * (view.east - view.west), view.north - y * (view.north - view.south)];
}

function draw() {
  const [canvas, box] = [byId("map"), boxOf()];
  if (!view || !SIDES.every((side) => Number.isFinite(box[side]))) return;
  const stretch = Math.cos((((view.south + view.north) / 2) * Math.PI) / 180);
  canvas.width = 900;
  canvas.height = Math.round(Math.min(1400, Math.max(300, (900 * (view.north - view.south)) / ((view.east - view.west) * stretch))));
  const [pen, style] = [canvas.getContext("2d"), getComputedStyle(document.documentElement)];
  const paint = (name) => style.getPropertyValue(name).trim();
  if (table) drawCells(pen, paint("--accent"));
  drawFiles(pen, paint);
  const [left, top] = pixelOf(box.west, box.north);
  const [right, bottom] = pixelOf(box.east, box.south);
  pen.strokeStyle = paint("--text");
  pen.lineWidth = 2;
  pen.strokeRect(left, top, right - left, bottom - top);
  pen.font = "22px system-ui, sans-serif";
  const corners = [[box.north, box.west, top - 12], [box.south, box.east, bottom + 30]];
  for (const [latitude, longitude, y] of corners) {
    const words = `${degreeWords(latitude, "NS")}, ${degreeWords(longitude, "EW")}`;
    // Cells reach beyond the box: words need a ground of their own.
    pen.fillStyle = paint("--soft");
    pen.fillRect(left, y - 22, pen.measureText(words).width + 8, 30);
    pen.fillStyle = paint("--text");
    pen.fillText(words, left + 4, y);
  }
}

/** The lines and points of files. */
function drawFiles(pen, paint) {
  pen.strokeStyle = paint("--muted");
  pen.lineWidth = 2;
  for (const line of lines) {
    pen.beginPath();
    for (const [longitude, latitude] of line) pen.lineTo(...pixelOf(longitude, latitude));
    pen.stroke();
  }
  if (table || !people) return;
  pen.fillStyle = paint("--accent");
  for (const [longitude, latitude] of people.points) {
    const [x, y] = pixelOf(longitude, latitude);
    pen.fillRect(x - 2, y - 2, 4, 4);
  }
}

/** Take files: points become the prior, lines are drawn. */
async function takeFiles(files) {
  const said = [];
  for (const file of files) {
    try {
      const read = readPlaces(file.name, await file.text());
      if (read.points.length) people = read;
      lines = lines.concat(read.lines);
      const counts = [[read.points.length, "points for the prior"], [read.lines.length, "lines for the map"]];
      said.push(`${read.name} has ${counts.filter(([count]) => count).map(([count, words]) => `${count.toLocaleString("en")} ${words}`).join(", ")}.`);
    } catch (error) {
      said.push(`${error.message}.`);
    }
  }
  if (people && files.length > 1) said.push(`The prior is that of ${people.name}.`);
  forget();
  byId("files-said").textContent = said.join(" ");
  byId("no-files").hidden = !people && lines.length === 0;
}

function removeFiles() {
  [people, lines] = [null, []];
  byId("files").value = "";
  byId("files-said").textContent = "";
  byId("no-files").hidden = true;
  forget();
}

/** Files that are chosen, or dropped anywhere on the page. */
function listenToFiles() {
  byId("files").addEventListener("change", () => takeFiles([...byId("files").files]));
  byId("no-files").addEventListener("click", removeFiles);
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    takeFiles([...event.dataTransfer.files]);
  });
}

function degreeWords(value, letters) {
  return `${Math.abs(value).toFixed(4)}° ${letters[Number(value < 0)]}`;
}

/** The cells of the table, shaded by the probabilities of the reports from the chosen one. */
function drawCells(pen, accent) {
  const { page } = table;
  const [[x, y], mass, { cell, plane }] = [axesOf(page, "secret"), array(page, "mass"), jsonAttribute(page, "domain")];
  const chances = Float64Array.from(mass.subarray(chosen * x.length, (chosen + 1) * x.length), (value) => Number(value) * 2 ** -62);
  const most = Math.max(...chances);
  x.forEach((_, u) => {
    const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([a, b]) => pixelOf(...device.backward(plane, x[u] + (a * cell[0]) / 2, y[u] + (b * cell[1]) / 2)));
    pen.beginPath();
    corners.forEach((corner) => pen.lineTo(...corner));
    pen.closePath();
    pen.fillStyle = `rgb(${colour(chances[u] / most).join()})`;
    pen.fill();
  });
  pen.strokeStyle = accent;
  pen.lineWidth = 4;
  const [across, down] = pixelOf(...device.backward(plane, x[chosen], y[chosen]));
  pen.beginPath();
  pen.arc(across, down, 12, 0, 2 * Math.PI);
  pen.stroke();
  const likeliest = chances.indexOf(most);
  const [longitude, latitude] = device.backward(plane, x[chosen], y[chosen]);
  byId("place").textContent =
    `A report from the cell about ${degreeWords(latitude, "NS")}, ${degreeWords(longitude, "EW")} names this very cell with probability ${chance(chances[chosen])}; ` +
    `its likeliest report is ${likeliest === chosen ? "this cell" : `a cell ${short(Math.hypot(x[likeliest] - x[chosen], y[likeliest] - y[chosen]))} m away`}, with ${chance(most)}.`;
}

/** Choose the cell nearest to degrees. */
function choose(longitude, latitude) {
  const { plane } = jsonAttribute(table.page, "domain");
  const [east, north] = device.forward(plane, longitude, latitude);
  const [x, y] = axesOf(table.page, "secret");
  const away = Array.from(x, (at, u) => Math.hypot(at - east, y[u] - north));
  chosen = away.indexOf(Math.min(...away));
  draw();
}

function moveChosen(event) {
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  if (!step || !table) return;
  event.preventDefault();
  const { shape } = jsonAttribute(table.page, "domain");
  const at = [Math.floor(chosen / shape[1]), chosen % shape[1]].map((k, axis) => Math.min(shape[axis] - 1, Math.max(0, k + step[axis])));
  chosen = at[0] * shape[1] + at[1];
  draw();
}

/** A drag draws a box, a click chooses a cell. */
function listenToMap(canvas) {
  let from = null;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    from = { x: event.clientX, y: event.clientY, degrees: degreesOf(event) };
  });
  const isDrag = (event) => from && Math.hypot(event.clientX - from.x, event.clientY - from.y) > CLICK;
  const takeBox = (event) => {
    const to = degreesOf(event);
    const [[west, east], [south, north]] = [0, 1].map((k) => [from.degrees[k], to[k]].sort((a, b) => a - b));
    Object.entries({ west, south, east, north }).forEach(([side, value]) => (byId(side).value = value.toFixed(5)));
  };
  canvas.addEventListener("pointermove", (event) => {
    if (!isDrag(event)) return;
    takeBox(event);
    if (table || worker) forget();
    draw();
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!isDrag(event) && from && table) choose(...from.degrees);
    from = null;
  });
  canvas.addEventListener("keydown", moveChosen);
}

function begin() {
  view = around(boxOf());
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    design();
  });
  byId("form").addEventListener("input", (event) => {
    if (event.target === byId("files")) return;
    const box = boxOf();
    if (box.west < box.east && box.south < box.north) view = around(box);
    forget();
  });
  byId("save").addEventListener("click", save);
  listenToFiles();
  listenToMap(byId("map"));
  addEventListener("resize", draw);
  forget();
}

begin();
