// Read a device map: five bytes a place, in a container (frame.mjs). devicemap/files.py of the package lists its numbers,
// and device_map.py defines them.

import { ReportError, headerOf, isObject, readFrame } from "./frame.mjs";
import { checkDomain } from "./table.mjs";

const MOST_AREA = 2 ** 24; // places
const REGION_NAME = /^[0-9a-f]{64}$/;
const REGION_KEYS = [
  ...["kind", "cells", "margin", "cell", "origin", "unit", "stencil", "level_unit", "length_scales", "grain"],
  ...["step", "cap", "ratio", "shift", "bound", "claim", "cost", "claim_digest", "source_sha256", "about"],
]; // and no others but a plane
const REGION_WHOLE = [
  ["grain", 1, 2 ** 54], // 2^54 - 1 is read as 2^54
  ["step", 1, 2 ** 54],
  ["cap", 1, 65534],
  ["shift", 0, 61], // so that 2^shift is at most the ratio, and E falls
];

/** True if bytes have the header of a device map. */
export function isRegion(bytes) {
  return headerOf(bytes).kind === "devicemap";
}

/** Read {header, arrays} of a device map, as `readTable` returns them. The arrays are level, potential and weight of each
 * place. Rejects with ReportError "table" unless the bytes are as they were written. */
export async function readRegion(bytes) {
  let header;
  const { arrays } = await readFrame(bytes, (fields) => {
    header = checkDeviceMap(fields);
    return Object.entries({ level: "u2", potential: "i2", weight: "u1" }).map(([name, type]) => [name, type, header.shape, 1]);
  });
  const [none, outside] = [arrays.level.indexOf(0), inMargin(arrays.potential, header)];
  requireField(none < 0, `level of place ${none}`, "positive", 0);
  requireField(outside < 0, `potential of place ${outside}, in the margin,`, "0", arrays.potential[outside]);
  return { header, arrays };
}

/** Check the header of a device map, and add the fields that headers of tables have. */
function checkDeviceMap(fields) {
  const spare = Object.keys(fields).find((name) => !REGION_KEYS.includes(name) && name !== "plane");
  requireField(spare === undefined, "header", "without other names", spare);
  for (const name of REGION_KEYS) requireField(Object.hasOwn(fields, name), name, "there", undefined);
  const { kind, cells, margin, cell, origin, stencil, length_scales: scales, ratio, bound, about, plane } = fields;
  requireField(kind === "devicemap", "kind", "devicemap", kind);
  for (const name of ["claim", "cost", "unit"]) requireField(typeof fields[name] === "string", name, "text", fields[name]);
  for (const name of ["claim_digest", "source_sha256"]) requireField(REGION_NAME.test(fields[name]), name, "64 digits", fields[name]);
  requireField(isObject(about) && Object.values(about).every((text) => typeof text === "string"), "about", "texts", about);
  const whole = (value, least, most) => Number.isInteger(value) && value >= least && value <= most;
  const pair = (list, fits) => Array.isArray(list) && list.length === 2 && list.every(fits);
  requireField(pair(cells, (count) => whole(count, 2, MOST_AREA)), "cells", "two integers from 2", cells);
  requireField(whole(margin, 0, MOST_AREA), "margin", "an integer from 0", margin);
  const shape = cells.map((count) => count + 2 * margin);
  requireField(shape[0] * shape[1] <= MOST_AREA, "cells", "at most 2^24 with the margin", shape);
  requireField(pair(cell, (side) => Number.isFinite(side) && side > 0), "cell", "two sides", cell);
  requireField(pair(origin, Number.isFinite), "origin", "two numbers", origin);
  const unit = fields.level_unit;
  requireField(Number.isFinite(unit) && unit > 0, "level_unit", "a number above 0", unit);
  requireField(stencil === 8 || stencil === 16, "stencil", "8 or 16", stencil);
  const kinds = stencil === 8 ? 3 : 5;
  const sized = Array.isArray(scales) && scales.length === kinds;
  requireField(sized && scales.every((value) => whole(value, 1, 2 ** 32 - 1)), "length_scales", `${kinds} below 2^32`, scales);
  for (const [name, least, most] of REGION_WHOLE) {
    requireField(whole(fields[name], least, most), name, `an integer from ${least} to ${most}`, fields[name]);
  }
  const digits = /^[0-9]{19}$/.test(ratio) && BigInt(ratio) >> 61n === 1n;
  requireField(digits, "ratio", "digits of a number from 2^61 to 2^62", ratio);
  const bounded = pair(bound, Number.isInteger) && whole(bound[0], 2 ** 30, 2 ** 31 - 1) && whole(bound[1], 0, 64);
  requireField(bounded, "bound", "from 2^30 below 2^31, and from 0 to 64", bound);
  const domain = { kind: "grid", axes: 2, shape: cells, cell, origin, ...(plane === undefined ? {} : { plane }) };
  checkDomain(domain);
  const count = cells[0] * cells[1];
  const also = { shape, domain, cells: count, reports: count, report_unit: fields.unit, digits: [null, null], charge: 1 };
  return { ...fields, ...also, ledger: fields.claim_digest, mechanism: fields.source_sha256 }; // names that tables have
}

/** Refuse a map with a message unless a condition on a field holds. */
function requireField(holds, field, must, value) {
  if (holds) return;
  const shown = String(JSON.stringify(value)).slice(0, 80);
  throw new ReportError("table", `the map's ${field} must be ${must}, not ${shown}: use an unaltered map`);
}

/** The first place of the margin whose potential is not 0, or -1. */
function inMargin(potential, { shape: [rows, columns], margin }) {
  return potential.findIndex((value, place) => {
    if (value === 0) return false;
    const [row, column] = [Math.floor(place / columns), place % columns];
    return row < margin || row >= rows - margin || column < margin || column >= columns - margin;
  });
}
