// At which ticks a session reports, and from which table: by what was released, and by nothing else. A rule is asked with
// a tick, the steps so far and the belief; it is given no place.

import { need } from "./frame.mjs";
import { startOf, stepsSince, windowOf } from "./windows.mjs";

const HOURS = 24;

/** ask(tick, steps, belief): the number of a table, null for no report. Throws ReportError "table" for a rule that a design
 * of so many ticks a day and so many tables cannot have. */
export function ruleOf({ kind, widths, number, hours, above, most, per: word }, ticks, tables) {
  const rising = (list) => Array.isArray(list) && list.every((each, k) => each > (list[k - 1] ?? 0) && each < Infinity);
  const named = (list) => Array.isArray(list) && list.every((each) => Number.isInteger(each) && each >= 0 && each < tables);
  need(rising(widths) && named(number), "has a rule of other tables");
  need(number.length > 0 || widths.length < tables, "has a rule of more tables");
  const table = (k, error) => (number.length > 0 ? number[k] : widths.filter((width) => error > width).length);
  if (kind === "clock") {
    need(Array.isArray(hours) && hours.every((hour) => hour >= 0 && hour < HOURS), "has a rule without hours");
    need(number.length === 0 || number.length === hours.length, "has a rule of other hours");
    const at = new Map(hours.map((hour, k) => [Math.floor((hour * ticks) / HOURS), k]));
    return (tick, _, belief) => (at.has(tick % ticks) ? table(at.get(tick % ticks), belief.best.error) : null);
  }
  need(kind === "risk", `has a rule, ${kind}, that this client does not know`);
  const per = windowOf(word, ticks);
  need(Number.isFinite(above) && Number.isInteger(most) && most >= 1 && per !== null, "has a rule without numbers");
  need(number.length === 0 || number.length === most, "has a rule of other reports");
  return (tick, steps, belief) => {
    if (!(belief.best.error > above)) return null;
    const drawn = stepsSince(steps, startOf(per, tick)).length;
    return drawn < most ? table(drawn, belief.best.error) : null;
  };
}
