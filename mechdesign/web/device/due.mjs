// Answers at fixed times: a draw takes the longer the farther its report lies, and when an answer comes must not tell.

const WATCHED = 2; // milliseconds before an answer is due in which the clock is watched, since timers are coarse

/** What `action` resolves to, or rejects with, so many milliseconds after this call, or, where it takes longer, at the
 * next multiple of them; at once where they are 0. */
export async function answered(milliseconds, action) {
  const asked = performance.now();
  try {
    return await action();
  } finally {
    if (milliseconds > 0) {
      const due = asked + Math.max(1, Math.ceil((performance.now() - asked) / milliseconds)) * milliseconds;
      const rest = due - WATCHED - performance.now();
      if (rest > 0) await new Promise((resolve) => setTimeout(resolve, rest));
      while (performance.now() < due);
    }
  }
}
