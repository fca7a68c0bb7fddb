// The optimal table of a few cells: a primal-dual interior point method, after Mehrotra (SIAM J. Optim. 2, 1992).
//
//     minimise  sum_y c_y . x_y   such that   sum_y x_y = 1   and   s_y = G x_y >= 0   for every report y
//     maximise  sum_u l_u         such that   G' w_y = c_y - l,  w_y >= 0                                           (1)
//
// x_y is the column of report y. G has a row for either way of every edge (u, v) of d nats: e^(d/2) x_v - e^(-d/2) x_u.
// Columns meet only in the row sums. So a Newton step factors one n x n matrix H_y = G' diag(w / s) G for each report, and
//
//     (sum_y H_y^-1) dl = r - sum_y H_y^-1 g_y,   dx_y = H_y^-1 (dl + g_y).                                         (2)

// Of the objective. Beyond it H is nearly singular along the column itself, and below 1e-7 steps no longer help.
const SMALL_GAP = 2e-5;
const MOST_STEPS = 60; // 9 to 15 in practice
const STEP_BACK = 0.995; // of the way to the boundary

/** Columns x and multipliers { x, w, l, rows, gap } for costs by report and secret: the best ones that steps reached.
 * Yields its progress, as a share of one. */
function* optimalColumns(costs, edges) {
  const program = new ColumnProgram(costs, edges);
  let best = program.copy();
  for (let step = 0; step < MOST_STEPS && best.gap > SMALL_GAP; step++) {
    program.advance();
    const now = program.copy();
    if (now.gap < best.gap) best = now;
    if (Number.isNaN(now.gap)) break;
    yield Math.min(1, Math.max(0, Math.log(best.gap) / Math.log(SMALL_GAP)));
  }
  return best;
}

class ColumnProgram {
  constructor(costs, edges) {
    this.n = costs[0].length;
    this.costs = costs;
    this.rows = edges.flatMap(({ tail, head, nats }) => {
      const [up, down] = [Math.exp(nats / 2), Math.exp(-nats / 2)];
      return [{ low: head, high: tail, up, down }, { low: tail, high: head, up, down }];
    });
    this.lows = Int32Array.from(this.rows, ({ low }) => low);
    this.highs = Int32Array.from(this.rows, ({ high }) => high);
    this.ups = Float64Array.from(this.rows, ({ up }) => up);
    this.downs = Float64Array.from(this.rows, ({ down }) => down);
    const typical = costs.reduce((sum, c) => sum + c.reduce((a, b) => a + b, 0), 0) / costs.length;
    // The uniform table satisfies every inequality strictly.
    this.x = costs.map(() => new Float64Array(this.n).fill(1 / costs.length));
    this.s = this.x.map((x) => this.slack(x));
    const mu = typical / (this.rows.length * costs.length);
    this.w = this.s.map((s) => s.map((value) => mu / value));
    this.l = new Float64Array(this.n);
    this.inverse = costs.map(() => new Float64Array(this.n * this.n));
  }

  /** G x. */
  slack(x) {
    const { lows, highs, ups, downs } = this;
    const slack = new Float64Array(lows.length);
    for (let e = 0; e < lows.length; e++) slack[e] = ups[e] * x[lows[e]] - downs[e] * x[highs[e]];
    return slack;
  }

  /** G' w. */
  charges(w) {
    const { lows, highs, ups, downs } = this;
    const sums = new Float64Array(this.n);
    for (let e = 0; e < lows.length; e++) {
      sums[lows[e]] += ups[e] * w[e];
      sums[highs[e]] -= downs[e] * w[e];
    }
    return sums;
  }

  /** sum_y s_y . w_y. */
  products() {
    return this.s.reduce((sum, s, y) => sum + dot(s, this.w[y]), 0);
  }

  /** The duality gap and the residuals, relative to the objective. */
  gap() {
    const objective = this.x.reduce((sum, x, y) => sum + dot(x, this.costs[y]), 0);
    const missing = this.residual().reduce((most, r) => Math.max(most, Math.abs(r)), 0);
    const apart = this.dualResiduals().reduce((sum, r, y) => sum + r.reduce((a, b, u) => a + Math.abs(b) * this.x[y][u], 0), 0);
    return Math.max(missing, (this.products() + apart) / objective);
  }

  copy() {
    const [x, w] = [this.x, this.w].map((columns) => columns.map((values) => values.slice()));
    return { x, w, l: this.l.slice(), rows: this.rows, gap: this.gap() };
  }

  residual() {
    const rest = new Float64Array(this.n).fill(1);
    for (const x of this.x) x.forEach((value, u) => (rest[u] -= value));
    return rest;
  }

  dualResiduals() {
    return this.costs.map((c, y) => {
      const sums = this.charges(this.w[y]);
      return c.map((cost, u) => cost - this.l[u] - sums[u]);
    });
  }

