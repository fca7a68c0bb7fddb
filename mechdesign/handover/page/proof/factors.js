// The proof of factors: P(y|u) = E(q(u, y)) W(y) / S(u), with q the shortest-path distance of whole edge lengths, at most
// the cap; E(0) = 2^58 and E(t + 1) = E(t) / r rounded up, r <= e^step; S(u) the sum over y of E(q(u, y)) W(y).
//
// |q(u, y) - q(v, y)| is at most the units j of the edge (u, v), and E falls by a factor of r at most from one unit to the
// next. So P(y|u) <= e^d P(y|v) for all y wherever S(v) <= R S(u) with R <= e^(d - j step): one inequality between two
// whole numbers for every edge, each way.

const STEP_BITS = 48; // a step is a whole number of 2^-48 nats
const SPARE_BITS = 28n; // d - j step is rounded down to a multiple of 2^-20 nats
const LONGEST = 2 ** 13; // nats: longer edges are held to this

/** The integers of a factored mechanism, ready for `distances`. */
class Factors {
  constructor(page) {
    this.step = attribute(page, "step");
    this.cap = attribute(page, "cap");
    this.weight = array(page, "weight");
    this.inner = places(page, "inner");
    this.target = places(page, "target");
    const [tail, head] = [places(page, "edge_tail"), places(page, "edge_head")];
    const units = array(page, "edge_units");
    const count = this.weight.length;
    this.start = new Int32Array(count + 1);
    for (const end of [tail, head]) for (const p of end) this.start[p + 1]++;
    for (let p = 0; p < count; p++) this.start[p + 1] += this.start[p];
    const next = this.start.slice();
    this.neighbour = new Int32Array(2 * tail.length);
    this.units = new Uint16Array(2 * tail.length);
    for (let e = 0; e < tail.length; e++) {
      for (const [p, other] of [
        [tail[e], head[e]],
        [head[e], tail[e]],
      ]) {
        this.neighbour[next[p]] = other;
        this.units[next[p]++] = units[e];
      }
    }
    this.kernel = kernelOf(this.step, this.cap);
    this.found = new Uint16Array(count);
    this.weights = new Float64Array(this.cap + 1);
    this.first = new Int32Array(this.cap + 1);
    this.held = new Int32Array(2 * tail.length + 1);
    this.next = new Int32Array(2 * tail.length + 1);
  }

  /** Faults of weights, edges, cap and places: what has to hold before anything is added up. */
  faults() {
    const faults = [];
    const longest = this.units.reduce((a, b) => Math.max(a, b), 0);
    const reach = Math.trunc(58 * 0.69 * 2 ** STEP_BITS);
    if (this.weight.some((w) => w < 1 || w > 2 ** 28)) faults.push({ text: "a weight is not within 1 and 2^28" });
    if (longest > this.cap || this.cap + longest > 65535)
      faults.push({ text: "an edge is longer than the cap allows" });
    if (!(this.step > 0 && this.step * this.cap < reach))
      faults.push({ text: "step and cap leave the kernel no room" });
    if (new Set(this.inner).size < this.inner.length) faults.push({ text: "two secrets share a place" });
    return faults;
  }

  /** Distances in units from one place to all, at most the cap: Dial's buckets, as lists in one array. The array that is
   * returned is written over by the next call. */
  distances(source) {
    const { found, first, held, next, start, neighbour, units, cap } = this;
    found.fill(cap);
    first.fill(-1);
    found[source] = 0;
    [first[0], held[0], next[0]] = [0, source, -1];
    let used = 1;
    for (let at = 0; at < cap; at++) {
      while (first[at] >= 0) {
        const entry = first[at];
        const place = held[entry];
        first[at] = next[entry];
        if (found[place] !== at) continue;
        for (let k = start[place]; k < start[place + 1]; k++) {
          const length = at + units[k];
          const other = neighbour[k];
          if (length >= found[other]) continue;
          found[other] = length;
          held[used] = other;
          next[used] = first[length];
          first[length] = used++;
        }
      }
    }
    return found;
  }

  /** S(u), exact, from the distances of a place: weights at equal distance are added first, as doubles below 2^53. */
  rowSum(distances) {
    this.weights.fill(0);
    for (let p = 0; p < distances.length; p++) this.weights[distances[p]] += this.weight[p];
    let sum = 0n;
    for (let t = 0; t <= this.cap; t++) if (this.weights[t]) sum += this.kernel[t] * BigInt(this.weights[t]);
    return sum;
  }

