// Read report.bin. A file is data from anybody: sizes are checked before anything is allocated, and nothing is returned
// of a file that is not exactly what it says.
//
//   8 bytes "mdclient" | version 1, uint32 | bytes of the header, uint32 | header, JSON | body, zlib | SHA-256 of all
//   before it, 32 bytes
//
// The body is the arrays of `layout` in turn, little-endian, each as planes: the lowest byte of every number, then the
// next, and so on, which is what zlib makes small. Arrays marked as differences are added up, modulo their width.
// A table holds mass of report y for cell u at y n + u; probability = mass / 2^62.

import { ReportError } from "./errors.mjs";
import { sha256 } from "./sha256.mjs";

const MAGIC = "mdclient";
const VERSION = 1;
const MOST_HEADER = 1 << 20;
const MOST_BODY = 2 ** 29;
const MOST_PLACES = 1 << 17; // of factors
const MOST_COLUMNS = 1 << 19; // so that sums stay below 2^105
const MOST_GENERATORS = 1 << 24;
const ROW_HIGH = 2 ** 30; // 2^62 in units of 2^32
const HEX = /^[0-9a-f]{64}$/;

/** {header, arrays} of the bytes of a table. Rejects with ReportError "table" for anything but what was written. */
export async function readTable(bytes) {
  const { told, rest } = opened(bytes, MAGIC);
  const header = checkedHeader(told);
  const arrays = split(await inflate(rest, layout(header)), layout(header));
  if (header.kind === "table") checkMasses(header, arrays);
  else checkFactors(header, arrays);
  checkPlaces(header, arrays);
  return { header, arrays };
}

/** {told, rest}: the header, an object, of a file that begins with the 8 letters `magic`, and the bytes after it. */
export function opened(bytes, magic) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = bytes.length - 32;
  need(end >= 16 && latin(bytes.subarray(0, 8)) === magic, "is no table for this client");
  need(view.getUint32(8, true) === VERSION, "is of another version than this client: write both again");
  const start = 16 + view.getUint32(12, true);
  need(start <= Math.min(end, 16 + MOST_HEADER), "has a header longer than it may be");
  const digest = Array.from(bytes.subarray(end), (byte) => byte.toString(16).padStart(2, "0")).join("");
  need(sha256(bytes.subarray(0, end)) === digest, "was altered, or cut short");
  let told;
  try {
    told = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(16, start)));
  } catch {
    need(false, "has a header that is no JSON");
  }
  need(isObject(told), "has no header");
  return { told, rest: bytes.subarray(start, end) };
}

/** [name, bytes a number, how many, whether differences] of the arrays that a header promises. */
function layout(header) {
  const { cells, reports, places, columns, generators, edges, domain } = header;
  const rows = domain.kind === "grid" ? [["index", 4, cells, true]] : [["points", 8, cells * domain.axes, false]];
  if (header.report_axes) rows.push(["report_points", 8, reports * header.report_axes, false]);
  if (header.position_claim !== undefined) rows.push(["around", 4, 9 * cells, false]);
  if (header.kind === "table") {
    return [...rows, ["low", 4, cells * reports, false], ["high", 4, cells * reports, false]];
  }
  const generated = [
    ["first", 4, columns, true],
    ["from", 4, generators, true],
    ["offset", 2, generators, false],
  ];
  return [
    ...rows,
    ["weight", 4, columns ?? places, false],
    ["target", 4, columns ?? places, true],
    ["inner", 4, cells, true],
    ["tail", 4, edges, true],
    ["ahead", 4, edges, true],
    ["units", 2, edges, true],
    ...(columns === undefined ? [] : generated),
  ];
}

function checkedHeader(header) {
  need(isObject(header.domain), "has no header");
  for (const name of ["claim", "cost", "unit", "report_unit"]) need(typeof header[name] === "string", `lacks ${name}`);
  for (const name of ["mechanism", "ledger"]) need(HEX.test(header[name]), `lacks ${name}`);
  need(Number.isFinite(header.charge) && header.charge >= 0, "has no charge");
  const { kind, domain } = header;
  need(kind === "table" || kind === "factors", "holds neither a table nor factors");
  counted(header, "cells", 2, MOST_BODY / 4);
  counted(header, "reports", 1, MOST_BODY / 4);
  counted(domain, "axes", 1, 3);
  if (header.report_axes !== undefined) counted(header, "report_axes", 1, 3);
  if (kind === "factors") {
    counted(header, "places", header.cells, MOST_PLACES);
    counted(header, "edges", 0, 2 ** 26);
    if (header.columns !== undefined) {
      counted(header, "columns", 1, MOST_COLUMNS);
      counted(header, "generators", header.columns, MOST_GENERATORS);
    }
    counted(header, "cap", 1, 65535);
    counted(header, "shift", 0, 61); // so that 2^shift is at most the ratio, and E falls
    need(header.reports === header.cells && !header.report_axes, "has factors for reports apart from its cells");
    need(/^[0-9]{19}$/.test(header.ratio) && BigInt(header.ratio) >> 61n === 1n, "has no ratio");
  }
  checkDomain(domain);
  if (header.position_claim !== undefined) {
    need(typeof header.position_claim === "string", "has a claim about positions that is no text");
    need(kind === "table" && domain.kind === "grid" && domain.axes === 2, "has positions on other places than a grid");
  }
  const { digits } = header;
  need(Array.isArray(digits) && digits.length === (header.report_axes ?? domain.axes), "has no digits");
  need(digits.every((count) => count === null || (Number.isInteger(count) && Math.abs(count) <= 100)), "has no digits");
  return header;
}

