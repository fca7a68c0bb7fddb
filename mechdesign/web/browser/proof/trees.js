// The lower bound that the trees of a page prove, in doubles that are rounded down, as in verification/tree_bound.py.
//
// For each report every place has the rest r(v) = c(v) - lambda(v) of its cost and of the multiplier of its row sum. It
// hands its rest to its parent, times e^-d where it is at least 0, and times e^d below: masses of a report change by at
// most e^d along an edge of length d. What is left below 0 is charged to the place. The bound is the sum of all
// multipliers, less the largest charge of each place. Any trees and multipliers prove a bound, and wrong ones prove less.
//
// The cost of a report y at a secret u is w(u) l(u, y): w is the prior, or has the multipliers of limits in it.

const MOST_WITH_TREES = 4096; // secrets: a file has trees up to 2,500
const LONGEST_HANDED = 128; // nats: nothing is handed over along longer edges
const SQUARINGS = 140; // (1 - d / 2^140)^(2^140) falls short of e^-d by less than 2^-126 of it
const DECAY_BITS = 320n; // e^-128 > 2^-185: 135 digits are left
const ROUNDED_ONCE = 2 ** -51; // relative: four times the error of one operation, for the rounding of the correction too
const ROUNDED_COST = 2 ** -47; // relative: squares on three axes, a root and two products are right to 2^-49
const UNDERFLOW = 1e-300; // above the error of any product that is too small for a normal double
const LARGEST_SUM = 1e290; // of the costs and multipliers of a report: sums above 0 cannot overflow

/** A sum of two doubles, rounded down. */
function addDown(a, b) {
  const sum = a + b;
  return sum - Math.abs(sum) * ROUNDED_ONCE;
}

/** A product of two doubles, rounded down. */
function multiplyDown(a, b) {
  const product = a * b;
  return product - Math.abs(product) * ROUNDED_ONCE - UNDERFLOW;
}

/** A double not above the exact sum of doubles. */
function sumDown(values) {
  const terms = Array.from(values, exactly);
  // Denominators of doubles are powers of 2: the largest one is a common one.
  const fine = terms.reduce((most, [, q]) => (q > most ? q : most), 1n);
  const sum = nearestDouble([terms.reduce((total, [p, q]) => total + p * (fine / q), 0n), fine]);
  return sum - Math.abs(sum) * ROUNDED_ONCE;
}

/** Doubles [low, high] with low <= e^-length and high >= e^length; low is 0 if nothing is handed over. */
function decayOf(length) {
  if (!(length >= 0)) throw new RangeError(`an edge cannot be ${length} nats long`);
  if (length > LONGEST_HANDED) return [0, Infinity];
  const one = 1n << DECAY_BITS;
  const [p, q] = exactly(length);
  // 1 - x <= e^-x, and every square is rounded down.
  let value = one - ((p << DECAY_BITS) / (q << BigInt(SQUARINGS)) + 1n);
  for (let k = 0; k < SQUARINGS; k++) value = (value * value) >> DECAY_BITS;
  const low = nearestDouble([value, one]) * (1 - ROUNDED_ONCE);
  return [low, (1 / low) * (1 + ROUNDED_ONCE)];
}

/** The edges between places: `kind` has 1 + the number of a pair of factors for each two ends, 0 without an edge. */
function handedFactors(count, { tail, head, length }) {
  const [numbers, low, high] = [new Map(), [], []];
  const kind = new Int32Array(count * count);
  for (let e = 0; e < tail.length; e++) {
    if (!(Math.min(tail[e], head[e]) >= 0 && Math.max(tail[e], head[e]) < count)) throw new RangeError("an edge ends at no secret");
    if (!numbers.has(length[e])) {
      const [down, up] = decayOf(length[e]);
      numbers.set(length[e], low.push(down));
      high.push(up);
    }
    kind[tail[e] * count + head[e]] = kind[head[e] * count + tail[e]] = numbers.get(length[e]);
  }
  return { kind, low, high };
}

/** Hand the rests of one report to parents, children first. A place in a circle is never reached, and keeps its own. */
function handOver(rest, parent, { kind, low, high }, children, waiting) {
  const count = rest.length;
  children.fill(0);
  for (let v = 0; v < count; v++) if (parent[v] !== v && parent[v] < count) children[parent[v]]++;
  let end = 0;
  for (let v = 0; v < count; v++) if (children[v] === 0) waiting[end++] = v;
  for (let i = 0; i < end; i++) {
    const v = waiting[i];
    const p = parent[v];
    if (p === v || p >= count) continue;
    if (--children[p] === 0) waiting[end++] = p;
    const number = kind[v * count + p];
    if (number === 0 || low[number - 1] === 0 || rest[v] === 0) continue;
    const sum = addDown(rest[p], multiplyDown(rest[v], rest[v] > 0 ? low[number - 1] : high[number - 1]));
    // A place whose amount would overflow hands nothing over: it is charged there instead.
    if (sum > -LARGEST_SUM) {
      rest[p] = sum;
      rest[v] = 0;
    }
  }
}

/** The bound that steps (m, n) from places to parents, modulo 2^16, prove; costOf(u, y) is not above the exact cost.
 * null unless all costs and multipliers are finite. */
