// Read report.bin: a table or factors, in a container (frame.mjs). A table holds the low and high 32 bits of the mass of
// report y for cell u at y n + u; probability = mass / 2^62. With `bits` it holds units of 2^(62 - bits) instead, whose
// rows are in an order that packs small.

import { isObject, need, readFrame } from "./frame.mjs";

const MOST_NUMBERS = 2 ** 27; // of an array
const MOST_PLACES = 1 << 17; // of factors
const MOST_COLUMNS = 1 << 19; // so that sums stay below 2^105
const MOST_GENERATORS = 1 << 24;
const ROW_HIGH = 2 ** 30; // 2^62 in units of 2^32
const HEX = /^[0-9a-f]{64}$/;

/** Read {header, arrays} of a table. Rejects with ReportError "table" unless the bytes are as they were written. */
export async function readTable(bytes) {
  const { header, arrays } = await readFrame(bytes, (header) => layout(checkHeader(header)));
  const radii = [...(arrays.accuracy ?? []), ...(arrays.accuracy_of_cells ?? [])];
  need(radii.every((radius) => Number.isFinite(radius) && radius >= 0), "has no radii of accuracy");
  if (header.bits !== undefined) unpackUnits(header, arrays);
  if (header.kind === "table") checkMasses(header, arrays);
  else checkFactors(header, arrays);
  checkPlaces(header, arrays);
  return { header, arrays };
}

/** [name, type, shape, differences] of the arrays that a header promises. */
function layout(header) {
  const { cells, reports, places, columns, generators, edges, domain } = header;
  const rows = domain.kind === "grid" ? [["index", "u4", [cells], 1]] : [["points", "f8", [cells, domain.axes], 0]];
  if (header.report_axes) rows.push(["report_points", "f8", [reports, header.report_axes], 0]);
  if (header.accuracy !== undefined) rows.push(["accuracy", "f8", [reports], 0]);
  if (header.position_claim !== undefined) rows.push(["around", "u4", [cells, 9], 0]);
  if (header.position_claim !== undefined && header.accuracy !== undefined) {
    rows.push(["accuracy_of_cells", "f8", [reports], 0]);
  }
  if (header.bits !== undefined) {
    return [...rows, ["order", "u4", [reports], 0], ["coarse", "u4", [reports, cells], 0]];
  }
  if (header.kind === "table") {
    return [...rows, ["low", "u4", [reports, cells], 0], ["high", "u4", [reports, cells], 0]];
  }
  const generated = [
    ["first", "u4", [columns], 1],
    ["from", "u4", [generators], 1],
    ["offset", "u2", [generators], 0],
  ];
  return [
    ...rows,
    ["weight", "u4", [columns ?? places], 0],
    ["target", "u4", [columns ?? places], 1],
    ["inner", "u4", [cells], 1],
    ["tail", "u4", [edges], 1],
    ["ahead", "u4", [edges], 1],
    ["units", "u2", [edges], 1],
    ...(columns === undefined ? [] : generated),
  ];
}

function checkHeader(header) {
  need(isObject(header.domain), "has no header");
  for (const name of ["claim", "cost", "unit", "report_unit"]) need(typeof header[name] === "string", `lacks ${name}`);
  for (const name of ["mechanism", "ledger"]) need(HEX.test(header[name]), `lacks ${name}`);
  need(Number.isFinite(header.charge) && header.charge >= 0, "has no charge");
  const { kind, domain } = header;
  need(kind === "table" || kind === "factors", "holds neither a table nor factors");
  requireCount(header, "cells", 2, MOST_NUMBERS);
  requireCount(header, "reports", 1, MOST_NUMBERS);
  requireCount(domain, "axes", 1, 3);
  if (header.bits !== undefined) {
    need(kind === "table" && (header.bits === 24 || header.bits === 32), "has masses of other bits");
  }
  if (header.report_axes !== undefined) requireCount(header, "report_axes", 1, 3);
  if (kind === "factors") {
    requireCount(header, "places", header.cells, MOST_PLACES);
    requireCount(header, "edges", 0, 2 ** 26);
    if (header.columns !== undefined) {
      requireCount(header, "columns", 1, MOST_COLUMNS);
      requireCount(header, "generators", header.columns, MOST_GENERATORS);
    }
    requireCount(header, "cap", 1, 65535);
    requireCount(header, "shift", 0, 61); // so that 2^shift is at most the ratio, and E falls
    need(header.reports === header.cells && !header.report_axes, "has factors for reports apart from its cells");
    need(/^[0-9]{19}$/.test(header.ratio) && BigInt(header.ratio) >> 61n === 1n, "has no ratio");
  }
  checkDomain(domain);
  if (header.position_claim !== undefined) {
    need(typeof header.position_claim === "string", "has a claim about positions that is not text");
    need(kind === "table" && domain.kind === "grid" && domain.axes === 2, "has positions on other places than a grid");
  }
  need(header.accuracy === undefined || header.accuracy === 0.95, "has an accuracy of another share");
  const { digits } = header;
  need(Array.isArray(digits) && digits.length === (header.report_axes ?? domain.axes), "has no digits");
  need(digits.every((count) => count === null || (Number.isInteger(count) && Math.abs(count) <= 100)), "has no digits");
  return header;
}

