// What was reported and paid, kept in a storage: a cell that was reported is answered with the same report at no cost,
// and in any 24 hours in a row at most `perDay` reports are paid for. What is paid is stored before it is returned.

import { ReportError } from "./errors.mjs";
import { Kept } from "./kept.mjs";

const FORMAT = "mechdesign/client-memory/1";
const DAY = 24 * 60 * 60 * 1000;
const REMEDY = "take the day's budget as spent, or call forget()";

/** The memory under one key of a storage with getItem and setItem (Web Storage, or promises of the same).
 *
 * mechanism, the table that reports are drawn from; charge, what one of its reports costs in multiples of the metric:
 * a report of a table with twice the charge counts twice. Payments dated in the future, as after a clock was put back,
 * count until they are a day old. */
export class Ledger {
  #kept;
  #mechanism;
  #charge;
  #perDay;
  #now;

  constructor({ storage, key, mechanism, charge, perDay, now }) {
    this.#kept = new Kept({ storage, key, count: "spends", sound: soundMemory, remedy: REMEDY });
    [this.#mechanism, this.#charge, this.#perDay, this.#now] = [mechanism, charge, perDay, now];
  }

  /** {report, remembered, left} of a cell: the remembered report, or one that `draw` returns, paid for and kept.
   * Rejects with ReportError "budget" where the day is spent, before anything is drawn. */
  report(cell, draw, canReport) {
    return this.#kept.alone(async () => {
      const state = await this.#read();
      const own = (state.remembered[this.#mechanism] ??= {});
      if (Object.hasOwn(own, cell)) {
        if (!canReport(own[cell])) throw this.#kept.damaged("holds a report that the table does not have");
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
    return this.#kept.alone(async () => {
      const state = await this.#read();
      const own = state.remembered[this.#mechanism] ?? {};
      return { left: this.#left(state), spent: state.spends, remembered: Object.keys(own).length };
    });
  }

  /** Forget the remembered reports, not what was paid; a damaged memory starts again with its day spent. */
  forget() {
    return this.#kept.alone(async () => {
      let state;
      try {
        state = await this.#read();
      } catch (error) {
        if (error.code !== "memory") throw error;
        const all = Array.from({ length: this.#perDay }, () => [this.#now(), this.#charge]);
        state = { paid: all, spends: Math.max(this.#kept.seen, this.#perDay) };
      }
      await this.#write({ ...state, remembered: {} });
    });
  }

  #left({ paid }) {
    const spent = paid.reduce((sum, [, charge]) => sum + charge / this.#charge, 0);
    return this.#charge > 0 ? Math.max(0, Math.floor(this.#perDay - spent + 1e-9)) : this.#perDay;
  }

  async #read() {
    const state = (await this.#kept.read()) ?? { paid: [], spends: 0, remembered: {} };
    const now = this.#now();
    return { ...state, paid: state.paid.filter(([time]) => now - time < DAY) };
  }

  #write({ paid, spends, remembered }) {
    return this.#kept.write({ format: FORMAT, paid, spends, remembered });
  }
}

function soundMemory(state) {
  const paid = state.paid.every(([time, charge]) => Number.isFinite(time) && charge > 0);
  const cells = Object.values(state.remembered).flatMap((own) => Object.values(own));
  const whole = [...cells, state.spends].every((count) => Number.isSafeInteger(count) && count >= 0);
  return state.format === FORMAT && paid && whole && cells.length <= state.spends;
}
