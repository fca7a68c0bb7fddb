// For each report a tree of edges that proves the lower bound of the multipliers l, in the form of proof/trees.js.
//
// By (1) of interior.js the multipliers w of a report are a flow: w s is small, so that an edge with a large w is tight, and
//
//     f = w (up x_low down x_high)^(1/2)                                                                              (3)
//
// of it leaves `low` and arrives at `high`. Flow along a cycle is shifted round it until one edge carries nothing,
// and that edge is left out (Dantzig 1951), as in solvers/cone/pricing_trees.py. Any trees prove a bound.

/** Steps from places to parents, modulo 2^16, for every report (reports x places). */
function provingTrees(edges, { x, w, rows }) {
  const n = x[0].length;
  const steps = new Uint16Array(x.length * n);
  x.forEach((column, y) => {
    const forest = new Forest(n);
    const flows = edges.map((_, e) => flowOf(rows[2 * e + 1], w[y][2 * e + 1], column) - flowOf(rows[2 * e], w[y][2 * e], column));
    const order = edges.map((_, e) => e).sort((a, b) => Math.abs(flows[b]) - Math.abs(flows[a]));
    for (const e of order) forest.insert(edges[e].tail, edges[e].head, flows[e]);
    // The root is charged for the errors of all flow: there the column is largest, so that they count least.
    forest.hang(column.indexOf(Math.max(...column)), -1, 0);
    forest.up.forEach((parent, v) => (steps[y * n + v] = parent < 0 ? 0 : parent - v));
  });
  return steps;
}

/** The flow (3) of a row. */
function flowOf({ low, high, up, down }, weight, column) {
  return weight * Math.sqrt(up * column[low] * down * column[high]);
}

/** Trees over places, each with the flow to its parent: below 0 from the parent. */
class Forest {
  constructor(n) {
    this.up = new Int32Array(n).fill(-1);
    this.flow = new Float64Array(n);
  }

  /** Make v the root of its tree, and hang it at another place (-1: nowhere) with a flow. */
  hang(v, at, flow) {
    while (v >= 0) {
      const [before, carried] = [this.up[v], this.flow[v]];
      [this.up[v], this.flow[v]] = [at, flow];
      // The same edge, seen from its other end.
      [at, flow, v] = [v, -carried, before];
    }
  }

  /** Add an edge from a to b. If it closes a cycle, its flow goes along the path from a to b instead. The first edge that this
   * empties, or the new one, is left out. */
  insert(a, b, flow) {
    const [fromA, fromB] = [this.#toRoot(a), this.#toRoot(b)];
    const above = new Set(fromA);
    const top = fromB.find((v) => above.has(v));
    if (top === undefined) {
      this.hang(a, b, flow);
      return;
    }
    // Up from a the path has the direction of the new edge, down to b the flow of a place to its parent is against it.
    const path = [...fromA.slice(0, fromA.indexOf(top)).map((v) => [v, 1]), ...fromB.slice(0, fromB.indexOf(top)).map((v) => [v, -1])];
    let [shift, cut] = [Math.abs(flow), null];
    for (const [v, way] of path) {
      const along = this.flow[v] * way * Math.sign(flow);
      if (along < 0 && -along < shift) [shift, cut] = [-along, [v, way]];
    }
    for (const [v, way] of path) this.flow[v] += way * Math.sign(flow) * shift;
    if (!cut) return;
    const rest = flow - Math.sign(flow) * shift;
    this.up[cut[0]] = -1;
    this.flow[cut[0]] = 0;
    if (cut[1] > 0) this.hang(a, b, rest);
    else this.hang(b, a, -rest);
  }

  #toRoot(v) {
    const path = [];
    for (; v >= 0; v = this.up[v]) path.push(v);
    return path;
  }
}