/** Refuses places of which a position cannot be located. */
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
  counted(plane, "decimals", 0, 30);
}

/** The bytes of arrays [name, width, count, differences]: as many as these have, or refused. */
export async function inflate(bytes, rows) {
  const size = rows.reduce((sum, [, width, count]) => sum + width * count, 0);
  need(size <= MOST_BODY, "is too large");
  const whole = new Uint8Array(size);
  let filled = 0;
  try {
    const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      if (filled + part.value.length > size) {
        await reader.cancel();
        filled = Infinity;
        break;
      }
      whole.set(part.value, filled);
      filled += part.value.length;
    }
  } catch (error) {
    if (!(error instanceof TypeError) && error?.code === undefined) throw error;
    filled = -1;
  }
  need(filled === size, "has a body of another size than its header says");
  return whole;
}

/** The arrays of inflated bytes, by name. */
export function split(body, rows) {
  const arrays = {};
  let start = 0;
  for (const [name, width, count, differences] of rows) {
    const planes = Array.from({ length: width }, (_, k) => body.subarray(start + k * count, start + (k + 1) * count));
    arrays[name] = width === 8 ? doubles(planes, count) : wholes(planes, count, differences);
    start += width * count;
  }
  return arrays;
}

function wholes(planes, count, differences) {
  const [first, second, third, fourth] = planes;
  const values = planes.length === 2 ? new Uint16Array(count) : new Uint32Array(count);
  if (planes.length === 2) for (let i = 0; i < count; i++) values[i] = first[i] | (second[i] << 8);
  else for (let i = 0; i < count; i++) values[i] = first[i] | (second[i] << 8) | (third[i] << 16) | (fourth[i] << 24);
  if (differences) for (let i = 1; i < count; i++) values[i] += values[i - 1];
  return values;
}

function doubles(planes, count) {
  const bytes = new Uint8Array(8 * count);
  planes.forEach((plane, k) => plane.forEach((byte, i) => (bytes[8 * i + k] = byte)));
  const view = new DataView(bytes.buffer);
  return Float64Array.from({ length: count }, (_, i) => view.getFloat64(8 * i, true));
}

/** Every mass is at least 1, and every row sums to exactly 2^62. */
function checkMasses({ cells, reports }, { low, high }) {
  const [lows, highs] = [new Float64Array(cells), new Float64Array(cells)]; // exact: below 2^53
  let none = false;
  for (let y = 0, at = 0; y < reports; y++) {
    for (let u = 0; u < cells; u++, at++) {
      lows[u] += low[at];
      highs[u] += high[at];
      none ||= (low[at] | high[at]) === 0;
    }
  }
  need(!none, "has a mass below 1");
  const wrong = lows.findIndex((sum, u) => sum % 2 ** 32 !== 0 || highs[u] + sum / 2 ** 32 !== ROW_HIGH);
  need(wrong < 0, `has a row, that of cell ${wrong}, which does not sum to 2^62`);
}

function checkFactors({ cells, places, generators, cap }, arrays) {
  const { weight, target, inner, tail, ahead, units, first, from, offset } = arrays;
  need(weight.every((value) => value >= 1 && value <= 2 ** 28), "has a weight out of range");
  need(target.every((cell) => cell < cells), "has a column that reports no cell");
  need(inner.every((place) => place < places) && new Set(inner).size === cells, "has cells without a place");
  need(tail.every((place, e) => place < places && place + ahead[e] < places), "has an edge that ends nowhere");
  const longest = units.reduce((most, value) => Math.max(most, value), 0);
  need(longest <= cap && cap + longest <= 65535, "has an edge that is too long");
  if (!first) return;
  const rises = first.every((at, k) => (k === 0 ? at === 0 : at > first[k - 1]) && at < generators);
  need(rises, "has a column without generators");
  need(from.every((place) => place < places), "has a generator that is no place");
  need(offset.every((value) => value <= cap), "has an offset above the cap");
}

function checkPlaces({ cells, domain }, { index, points, around, report_points: reports }) {
  const size = index && domain.shape.reduce((a, b) => a * b);
  need(!index || index.every((at, i) => at < size && (i === 0 || at > index[i - 1])), "has cells off its lattice");
  need(!around || around.every((row) => row < cells), "has a neighbour that is no cell");
  need([points, reports].every((list) => !list || list.every(Number.isFinite)), "has a place without coordinates");
}

export function counted(holder, name, least, most) {
  need(Number.isInteger(holder[name]) && holder[name] >= least && holder[name] <= most, `has no ${name}`);
}

export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function latin(bytes) {
  return String.fromCharCode(...bytes);
}

/** Refuses a file, saying why, unless something holds. */
export function need(holds, message) {
  if (!holds) throw new ReportError("table", `the table ${message}`);
}
