// A day of reports with one account. A rule decides from the released reports when the next one is drawn, a filter names
// the place in between, and the cost of a window is summed exactly. README.md has the promises.

import { readSession } from "./bundle.mjs";
import { bytesOf, checkOptions, localStorageHere } from "./client.mjs";
import { FactorRows, TableRows, randomBytes } from "./draw.mjs";
import { Belief, HomeAwayChain, SparseChain } from "./filter.mjs";
import { ReportError } from "./frame.mjs";
import { defaultTable } from "./home.mjs";
import { PrivateLedger } from "./ledger.mjs";
import { Places } from "./places.mjs";
import { ruleOf } from "./rules.mjs";
import { commonDenominator, fraction, fractionWords, startOf, stepsSince, windowOf, worstWindow } from "./windows.mjs";

const SESSION_FORMAT = "mechdesign/session-client/1";
const SESSION_OPTIONS = ["table", "storage", "key", "limit", "window", "minutes", "bits", "now"];
const SPENT = "take the limit of the window as spent";
const DAY_LENGTH = 24 * 60 * 60 * 1000;

/** The session of one person; `openSession` makes one. claim, ticks (a day) and unit are those of the design.
 *
 * A rule decides by doubles of the filter. Another program that follows the same transcript decides alike, unless an
 * expected error is within rounding of a threshold. Draws and their cost are integers. */
export class Session {
  #header;
  #digits;
  #rows;
  #likelihoods = []; // of every table that reported, (n, m)
  #rule;
  #ledger;
  #limit;
  #window;
  #bits;
  #clock;
  #unit; // charges are whole multiples of its inverse
  #charges;
  #known; // the steps and the belief that this object has followed so far
  #fix = null;

