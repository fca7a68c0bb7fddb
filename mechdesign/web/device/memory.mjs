// The memory of a client: reports and payments, kept in a storage.
//
// A cell or visit that was reported before gets the same report at no cost. In any 24 hours in a row at most `perDay` reports are
// paid for. A payment is stored before its report is returned.

import { ReportError } from "./frame.mjs";
import { PrivateLedger } from "./ledger.mjs";

const FORMAT = "mechdesign/client-memory/1";
const MINUTE = 60_000; // milliseconds
const DAY = 24 * 60 * MINUTE;
const KEPT = 1000; // payments, at least, that are kept however old
const REMEDY = "take the day's budget as spent, or call forget()";

/** The memory under one key of a storage with getItem and setItem (Web Storage, or promises of the same).
 *
 * mechanism: the name of the table that reports are drawn from. charge: the cost of one of its reports in multiples of
 * the metric. A report of a table with twice the charge counts twice.
 *
 * A clock that is put forward and back frees nothing. A payment has the latest time that was ever read. The last `KEPT`
 * payments are kept even when they are a day old, and one of the future counts until it is a day old. */
export class Memory {
  #ledger;
  #mechanism;
  #charge;
  #perDay;
  #now;
  #latest = -Infinity; // time that was read

  constructor({ storage, key, mechanism, charge, perDay, now }) {
    this.#ledger = new PrivateLedger({ storage, key, count: "spends", sound: soundMemory, remedy: REMEDY });
    [this.#mechanism, this.#charge, this.#perDay, this.#now] = [mechanism, charge, perDay, now];
  }

  /** {report, remembered, remaining} of a secret: the remembered report, or a drawn one, paid for and kept.
   *
   * choose(names, last) returns {name, draw} for the remembered names and that of the last report; a name of null is not
   * kept. Rejects with ReportError "budget" where the day is spent, before anything is drawn. */
  report(choose, canReport) {
    return this.#ledger.alone(async () => {
      const state = await this.#read();
      const own = (state.remembered[this.#mechanism] ??= {});
      const last = state.last?.[this.#mechanism];
      const { name, draw } = choose(Object.keys(own), last);
      if (name !== null && Object.hasOwn(own, name)) {
        if (!canReport(own[name])) throw this.#ledger.damaged("holds a report that the table does not have");
        const { report: before, time } = state.given?.[this.#mechanism] ?? {};
        // The time of the last report is kept to a minute: a fix every second must not write every second.
        const isKept = last === name && before === own[name] && state.latest - time < MINUTE;
        if (!isKept) await this.#write(withLast(state, this.#mechanism, name, own[name]));
        return { report: own[name], remembered: true, remaining: this.#remaining(state) };
      }
      if (this.#charge > 0 && this.#remaining(state) < 1) {
        const until = this.#until(state);
        const spent = `${this.#perDay} report(s) in 24 hours are spent`;
        throw new ReportError("budget", `${spent}: report nothing until ${clockWords(until, state.now)}`, { until });
      }
      // The budget is checked before the draw: a refusal must not depend on the report.
      const report = draw();
      if (name !== null) own[name] = report;
      if (this.#charge > 0) state.paid.push([state.latest, this.#charge]);
      state.spends += 1;
      // Stored before it is returned: whoever sees a report has paid for it.
      await this.#write(withLast(state, this.#mechanism, name, report));
      return { report, remembered: false, remaining: this.#remaining(state) };
    });
  }

  /** {remaining, spent, remembered}: reports that remain in these 24 hours, paid in all, cells remembered for this table. */
  status() {
    return this.#ledger.alone(async () => {
      const state = await this.#read();
      const own = state.remembered[this.#mechanism] ?? {};
      return { remaining: this.#remaining(state), spent: state.spends, remembered: Object.keys(own).length };
    });
  }

  /** {report, time} of the last report, to a minute; null before the first. */
  last(canReport) {
    return this.#ledger.alone(async () => {
      const { given } = await this.#read();
      const last = given?.[this.#mechanism] ?? null;
      if (last && !canReport(last.report)) throw this.#ledger.damaged("holds a report that the table does not have");
      return last;
    });
  }

  /** Forget the remembered reports, but not the payments. A damaged memory begins again with the budget of its day spent. */
  forget() {
    return this.#ledger.alone(async () => {
      let state;
      try {
        state = await this.#read();
      } catch (error) {
        if (error.code !== "memory") throw error;
        const now = this.#time();
        const paid = Array.from({ length: this.#charge > 0 ? this.#perDay : 0 }, () => [now, this.#charge]);
        state = { paid, spends: Math.max(this.#ledger.seen, this.#perDay), latest: now };
      }
      await this.#write({ ...state, remembered: {}, last: {}, given: {} });
    });
  }

  /** Reports that remain at the time that was read, or at a later one. */
  #remaining({ paid, now }, at = now) {
    if (!(this.#charge > 0)) return this.#perDay;
    const spent = paid.reduce((sum, [time, charge]) => (at - time < DAY ? sum + charge / this.#charge : sum), 0);
    return Math.max(0, Math.floor(this.#perDay - spent + 1e-9));
  }

  /** When a report is next possible: the day after a payment. */
  #until(state) {
    const ends = state.paid.map(([time]) => time + DAY).sort((a, b) => a - b);
    return ends.find((end) => end > state.now && this.#remaining(state, end) >= 1);
  }

  /** Read the state, with the current time and the latest time ever read. */
  async #read() {
    const state = (await this.#ledger.read()) ?? { paid: [], spends: 0, remembered: {}, latest: -Infinity };
    const now = this.#time();
    this.#latest = Math.max(this.#latest, state.latest, now);
    return { ...state, now, latest: this.#latest };
  }

  #time() {
    const now = this.#now();
    if (isTime(now)) return now;
    throw new ReportError("option", `now gives ${now}: it must give milliseconds since 1970`);
  }

  #write({ paid, spends, remembered, latest, last, given }) {
    const kept = paid.slice(-Math.max(KEPT, this.#perDay));
    return this.#ledger.write({ format: FORMAT, paid: kept, spends, remembered, latest, last, given });
  }
}

/** A state with the last report, its time, and its name if it has one. */
function withLast(state, mechanism, name, report) {
  const given = { ...state.given, [mechanism]: { report, time: state.latest } };
  return { ...state, given, ...(name === null ? {} : { last: { ...state.last, [mechanism]: name } }) };
}

/** True if a number of milliseconds is a time that a calendar has. */
function isTime(value) {
  return Number.isFinite(value) && Math.abs(value) < 8e15;
}

/** A time in words, in UTC; with its date if it is more than a day away. */
function clockWords(time, now) {
  const [date, clock] = new Date(Math.ceil(time / MINUTE) * MINUTE).toISOString().split("T");
  return `${time - now > DAY ? `${date} ` : ""}${clock.slice(0, 5)} UTC`;
}

/** True if a state is consistent: no payment after the latest time, and no more reports than payments. */
function soundMemory(state) {
  const paid = state.paid.every(([time, charge]) => isTime(time) && time <= state.latest && charge > 0);
  const cells = Object.values(state.remembered).flatMap((own) => Object.values(own));
  const whole = [...cells, state.spends].every((count) => Number.isSafeInteger(count) && count >= 0);
  const texts = Object.values(state.last ?? {}).every((name) => typeof name === "string");
  const given = Object.values(state.given ?? {}).every(
    ({ report, time }) => Number.isSafeInteger(report) && report >= 0 && isTime(time) && time <= state.latest,
  );
  return texts && given && state.format === FORMAT && isTime(state.latest) && paid && whole && cells.length <= state.spends;
}
