// Read the compact map of a region: five bytes a place. It is data from anybody, as table.mjs has it.
//
//   8 bytes "mdregion" | version 1, uint32 | bytes of the header, uint32 | header, JSON | body, zlib | SHA-256 of all
//   before it, 32 bytes
//
// The body is level (uint16), potential (int16) and weight (uint8) of R x C places, differences along both axes, as planes:
// mechanism/compact/file.py of the package says which numbers, formulas.py what they mean.

import { checkDomain, counted, inflate, isObject, need, opened } from "./table.mjs";

const REGION_MAGIC = "mdregion";
const MOST_AREA = 2 ** 24; // places
const REGION_NAME = /^[0-9a-f]{64}$/;
const REGION_KEYS = [
  ...["kind", "cells", "frame", "cell", "origin", "unit", "stencil", "level_unit", "advance", "grain", "step", "cap"],
  ...["ratio", "shift", "bound", "claim", "cost", "ledger", "mechanism", "about"],
];

/** Whether bytes begin as those of a compact map do. */
export function isRegion(bytes) {
  return Array.from(REGION_MAGIC).every((letter, k) => bytes[k] === letter.charCodeAt(0));
}

/** {header, arrays} as `readTable` gives them, of the bytes of a compact map: arrays level, potential, weight, place by
 * place. Rejects with ReportError "table" for anything but what was written. */
export async function readRegion(bytes) {
  const { told, rest } = opened(bytes, REGION_MAGIC);
  const header = checkedRegion(told);
  const [rows, columns] = header.shape;
  const body = await inflate(rest, [["map", 5, rows * columns, false]]);
  const arrays = unfolded(body, rows, columns);
  need(!arrays.level.includes(0), "has a level below 1");
  need(isBare(arrays.potential, header), "has potentials in its frame");
  return { header, arrays };
}

/** The header of a table, of that of a map. */
function checkedRegion(told) {
  const spare = Object.keys(told).filter((name) => !REGION_KEYS.includes(name) && name !== "plane");
  need(spare.length === 0, `has a header that also says ${spare[0]}`);
  const absent = REGION_KEYS.find((name) => !Object.hasOwn(told, name));
  need(absent === undefined, `lacks ${absent}`);
  need(told.kind === "compact", "holds no map");
  for (const name of ["claim", "cost", "unit"]) need(typeof told[name] === "string", `lacks ${name}`);
  for (const name of ["ledger", "mechanism"]) need(REGION_NAME.test(told[name]), `lacks ${name}`);
  need(isObject(told.about) && Object.values(told.about).every((text) => typeof text === "string"), "lacks about");
  const whole = (value, least, most) => Number.isInteger(value) && value >= least && value <= most;
  const pair = (list, fits) => Array.isArray(list) && list.length === 2 && list.every(fits);
  need(pair(told.cells, (count) => whole(count, 2, MOST_AREA)), "has no cells");
  counted(told, "frame", 0, MOST_AREA);
  const shape = told.cells.map((count) => count + 2 * told.frame);
  need(shape[0] * shape[1] <= MOST_AREA, "has more than 2^24 places");
  need(pair(told.cell, (side) => Number.isFinite(side) && side > 0), "has cells without a side");
  need(pair(told.origin, Number.isFinite), "has no origin");
  need(Number.isFinite(told.level_unit) && told.level_unit > 0, "has no level_unit");
  need(told.stencil === 8 || told.stencil === 16, "has no stencil");
  const advances = told.stencil === 8 ? 3 : 5;
  const advance = Array.isArray(told.advance) && told.advance.length === advances;
  need(advance && told.advance.every((value) => whole(value, 1, 2 ** 32 - 1)), "has no advance");
  for (const name of ["grain", "step"]) counted(told, name, 1, 2 ** 54); // 2^54 - 1 is read as 2^54
  counted(told, "cap", 1, 65534);
  counted(told, "shift", 0, 61); // so that 2^shift is at most the ratio, and E falls
  need(/^[0-9]{19}$/.test(told.ratio) && BigInt(told.ratio) >> 61n === 1n, "has no ratio");
  const { bound } = told;
  need(pair(bound, Number.isInteger) && whole(bound[0], 2 ** 30, 2 ** 31 - 1) && whole(bound[1], 0, 64), "has no bound");
  const { cells, cell, origin, plane } = told;
  const domain = { kind: "grid", axes: 2, shape: cells, cell, origin, ...(plane === undefined ? {} : { plane }) };
  checkDomain(domain);
  const count = cells[0] * cells[1];
  const also = { shape, domain, cells: count, reports: count, report_unit: told.unit, digits: [null, null], charge: 1 };
  return { ...told, ...also };
}

/** The arrays of a body: sums along both axes, modulo their width. */
function unfolded(body, rows, columns) {
  const places = rows * columns;
  const plane = (number) => body.subarray(number * places, (number + 1) * places);
  const [level, unsigned, weight] = [new Uint16Array(places), new Uint16Array(places), new Uint8Array(places)];
  for (const [values, low, high] of [
    [level, plane(0), plane(1)],
    [unsigned, plane(2), plane(3)],
    [weight, plane(4), null],
  ]) {
    for (let row = 0, at = 0; row < rows; row++) {
      let sum = 0; // of the row's own differences
      for (let column = 0; column < columns; column++, at++) {
        sum = (sum + low[at] + (high === null ? 0 : high[at] << 8)) & 0xffff;
        values[at] = sum + (row > 0 ? values[at - columns] : 0);
      }
    }
  }
  return { level, potential: new Int16Array(unsigned.buffer), weight };
}

/** Whether potentials are 0 in the frame. */
function isBare(potential, { shape: [rows, columns], frame }) {
  for (let row = 0; row < rows; row++) {
    const edge = row < frame || row >= rows - frame;
    for (let column = 0; column < columns; column++) {
      if ((edge || column < frame || column >= columns - frame) && potential[row * columns + column] !== 0) return false;
    }
  }
  return true;
}
