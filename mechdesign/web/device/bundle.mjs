// Read the file of a session design: its tables, its rule, its model of movement; a frame as frame.mjs has it.
//
// Its arrays are the tables, each a file of its own, the model, and losses (n, n): the loss of naming one place (across)
// when another (down) is true.

import { isObject, need, readFrame } from "./frame.mjs";
import { requireCount, readTable } from "./table.mjs";
import { fraction, windowOf } from "./windows.mjs";

const NAME = /^[0-9a-f]{64}$/;
const MOST_PLACES_OF_SESSIONS = 2 ** 11;
const MOST_TABLE = 2 ** 29; // bytes
const MOST_STATES = 2 ** 20;
const MOST_ENTRIES = 2 ** 24;
const TOLERANCE = 1e-6; // of sums of probabilities

/** Read {header, tables, arrays}. Rejects with ReportError "table" unless the bytes are as they were written. */
export async function readSession(bytes) {
  const { header, arrays } = await readFrame(bytes, layoutOfSession);
  const tables = [];
  for (const k of header.tables.keys()) tables.push(await readTable(arrays[`table ${k}`]));
  const same = ({ header: own }) => own.cells === header.cells && own.ledger === header.ledger;
  need(tables.every(same), "has tables over other places, or for other metrics");
  checkModel(header, arrays);
  return { header, tables, arrays };
}

/** [name, type, shape, differences] of the arrays that a header promises. */
function layoutOfSession(header) {
  checkSession(header);
  const { cells, movement, tables } = header;
  const square = (name, type = "f8") => [name, type, [cells, cells], 0];
  const files = tables.map((size, k) => [`table ${k}`, "u1", [size], 0]);
  return [...files, square("losses"), ...movementLayout(cells, movement)];
}

function movementLayout(cells, movement) {
  if (movement.kind === "home-away") {
    return [
      ["initial", "f8", [cells + cells * cells], 0],
      ["far", "f8", [cells, cells], 0],
      ["near", "f8", [cells, cells], 0],
    ];
  }
  const { states, entries } = movement;
  const all = entries.reduce((sum, count) => sum + count, 0);
  return [
    ["initial", "f8", [states], 0],
    ["place", "u4", [states], 1],
    ["start", "u4", [entries.length * (states + 1)], 1],
    ["state", "u4", [all], 1],
    ["probability", "f8", [all], 0],
  ];
}

function checkSession(header) {
  need(header.kind === "session", "is not a session design");
  for (const name of ["claim", "unit"]) need(typeof header[name] === "string", `lacks ${name}`);
  for (const name of ["design", "ledger"]) need(NAME.test(header[name]), `lacks ${name}`);
  requireCount(header, "cells", 1, MOST_PLACES_OF_SESSIONS);
  requireCount(header, "ticks", 1, MOST_STATES);
  const { tables, charges, worst, movement, rule } = header;
  const fits = (size) => Number.isInteger(size) && size > 0 && size <= MOST_TABLE;
  need(Array.isArray(tables) && tables.length > 0 && tables.every(fits), "has no tables");
  const isCharge = (text) => typeof text === "string" && fraction(text) !== null && fraction(text)[0] > 0n;
  need(Array.isArray(charges) && charges.length === tables.length && charges.every(isCharge), "has tables without charges");
  need(isObject(worst) && Object.hasOwn(worst, "1d"), "has no windows");
  need(Object.entries(worst).every(([word, sum]) => windowOf(word, header.ticks) && isCharge(sum)), "has no windows");
  need(isObject(rule), "has no rule");
  need(isObject(movement), "has no model of movement");
  if (movement.kind === "home-away") {
    const rate = (value) => Number.isFinite(value) && value >= 0 && value <= 1;
    const four = (rates) => Array.isArray(rates) && rates.length === 4 && rates.every(rate);
    need(Array.isArray(movement.rates) && movement.rates.length > 0 && movement.rates.every(four), "has no rates");
    return;
  }
  need(movement.kind === "matrices", "has a model of movement of an unknown kind");
  requireCount(movement, "states", 1, MOST_STATES);
  const { entries } = movement;
  const some = (count) => Number.isInteger(count) && count > 0 && count <= MOST_ENTRIES;
  need(Array.isArray(entries) && entries.length > 0 && entries.every(some), "has a model without entries");
}

function checkModel({ cells, movement }, arrays) {
  const { losses, initial, place, start, state, probability, far, near } = arrays;
  const chances = (list) => list.every((value) => value >= 0 && value <= 1);
  const sums = (list) => Math.abs(list.reduce((sum, value) => sum + value, 0) - 1) < TOLERANCE;
  need(losses.every((value) => value >= 0 && value < Infinity), "has losses that are not numbers");
  need(chances(initial) && sums(initial), "has a belief that is not a distribution");
  if (movement.kind === "home-away") {
    const rows = (list) => Array.from({ length: cells }, (_, u) => list.subarray(u * cells, (u + 1) * cells));
    const jumps = [far, near].every((list) => chances(list) && rows(list).every(sums));
    need(jumps, "has moves that are not a distribution");
    return;
  }
  const { states, entries } = movement;
  need(place.every((each) => each < cells), "has a state that is at no place");
  need(state.every((each) => each < states) && chances(probability), "has a move that leads nowhere");
  let from = 0;
  entries.forEach((count, k) => {
    const own = start.subarray(k * (states + 1), (k + 1) * (states + 1));
    const rows = own[0] === 0 && own[states] === count && own.every((at, s) => s === 0 || at >= own[s - 1]);
    need(rows, "has moves in no rows");
    const moves = probability.subarray(from, (from += count));
    const whole = own.subarray(1).every((end, s) => sums(moves.subarray(own[s], end)));
    need(whole, "has moves that are not a distribution");
  });
}
