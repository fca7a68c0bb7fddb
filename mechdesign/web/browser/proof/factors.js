// The proof of factors: P(k|u) = E(q_k(u)) W(k) / S(u) for columns k, and S(u) is the sum over k of E(q_k(u)) W(k). Here
// q_k(u) is the least of the cap and offset + q(u, v) over the places v that generate k. The shortest-path distance q is
// of integer edge lengths. The kernel is E(0) = 2^58, and E(t + 1) = E(t) / r rounded up, r <= e^step. Without generators
// a column is the distance from a place.
//
// |q_k(u) - q_k(v)| is at most the units j of the edge (u, v), and E falls by a factor of r at most from one unit to the
// next. So P(k|u) <= e^d P(k|v) for all k wherever S(v) <= R S(u) with R <= e^(d - j step): one inequality between two
// integers for every edge, each way.

const STEP_BITS = 48; // a step is an integer number of 2^-48 nats
const SLACK_BITS = 28n; // the slack d - j step is rounded down to a multiple of 2^-20 nats, so that few bounds are computed
const LONGEST = 2 ** 13; // nats: longer edges are treated as this long, which claims no less

/** The factors of a page, with the code that draws in the client. */
class Factors extends device.FactorRows {
  constructor(page) {
    const [tail, head] = [places(page, "edge_tail"), places(page, "edge_head")];
    const [step, cap, inner] = [attribute(page, "step"), attribute(page, "cap"), places(page, "inner")];
    const [ratio, shift] = expLower(step * 2 ** -STEP_BITS);
    const generated = has(page, "first_generator") && {
      first: places(page, "first_generator"),
      from: places(page, "generator_place"),
      offset: array(page, "generator_offset"),
    };
    const numbers = { places: array(page, "place_x").length, cells: inner.length, edges: tail.length, cap, ratio, shift };
    const arrays = {
      weight: array(page, "weight"),
      target: places(page, "target"),
      units: array(page, "edge_units"),
      ahead: head.map((place, e) => place - tail[e]),
      tail,
      inner,
      ...generated,
    };
    super(numbers, arrays);
    Object.assign(this, { step, numbers, arrays });
  }

  /** Faults of the integers, checked before any sum. */
  faults() {
    const { step, cap, numbers, arrays } = this;
    const { weight, target, first, from, offset } = arrays;
    // 0.69 < ln 2: E(cap) = 2^58 e^-(step cap) then stays above 1, so that every column has a mass.
    if (!(step > 0 && step * cap < Math.trunc(58 * 0.69 * 2 ** STEP_BITS)))
      return [{ text: "step times cap is too large for the kernel" }];
    const columns = first ? first.length : numbers.places;
    if (weight.length !== columns || target.length !== columns || from?.length !== offset?.length)
      return [{ text: "the numbers of weights, reports and columns differ" }];
    try {
      device.checkFactors({ ...numbers, generators: from?.length }, arrays);
    } catch (error) {
      return [{ text: error.message }];
    }
    return [];
  }

  /** S(u), exact, from q of all columns: weights at equal distance are added first, as doubles below 2^53. */
  rowSum(distances) {
    const weights = new Float64Array(this.cap + 1);
    for (let k = 0; k < distances.length; k++) weights[distances[k]] += this.weight[k];
    return weights.reduce((sum, w, t) => (w ? sum + this.kernel[t] * BigInt(w) : sum), 0n);
  }

  /** j, the units of the edge between two places; -1 if no edge joins them. */
  unitsOf(u, v) {
    for (let k = this.start[u]; k < this.start[u + 1]; k++) if (this.neighbour[k] === v) return this.length[k];
    return -1;
  }
}

/** S(u) of every secret, from the high and low 64 bits of the file. */
function storedSums(page) {
  const words = array(page, "row_sum");
  return Array.from({ length: words.length / 2 }, (_, u) => (words[2 * u] << 64n) + words[2 * u + 1]);
}

/** Faults of row sums and of row losses, both recomputed for some secrets. */
function* factorFaults(page, factors, sums, secrets) {
  const faults = [];
  const lossBetween = lossOf(page);
  const stored = array(page, "row_loss");
  const kernel = Float64Array.from(factors.kernel, Number);
  for (let k = 0; k < secrets.length; k++) {
    const secret = secrets[k];
    const distances = factors.columns(secret);
    const sum = factors.rowSum(distances);
    if (sum !== sums[secret]) {
      faults.push({ text: `secret ${secret}: the row sums to ${sum}, not to ${sums[secret]}`, secret });
    }
    let loss = 0;
    for (let c = 0; lossBetween && c < distances.length; c++) {
      loss += kernel[distances[c]] * factors.weight[c] * lossBetween(secret, factors.target[c]);
    }
    if (lossBetween && !agree(loss / Number(sum), stored[secret])) {
      faults.push({ text: `secret ${secret}: the loss differs from ${stored[secret]}`, secret });
    }
    if (k % 4 === 0) yield k / secrets.length;
  }
  return faults;
}

/** Every edge of the claim by row sums: faults, how many inequalities, the largest log-ratio over length, and that of the
 * edge that `worst` names. */
function* factorEdges(factors, sums, { tail, head, length }, worst) {
  const bounds = new Map();
  const result = {
    faults: [],
    broken: 0,
    inequalities: 2 * tail.length,
    compared: 2 * tail.length,
    value: -1,
    valueAtWorst: null,
  };
  const logs = sums.map((sum) => Math.log(Number(sum)));
  for (let e = 0; e < tail.length; e++) {
    const [u, v] = [tail[e], head[e]];
    const units = factors.unitsOf(factors.inner[u], factors.inner[v]);
    const [p, q] = exactly(Math.min(length[e], LONGEST));
    // d - j step in units of 2^-48 nats: d is rounded down, so the slack is never too large.
    const slack = (p << BigInt(STEP_BITS)) / q - BigInt(factors.step) * BigInt(units);
    // An edge that the integer metric lacks proves nothing: both of its inequalities count as broken.
    const wrong = units < 0 ? 2 : brokenWays(bounds, slack, sums[u], sums[v]);
    result.broken += wrong;
    if (wrong && result.faults.length === 0) {
      const text = `the edge from ${u} to ${v}, ${length[e]} nats long, is not covered by its factors`;
      result.faults.push({ text, secret: u, other: v });
    }
    const value = (factors.step * 2 ** -STEP_BITS * units + Math.abs(logs[u] - logs[v])) / length[e];
    result.value = Math.max(result.value, value);
    if (worst && isEdge(worst, u, v)) result.valueAtWorst = value;
    if (e % 512 === 0) yield e / tail.length;
  }
  return result;
}

/** The number of broken inequalities, of two, between row sums at most a factor e^(slack 2^-48) apart; bounds: a cache by slack. */
function brokenWays(bounds, slack, a, b) {
  // The kernel alone may change by more than the edge allows, whatever the row sums are.
  if (slack < 0n) return 2;
  const key = slack >> SLACK_BITS;
  if (!bounds.has(key)) bounds.set(key, expLower(Number(key) * 2 ** (Number(SLACK_BITS) - STEP_BITS)));
  const bound = bounds.get(key);
  return Number(exceeds(a, bound, b)) + Number(exceeds(b, bound, a));
}
