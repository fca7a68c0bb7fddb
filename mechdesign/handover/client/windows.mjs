// Exact fractions, and windows of ticks whose charges are added up.

import { binary } from "./places.mjs";

const FRACTION = /^([0-9]{1,400})(?:\/([1-9][0-9]{0,400}))?$/;
const WINDOW = /^([1-9][0-9]{0,4})([dh])$/;
const MOST_TICKS = 2 ** 20; // of a window

/** [numerator, denominator] of "3", "7/2", or of a double >= 0, exactly; null for anything else. */
export function fraction(given) {
  if (typeof given === "string") {
    const found = FRACTION.exec(given);
    return found && [BigInt(found[1]), BigInt(found[2] ?? 1)];
  }
  if (!Number.isFinite(given) || given < 0) return null;
  const [digits, exponent] = binary(given);
  return exponent < 0 ? [digits, 1n << BigInt(-exponent)] : [digits << BigInt(exponent), 1n];
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

/** The window of a word, of `ticks` a day: "1d", "14d", days from midnight; "24h", any so many hours. length, in ticks;
 * calendar; name, in words. Null for anything else, and for hours that are no whole number of ticks. */
export function windowOf(given, ticks) {
  const found = WINDOW.exec(given);
  if (!found) return null;
  const [count, calendar] = [Number(found[1]), found[2] === "d"];
  const length = (count * ticks) / (calendar ? 1 : 24);
  if (!Number.isInteger(length) || length < 1 || length > MOST_TICKS) return null;
  const days = count === 1 ? "a calendar day" : `${count} calendar days`;
  return { length, calendar, name: calendar ? days : `any ${given} in a row` };
}

/** The first tick of the window that ends with `tick`, or, of days, that it is in. */
export function startOf({ length, calendar }, tick) {
  return calendar ? Math.floor(tick / length) * length : tick - length + 1;
}

/** [sum, first]: the largest sum of charges {first, last, amount} that a window has a tick of, and its first tick. In any
 * window sums grow only where a charge begins, so that of the windows that end there one is largest. */
export function worstWindow(window, charges) {
  const sums = new Map();
  if (window.calendar) {
    for (const { first, last, amount } of charges) {
      for (let at = startOf(window, first); at <= last; at += window.length) sums.set(at, (sums.get(at) ?? 0n) + amount);
    }
  } else {
    const begun = added([...charges].sort((a, b) => a.first - b.first), (each) => each.first);
    const ended = added([...charges].sort((a, b) => a.last - b.last), (each) => each.last);
    for (const { first } of charges) {
      const start = startOf(window, first);
      sums.set(start, begun(first) - ended(start - 1));
    }
  }
  let [most, at] = [0n, 0];
  for (const [start, sum] of [...sums].sort(([a], [b]) => a - b)) if (sum > most) [most, at] = [sum, start];
  return [most, at];
}

/** A function of a tick: the sum of the amounts of sorted charges whose `key` is at most that. */
function added(charges, key) {
  const sums = [0n];
  for (const each of charges) sums.push(sums[sums.length - 1] + each.amount);
  return (tick) => {
    let [low, high] = [0, charges.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (key(charges[middle]) <= tick) low = middle + 1;
      else high = middle;
    }
    return sums[low];
  };
}

function divisor(a, b) {
  while (b > 0n) [a, b] = [b, a % b];
  return a;
}