  constructor({ header, tables, arrays }, { storage, key, limit, window, bits, now, minutes }) {
    const of = ({ header: own, arrays: held }) => new (own.kind === "factors" ? FactorRows : TableRows)(own, held);
    const first = tables[0];
    [this.#header, this.#rows, this.#bits] = [header, tables.map(of), bits];
    this.#rule = ruleOf(header.rule, header.ticks, tables.length);
    const Chain = header.movement.kind === "home-away" ? HomeAwayChain : SparseChain;
    this.#known = { steps: [], belief: new Belief(new Chain(header, arrays), arrays.losses) };
    this.places = new Places(first.header, first.arrays);
    this.#digits = first.header.report_axes === undefined ? first.header.digits : [null, null, null];
    [this.claim, this.ticks, this.unit] = [header.claim, header.ticks, header.unit];
    this.about = Object.freeze({ ...header.about });
    const costs = header.charges.map(fraction);
    this.#unit = commonDenominator(costs);
    this.#charges = costs.map(([above, below]) => (above * this.#unit) / below);
    [this.#limit, this.#window] = [limit, { ...windowOf(window, header.ticks), word: window }];
    this.#clock = () => Math.floor(((now() + minutes * 60_000) * header.ticks) / DAY_LENGTH);
    const sound = (state) => this.#sound(state);
    this.#ledger = new PrivateLedger({ storage, key, count: "last", sound, remedy: SPENT });
  }

  /** The tick of this moment: since 1970, in the time that `minutes` names. */
  tick() {
    return this.#clock();
  }

  /** The release of a tick, from a position in degrees, longitude first. The nearest place is used, at any distance.
   * Numbers that are not finite mean that the device has no fix; a report is drawn and charged all the same. */
  async report(longitude, latitude, { tick = this.tick() } = {}) {
    const fixed = Number.isFinite(longitude) && Number.isFinite(latitude);
    return this.#reportPosition(fixed ? this.places.nearest(this.places.onEarth(longitude, latitude)) : null, tick);
  }

  /** The same for a position in the unit of the map: an array with a number for each axis. */
  async reportAt(position, { tick = this.tick() } = {}) {
    const { axes, unit } = this.places;
    if (!Array.isArray(position) || position.length !== axes) {
      throw new ReportError("position", `a position is an array of ${axes} number(s), in ${unit}`);
    }
    return this.#reportPosition(position.every(Number.isFinite) ? this.places.nearest(position) : null, tick);
  }

  /** The same for a place, by its number. */
  async reportCell(cell, { tick = this.tick() } = {}) {
    return this.#reportPosition(this.places.checked(cell), tick);
  }

  /** The same without a position: the last one of this object is used, or else the estimate. */
  async reportNothing({ tick = this.tick() } = {}) {
    return this.#reportPosition(null, tick);
  }

  /** The account: payments of every window, summed again, as exact fractions in text. */
  async account() {
    const { steps, last } = await this.#ledger.alone(() => this.#read());
    const [worst, first] = worstWindow(this.#window, steps, ({ table }) => this.#charges[table]);
    return Object.freeze({
      window: this.#window.name,
      limit: fractionWords(...this.#limit),
      spent: this.#words(this.#chargeOf(steps)),
      worst: this.#words(worst),
      first,
      remaining: this.#remaining(this.#due(steps, Math.max(last, 0))),
      promised: this.#header.worst[this.#window.word],
      last,
      reports: steps.length,
    });
  }

  /** The released reports, {tick, table, report} each: all that an observer knows. */
  async transcript() {
    const { steps } = await this.#ledger.alone(() => this.#read());
    return steps.map(Object.freeze);
  }

  /** Read the stored session, or store a new one that has released nothing. */
  async begin() {
    await this.#ledger.alone(async () => {
      const state = await this.#ledger.read();
      if (state === null) await this.#write(-1, []);
      else this.#checkOwn(state);
    });
    return this;
  }

  #reportPosition(place, tick) {
    if (!Number.isSafeInteger(tick) || tick < 0) throw new ReportError("tick", "a tick is an integer, 0 or more");
    return this.#ledger.alone(async () => {
      const { steps: before, last } = await this.#read();
      if (tick <= last) {
        throw new ReportError("tick", `a clock was set back, or ticks are out of order: continue after tick ${last}`);
      }
      // The table and its charge follow from public history alone, before the position is used.
      const planned = this.#beliefAfter(before, last).at(tick);
      const table = this.#rule(tick, before, planned);
      const charge = table === null ? 0n : this.#charges[table];
      const due = this.#due(before, tick) + charge;
      if (due * this.#limit[1] > this.#limit[0] * this.#unit) {
        throw new ReportError("budget", "a window would cost more than its limit: report no more in this window");
      }
      const own = place ?? this.#fix ?? planned.best.place;
      const report = table === null ? null : this.#rows[table].draw(own, this.#bits); // the only place that draws
      const steps = table === null ? before : [...before, { tick, table, report }];
      const belief = table === null ? planned : planned.update(this.#likelihood(table, report));
      // Stored before it is returned: a released report is always paid.
      await this.#write(tick, steps);
      [this.#known, this.#fix] = [{ steps, belief }, own];
      return Object.freeze({
        tick,
        place: this.places.describe(belief.best.place, this.places.point(belief.best.place), this.#digits, this.unit, true),
        error: belief.best.error,
        drawn: table !== null,
        report,
        charge: this.#words(charge),
        remaining: this.#remaining(due),
      });
    });
  }

  /** The belief after the stored steps: continued from the known ones, which must be the first of these. */
  #beliefAfter(steps, last) {
    const { steps: known, belief: reached } = this.#known;
    const alike = (step, k) => ["tick", "table", "report"].every((name) => step[name] === steps[k]?.[name]);
    if (!known.every(alike)) throw this.#ledger.damaged("was put back in an older state");
    const follow = (belief, { tick, table, report }) => belief.at(tick).update(this.#likelihood(table, report));
    const belief = steps.slice(known.length).reduce(follow, reached);
    return belief.at(Math.max(last, belief.tick));
  }

  /** P(report|u) of every place, in floating point. */
  #likelihood(table, report) {
    const rows = this.#rows[table];
    this.#likelihoods[table] ??= Array.from({ length: this.places.count }, (_, cell) => rows.probabilities(cell));
    return Float64Array.from(this.#likelihoods[table], (row) => row[report]);
  }

  #chargeOf(steps) {
    return steps.reduce((sum, { table }) => sum + this.#charges[table], 0n);
  }

  /** The payments in the window that ends with `tick`; for calendar days, in the window that contains it. */
  #due(steps, tick) {
    return this.#chargeOf(stepsSince(steps, startOf(this.#window, tick)));
  }

  #words(sum) {
    return fractionWords(sum, this.#unit);
  }

  #remaining(due) {
    const [above, below] = this.#limit;
    return fractionWords(above * this.#unit - due * below, below * this.#unit);
  }

  /** Read the stored {steps, last}. */
  async #read() {
    return this.#checkOwn(await this.#ledger.read());
  }