  /** j, the units of the edge between two places; -1 where there is none. */
  unitsOf(u, v) {
    for (let k = this.start[u]; k < this.start[u + 1]; k++) if (this.neighbour[k] === v) return this.units[k];
    return -1;
  }
}

/** E(0..cap) for a step of so many 2^-48 nats. */
function kernelOf(step, cap) {
  const [ratio, shift] = expLower(step * 2 ** -STEP_BITS);
  const kernel = [1n << 58n];
  for (let t = 0; t < cap; t++) kernel.push(((kernel[t] << BigInt(shift)) + ratio - 1n) / ratio);
  return kernel;
}

/** S(u) of every secret as the file has them: high and low 64 bits. */
function storedSums(page) {
  const words = array(page, "row_sum");
  return Array.from({ length: words.length / 2 }, (_, u) => (words[2 * u] << 64n) + words[2 * u + 1]);
}

/** P(.|u) of a factored mechanism as doubles; kernel, E in doubles. */
function factorRow(factors, kernel, sums, u) {
  const { weight, target, inner } = factors;
  const row = new Float64Array(inner.length);
  const [distances, sum] = [factors.distances(inner[u]), Number(sums[u])];
  for (let p = 0; p < weight.length; p++) row[target[p]] += (kernel[distances[p]] * weight[p]) / sum;
  return row;
}

/** Faults of row sums and of row losses, both found again for the secrets `asked`. */
function* factorFaults(page, factors, sums, asked) {
  const faults = [];
  const judge = lossOf(page);
  const stored = array(page, "row_loss");
  const kernel = Float64Array.from(factors.kernel, Number);
  for (let k = 0; k < asked.length; k++) {
    const secret = asked[k];
    const distances = factors.distances(factors.inner[secret]);
    const sum = factors.rowSum(distances);
    if (sum !== sums[secret]) {
      faults.push({ text: `secret ${secret}: the row sums to ${sum}, not to ${sums[secret]}`, secret });
    }
    let loss = 0;
    for (let p = 0; judge && p < distances.length; p++) {
      loss += kernel[distances[p]] * factors.weight[p] * judge(secret, factors.target[p]);
    }
    if (judge && !agree(loss / Number(sum), stored[secret])) {
      faults.push({ text: `secret ${secret}: its loss is not ${stored[secret]}`, secret });
    }
    if (k % 4 === 0) yield k / asked.length;
  }
  return faults;
}

/** Every edge of the claim by row sums: faults, how many inequalities, the largest log-ratio over length, and that of the
 * edge that `worst` names. */
function* factorEdges(factors, sums, { tail, head, length }, worst) {
  const bounds = new Map();
  const found = {
    faults: [],
    broken: 0,
    inequalities: 2 * tail.length,
    compared: 2 * tail.length,
    value: -1,
    said: null,
  };
  const logs = sums.map((sum) => Math.log(Number(sum)));
  for (let e = 0; e < tail.length; e++) {
    const [u, v] = [tail[e], head[e]];
    const units = factors.unitsOf(factors.inner[u], factors.inner[v]);
    const [p, q] = exactly(Math.min(length[e], LONGEST));
    const spare = (p << BigInt(STEP_BITS)) / q - BigInt(factors.step) * BigInt(units);
    const key = units < 0 || spare < 0n ? -1n : spare >> SPARE_BITS;
    if (!bounds.has(key) && key >= 0n) bounds.set(key, expLower(Number(key) * 2 ** (Number(SPARE_BITS) - STEP_BITS)));
    const bound = bounds.get(key);
    const wrong = key < 0n ? 2 : Number(exceeds(sums[u], bound, sums[v])) + Number(exceeds(sums[v], bound, sums[u]));
    found.broken += wrong;
    if (wrong && found.faults.length === 0) {
      const text = `the edge from ${u} to ${v}, ${length[e]} nats long, is not covered by its factors`;
      found.faults.push({ text, secret: u, other: v });
    }
    const value = (factors.step * 2 ** -STEP_BITS * units + Math.abs(logs[u] - logs[v])) / length[e];
    found.value = Math.max(found.value, value);
    if (worst && isEdge(worst, u, v)) found.said = value;
    if (e % 512 === 0) yield e / tail.length;
  }
  return found;
}
