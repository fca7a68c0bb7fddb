// Read the file of a session design: its tables, its rule, its model of movement. It is data from anybody, as table.mjs
// has it.
//
//   8 bytes "mdtraces" | version 1, uint32 | bytes of the header, uint32 | header, JSON | the tables, each a whole file of
//   its own | body, zlib | SHA-256 of all before it
//
// The body holds losses (n, n) of naming a place (across) when another (down) is true, then the arrays of the model; before them,
// where there is a test, the whole distances (n, n) of places (across) from a place (down).

import { checkTest } from "./moved.mjs";
import { counted, inflate, isObject, need, opened, readTable, split } from "./table.mjs";
import { fraction, windowOf } from "./windows.mjs";

const SESSION_MAGIC = "mdtraces";
const NAME = /^[0-9a-f]{64}$/;
const MOST_CELLS = 2 ** 11;
const MOST_STATES = 2 ** 20;
const MOST_ENTRIES = 2 ** 24;
const MISSED = 1e-6; // by which probabilities may miss 1

/** {header, tables, arrays}. Rejects with ReportError "table" for anything but what was written. */
export async function readSession(bytes) {
  const { told: header, rest } = opened(bytes, SESSION_MAGIC);
  checkSession(header, rest.length);
  const tables = [];
  let at = 0;
  for (const size of header.tables) tables.push(await readTable(rest.subarray(at, (at += size))));
  const same = ({ header: own }) => own.cells === header.cells && own.ledger === header.ledger;
  need(tables.every(same), "has tables over other places, or for other metrics");
  const rows = modelLayout(header);
  const arrays = split(await inflate(rest.subarray(at), rows), rows);
  checkModel(header, arrays);
  return { header, tables, arrays };
}

/** [name, bytes a number, how many, whether differences] of the arrays of a model. */
function modelLayout({ cells, movement, test }) {
  const tested = test === undefined ? [] : [["distance", 2, cells * cells, false]];
  return [...tested, ["losses", 8, cells * cells, false], ...movementLayout(cells, movement)];
}

function movementLayout(cells, movement) {
  if (movement.kind === "home-away") {
    const square = (name) => [name, 8, cells * cells, false];
    return [["initial", 8, cells + cells * cells, false], square("far"), square("near")];
  }
  const { states, entries } = movement;
  const all = entries.reduce((sum, count) => sum + count, 0);
  return [
    ["initial", 8, states, false],
    ["place", 4, states, true],
    ["start", 4, entries.length * (states + 1), true],
    ["state", 4, all, true],
    ["probability", 8, all, false],
  ];
}

function checkSession(header, room) {
  for (const name of ["claim", "unit"]) need(typeof header[name] === "string", `lacks ${name}`);
  for (const name of ["design", "ledger"]) need(NAME.test(header[name]), `lacks ${name}`);
  counted(header, "cells", 1, MOST_CELLS);
  counted(header, "ticks", 1, MOST_STATES);
  const { tables, charges, worst, movement, rule } = header;
  const sizes = Array.isArray(tables) && tables.length > 0 && tables.every((size) => Number.isInteger(size) && size > 0);
  need(sizes && tables.reduce((sum, size) => sum + size, 0) <= room, "has no tables");
  const paid = (text) => typeof text === "string" && fraction(text) !== null && fraction(text)[0] > 0n;
  need(Array.isArray(charges) && charges.length === tables.length && charges.every(paid), "has tables without charges");
  need(isObject(worst) && Object.hasOwn(worst, "1d"), "has no windows");
  need(Object.entries(worst).every(([word, sum]) => windowOf(word, header.ticks) && paid(sum)), "has no windows");
  need(isObject(rule), "has no rule");
  need((rule.kind === "moved-test") === (header.test !== undefined), "has a rule with another test");
  if (header.test !== undefined) {
    need(isObject(header.test), "has no test");
    checkTest(header.test);
  }
  need(isObject(movement), "has no model of movement");
  if (movement.kind === "home-away") {
    const rate = (value) => Number.isFinite(value) && value >= 0 && value <= 1;
    const four = (rates) => Array.isArray(rates) && rates.length === 4 && rates.every(rate);
    need(Array.isArray(movement.rates) && movement.rates.length > 0 && movement.rates.every(four), "has no rates");
    return;
  }
  need(movement.kind === "matrices", "has a model of movement of an unknown kind");
  counted(movement, "states", 1, MOST_STATES);
  const { entries } = movement;
  const some = (count) => Number.isInteger(count) && count > 0 && count <= MOST_ENTRIES;
  need(Array.isArray(entries) && entries.length > 0 && entries.every(some), "has a model without entries");
}

function checkModel({ cells, movement, test }, arrays) {
  const { distance, losses, initial, place, start, state, probability, far, near } = arrays;
  const chances = (list) => list.every((value) => value >= 0 && value <= 1);
  const sums = (list) => Math.abs(list.reduce((sum, value) => sum + value, 0) - 1) < MISSED;
  need(!distance || distance.every((value) => value <= test.far), "has a distance beyond its test");
  need(losses.every((value) => value >= 0 && value < Infinity), "has losses that are no numbers");
  need(chances(initial) && sums(initial), "has a belief that is no distribution");
  if (movement.kind === "home-away") {
    const rows = (list) => Array.from({ length: cells }, (_, u) => list.subarray(u * cells, (u + 1) * cells));
    const jumps = [far, near].every((list) => chances(list) && rows(list).every(sums));
    need(jumps, "has moves that are no distribution");
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
    need(whole, "has moves that are no distribution");
  });
}
