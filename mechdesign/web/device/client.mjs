// The client that an app calls: locate, remember, pay and draw reports from a certified table. README.md has its promises.

import { RegionRows } from "./ball.mjs";
import { FactorRows, PositionRows, TableRows, randomBytes } from "./draw.mjs";
import { moduleOfNode } from "./files.mjs";
import { defaultTable } from "./home.mjs";
import { Memory } from "./memory.mjs";
import { Places } from "./places.mjs";
import { isRegion, readRegion } from "./region.mjs";
import { memoryClaim, radiusOfVisit, visitOf, whyNotRemember } from "./rest.mjs";
import { ReportError, isObject } from "./frame.mjs";
import { readTable } from "./table.mjs";

const OUTSIDE = ["refuse", "nearest"];
const OPTIONS = ["table", "storage", "key", "perDay", "outside", "remember", "visit", "answerAfter", "bits", "now"];
const ANSWER_AFTER = 100; // milliseconds, of maps of a region
const MOST_AFTER = 60_000;
const WATCHED = 2; // milliseconds before an answer is due in which the clock is watched, since timers are coarse

/** Reports of one table; `openClient` makes one. claim, cost and unit are those of the table; memoryClaim is about many
 * reports. */
export class Client {
  #rows;
  #header;
  #reportPoints;
  #accuracy; // about every report, the radius that holds the true position with 95 %; none of factors and regions
  #reportCells; // of every report, where each is a cell; null where reports are the cells, or none
  #positions; // whether positions are drawn, not cells
  #memory;
  #outside;
  #bits;
  #answerAfter;
  #remember;
  #visit;

