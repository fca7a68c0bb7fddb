// What was reported and paid, kept in a storage: a cell that was reported is answered with the same report at no cost,
// and in any 24 hours in a row at most `perDay` reports are paid for. What is paid is stored before it is returned.

import { ReportError } from "./errors.mjs";
import { sha256 } from "./sha256.mjs";

const FORMAT = "mechdesign/client-memory/1";
const DAY = 24 * 60 * 60 * 1000;
const TURNS = new WeakMap(); // of every storage, the end of the last action on it

/** A storage that lasts as long as the program: for tests and trials. A budget in it is new at every start. */
export function memoryStorage() {
  const kept = new Map();
  return { getItem: (key) => kept.get(key) ?? null, setItem: (key, text) => void kept.set(key, text) };
}

/** The memory under one key of a storage with getItem and setItem (Web Storage, or promises of the same).
 *
 * mechanism, the table that reports are drawn from; charge, what one of its reports costs in multiples of the metric:
 * a report of a table with twice the charge counts twice. Payments dated in the future, as after a clock was put back,
 * count until they are a day old. */
export class Ledger {
  #storage;
  #key;
  #mechanism;
  #charge;
  #perDay;
  #now;
  #seen = 0;

  constructor({ storage, key, mechanism, charge, perDay, now }) {
    [this.#storage, this.#key, this.#mechanism] = [storage, key, mechanism];
    [this.#charge, this.#perDay, this.#now] = [charge, perDay, now];
  }

  /** {report, remembered, left} of a cell: the remembered report, or one that `draw` returns, paid for and kept.
   * Rejects with ReportError "budget" where the day is spent, before anything is drawn. */
  report(cell, draw, canReport) {
    return this.#alone(async () => {
      const state = await this.#read();
      const own = (state.remembered[this.#mechanism] ??= {});
      if (Object.hasOwn(own, cell)) {
        if (!canReport(own[cell])) throw damaged("holds a report that the table does not have");
        return { report: own[cell], remembered: true, left: this.#left(state) };
      }
      if (this.#charge > 0 && this.#left(state) < 1) {
        throw new ReportError("budget", `${this.#perDay} report(s) in 24 hours are spent: report nothing until later`);
      }
      const report = draw();
      own[cell] = report;
      if (this.#charge > 0) state.paid.push([this.#now(), this.#charge]);
      state.spends += 1;
      await this.#write(state);
      return { report, remembered: false, left: this.#left(state) };
    });
  }

  /** {left, spent, remembered}: reports left in these 24 hours, paid in all, cells remembered for this table. */
  status() {
    return this.#alone(async () => {
      const state = await this.#read();
      const own = state.remembered[this.#mechanism] ?? {};
      return { left: this.#left(state), spent: state.spends, remembered: Object.keys(own).length };
    });
  }

  /** Forget the remembered reports, not what was paid; a damaged memory starts again with its day spent. */
  forget() {
    return this.#alone(async () => {
      let state;
      try {
        state = await this.#read();
      } catch (error) {
        if (error.code !== "memory") throw error;
        const all = Array.from({ length: this.#perDay }, () => [this.#now(), this.#charge]);
        state = { paid: all, spends: Math.max(this.#seen, this.#perDay) };
      }
      await this.#write({ ...state, remembered: {} });
    });
  }

  /** One action at a time: in this program by turns, among tabs by a Web Lock where the browser grants one. */
  #alone(action) {
    const locks = globalThis.navigator?.locks;
    const whole = () => (locks ? locks.request(this.#key, action) : action());
    const done = (TURNS.get(this.#storage) ?? Promise.resolve()).then(whole);
    TURNS.set(this.#storage, done.catch(() => {}));
    return done;
  }

  #left({ paid }) {
    const spent = paid.reduce((sum, [, charge]) => sum + charge / this.#charge, 0);
    return this.#charge > 0 ? Math.max(0, Math.floor(this.#perDay - spent + 1e-9)) : this.#perDay;
  }

  async #read() {
    let text;
    try {
      text = await this.#storage.getItem(this.#key);
    } catch (error) {
      throw kept(error);
    }
    const state = text === null || text === undefined ? { paid: [], spends: 0, remembered: {} } : parsed(text);
    if (state.spends < this.#seen) throw damaged("was deleted, or put back in an older state");
    this.#seen = state.spends;
    const now = this.#now();
    return { ...state, paid: state.paid.filter(([time]) => now - time < DAY) };
  }

  async #write({ paid, spends, remembered }) {
    const inner = JSON.stringify({ format: FORMAT, paid, spends, remembered });
    const text = JSON.stringify({ state: inner, sha256: digest(inner) });
    let found;
    try {
      await this.#storage.setItem(this.#key, text);
      found = await this.#storage.getItem(this.#key);
    } catch (error) {
      throw kept(error);
    }
    if (found !== text) throw kept("it does not give back what it was given");
    this.#seen = spends;
  }
}

function parsed(text) {
  try {
    const { state: inner, sha256: sum } = JSON.parse(text);
    if (digest(inner) !== sum) throw new TypeError("altered");
    const state = JSON.parse(inner);
    const paid = state.paid.every(([time, charge]) => Number.isFinite(time) && charge > 0);
    const cells = Object.values(state.remembered).flatMap((own) => Object.values(own));
    const whole = [...cells, state.spends].every((count) => Number.isSafeInteger(count) && count >= 0);
    const sound = paid && whole && cells.length <= state.spends;
    if (state.format !== FORMAT || !sound) throw new TypeError("contradicts itself");
    return state;
  } catch {
    throw damaged("is altered, or not of this version");
  }
}

function digest(text) {
  return sha256(new TextEncoder().encode(text));
}

function damaged(why) {
  return new ReportError("memory", `what was remembered ${why}: take the day's budget as spent, or call forget()`);
}

function kept(error) {
  return new ReportError("storage", `nothing can be kept, so nothing is reported: ${error?.message ?? error}`);
}
