// Exact fractions, and windows of ticks in which the charges of steps are summed.

import { exactly } from "./places.mjs";

const FRACTION = /^([0-9]{1,400})(?:\/([1-9][0-9]{0,400}))?$/;
const WINDOW = /^([1-9][0-9]{0,4})([dh])$/;
const MOST_TICKS = 2 ** 20; // of a window

/** [numerator, denominator] of "3", "7/2", or of a double >= 0, exactly; null for anything else. */
export function fraction(given) {
  if (typeof given === "string") {
    const found = FRACTION.exec(given);
    return found && [BigInt(found[1]), BigInt(found[2] ?? 1)];
  }
  return Number.isFinite(given) && given >= 0 ? exactly(given) : null;
}

/** A fraction in lowest terms, as text. */
export function fractionWords(numerator, denominator) {
  const common = divisor(numerator < 0n ? -numerator : numerator, denominator);
  const [above, below] = [numerator / common, denominator / common];
  return below === 1n ? `${above}` : `${above}/${below}`;
}

/** The least common multiple of denominators. */
export function commonDenominator(fractions) {
  return fractions.reduce((all, [, below]) => (all / divisor(all, below)) * below, 1n);
}

/** The window that a word names, with `ticks` a day: "1d" or "14d" are days from midnight, "24h" any 24 hours. It has
 * length in ticks, calendar (true for days) and name. Null for other words, and for hours that end within a tick. */
export function windowOf(given, ticks) {
  const found = WINDOW.exec(given);
  if (!found) return null;
  const [count, calendar] = [Number(found[1]), found[2] === "d"];
  const length = (count * ticks) / (calendar ? 1 : 24);
  if (!Number.isInteger(length) || length < 1 || length > MOST_TICKS) return null;
  const days = count === 1 ? "a calendar day" : `${count} calendar days`;
  return { length, calendar, name: calendar ? days : `any ${given} in a row` };
}

/** The first tick of the window that ends with `tick`; for calendar days, of the window that contains it. */
export function startOf({ length, calendar }, tick) {
  return calendar ? Math.floor(tick / length) * length : tick - length + 1;
}

/** The steps {tick, ...} at `tick` and after it, of steps whose ticks rise. */
export function stepsSince(steps, tick) {
  let from = steps.length;
  while (from > 0 && steps[from - 1].tick >= tick) from--;
  return steps.slice(from);
}

/** The largest sum of amountOf(step), integers, in one window, and the first tick of that window, [sum, first]. A sum
 * grows only with a step, so it is enough to try the windows that end with a step or contain it. */
export function worstWindow(window, steps, amountOf) {
  let [from, to, sum, most, at] = [0, 0, 0n, 0n, 0];
  for (const { tick } of steps) {
    const start = startOf(window, tick);
    while (steps[from].tick < start) sum -= amountOf(steps[from++]);
    while (to < steps.length && steps[to].tick < start + window.length) sum += amountOf(steps[to++]);
    if (sum > most) [most, at] = [sum, start];
  }
  return [most, at];
}

/** The greatest common divisor. */
function divisor(a, b) {
  while (b > 0n) [a, b] = [b, a % b];
  return a;
}
