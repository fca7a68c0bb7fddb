// A design from the numbers of a form: the table, its bound, and its contents as a page and as a file.

const LARGEST_GAP = 0.01; // of the loss, above its lower bound
const NEARLY_ALL = 1 - 1e-6; // of the prior: the loss of the rest is not above that of rounding
const LEAST_FACTOR = 1 + 1e-6; // below it repairs cost more than the factor allows
const LOSSES = {
  squared: (square) => square,
  distance: (square) => Math.sqrt(square),
};

/** Design a table for { box, cells, kind, factor, within, loss, places }, places = { name, points } or null: the prior is the share of
 * the points in each cell. A generator of { words, share }; returns a page as `openPage` gives it. Throws RangeError
 * with a sentence about the unusable number. */
function* designTable({ box, cells, kind, factor, within, loss, places: given = null }) {
  const domain = boxDomain(box, cells);
  const level = levelOf(domain, kind, factor, within);
  const [edges, [x, y]] = [edgesOf(domain, kind, level), centresOf(domain)];
  const { prior, words } = priorOf(domain, given);
  const costs = Array.from(x, (_, r) => Float64Array.from(prior, (p, u) => p * LOSSES[loss]((x[u] - x[r]) ** 2 + (y[u] - y[r]) ** 2)));
  const solved = yield* part(optimalColumns(costs, edges), "searching for the best table", 0, 0.8);
  yield { words: "rounding the table to integers", share: 0.8 };
  const mass = repairedMasses(solved.x, edges);
  yield { words: "proving a lower bound", share: 0.9 };
  const tree = provingTrees(edges, solved);
  const page = pageOf({ domain, metric: metricOf(kind, level), edges, points: [x, y], prior, mass, loss, within, dual: solved.l, tree, words });
  const { expected_loss: expected, lower_bound: bound } = page.contents.attrs;
  if (!(expected * (1 - LARGEST_GAP) <= bound)) throw new RangeError(`no table within 1 % of the best was found: ${remedy(prior, factor)}`);
  return page;
}

/** The remedy where no table was found. */
function remedy(prior, factor) {
  if (Math.max(...prior) > NEARLY_ALL) return "nearly everybody is in one cell; use a smaller box, or more cells";
  if (factor < LEAST_FACTOR) return "use a larger factor";
  return "use fewer cells, a smaller factor, or a larger radius";
}

/** The page of a table, with the figures that its proof recomputes. */
function pageOf({ domain, metric, edges, points, prior, mass, loss, within, dual, tree, words }) {
  const [kept, arrays] = [laidOut({
    mass: [mass, "u8", "2^-62"],
    edge_tail: [BigInt64Array.from(edges, ({ tail }) => BigInt(tail)), "i8"],
    edge_head: [BigInt64Array.from(edges, ({ head }) => BigInt(head)), "i8"],
    edge_length: [Float64Array.from(edges, ({ nats }) => nats), "f8", "nats"],
    prior: [prior, "f8", "1"],
    dual: [dual, "f8", "m"],
    secret_x: [points[0], "f8", "m"],
    secret_y: [points[1], "f8", "m"],
    report_x: [points[0], "f8", "m"],
    report_y: [points[1], "f8", "m"],
    // Last: an array of wider numbers after it could begin at an odd place.
    tree: [tree, "u2"],
  }), {}];
  for (const [name, { shape, ...entry }] of Object.entries(kept.entries))
    arrays[name] = { ...entry, shape: ["mass", "tree"].includes(name) ? [prior.length, prior.length] : shape };
  const attrs = { schema: "mechdesign/mechanism/2", problem: "box", program: "optimal", parameters: "{}", loss, scale: 1 };
  Object.assign(attrs, { domain: JSON.stringify(domain), metric: JSON.stringify(metric), lower_bound: 0, expected_loss: 0, ratio: 0 });
  const page = {
    contents: {
      kind: "table",
      designed: words,
      attrs,
      arrays,
      beside: {},
      edges: edges.length,
      network: false,
      protection: { within, factor: 1, exact: true, path: null },
      position_loss: null,
      verification: { certified: true, violations: 0, ratio: 1, expected_loss: null, lower_bound_checked: true, row_ratio: null, worst: null, sha256: null },
      facts: { same_places: true },
    },
    bytes: kept.bytes,
    start: 0,
    made: {},
  };
  Object.assign(page.contents, figuresOf(page, mass));
  return page;
}

