// Proves that paths of edges join every pair of secrets within the distance of the claim, as `verify_table.py` does.
//
// Paths lead over secrets between the two in the order of their cells: none, then the last one in the same direction,
// then any. Nats along a path are added in doubles, rounded up; if some pair then seems too far apart, exactly, as integers
// of the finest unit of all lengths.

const ABOVE = 1 + 2 ** -52; // times a sum of two doubles >= 0: not below the exact sum

/** The first pair that no such path joins within the distance, as a list of at most one fault. */
function* unjoinedPairs(cells, edges, over) {
  const sums = { zero: 0, lengthOf: (nats) => nats, add: (a, b) => (a + b) * ABOVE, over };
  const faults = yield* unjoinedBySums(cells, edges, sums);
  if (faults.length === 0) return faults;
  // Denominators of doubles are powers of 2: with the largest one every length is an integer.
  const fine = Array.from(edges.length, (nats) => exactly(nats)[1]).reduce((a, b) => (a > b ? a : b), 1n);
  const lengthOf = (nats) => (([p, q]) => (p * fine) / q)(exactly(nats));
  const exact = { zero: 0n, lengthOf, add: (a, b) => a + b, over: (nats, u, v) => over([nats, fine], u, v) };
  return yield* unjoinedBySums(cells, edges, exact);
}

/** The same with sums of nats: zero, lengthOf(nats), add(a, b), and over(sum, u, v), true beyond the distance. */
function* unjoinedBySums(cells, { tail, head, length: lengths }, { zero, lengthOf, add, over }) {
  const count = cells.length;
  const near = new Near(count);
  for (let e = 0; e < tail.length; e++) near.join(tail[e], head[e], lengthOf(lengths[e]));
  // An edge joins every pair, and the lengths of edges are compared already.
  if (near.isComplete()) return [];
  const order = cells.map((_, u) => u).sort((u, v) => compareCells(cells[u], cells[v]));
  const at = new CellNumbers(cells);
  for (let i = 0; i < count; i++) {
    const u = order[i];
    const path = Array(count).fill(undefined);
    path[u] = zero;
    for (let k = i + 1; k < count; k++) {
      const v = order[k];
      for (const w of between(u, v, at, near)) {
        const last = near.length(w, v);
        if (path[w] === undefined || last === undefined) continue;
        const nats = add(path[w], last);
        // One path within the distance is enough; the next place between may give a shorter one.
        if (over(nats, u, v)) continue;
        path[v] = nats;
        break;
      }
      if (path[v] === undefined) {
        return [{ text: `no path of edges joins ${u} and ${v} within the distance of the claim`, secret: u, other: v }];
      }
    }
    if (i % 8 === 0) yield 0.5 + (0.5 * i) / count;
  }
  return [];
}

/** Candidates for the last secret before v on a path from u, the most likely first. */
function* between(u, v, at, near) {
  yield u;
  const last = at.before(u, v);
  if (last !== undefined) yield last;
  yield* near.of(v);
}

/** The lengths of edges by their ends: in one array for a table, which has few secrets. */
class Near {
  constructor(count) {
    this.count = count;
    this.others = Array.from({ length: count }, () => []);
    this.lengths = count <= 2048 ? Array(count * count).fill(undefined) : new Map();
    this.dense = count <= 2048;
  }

  join(u, v, nats) {
    if (this.length(u, v) === undefined) {
      this.others[u].push(v);
      this.others[v].push(u);
    }
    for (const at of [u * this.count + v, v * this.count + u]) {
      if (this.dense) this.lengths[at] = nats;
      else this.lengths.set(at, nats);
    }
  }

  length(u, v) {
    const at = u * this.count + v;
    return this.dense ? this.lengths[at] : this.lengths.get(at);
  }

  of(u) {
    return this.others[u];
  }

  isComplete() {
    return this.others.every((others) => others.length === this.count - 1);
  }
}

/** The secrets of lattice places. */
class CellNumbers {
  constructor(cells) {
    this.cells = cells;
    const least = cells[0].map((_, k) => cells.reduce((low, cell) => Math.min(low, cell[k]), Infinity));
    const sides = cells[0].map((_, k) => cells.reduce((high, cell) => Math.max(high, cell[k]), -Infinity) - least[k] + 1);
    this.numberOf = (cell) => cell.reduce((number, place, k) => number * sides[k] + place - least[k], 0);
    this.at = new Map(cells.map((cell, u) => [this.numberOf(cell), u]));
  }

  /** The secret between u and v, on the line through both, that is nearest to v; undefined if no secret lies there. */
  before(u, v) {
    const [from, to] = [this.cells[u], this.cells[v]];
    const divisor = to.reduce((a, place, k) => greatestDivisor(a, Math.abs(place - from[k])), 0);
    for (let steps = divisor - 1; steps > 0; steps--) {
      const w = this.at.get(this.numberOf(from.map((place, k) => place + ((to[k] - place) / divisor) * steps)));
      if (w !== undefined) return w;
    }
    return undefined;
  }
}

function compareCells(a, b) {
  for (let k = 0; k < a.length; k++) if (a[k] !== b[k]) return a[k] - b[k];
  return 0;
}

function greatestDivisor(a, b) {
  while (b) [a, b] = [b, a % b];
  return a;
}
