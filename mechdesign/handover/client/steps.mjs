// Steps: what was released at a tick, {tick, table, report, moved, against, begun}: a report drawn from a table, the answer
// of a test whether the place is far from the place `against`, or both; null where there is none.

import { startOf } from "./windows.mjs";

/** The steps at `tick` and after it. */
export function stepsSince(steps, tick) {
  let from = steps.length;
  while (from > 0 && steps[from - 1].tick >= tick) from--;
  return steps.slice(from);
}

/** The place that a test of the window of `tick` goes on against: one that was begun there, and has not yet answered that
 * the place is far; null where there is none. */
export function running(steps, window, tick) {
  const step = steps[steps.length - 1];
  return step !== undefined && step.tick >= startOf(window, tick) && step.moved === false ? step.against : null;
}

/** Charges {first, last, amount}, and in which ticks: a report in its own, a test in all from its first to that of its
 * answer "far", or to the end of its window `per` of days while there is none. amounts, of every table, then of a test. */
export function accountOf(steps, amounts, per) {
  const found = [];
  let begun = null;
  for (const { tick, table, moved, begun: begins } of steps) {
    if (table !== null) found.push({ first: tick, last: tick, amount: amounts[table] });
    if (begins) {
      begun = { first: tick, last: startOf(per, tick) + per.length - 1, amount: amounts.at(-1) };
      found.push(begun);
    }
    if (moved && begun !== null) begun.last = tick;
  }
  return found;
}

/** What a tick may cost at most, as steps: a test that begins, and a report. */
export function dearest(tick, ask, begins) {
  if (ask === null) return [];
  const report = { tick, table: ask.table, moved: null, begun: false };
  return begins ? [{ tick, table: null, moved: false, begun: true }, report] : [report];
}

export function named([tick, table, report, moved, against, begun]) {
  return { tick, table, report, moved, against, begun };
}

export function listed({ tick, table, report, moved, against, begun }) {
  return [tick, table, report, moved, against, begun];
}

export function isCount(value) {
  return Number.isSafeInteger(value) && value >= 0;
}
