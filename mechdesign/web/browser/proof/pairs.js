// Proves that paths of edges join every pair of secrets within the distance of the claim, as `verify_table.py` does.
//
// Paths lead over secrets between the two in the order of their cells: none, then the last one in the same direction,
// then any. Nats along a path are added exactly, as integers of the finest unit of all lengths.

/** The first pair that no such path joins within the distance, as a list of at most one fault. */
function* unjoinedPairs(cells, { tail, head, length: lengths }, over) {
  const count = cells.length;
  // Denominators of doubles are powers of 2: with the largest one every length is an integer.
  const fine = Array.from(lengths, (nats) => exactly(nats)[1]).reduce((a, b) => (a > b ? a : b), 1n);
  const near = Array.from({ length: count }, () => new Map());
  for (let e = 0; e < tail.length; e++) {
    const [p, q] = exactly(lengths[e]);
    const nats = (p * fine) / q;
    near[tail[e]].set(head[e], nats);
    near[head[e]].set(tail[e], nats);
  }
  // An edge joins every pair, and the lengths of edges are compared already.
  if (near.every((others) => others.size === count - 1)) return [];
  const order = cells.map((_, u) => u).sort((u, v) => compareCells(cells[u], cells[v]));
  for (let i = 0; i < count; i++) {
    const u = order[i];
    const path = new Map([[u, 0n]]);
    const last = new Map();
    for (const v of order.slice(i + 1)) {
      const way = direction(cells[u], cells[v]);
      let length = null;
      for (const w of between(u, last.get(way), near[v])) {
        if (!path.has(w) || !near[v].has(w)) continue;
        const nats = path.get(w) + near[v].get(w);
        // One path within the distance is enough; the next place between may give a shorter one.
        if (over([nats, fine], u, v)) continue;
        length = nats;
        break;
      }
      if (length === null) {
        return [{ text: `no path of edges joins ${u} and ${v} within the distance of the claim`, secret: u, other: v }];
      }
      path.set(v, length);
      last.set(way, v);
    }
    if (i % 8 === 0) yield 0.5 + (0.5 * i) / count;
  }
  return [];
}

/** Candidates for the last secret before v on a path from u, the most likely first. */
function* between(u, last, near) {
  yield u;
  if (last !== undefined) yield last;
  yield* near.keys();
}

function compareCells(a, b) {
  for (let k = 0; k < a.length; k++) if (a[k] !== b[k]) return a[k] - b[k];
  return 0;
}

/** The step from one cell to another, divided by its greatest common divisor. */
function direction(from, to) {
  const step = to.map((k, axis) => k - from[axis]);
  const divisor = step.reduce((a, b) => {
    [a, b] = [Math.abs(a), Math.abs(b)];
    while (b) [a, b] = [b, a % b];
    return a;
  }, 0);
  return step.map((k) => k / (divisor || 1)).join();
}