/** Refuse a domain in which a position cannot be located. */
export function checkDomain(domain) {
  const { axes, plane } = domain;
  need(["grid", "points", "nodes"].includes(domain.kind), "has places of an unknown kind");
  const finite = (list) => Array.isArray(list) && list.length === axes && list.every(Number.isFinite);
  if (domain.kind === "grid") {
    need(finite(domain.shape) && finite(domain.cell) && finite(domain.origin), "has a lattice of other axes");
    need(domain.shape.every((count) => Number.isInteger(count) && count > 0), "has an empty lattice");
    need(domain.shape.reduce((a, b) => a * b) < 2 ** 32, "has too large a lattice");
    need(domain.cell.every((side) => side > 0), "has cells without a side");
  }
  if (plane === undefined) return;
  need(axes === 2 && domain.kind !== "nodes" && plane !== null, "has a plane for other places");
  const { longitude, latitude, metres, margin = 0 } = plane;
  need([longitude, latitude, metres, margin].every(Number.isFinite) && metres > 0, "has a plane without numbers");
  need(Math.abs(longitude) <= 180 && Math.abs(latitude) <= 85, "has a plane that lies nowhere");
  requireCount(plane, "decimals", 0, 30);
}

/** Add the halves of the masses, in the order of reports. Refuses an order that names a report twice. */
function unpackUnits({ cells, reports, bits }, arrays) {
  const { order, coarse: units } = arrays;
  const seen = new Uint8Array(reports);
  for (const report of order) {
    need(report < reports && seen[report] === 0, "has rows that do not name every report once");
    seen[report] = 1;
  }
  const [low, high] = [new Uint32Array(units.length), new Uint32Array(units.length)];
  const shift = 62 - bits; // 38 or 30
  for (let row = 0, from = 0; row < reports; row++) {
    for (let u = 0, to = order[row] * cells; u < cells; u++, from++, to++) {
      need(bits === 32 || units[from] <= 2 ** bits, "has a mass above its row");
      low[to] = shift >= 32 ? 0 : units[from] << shift;
      high[to] = shift >= 32 ? units[from] << (shift - 32) : units[from] >>> (32 - shift);
    }
  }
  Object.assign(arrays, { low, high });
}

/** Refuse a table unless every mass is at least 1 and every row sums to exactly 2^62. */
function checkMasses({ cells, reports }, { low, high }) {
  const [lows, highs] = [new Float64Array(cells), new Float64Array(cells)];
  let none = false;
  for (let y = 0, at = 0; y < reports; y++) {
    for (let u = 0; u < cells; u++, at++) {
      // Carried at once: sums of low halves stay below 2^33 however many reports there are, hence exact.
      lows[u] += low[at];
      highs[u] += high[at];
      if (lows[u] >= 2 ** 32) {
        lows[u] -= 2 ** 32;
        highs[u] += 1;
      }
      none ||= (low[at] | high[at]) === 0;
    }
  }
  need(!none, "has a mass below 1");
  const wrong = lows.findIndex((sum, u) => sum !== 0 || highs[u] !== ROW_HIGH);
  need(wrong < 0, `has a row, that of cell ${wrong}, which does not sum to 2^62`);
}

/** Refuse factors whose numbers are out of range; the numbers of a page are signed. */
export function checkFactors({ cells, places, generators, cap }, arrays) {
  const { weight, target, inner, tail, ahead, units, first, from, offset } = arrays;
  const within = (list, count) => list.every((number) => number >= 0 && number < count);
  need(weight.every((value) => value >= 1 && value <= 2 ** 28), "has a weight out of range");
  need(within(target, cells), "has a column that reports no cell");
  need(within(inner, places) && new Set(inner).size === cells, "has cells without a place");
  const head = tail.map((place, e) => place + ahead[e]);
  need(within(tail, places) && within(head, places), "has an edge that ends nowhere");
  const longest = units.reduce((most, value) => Math.max(most, value), 0);
  // Sums of a distance and an edge must fit into 16 bits.
  need(longest <= cap && cap + longest <= 65535, "has an edge that is too long");
  if (!first) return;
  const rises = first.every((at, k) => (k === 0 ? at === 0 : at > first[k - 1]) && at < generators);
  need(rises, "has a column without generators");
  need(within(from, places), "has a generator that is not a place");
  need(offset.every((value) => value <= cap), "has an offset above the cap");
}

/** Refuse cells off the lattice, neighbours that are not cells, and coordinates that are not finite. */
function checkPlaces({ cells, domain }, { index, points, around, report_points: reports }) {
  const size = index && domain.shape.reduce((a, b) => a * b);
  need(!index || index.every((at, i) => at < size && (i === 0 || at > index[i - 1])), "has cells off its lattice");
  need(!around || around.every((row) => row < cells), "has a neighbour that is not a cell");
  need([points, reports].every((list) => !list || list.every(Number.isFinite)), "has a place without coordinates");
}

/** Refuse a file unless a field is an integer in a range. */
export function requireCount(holder, name, least, most) {
  need(Number.isInteger(holder[name]) && holder[name] >= least && holder[name] <= most, `has no ${name}`);
}
