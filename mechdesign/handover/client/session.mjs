// A day of reports with one account: a rule that sees what was released says when a report is drawn, a filter names the
// place in between, and what a window costs is added up exactly. README.md says what it promises.

import { readSession } from "./bundle.mjs";
import { bytesOf, localStorageHere, randomBytes, rounded } from "./client.mjs";
import { FactorRows, TableRows } from "./draw.mjs";
import { ReportError } from "./errors.mjs";
import { Belief, HomeAwayChain, SparseChain } from "./filter.mjs";
import { defaultTable } from "./home.mjs";
import { Kept } from "./kept.mjs";
import { Places } from "./places.mjs";
import { ruleOf } from "./rules.mjs";
import { commonDenominator, fraction, fractionWords, startOf, stepsSince, windowOf, worstWindow } from "./windows.mjs";

const SESSION_FORMAT = "mechdesign/session-client/1";
const SPENT = "take the limit of the window as spent";
const DAY_LENGTH = 24 * 60 * 60 * 1000;

/** The session of one person; `openSession` makes one. claim, ticks (a day) and unit are those of the design.
 *
 * What a rule decides follows from doubles of the filter: another program that follows the same transcript decides alike,
 * but for an expected error within rounding of a threshold. What is drawn, and what it costs, are whole numbers. */
export class Session {
  #header;
  #digits;
  #rows;
  #likelihoods = []; // of every table that reported, (n, m)
  #rule;
  #begun; // the belief at tick 0
  #kept;
  #limit;
  #window;
  #bits;
  #clock;
  #unit; // charges are whole multiples of its inverse
  #charges;
  #known = null; // the steps and the belief that this object has followed so far
  #fix = null;