  advance() {
    this.s.forEach((s, y) => this.#factor(this.inverse[y], s, this.w[y]));
    const whole = new Float64Array(this.n * this.n);
    for (const inverse of this.inverse) addTimes(whole, inverse, 1);
    this.schur = inverseOf(whole, this.n);
    const size = this.rows.length * this.s.length;
    const mean = this.products() / size;
    const first = this.#direction(this.s.map((s) => new Float64Array(s.length)));
    const [a, b] = this.#lengths(first, 1);
    let after = 0;
    this.s.forEach((s, y) => {
      const [w, ds, dw] = [this.w[y], first.ds[y], first.dw[y]];
      for (let e = 0; e < s.length; e++) after += (s[e] + a * ds[e]) * (w[e] + b * dw[e]);
    });
    // Mehrotra's centring, and the second-order term of the products.
    const aim = mean * (after / size / mean) ** 3;
    const second = this.#direction(first.ds.map((ds, y) => combine(ds, first.dw[y], (one, other) => aim - one * other)));
    const [p, q] = this.#lengths(second, STEP_BACK);
    this.x.forEach((x, y) => {
      addTimes(x, second.dx[y], p);
      addTimes(this.s[y], second.ds[y], p);
      addTimes(this.w[y], second.dw[y], q);
    });
    addTimes(this.l, second.dl, q);
  }

  /** The inverse of H for one report. */
  #factor(inverse, s, w) {
    const { n, lows, highs, ups, downs } = this;
    const matrix = new Float64Array(n * n);
    for (let e = 0; e < lows.length; e++) {
      const [weight, low, high] = [w[e] / s[e], lows[e], highs[e]];
      matrix[low * n + low] += weight * ups[e] * ups[e];
      matrix[high * n + high] += weight * downs[e] * downs[e];
      matrix[low * n + high] -= weight;
      matrix[high * n + low] -= weight;
    }
    inverse.set(inverseOf(matrix, n));
  }

  /** The Newton step (2) to s w = target: { dx, ds, dw, dl }. */
  #direction(target) {
    const rest = this.residual();
    const wanted = this.dualResiduals();
    const off = this.x.map((x, y) => combine(this.slack(x), this.s[y], (now, kept) => now - kept));
    const own = off.map((values, y) => multiply(this.inverse[y], combine(this.charges(this.#multipliers(y, target[y], values)), wanted[y], (pull, far) => pull - far)));
    for (const values of own) addTimes(rest, values, -1);
    const dl = multiply(this.schur, rest);
    const dx = own.map((values, y) => combine(multiply(this.inverse[y], dl), values, (one, other) => one + other));
    const ds = dx.map((values, y) => combine(this.slack(values), off[y], (one, other) => one + other));
    const dw = ds.map((values, y) => this.#multipliers(y, target[y], values));
    return { dx, ds, dw, dl };
  }

  /** The change of w for which s w becomes the target when s changes by ds. */
  #multipliers(y, target, ds) {
    const [s, w] = [this.s[y], this.w[y]];
    const change = new Float64Array(s.length);
    for (let e = 0; e < s.length; e++) change[e] = (target[e] - w[e] * ds[e]) / s[e] - w[e];
    return change;
  }

  /** Steps of the primal and of the dual that keep s and w positive. */
  #lengths({ ds, dw }, share) {
    const longest = (values, changes) => {
      let most = 1 / share;
      values.forEach((own, y) => {
        const change = changes[y];
        for (let e = 0; e < own.length; e++) if (change[e] < 0) most = Math.min(most, -own[e] / change[e]);
      });
      return share * most;
    };
    return [longest(this.s, ds), longest(this.w, dw)];
  }
}

function dot(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
}

/** Add times a change to values, in place. */
function addTimes(values, change, factor) {
  for (let k = 0; k < values.length; k++) values[k] += factor * change[k];
}

/** A new array of of(a, b) for each two entries. */
function combine(a, b, of) {
  const result = new Float64Array(a.length);
  for (let k = 0; k < a.length; k++) result[k] = of(a[k], b[k]);
  return result;
}

function multiply(matrix, vector) {
  const n = vector.length;
  const product = new Float64Array(n);
  for (let i = 0, k = 0; i < n; i++) for (let j = 0; j < n; j++, k++) product[i] += matrix[k] * vector[j];
  return product;
}

/** The inverse of a symmetric positive definite matrix, by its Cholesky factor L: (L^-1)' L^-1. */
function inverseOf(matrix, n) {
  const lower = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = matrix[i * n + j];
      for (let k = 0; k < j; k++) sum -= lower[i * n + k] * lower[j * n + k];
      // A pivot that rounding made negative is replaced by a huge one: its variable then stays where it is.
      if (i === j) lower[i * n + i] = sum > 1e-14 * matrix[i * n + i] ? Math.sqrt(sum) : 1e100;
      else lower[i * n + j] = sum / lower[j * n + j];
    }
  }
  // Columns of L^-1 are the rows of `turned`.
  const turned = new Float64Array(n * n);
  for (let j = 0; j < n; j++) {
    for (let i = j; i < n; i++) {
      let sum = Number(i === j);
      for (let k = j; k < i; k++) sum -= lower[i * n + k] * turned[j * n + k];
      turned[j * n + i] = sum / lower[i * n + i];
    }
  }
  const inverse = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = 0;
      for (let k = i; k < n; k++) sum += turned[i * n + k] * turned[j * n + k];
      inverse[i * n + j] = inverse[j * n + i] = sum;
    }
  }
  return inverse;
}