/** Contents with the figures of a page recomputed. */
function figuresOf(page, mass) {
  const { contents } = page;
  const outcome = { faults: [], proved: [], assumed: [], figures: {} };
  lastOf(proveTable(page, outcome));
  const { expected_loss: expected, ratio } = outcome.figures;
  const protection = { ...contents.protection, factor: lastOf(new ProtectedDomain(page, carriedRows(page), mass).factors(contents.protection)).factor };
  return {
    attrs: { ...contents.attrs, expected_loss: expected, ratio, lower_bound: Math.max(0, lastOf(lowerBoundOfTrees(page)) ?? 0) },
    verification: { ...contents.verification, ratio },
    position_loss: positionLoss(page, mass),
    protection,
  };
}

/** Arrays one after another: { bytes, entries }. */
function laidOut(arrays) {
  const bytes = new Uint8Array(Object.values(arrays).reduce((sum, [values]) => sum + values.byteLength, 0));
  const entries = {};
  let start = 0;
  for (const [name, [values, dtype, units]] of Object.entries(arrays)) {
    bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), start);
    entries[name] = { dtype, shape: [values.length], start, ...(units && { units }) };
    start += values.byteLength;
  }
  return { bytes, entries };
}

/** The table of a page as the JSON file that verify_table.py proves: lines, the last one the checksum of those before.
 * undefined in a browser that computes no checksum here. */
async function tableText(page) {
  const [mass, prior, { attrs }] = [array(page, "mass"), array(page, "prior"), page.contents];
  const n = prior.length;
  const [edges, places] = [claimEdges(page), axesOf(page, "secret")];
  const domain = JSON.parse(attrs.domain);
  const points = Array.from(places[0], (x, u) => [x, places[1][u], ...device.backward(domain.plane, x, places[1][u])]);
  const header = {
    format: "mechdesign/table/1",
    coordinates: "x, y, longitude, latitude",
    unit: domain.unit,
    claim: { metric: JSON.parse(attrs.metric), domain, positions: null, denominator: "2^62" },
    problem: attrs.problem,
    program: attrs.program,
    loss: attrs.loss,
    sha256: null,
    expected_loss: attrs.expected_loss,
    ratio: attrs.ratio,
    lower_bound: attrs.lower_bound,
    secrets: n,
    reports: n,
    edges: edges.length.length,
    edge: Array.from(edges.tail, (tail, e) => [tail, edges.head[e], hexOf(edges.length[e])]),
    prior: Array.from(prior, hexOf),
    dual: Array.from(array(page, "dual"), hexOf),
    tree: Array.from(prior, (_, y) => array(page, "tree").subarray(y * n, (y + 1) * n).join(" ")),
    secret_points: points,
    report_points: points,
    mass: Array.from(prior, (_, u) => mass.subarray(u * n, (u + 1) * n).join(" ")),
  };
  const lines = Object.entries(header).map(([name, value]) => `"${name}": ${JSON.stringify(value)},\n`);
  const text = `{${lines.join("")}`;
  const digest = await device.sha256(new TextEncoder().encode(text));
  return digest && `${text}"content_sha256": "${digest}"}\n`;
}

/** A double in the exact digits of Python's float.hex; subnormal ones are taken for 0. */
function hexOf(value) {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, value);
  const power = ((bits.getUint16(0) >> 4) & 0x7ff) - 1023;
  if (power === -1023) return "0x0.0p+0";
  const digits = (bits.getBigUint64(0) & ((1n << 52n) - 1n)).toString(16).padStart(13, "0");
  return `${value < 0 ? "-" : ""}0x1.${digits}p${power < 0 ? "-" : "+"}${Math.abs(power)}`;
}
