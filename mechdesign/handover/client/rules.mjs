// At which ticks a session reports, and from which table: by what was released, and by nothing else. A rule is asked with
// a tick, the steps so far and the belief; it is given no place.

import { need } from "./table.mjs";
import { startOf, stepsSince, windowOf } from "./windows.mjs";

const HOURS = 24;

/** ask(tick, steps, belief): the number of a table, or null for no report. Throws ReportError "table" for a rule that a
 * design of so many ticks a day and so many tables cannot have. */
export function ruleOf(told, ticks, tables) {
  const { kind, widths, number } = told;
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
      return number.length > 0 ? number[k] : byWidth(belief.error);
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
    return number.length > 0 ? number[drawn] : byWidth(belief.error);
  };
}

function rising(widths) {
  return Array.isArray(widths) && widths.every((width, k) => width > (k === 0 ? 0 : widths[k - 1]) && width < Infinity);
}

function numbers(number, tables) {
  return Array.isArray(number) && number.every((each) => Number.isInteger(each) && each >= 0 && each < tables);
}