function* boundByTrees(dual, steps, edges, reports, costOf) {
  const count = dual.length;
  const factors = handedFactors(count, edges);
  const [rest, charges] = [new Float64Array(count), new Float64Array(count)];
  const [parent, children, waiting] = [new Int32Array(count), new Int32Array(count), new Int32Array(count)];
  for (let y = 0; y < reports; y++) {
    let size = 0;
    for (let v = 0; v < count; v++) {
      const cost = costOf(v, y);
      size += Math.abs(cost) + Math.abs(dual[v]);
      rest[v] = addDown(cost, -dual[v]);
      parent[v] = (v + steps[y * count + v]) & 0xffff;
    }
    if (!(size < LARGEST_SUM)) return null;
    handOver(rest, parent, factors, children, waiting);
    for (let v = 0; v < count; v++) if (-rest[v] > charges[v]) charges[v] = -rest[v];
    if (y % 16 === 0) yield y / reports;
  }
  return sumDown([...dual, ...charges.map((charge) => -charge)]);
}

/** Of a program whose limits are on losses of secrets: { weights, terms, limited }, the weights w and the terms of the
 * bound from limits. null for other programs. */
function boundWeights(page, lossBetween, reports) {
  const [prior, program] = [array(page, "prior"), attribute(page, "program")];
  const { worst_loss: bounds, priors, own_constraints: own = [] } = jsonAttribute(page, "parameters");
  if (own.length) return null;
  if (program === "optimal") return attribute(page, "objective") === undefined ? { weights: prior, terms: [] } : null;
  if (!["minimax", "robust", "bounded"].includes(program) || !has(page, "multiplier")) return null;
  const given = array(page, "multiplier").map((value) => Math.max(value, 0));
  if (program === "bounded") {
    const boundAt = (u) => (Array.isArray(bounds) ? bounds[u] : bounds) ?? Infinity;
    const isLimited = (u) => Array.from({ length: reports }, (_, y) => lossBetween(u, y)).some((loss) => boundAt(u) < loss);
    const limited = Array.from(prior.keys()).filter(isLimited);
    if (limited.length !== given.length) return null;
    const weights = Float64Array.from(prior);
    limited.forEach((u, k) => (weights[u] += given[k]));
    return { weights, terms: limited.map((u, k) => multiplyDown(-given[k], boundAt(u))) };
  }
  // The multipliers of a largest loss sum to at most 1: n + 8 operations are wrong by less than this share.
  const total = given.reduce((sum, value) => sum + value, 0);
  const share = (1 - (given.length + 8) * 2 ** -52) / total;
  const parts = given.map((value) => value * share);
  if (program === "minimax") return parts.length === prior.length ? { weights: parts, terms: [] } : null;
  const isPrior = (each) => each.length === prior.length && each.every((share) => share >= 0);
  if (!Array.isArray(priors) || priors.length !== parts.length || !priors.every(isPrior)) return null;
  // Products and sums of numbers >= 0, rounded down as a whole.
  const slack = 1 - (parts.length + 8) * 2 ** -52;
  return { weights: prior.map((_, u) => slack * priors.reduce((sum, each, k) => sum + parts[k] * each[u], 0)), terms: [] };
}

/** True if an edge is shorter than its claim, so that the bound would be of a narrower claim. Lengths of other metrics
 * are assumed to be those of the claim. */
function isAnyEdgeShortened(page, { tail, head, length }) {
  const { kind, rate } = claimOf(jsonAttribute(page, "metric"));
  if (kind !== "discrete" && kind !== "euclidean") return false;
  const [nats, points] = [nearestDouble(rate), axesOf(page, "secret")];
  const distance = (u, v) => (kind === "discrete" ? 1 : Math.hypot(...points.map((axis) => axis[u] - axis[v])));
  // Lengths are rounded down by 2^-44.
  return length.some((stated, e) => stated < nats * distance(tail[e], head[e]) * (1 - 2 ** -40));
}

/** Prove the lower bound of a table by its trees; returns it, or null if this page has no proof of it. */
function* lowerBoundOfTrees(page) {
  if (page.contents.kind !== "table" || positionClaimOf(page) || !has(page, "tree") || !has(page, "dual")) return null;
  const [dual, steps, lossBetween] = [array(page, "dual"), array(page, "tree"), lossOf(page)];
  const [count, reports] = [array(page, "prior").length, array(page, "report_x").length];
  if (count > MOST_WITH_TREES || dual.length !== count || steps.length !== count * reports || !lossBetween) return null;
  const [weighted, edges] = [boundWeights(page, lossBetween, reports), claimEdges(page)];
  if (!weighted || isAnyEdgeShortened(page, edges)) return null;
  const costOf = (u, y) => {
    const cost = weighted.weights[u] * lossBetween(u, y);
    return cost - Math.abs(cost) * ROUNDED_COST - UNDERFLOW;
  };
  const bound = yield* boundByTrees(dual, steps, edges, reports, costOf);
  return bound === null ? null : sumDown([bound, ...weighted.terms]);
}

/** The bound in one sentence; that of the expected loss is the sentence of verify_table.py. */
function treeBoundWords(page, bound) {
  const least = figure(bound, false, 12);
  const tables = `Any table that satisfies these inequalities${attribute(page, "program") === "bounded" ? " and the limits on the loss" : ""}`;
  if (objectiveOf(page) !== EXPECTED_LOSS) return `${tables} has at least ${least} as ${objectiveOf(page)}.`;
  return `${tables} has an expected loss (${attribute(page, "loss")}, under the prior of the file) of at least ${least}.`;
}
