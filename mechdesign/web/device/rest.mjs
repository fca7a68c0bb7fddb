// The secret that a report is drawn for, and the name under which the memory keeps it: a phone that rests must not be
// reported anew at every fix.
//
// | remember | drawn for | repeated |
// |---|---|---|
// | cell | the cell around the position: of a table between positions, its centre | in the same cell |
// | visit | the first position of a visit | within `visit` of it, and until the position is STAY times as far |
// | none | the position | never |
//
// Repeating a report reveals the pattern of repetitions. Given the pattern, reports of different names are independent
// draws, hence the claims below (Andrés et al. 2013, section 3.3).

import { ReportError } from "./frame.mjs";
import { HALF, POINT_BITS } from "./places.mjs";

export const REMEMBER = ["cell", "visit", "none"];
const STAY = 1.5; // a guess: a fix that jumps over the radius and back must not begin a visit
const VISIT = "@"; // first word of names of visits: a cell must not repeat the report of a visit

/** Why a mode does not fit the places of a table; undefined if it does. */
export function whyNotRemember(remember, visit, places) {
  if (!REMEMBER.includes(remember)) return `remember is ${REMEMBER.join(", ")}`;
  if (remember !== "visit") return visit === undefined ? undefined : 'visit needs remember: "visit"';
  if (!(Number.isFinite(visit) && visit > 0)) return `visit is a radius in ${places.unit}, above 0: remember "visit" needs it`;
  if (places.kind !== "grid" || places.axes !== 2) return 'remember "visit" needs the cells of a grid in the plane';
  return undefined;
}

/** The claim about many reports in one sentence for each fact; `positions`: the table has a claim between positions. */
export function memoryClaim(remember, visit, unit, positions) {
  const sum = (what) => `P(z|x) <= e^(d_1 + ... + d_k) P(z|x') for all reports z, with d_i the distance of ${what} by the claim below`;
  if (remember === "none") {
    return `Every report is drawn anew: for any two traces of k positions, ${sum(`their i-th ${positions ? "positions" : "cells"}`)}. The mean of many reports finds a place where somebody stays.`;
  }
  if (remember === "cell") {
    const centres = positions ? "centres of their i-th new cells" : "their i-th new cells";
    return (
      `A cell has one report, which is repeated until the memory is deleted; after that all cells are new. For two traces with the same pattern of cells, k of them new, ${sum(centres)}. ` +
      "Two positions in one cell are not distinguished; two on both sides of a border are, as far as their cells. " +
      "A new report reveals that a border was crossed, a repeated one that somebody stayed or returned."
    );
  }
  const place = positions ? "the first positions" : "the cells of the first positions";
  return (
    `A visit has one report. It is repeated within ${visit} ${unit} of the first position, and up to ${STAY} times as far until the visit is left. ` +
    "Once the memory is deleted, all places are new. " +
    `For two traces with the same pattern of visits, k of them to new places, ${sum(`${place} of their i-th new places`)}. ` +
    "A new report reveals that a place was left, a repeated one that somebody stayed or returned."
  );
}

/** The visits of a memory: `names` are remembered, `last` is the one of the last report. Returns the name of the visit of a
 * position, {name, cell, point}. */
export function visitOf(places, visit, names, last, cell, position) {
  let [best, least] = [null, Infinity];
  for (const name of names) {
    if (!name.startsWith(`${VISIT} `)) continue;
    const [own, ...point] = name.split(" ").slice(1).map(Number);
    const square = squareTo(places, own, point, position);
    const reach = name === last ? STAY * visit : visit;
    // A visit that lasts is not exchanged for a nearer place: this would reveal movements within it.
    if (name === last && square <= reach * reach) return { name, cell: own, point };
    if (square <= reach * reach && square < least) [best, least] = [{ name, cell: own, point }, square];
  }
  if (best) return best;
  const point = places.pointIn(cell, position);
  return { name: [VISIT, cell, ...point].join(" "), cell, point };
}

/** The square of the distance from a point of a cell to a position. */
function squareTo(places, cell, point, position) {
  if (!Number.isInteger(cell) || cell < 0 || cell >= places.count || point.length !== 2 || !point.every(isStep)) {
    throw new ReportError("memory", "the memory names a place that is not on the map: call forget()");
  }
  const [x, y] = places.point(cell).map((centre, axis) => centre + (point[axis] / 2 ** POINT_BITS) * places.sides[axis]);
  return (x - position[0]) ** 2 + (y - position[1]) ** 2;
}

function isStep(value) {
  return Number.isInteger(value) && Math.abs(value) <= HALF;
}

/** A radius about a report that also holds positions later in the visit. */
export function radiusOfVisit(radius, visit) {
  return radius + STAY * visit;
}