  #checkOwn({ design, limit, window, last, steps }) {
    if (design !== this.#header.design) throw this.#ledger.damaged("is of another design");
    if (limit !== fractionWords(...this.#limit) || window !== this.#window.word) {
      throw new ReportError("option", `this session was begun with limit "${limit}", window "${window}"`);
    }
    return { last, steps: steps.map(([tick, table, report]) => ({ tick, table, report })) };
  }

  #write(last, released) {
    const steps = released.map(({ tick, table, report }) => [tick, table, report]);
    const [limit, { design }, { word: window }] = [fractionWords(...this.#limit), this.#header, this.#window];
    return this.#ledger.write({ format: SESSION_FORMAT, design, limit, window, last, steps });
  }

  /** True if a session can have stored this state. One of another design is not examined further. */
  #sound({ format, design, limit, window, last, steps }) {
    const texts = format === SESSION_FORMAT && typeof design === "string" && fraction(limit) && typeof window === "string";
    if (!texts || !isCount(last + 1) || !Array.isArray(steps)) return false;
    if (design !== this.#header.design) return true;
    let before = -1;
    for (const [tick, table, report, ...more] of steps) {
      const made = [tick, table, report].every(isCount) && this.#rows[table]?.canReport(report);
      if (!made || more.length > 0 || tick <= before || tick > last) return false;
      before = tick;
    }
    return true;
  }
}

/** Open the session under `key` of a storage, or begin it; report.d.mts describes the options. Rejects with ReportError
 * "option" if the limit is below the cost that the design can reach in a window, or differs from the stored one. */
export async function openSession(options = {}) {
  checkOptions(options, SESSION_OPTIONS);
  const { window = "1d", now = Date.now, bits = randomBytes, minutes = 0 } = options;
  const limit = fraction(options.limit);
  if (!limit || limit[0] === 0n) throw new ReportError("option", "limit is a positive number, or a fraction as text");
  if (!Number.isInteger(minutes) || Math.abs(minutes) > 1440) {
    throw new ReportError("option", "minutes are an integer, ahead of UTC");
  }
  const storage = options.storage ?? localStorageHere();
  const read = await readSession(await bytesOf((await options.table) ?? (await defaultTable())));
  const { worst, ledger } = read.header;
  if (!Object.hasOwn(worst, window)) {
    throw new ReportError("option", `window is one of ${Object.keys(worst).join(", ")}`);
  }
  const [above, below] = fraction(worst[window]);
  if (above * limit[1] > limit[0] * below) {
    throw new ReportError("option", `limit is too small for the largest cost of the rule in a window: ${worst[window]}`);
  }
  const key = options.key ?? `mechdesign-session-${ledger.slice(0, 16)}`;
  return new Session(read, { storage, key, limit, window, bits, now, minutes }).begin();
}

function isCount(value) {
  return Number.isSafeInteger(value) && value >= 0;
}
