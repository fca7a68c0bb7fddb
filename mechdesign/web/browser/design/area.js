// The cells of a box, the edges of its claim, and the level that a factor within a radius needs.

const MOST_CELLS = 64;
const LONGEST_SIDE = 200_000; // metres
const ROUNDED_DOWN = 1 - 2 ** -44; // of lengths in doubles: they stay below those of the claim
const FARTHEST = 60; // nats across the box: farther cells share no report that is likelier than 1 in 10^26
const STENCIL = 8;

/** The domain of a box in degrees { west, south, east, north } with at most `most` nearly square cells.
 * Throws RangeError for a box or a number that cannot be used. */
function boxDomain({ west, south, east, north }, most) {
  if (![west, south, east, north, most].every(Number.isFinite)) throw new RangeError("a number is missing");
  if (!(west < east && south < north && west >= -180 && east <= 180 && south >= -89 && north <= 89))
    throw new RangeError("west must be less than east, and south less than north");
  if (!(Number.isInteger(most) && most >= 2 && most <= MOST_CELLS)) throw new RangeError(`use 2 to ${MOST_CELLS} cells`);
  // A box more than half around the Earth is wider than the parallel of its sides.
  if (east - west > 180) throw new RangeError("a side of the box is longer than 200 km");
  const centre = { longitude: tidy((west + east) / 2), latitude: tidy((south + north) / 2) };
  const border = [south, centre.latitude, north].flatMap((latitude) => [west, centre.longitude, east].map((longitude) => device.forward(centre, longitude, latitude)));
  const [width, height] = [0, 1].map((k) => 2 * Math.max(...border.map((at) => Math.abs(at[k]))));
  if (!(Math.max(width, height) <= LONGEST_SIDE)) throw new RangeError("a side of the box is longer than 200 km");
  if (!(Math.min(width, height) >= 1)) throw new RangeError("a side of the box is shorter than 1 m");
  // Square cells that fill the shorter side; the longer side has as many as fit.
  const side = (shape) => Math.max(width / shape[0], height / shape[1]);
  let shape = [1, 1];
  for (let columns = 1; columns <= most; columns++) {
    const rows = Math.min(Math.floor(most / columns), Math.max(1, Math.ceil((columns * height) / width)));
    if (side([columns, rows]) < side(shape) * (1 - 1e-9)) shape = [columns, rows];
  }
  // In whole decimetres: squares cover the box, and are centred on it.
  const cell = Math.ceil(10 * side(shape)) / 10;
  return { cell: [cell, cell], kind: "grid", origin: shape.map((count) => (-count * cell) / 2), plane: planeOf(centre), shape, unit: "m" };
}

function tidy(degrees) {
  return Number(degrees.toFixed(6));
}

function planeOf({ longitude, latitude }) {
  return { projection: "azimuthal equidistant", latitude, longitude, ellipsoid: "WGS84" };
}

/** Centres of the cells, x first: one array for each axis. */
function centresOf({ shape, cell, origin }) {
  const [rows, count] = [shape[1], shape[0] * shape[1]];
  const at = (k, index) => origin[k] + (index + 0.5) * cell[k];
  return [
    Float64Array.from({ length: count }, (_, u) => at(0, Math.floor(u / rows))),
    Float64Array.from({ length: count }, (_, u) => at(1, u % rows)),
  ];
}

/** The prior { prior, words } of the cells: uniform, or the share of points [longitude, latitude, weight] in each. */
function priorOf(domain, given) {
  const count = domain.shape[0] * domain.shape[1];
  if (!given) return { prior: new Float64Array(count).fill(1 / count), words: "The box is the one that was entered, and the prior is uniform." };
  const prior = new Float64Array(count);
  let inside = 0;
  for (const [longitude, latitude, weight] of given.points) {
    const at = device.forward(domain.plane, longitude, latitude).map((place, k) => Math.floor((place - domain.origin[k]) / domain.cell[k]));
    if (!at.every((i, k) => i >= 0 && i < domain.shape[k])) continue;
    prior[at[0] * domain.shape[1] + at[1]] += weight;
    inside += 1;
  }
  const total = prior.reduce((sum, weight) => sum + weight, 0);
  if (total === Infinity) throw new RangeError(`the weights of ${given.name} are too large`);
  if (!(total > 0)) throw new RangeError(`no point of ${given.name} with a weight above 0 lies in the box`);
  const words = `The box is the one that was entered. The prior is the share of ${given.name} in each cell: ${countWords(inside)} of its ${countWords(given.points.length)} points lie in the cells.`;
  return { prior: prior.map((weight) => weight / total), words };
}

/** Edges of a metric: all pairs without a cell between them (euclidean), or the eight neighbours (eikonal). */
function edgesOf(domain, kind, level) {
  const [x, y] = centresOf(domain);
  const edges = [];
  for (let u = 0; u < x.length; u++) {
    for (let v = u + 1; v < x.length; v++) {
      const [i, j] = [x[v] - x[u], y[v] - y[u]].map((away, k) => Math.abs(Math.round(away / domain.cell[k])));
      if (kind === "euclidean" ? commonDivisor(i, j) === 1 : Math.max(i, j) === 1)
        edges.push({ tail: u, head: v, nats: level * Math.hypot(x[v] - x[u], y[v] - y[u]) * ROUNDED_DOWN });
    }
  }
  return edges;
}

function commonDivisor(a, b) {
  return b === 0 ? a : commonDivisor(b, a % b);
}

/** The distance of the claim for a step of cells, in metres. */
function stepLength([i, j], [side], kind) {
  const [a, b] = [Math.abs(i), Math.abs(j)];
  return side * (kind === "euclidean" ? Math.hypot(a, b) : Math.max(a, b) + (Math.SQRT2 - 1) * Math.min(a, b));
}

/** The largest level, in nats per metre, for a factor between people `within` metres: the farthest cells that hold two
 * such people are ln(factor) apart. */
function levelOf(domain, kind, factor, within) {
  if (!(factor > 1 && factor <= 1000)) throw new RangeError("the factor must be above 1 and at most 1,000");
  if (!(within >= 0 && within <= LONGEST_SIDE)) throw new RangeError("the radius must be at least 0 and at most 200 km");
  const page = { contents: { attrs: { domain: JSON.stringify(domain), metric: JSON.stringify(metricOf(kind, 1)) }, arrays: { secret_x: 0, secret_y: 0 }, beside: {} } };
  page.made = Object.fromEntries(centresOf(domain).map((axis, k) => [`secret_${"xy"[k]}`, axis]));
  const steps = new ProtectedDomain(page, null, null).steps(within);
  const farthest = Math.max(...steps.map((step) => stepLength(step, domain.cell, kind)));
  if (!(farthest > 0)) throw new RangeError("the box has one cell: use more cells");
  const level = (Math.log(factor) / farthest) * (1 - 1e-12);
  const across = level * stepLength(domain.shape.map((count) => count - 1), domain.cell, kind);
  if (!(across <= FARTHEST)) throw new RangeError("the box is too wide for this factor and radius: use a smaller box, or a larger radius");
  return level;
}

/** A metric as the data of a claim. */
function metricOf(kind, level) {
  if (kind === "euclidean") return { epsilon: level, kind, multiplier: 1, unit: "m" };
  return { kind: "eikonal", level: { eps: [[level]], unit: "m", x: [0], y: [0] }, multiplier: 1, stencil: STENCIL };
}