  constructor({ header, tables, arrays }, { storage, key, limit, window, bits, now, minutes }) {
    const of = ({ header: own, arrays: held }) => new (own.kind === "factors" ? FactorRows : TableRows)(own, held);
    const first = tables[0];
    [this.#header, this.#rows, this.#bits] = [header, tables.map(of), bits];
    this.#rule = ruleOf(header.rule, header.ticks, tables.length);
    const Chain = header.movement.kind === "home-away" ? HomeAwayChain : SparseChain;
    this.#begun = new Belief(new Chain(header, arrays), arrays.losses);
    this.places = new Places(first.header, first.arrays);
    this.#digits = first.header.report_axes === undefined ? first.header.digits : null;
    [this.claim, this.ticks, this.unit] = [header.claim, header.ticks, header.unit];
    this.about = Object.freeze({ ...header.about });
    const charges = header.charges.map(fraction);
    this.#unit = commonDenominator(charges);
    this.#charges = charges.map(([above, below]) => (above * this.#unit) / below);
    [this.#limit, this.#window] = [limit, { ...windowOf(window, header.ticks), word: window }];
    this.#clock = () => Math.floor(((now() + minutes * 60_000) * header.ticks) / DAY_LENGTH);
    this.#kept = new Kept({ storage, key, count: "calls", sound: (state) => this.#sound(state), remedy: SPENT });
  }

  /** The tick of this moment: since 1970, in the time that `minutes` names. */
  tick() {
    return this.#clock();
  }

  /** What may be released at a tick, somebody being at a position in degrees, longitude first, for which the nearest place
   * stands, however far. Where the numbers are not finite there is no fix, and a draw is made and charged all the same. */
  async report(longitude, latitude, { tick = this.tick() } = {}) {
    const fixed = Number.isFinite(longitude) && Number.isFinite(latitude);
    return this.#reported(fixed ? this.places.nearest(this.places.onEarth(longitude, latitude)) : null, tick);
  }

  /** The same for a position in the unit of the map: an array with a number for each axis. */
  async reportAt(position, { tick = this.tick() } = {}) {
    const { axes, unit } = this.places;
    if (!Array.isArray(position) || position.length !== axes) {
      throw new ReportError("position", `a position is an array of ${axes} number(s), in ${unit}`);
    }
    return this.#reported(position.every(Number.isFinite) ? this.places.nearest(position) : null, tick);
  }

  /** The same for a place, by its number. */
  async reportCell(cell, { tick = this.tick() } = {}) {
    if (!Number.isInteger(cell) || cell < 0 || cell >= this.places.count) {
      throw new ReportError("position", `cells are whole numbers 0 to ${this.places.count - 1}`);
    }
    return this.#reported(cell, tick);
  }

  /** The same without a position: the last one that this object was given stands for it, or else the estimate. */
  async reportNothing({ tick = this.tick() } = {}) {
    return this.#reported(null, tick);
  }

  /** What was paid, every window summed afresh: exact fractions, as text. */
  async account() {
    const state = await this.#kept.alone(() => this.#read());
    const charge = ({ table }) => this.#charges[table];
    const [worst, first] = worstWindow(this.#window, state.steps, charge);
    const spent = state.steps.reduce((sum, step) => sum + charge(step), 0n);
    return Object.freeze({
      window: this.#window.name,
      limit: fractionWords(...this.#limit),
      spent: this.#words(spent),
      worst: this.#words(worst),
      first,
      left: this.#left(this.#due(state.steps, Math.max(state.last, 0))),
      promised: this.#header.worst[this.#window.word],
      last: state.last,
      reports: state.steps.length,
    });
  }

  /** What was released: {tick, table, report} of every report. All that an observer knows. */
  async transcript() {
    const { steps } = await this.#kept.alone(() => this.#read());
    return steps.map((step) => Object.freeze({ ...step }));
  }

  /** Reads what is kept, and keeps a session that has released nothing where there is none. */
  async begin() {
    await this.#kept.alone(async () => {
      const state = await this.#kept.read();
      if (state === null) await this.#write({ calls: 0, last: -1, steps: [] });
      else this.#checkOwn(state);
    });
    return this;
  }

  #reported(place, tick) {
    if (!Number.isSafeInteger(tick) || tick < 0) throw new ReportError("tick", "a tick is a whole number, 0 or more");
    return this.#kept.alone(async () => {
      const state = await this.#read();
      if (tick <= state.last) {
        throw new ReportError("tick", `a clock was set back, or ticks are out of order: go on after tick ${state.last}`);
      }
      let belief = this.#followed(state).at(tick);
      const table = this.#rule(tick, state.steps, belief);
      const charge = table === null ? 0n : this.#charges[table];
      const due = this.#due(state.steps, tick) + charge;
      if (due * this.#limit[1] > this.#limit[0] * this.#unit) {
        throw new ReportError("budget", "a window would cost more than its limit: report no more in this window");
      }
      const own = place ?? this.#fix ?? belief.estimate;
      const report = table === null ? null : this.#rows[table].draw(own, this.#bits);
      const steps = table === null ? state.steps : [...state.steps, { tick, table, report }];
      if (table !== null) belief = belief.seen(this.#likelihood(table, report));
      await this.#write({ calls: state.calls + 1, last: tick, steps });
      [this.#known, this.#fix] = [{ steps, belief }, own];
      return Object.freeze({
        tick,
        place: Object.freeze(this.#placed(belief.estimate)),
        error: belief.error,
        drawn: table !== null,
        report,
        charge: this.#words(charge),
        left: this.#left(due),
      });
    });
  }

  /** The belief after the steps that are kept: gone on with, or followed from the beginning. */
  #followed({ steps, last }) {
    const known = this.#known ?? { steps: [], belief: this.#begun };
    const same = (step, k) => step.tick === steps[k]?.tick && step.table === steps[k].table && step.report === steps[k].report;
    if (!known.steps.every(same)) throw this.#kept.damaged("was put back in an older state");
    let { belief } = known;
    for (const { tick, table, report } of steps.slice(known.steps.length)) {
      belief = belief.at(tick).seen(this.#likelihood(table, report));
    }
    return belief.at(Math.max(last, belief.tick));
  }

  /** P(report|u) of every place, in floating point. */
  #likelihood(table, report) {
    const rows = this.#rows[table];
    this.#likelihoods[table] ??= Array.from({ length: this.places.count }, (_, cell) => rows.probabilities(cell));
    return Float64Array.from(this.#likelihoods[table], (row) => row[report]);
  }

  /** What was paid in the window that ends with `tick`, or, of days, that it is in. */
  #due(steps, tick) {
    let sum = 0n;
    for (const { table } of stepsSince(steps, startOf(this.#window, tick))) sum += this.#charges[table];
    return sum;
  }

  #words(sum) {
    return fractionWords(sum, this.#unit);
  }

  #left(due) {
    const [above, below] = this.#limit;
    return fractionWords(above * this.#unit - due * below, below * this.#unit);
  }

  #placed(number) {
    const point = this.places.point(number);
    const shown = point.map((value, axis) => (this.#digits ? rounded(value, this.#digits[axis]) : value));
    const named = Object.fromEntries(shown.map((value, axis) => ["xyz"[axis], value]));
    return { number, ...named, unit: this.unit, ...(this.places.plane ? this.places.degrees(point) : {}) };
  }

  async #read() {
    const state = await this.#kept.read();
    if (state === null) throw this.#kept.damaged("was deleted");
    return this.#checkOwn(state);
  }

  #checkOwn(state) {
    if (state.design !== this.#header.design) throw this.#kept.damaged("is of another design");
    if (state.limit !== fractionWords(...this.#limit) || state.window !== this.#window.word) {
      throw new ReportError("option", `this session was begun with limit "${state.limit}", window "${state.window}"`);
    }
    const steps = state.steps.map(([tick, table, report]) => ({ tick, table, report }));
    return { calls: state.calls, last: state.last, steps };
  }

  #write({ calls, last, steps }) {
    const [limit, { design }] = [fractionWords(...this.#limit), this.#header];
    const listed = steps.map(({ tick, table, report }) => [tick, table, report]);
    const window = this.#window.word;
    return this.#kept.write({ format: SESSION_FORMAT, design, limit, window, calls, last, steps: listed });
  }

  /** Whether a state is one that a session of this design can have left. */
  #sound({ format, design, limit, window, calls, last, steps }) {
    const counts = [calls, last + 1, ...steps.flat()].every((count) => Number.isSafeInteger(count) && count >= 0);
    const named = format === SESSION_FORMAT && typeof design === "string" && fraction(limit) && typeof window === "string";
    if (!counts || !named || steps.length > calls) return false;
    const own = design === this.#header.design;
    return steps.every(([tick, table, report, ...more], k) => {
      const rises = tick > (k === 0 ? -1 : steps[k - 1][0]) && tick <= last;
      return rises && more.length === 0 && (!own || Boolean(this.#rows[table]?.canReport(report)));
    });
  }
}

/** The session under `key` of a storage, begun where there is none.
 *
 * limit, of every window, in multiples of the metric: a number, or an exact fraction as text; window: "1d", calendar days,
 * "24h", any 24 hours, or another that the design names. minutes, how far the time that midnights are in is ahead of UTC.
 * table, storage, key, bits and now as in `openClient`. Rejects with ReportError "option" for a limit below what the
 * design can cost in a window, or other than this session was begun with. */
export async function openSession(options = {}) {
  const { window = "1d", now = Date.now, bits = randomBytes, minutes = 0 } = options;
  const limit = fraction(options.limit);
  if (!limit || limit[0] === 0n) throw new ReportError("option", "limit is a positive number, or a fraction as text");
  if (!Number.isInteger(minutes) || Math.abs(minutes) > 1440) {
    throw new ReportError("option", "minutes are a whole number, ahead of UTC");
  }
  const storage = options.storage ?? localStorageHere();
  const read = await readSession(await bytesOf((await options.table) ?? (await defaultTable())));
  const { worst, ledger } = read.header;
  if (!Object.hasOwn(worst, window)) {
    throw new ReportError("option", `window is one of ${Object.keys(worst).join(", ")}`);
  }
  const [above, below] = fraction(worst[window]);
  if (above * limit[1] > limit[0] * below) {
    throw new ReportError("option", `limit is too small for what the rule can pay in a window: ${worst[window]}`);
  }
  const key = options.key ?? `mechdesign-session-${ledger.slice(0, 16)}`;
  return new Session(read, { storage, key, limit, window, bits, now, minutes }).begin();
}
