// At which ticks a session reports, and from which table: by what was released, and by nothing else. A rule is asked with
// a tick, the steps so far and the belief; it is given no place.

import { running, stepsSince } from "./steps.mjs";
import { need } from "./table.mjs";
import { startOf, windowOf } from "./windows.mjs";

const HOURS = 24;

/** ask(tick, steps, belief): {table, against}, against the place of a test or null; null for no report. Throws ReportError
 * "table" for a rule that a design of so many ticks a day and so many tables cannot have. */
export function ruleOf(told, ticks, tables) {
  const { kind, widths, number } = told;
  if (kind === "moved-test") return movedRule(told, ticks, tables);
  need(rising(widths) && numbers(number, tables), "has a rule of other tables");
  need(number.length > 0 || widths.length < tables, "has a rule of more tables");
  const byWidth = (error) => widths.filter((width) => error > width).length;
  if (kind === "clock") {
    const { hours } = told;
    need(Array.isArray(hours) && hours.every((hour) => hour >= 0 && hour < HOURS), "has a rule without hours");
    need(number.length === 0 || number.length === hours.length, "has a rule of other hours");
    const at = new Map(hours.map((hour, k) => [Math.floor((hour * ticks) / HOURS), k]));
    return (tick, _, belief) => {
      const k = at.get(tick % ticks);
      if (k === undefined) return null;
      return { table: number.length > 0 ? number[k] : byWidth(belief.error), against: null };
    };
  }
  need(kind === "risk", `has a rule, ${kind}, that this client does not know`);
  const { above, most } = told;
  const per = windowOf(told.per, ticks);
  need(Number.isFinite(above) && Number.isInteger(most) && most >= 1 && per !== null, "has a rule without numbers");
  need(number.length === 0 || number.length === most, "has a rule of other reports");
  return (tick, steps, belief) => {
    if (!(belief.error > above)) return null;
    const drawn = stepsSince(steps, startOf(per, tick)).length;
    if (drawn >= most) return null;
    return { table: number.length > 0 ? number[drawn] : byWidth(belief.error), against: null };
  };
}

function movedRule({ table, most, per: word }, ticks, tables) {
  const per = windowOf(word, ticks);
  need(per?.calendar && Number.isInteger(most) && most >= 1, "has a rule without numbers");
  need(numbers([table], tables), "has a rule of other tables");
  return (tick, steps, belief) => {
    const against = running(steps, per, tick);
    if (against !== null) return { table, against };
    const begun = stepsSince(steps, startOf(per, tick)).filter((step) => step.begun).length;
    return begun >= most ? null : { table, against: belief.estimate };
  };
}

function rising(widths) {
  return Array.isArray(widths) && widths.every((width, k) => width > (k === 0 ? 0 : widths[k - 1]) && width < Infinity);
}

function numbers(number, tables) {
  return Array.isArray(number) && number.every((each) => Number.isInteger(each) && each >= 0 && each < tables);
}
