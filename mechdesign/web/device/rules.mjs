// The ticks at which a session reports, and the table of each report. A rule sees a tick, the released steps and the
// belief that follows from them. It never sees a position, so its decisions reveal nothing new.

import { need } from "./frame.mjs";
import { startOf, stepsSince, windowOf } from "./windows.mjs";

const HOURS = 24;

/** ask(tick, steps, belief): the number of a table, null for no report. Throws ReportError "table" for a rule that a design
 * of so many ticks a day and so many tables cannot have. */
export function ruleOf(description, ticks, tables) {
  const { kind, table_thresholds: bounds, table_numbers: numbers } = description;
  const rising = (list) => Array.isArray(list) && list.every((each, k) => each > (list[k - 1] ?? 0) && each < Infinity);
  const areTables = (list) => Array.isArray(list) && list.every((each) => Number.isInteger(each) && each >= 0 && each < tables);
  need(rising(bounds) && areTables(numbers), "has a rule of other tables");
  need(numbers.length > 0 || bounds.length < tables, "has a rule of more tables");
  const table = (k, error) => (numbers.length > 0 ? numbers[k] : bounds.filter((bound) => error > bound).length);
  if (kind === "clock") {
    const { hours } = description;
    need(Array.isArray(hours) && hours.every((hour) => hour >= 0 && hour < HOURS), "has a rule without hours");
    need(numbers.length === 0 || numbers.length === hours.length, "has a rule of other hours");
    const at = new Map(hours.map((hour, k) => [Math.floor((hour * ticks) / HOURS), k]));
    return (tick, _, belief) => (at.has(tick % ticks) ? table(at.get(tick % ticks), belief.best.error) : null);
  }
  need(kind === "risk", `has a rule, ${kind}, that this client does not know`);
  const { threshold, max_reports: maxReports } = description;
  const window = windowOf(description.window, ticks);
  const isComplete = Number.isFinite(threshold) && Number.isInteger(maxReports) && maxReports >= 1 && window !== null;
  need(isComplete, "has a rule without numbers");
  need(numbers.length === 0 || numbers.length === maxReports, "has a rule of other reports");
  return (tick, steps, belief) => {
    if (!(belief.best.error > threshold)) return null;
    const drawn = stepsSince(steps, startOf(window, tick)).length;
    return drawn < maxReports ? table(drawn, belief.best.error) : null;
  };
}
