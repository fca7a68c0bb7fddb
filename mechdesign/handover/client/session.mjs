// A day of reports with one account: a rule that sees what was released says when a report is drawn, a filter names the
// place in between, and what a window costs is added up exactly. README.md says what it promises.

import { readSession } from "./bundle.mjs";
import { bytesOf, checkOptions, localStorageHere, randomBytes, rounded } from "./client.mjs";
import { FactorRows, TableRows } from "./draw.mjs";
import { ReportError } from "./errors.mjs";
import { Belief, HomeAwayChain, SparseChain } from "./filter.mjs";
import { defaultTable } from "./home.mjs";
import { Kept } from "./kept.mjs";
import { MovedTest } from "./moved.mjs";
import { Places } from "./places.mjs";
import { ruleOf } from "./rules.mjs";
import { accountOf, dearest, isCount, listed, named, running, stepsSince } from "./steps.mjs";
import { commonDenominator, fraction, fractionWords, startOf, windowOf, worstWindow } from "./windows.mjs";

const SESSION_FORMAT = "mechdesign/session-client/1";
const SESSION_OPTIONS = ["table", "storage", "key", "limit", "window", "minutes", "bits", "now"];
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
  #test = null;
  #per = null; // the window that a test ends with
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
    const costs = header.charges.map(fraction);
    if (header.test) {
      [this.#test, this.#per] = [new MovedTest(header, arrays), windowOf(header.rule.per, header.ticks)];
      costs.push(this.#test.cost);
    }
    this.#unit = commonDenominator(costs);
    this.#charges = costs.map(([above, below]) => (above * this.#unit) / below);
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
    const charges = this.#account(state.steps);
    const [worst, first] = worstWindow(this.#window, charges);
    const spent = charges.reduce((sum, { amount }) => sum + amount, 0n);
    return Object.freeze({
      window: this.#window.name,
      limit: fractionWords(...this.#limit),
      spent: this.#words(spent),
      worst: this.#words(worst),
      first,
      left: this.#left(this.#due(state.steps, Math.max(state.last, 0))),
      promised: this.#header.worst[this.#window.word],
      last: state.last,
      reports: state.steps.filter(({ table }) => table !== null).length,
    });
  }

  /** What was released: {tick, table, report, moved, against, begun} of every report, and of every answer of a test. All
   * that an observer knows. */
  async transcript() {
    const { steps } = await this.#kept.alone(() => this.#read());
    return steps.map((step) => Object.freeze({ ...step }));
  }

  /** Reads what is kept, and keeps a session that has released nothing where there is none. */
  async begin() {
    await this.#kept.alone(async () => {
      const state = await this.#kept.read();
      if (state === null) await this.#write({ calls: 0, last: -1, steps: [], hidden: null });
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
      const { belief, ask, begins } = this.#planned(state, tick);
      const due = this.#due([...state.steps, ...dearest(tick, ask, begins)], tick);
      if (due * this.#limit[1] > this.#limit[0] * this.#unit) {
        throw new ReportError("budget", "a window would cost more than its limit: report no more in this window");
      }
      const own = place ?? this.#fix ?? belief.open.estimate;
      const { step, hidden } = this.#drawn(tick, ask, begins, own, state.hidden);
      const steps = step === null ? state.steps : [...state.steps, step];
      const after = step === null ? belief : this.#after(belief, step);
      await this.#write({ calls: state.calls + 1, last: tick, steps, hidden });
      [this.#known, this.#fix] = [{ steps, belief: after }, own];
      return Object.freeze({
        tick,
        place: Object.freeze(this.#placed(after.open.estimate)),
        error: after.open.error,
        drawn: step !== null && step.report !== null,
        report: step?.report ?? null,
        moved: step?.moved ?? null,
        charge: this.#words(step === null ? 0n : this.#account([step]).reduce((sum, { amount }) => sum + amount, 0n)),
        left: this.#left(this.#due(steps, tick)),
      });
    });
  }

  /** What public history asks for at a tick: the belief at it, what the rule wants, whether a test begins. */
  #planned(state, tick) {
    const followed = this.#followed(state);
    const goingOn = this.#goingOn(state.steps, tick);
    const belief = (goingOn ? followed : followed.open).at(tick);
    const ask = this.#rule(tick, state.steps, belief.open);
    return { belief, ask, begins: ask !== null && ask.against !== null && !goingOn };
  }

  /** The step of a tick and the offset that stays hidden after it: the only place that draws. */
  #drawn(tick, ask, begins, place, before) {
    if (ask === null) return { step: null, hidden: null }; // while a test goes on, a rule asks at every tick
    const { against } = ask;
    let [hidden, moved, report] = [before, null, null];
    if (against !== null) {
      if (begins) hidden = this.#test.drawn(this.#bits);
      moved = this.#test.far(against, place, hidden, this.#bits);
    }
    if (moved !== false) [report, hidden] = [this.#rows[ask.table].draw(place, this.#bits), null];
    return { step: { tick, table: report === null ? null : ask.table, report, moved, against, begun: begins }, hidden };
  }

  #goingOn(steps, tick) {
    return this.#per !== null && running(steps, this.#per, tick) !== null;
  }

  /** The belief after a step, which was before it at its tick. */
  #after(belief, { table, report, moved, against, begun }) {
    let found = belief;
    if (moved !== null) {
      if (begun) found = found.open.hiding(this.#test.prior);
      found = found.seen(this.#test.chances(against, moved));
    }
    return table === null ? found : found.open.seen([this.#likelihood(table, report)]);
  }

  /** The belief after the steps that are kept: gone on with, or followed from the beginning. */
  #followed({ steps, last }) {
    const known = this.#known ?? { steps: [], belief: this.#begun };
    if (!known.steps.every((step, k) => `${listed(step)}` === (steps[k] && `${listed(steps[k])}`))) {
      throw this.#kept.damaged("was put back in an older state");
    }
    let { belief } = known;
    for (let k = known.steps.length; k < steps.length; k++) {
      if (!this.#goingOn(steps.slice(0, k), steps[k].tick)) belief = belief.open;
      belief = this.#after(belief.at(steps[k].tick), steps[k]);
    }
    return belief.at(Math.max(last, belief.tick));
  }

  #account(steps) {
    return accountOf(steps, this.#charges, this.#per);
  }

  /** P(report|u) of every place, in floating point. */
  #likelihood(table, report) {
    const rows = this.#rows[table];
    this.#likelihoods[table] ??= Array.from({ length: this.places.count }, (_, cell) => rows.probabilities(cell));
    return Float64Array.from(this.#likelihoods[table], (row) => row[report]);
  }

  /** What was paid in the window that ends with `tick`, or, of days, that it is in. */
  #due(steps, tick) {
    const start = startOf(this.#window, tick);
    const recent = stepsSince(steps, this.#per ? startOf(this.#per, start) : start);
    return this.#account(recent).reduce((sum, { last, amount }) => (last >= start ? sum + amount : sum), 0n);
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
    return { calls: state.calls, last: state.last, steps: state.steps.map(named), hidden: state.hidden };
  }

  #write({ calls, last, steps, hidden }) {
    const [limit, { design }] = [fractionWords(...this.#limit), this.#header];
    const window = this.#window.word;
    const kept = { format: SESSION_FORMAT, design, limit, window, calls, last, steps: steps.map(listed), hidden };
    return this.#kept.write(kept);
  }

  /** Whether a state is one that a session can have left: of another design, looked at no further. */
  #sound({ format, design, limit, window, calls, last, steps, hidden }) {
    const counts = [calls, last + 1, hidden ?? 0].every(isCount);
    const texts = format === SESSION_FORMAT && typeof design === "string" && fraction(limit) && typeof window === "string";
    if (!counts || !texts || !Array.isArray(steps) || steps.length > calls) return false;
    if (design !== this.#header.design) return true;
    let before = null;
    for (const each of steps) {
      const step = named(each);
      const rises = isCount(step.tick) && step.tick > (before?.tick ?? -1) && step.tick <= last;
      if (each.length !== 6 || !rises || !this.#canStep(before, step)) return false;
      before = step;
    }
    const goingOn = this.#goingOn(before === null ? [] : [before], Math.max(last, 0));
    return goingOn === (hidden !== null) && (hidden ?? 0) <= (this.#test?.top ?? 0);
  }

  /** Whether the design can make a step after another: a report, the answer of a test, or both. */
  #canStep(before, { tick, table, report, moved, against, begun }) {
    if ((table === null) !== (report === null) || (moved === false) !== (table === null)) return false;
    if (table !== null && !(isCount(table) && isCount(report) && this.#rows[table]?.canReport(report))) return false;
    if (this.#test === null) return moved === null && against === null && begun === false;
    const own = before !== null && this.#goingOn([before], tick) ? before.against : null;
    const place = isCount(against) && against < this.places.count && (own === null || own === against);
    return typeof moved === "boolean" && place && begun === (own === null);
  }
}

/** The session under `key` of a storage, begun where there is none.
 *
 * limit, of every window, in multiples of the metric: a number, or an exact fraction as text; window: "1d", calendar days,
 * "24h", any 24 hours, or another that the design names. minutes, how far the time that midnights are in is ahead of UTC.
 * table, storage, key, bits and now as in `openClient`. Rejects with ReportError "option" for a limit below what the
 * design can cost in a window, or other than this session was begun with. */
export async function openSession(options = {}) {
  checkOptions(options, SESSION_OPTIONS);
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