  constructor({ header, arrays }, { storage, key, perDay, outside, remember, visit, bits, now, answerAfter }) {
    const Cells = header.position_claim ? PositionRows : TableRows;
    const Rows = { devicemap: RegionRows, factors: FactorRows, table: Cells }[header.kind];
    this.#rows = new Rows(header, arrays);
    this.#positions = Rows === PositionRows;
    [this.#header, this.#reportPoints, this.#outside, this.#bits] = [header, arrays.report_points, outside, bits];
    this.#answerAfter = answerAfter ?? (Rows === RegionRows ? ANSWER_AFTER : 0);
    this.places = new Places(header, arrays);
    const wrong = whyNotRemember(remember, visit, this.places);
    if (wrong) throw new ReportError("option", wrong);
    [this.#remember, this.#visit] = [remember, visit];
    this.memoryClaim = memoryClaim(remember, visit, header.unit, this.#positions);
    this.#accuracy = remember === "cell" && this.#positions ? arrays.accuracy_of_cells : arrays.accuracy;
    this.#reportCells = this.#cellsOfReports();
    this.claim = header.position_claim ?? header.claim;
    this.cost = header.cost;
    this.unit = header.unit;
    this.about = Object.freeze({ ...header.about, mechanism: header.mechanism });
    const { mechanism, charge } = header;
    this.#memory = new Memory({ storage, key, mechanism, charge, perDay, now });
  }

  /** The report of a position in degrees, longitude first. Rejects with ReportError; its code says why. */
  async report(longitude, latitude) {
    if (this.places.isExchanged(longitude, latitude)) {
      const order = "longitude and latitude seem to be exchanged: call report(longitude, latitude)";
      throw new ReportError("outside", `the position lies outside the area of this table; ${order}`);
    }
    return this.#reportPosition(this.places.onEarth(longitude, latitude), true);
  }

  /** The report of a position in metres east and north of the centre of the map's plane. */
  async reportMetres(east, north) {
    return this.#reportPosition(this.places.fromMetres(east, north));
  }

  /** The report of a position in the unit of the map. */
  async reportAt(...position) {
    return this.#reportPosition(position);
  }

  /** The report of a cell, by its number: of its centre, where positions are drawn. */
  async reportCell(cell) {
    return this.#reportSecret(this.places.checked(cell), this.places.point(cell));
  }

  /** {remaining, spent, remembered}: reports that remain in these 24 hours, paid in all, cells remembered. */
  async status() {
    return this.#memory.status();
  }

  /** {report, time} of the report that was given last, and when; null before the first. It costs nothing. */
  async lastReport() {
    const last = await this.#memory.last((kept) => this.#rows.canReport(kept));
    return last && Object.freeze({ report: this.#withPlace(last.report), time: last.time });
  }

  /** Forget all reports. Payments stay: the next report of a cell is drawn anew, and costs. */
  async forget() {
    return this.#memory.forget();
  }

  /** The cell that a report is, by its number; -1 if reports are not cells. */
  cellOfReport(report) {
    return this.#reportPoints ? (this.#reportCells?.[report] ?? -1) : report;
  }

  /** P(report | cell) of every report, in floating point: for looking at. */
  probabilities(cell) {
    return this.#rows.probabilities(cell);
  }

  async #reportPosition(position, near = false) {
    const cell = this.places.cellAt(position, near);
    if (cell < 0 && this.#outside === "refuse") {
      throw new ReportError("outside", "the position lies outside the area of this table: nothing is reported");
    }
    const own = cell < 0 ? this.places.nearest(position) : cell;
    return this.#reportSecret(own, cell < 0 && this.places.sides ? this.places.within(own, position) : position);
  }

  /** The report of a position in a cell: remembered, or drawn and paid. */
  async #reportSecret(cell, position) {
    const choose = (names, last) => {
      const { name, cell: own, point } = this.#secretOf(cell, position, names, last);
      return { name, draw: () => this.#rows.draw(own, this.#bits, point) };
    };
    const ask = () => this.#memory.report(choose, (kept) => this.#rows.canReport(kept));
    // Remembered reports take the same time as drawn ones: the delay covers the look-up too.
    const { report, ...rest } = await answerAtFixedTime(this.#answerAfter, ask);
    return Object.freeze({ report: this.#withPlace(report), ...rest });
  }

  /** The cell and the point in it that a report is drawn for, and its name in the memory. */
  #secretOf(cell, position, names, last) {
    if (this.#remember === "visit") return visitOf(this.places, this.#visit, names, last, cell, position);
    const centre = this.#positions ? [0, 0] : [];
    if (this.#remember === "cell") return { name: [cell, ...centre].join(" "), cell, point: centre };
    return { name: null, cell, point: this.#positions ? this.places.pointIn(cell, position) : [] };
  }

  #reportPoint(report) {
    const axes = this.#header.report_axes ?? this.places.axes;
    return Array.from(this.#reportPoints.subarray(report * axes, (report + 1) * axes));
  }

  /** The cell at each report, for reports that are listed apart from the cells; null unless each is at one. */
  #cellsOfReports() {
    const { report_axes: axes, report_unit: unit, reports } = this.#header;
    const { places } = this;
    if (!this.#reportPoints || axes !== places.axes || unit !== places.unit || places.kind !== "grid") return null;
    const found = Int32Array.from({ length: reports }, (_, report) => places.cellAt(this.#reportPoint(report)));
    const isClose = (x, y, side) => Math.abs(x - y) <= 1e-9 * side; // one, but for the rounding of doubles
    const exact = (cell, report) => cell >= 0 && places.point(cell).every((x, axis) => isClose(x, this.#reportPoint(report)[axis], places.sides[axis]));
    return found.every(exact) ? found : null;
  }

  #withPlace(report) {
    const point = this.#reportPoints ? this.#reportPoint(report) : this.places.point(report);
    const { digits, report_unit: unit } = this.#header;
    const placed = this.places.describe(report, point, digits, unit, this.cellOfReport(report) >= 0);
    if (!this.#accuracy) return placed;
    const radius = this.#accuracy[report];
    return Object.freeze({ ...placed, accuracy: this.#visit === undefined ? radius : radiusOfVisit(radius, this.#visit) });
  }
}

/** Open a client of a table; report.d.mts describes the options. Rejects with ReportError if the table was altered or an
 * option is wrong. */
export async function openClient(options = {}) {
  checkOptions(options, OPTIONS);
  const { perDay = 10, outside = "refuse", remember = "cell", visit, answerAfter, now = Date.now, bits = randomBytes } = options;
  if (!Number.isSafeInteger(perDay) || perDay < 1) throw new ReportError("option", "perDay is an integer from 1");
  if (!OUTSIDE.includes(outside)) throw new ReportError("option", `outside is ${OUTSIDE.join(" or ")}`);
  const timed = Number.isFinite(answerAfter) && answerAfter >= 0 && answerAfter <= MOST_AFTER;
  if (answerAfter !== undefined && !timed) {
    throw new ReportError("option", `answerAfter is a number of milliseconds from 0 to ${MOST_AFTER}`);
  }
  const storage = options.storage ?? localStorageHere();
  const bytes = await bytesOf((await options.table) ?? (await defaultTable()));
  const read = await (isRegion(bytes) ? readRegion : readTable)(bytes);
  // By metric and grid, not by table: a table drawn anew over the same metric shares the budget.
  const key = options.key ?? `mechdesign-reports-${read.header.ledger.slice(0, 16)}`;
  return new Client(read, { storage, key, perDay, outside, remember, visit, bits, now, answerAfter });
}

/** Answer at a fixed time: a draw takes longer for a report further away, and the time of the answer must not reveal that.
 *
 * Resolves or rejects as `action` does, so many milliseconds after this call. If the action takes longer, it ends at the
 * next multiple of them. With 0 it ends at once. */
async function answerAtFixedTime(milliseconds, action) {
  const began = performance.now();
  try {
    return await action();
  } finally {
    if (milliseconds > 0) {
      const due = began + Math.max(1, Math.ceil((performance.now() - began) / milliseconds)) * milliseconds;
      const rest = due - WATCHED - performance.now();
      if (rest > 0) await new Promise((resolve) => setTimeout(resolve, rest));
      while (performance.now() < due);
    }
  }
}

/** Refuse unknown options, and bits or a clock that are not functions. */
export function checkOptions(options, known) {
  if (!isObject(options)) throw new ReportError("option", "options are an object, such as { perDay: 10 }");
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new ReportError("option", `unknown option ${unknown}: options are ${known.join(", ")}`);
  }
  for (const name of ["bits", "now"]) {
    const wrong = options[name] !== undefined && typeof options[name] !== "function";
    if (wrong) throw new ReportError("option", `${name} is a function`);
  }
}

export function localStorageHere() {
  try {
    if (globalThis.localStorage) return globalThis.localStorage;
  } catch {
    // The browser forbids it: the error below says so.
  }
  throw new ReportError("storage", "no localStorage here: pass storage, such as fileStorage(path), or an object with getItem and setItem");
}

export async function bytesOf(given) {
  if (given instanceof Uint8Array) return given;
  if (given instanceof ArrayBuffer) return new Uint8Array(given);
  const files = moduleOfNode("node:fs/promises");
  // Node fetches no files.
  if (files && given instanceof URL && given.protocol === "file:") return files.readFile(given);
  const answer = await fetch(given);
  if (!answer.ok) throw new ReportError("table", `the table cannot be fetched: ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}
