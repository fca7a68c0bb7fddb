// The proof of factors: P(k|u) = E(q_k(u)) W(k) / S(u) for columns k, with q_k(u) the least of the cap and offset + q(u, v)
// over the places v that generate k, q the shortest-path distance of whole edge lengths; E(0) = 2^58 and E(t + 1) = E(t) / r
// rounded up, r <= e^step; S(u) the sum over k of E(q_k(u)) W(k). Without generators a column is the distance from a place.
//
// |q_k(u) - q_k(v)| is at most the units j of the edge (u, v), and E falls by a factor of r at most from one unit to the
// next. So P(k|u) <= e^d P(k|v) for all k wherever S(v) <= R S(u) with R <= e^(d - j step): one inequality between two
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
    const count = array(page, "place_x").length;
    this.generators = has(page, "first_generator")
      ? {
          first: places(page, "first_generator"),
          place: places(page, "generator_place"),
          offset: array(page, "generator_offset"),
        }
      : null;
    const most = this.generators ? this.generators.place.length : 1; // sources at most
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
    this.held = new Int32Array(2 * tail.length + most);
    this.next = new Int32Array(2 * tail.length + most);
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
    const columns = this.generators ? this.generators.first.length : this.found.length;
    if (this.weight.length !== columns || this.target.length !== columns)
      faults.push({ text: "weights, reports and columns are in different numbers" });
    if (!this.generators) return faults;
    const { first, place, offset } = this.generators;
    if (place.length !== offset.length) faults.push({ text: "places and offsets are in different numbers" });
    if (!first.every((at, k) => (k === 0 ? at === 0 : at > first[k - 1]) && at < place.length))
      faults.push({ text: "a column has no generators" });
    if (place.some((v) => v < 0 || v >= this.found.length)) faults.push({ text: "a generator is no place" });
    if (offset.some((f) => f > this.cap)) faults.push({ text: "an offset is above the cap" });
    return faults;
  }

  /** The least of the cap and offset + distance in units over sources [place, offset], for all places: Dial's buckets, as
   * lists in one array. The array that is returned is written over by the next call. */
  distances(sources) {
    const { found, first, held, next, start, neighbour, units, cap } = this;
    found.fill(cap);
    first.fill(-1);
    let used = 0;
    for (const [place, offset] of sources) {
      if (offset >= found[place]) continue;
      found[place] = offset;
      [held[used], next[used]] = [place, first[offset]];
      first[offset] = used++;
    }
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

  /** q_k(u) of every column k for a secret. The array that is returned may be written over by the next call. */
  columns(secret) {
    const distances = this.distances([[this.inner[secret], 0]]);
    if (!this.generators) return distances;
    const { first, place, offset } = this.generators;
    this.reached ??= new Uint16Array(first.length);
    for (let k = 0; k < first.length; k++) {
      let least = this.cap;
      const end = this.endOf(k);
      for (let g = first[k]; g < end; g++) least = Math.min(least, distances[place[g]] + offset[g]);
      this.reached[k] = least;
    }
    return this.reached;
  }

  /** q_k of a column at all places. The array that is returned is written over by the next call. */
  column(k) {
    if (!this.generators) return this.distances([[k, 0]]);
    const { first, place, offset } = this.generators;
    const count = this.endOf(k) - first[k];
    return this.distances(Array.from({ length: count }, (_, i) => [place[first[k] + i], offset[first[k] + i]]));
  }

  /** Where the generators of a column end. */
  endOf(k) {
    const { first, place } = this.generators;
    return k + 1 < first.length ? first[k + 1] : place.length;
  }

  /** S(u), exact, from q of all columns: weights at equal distance are added first, as doubles below 2^53. */
  rowSum(reached) {
    this.weights.fill(0);
    for (let k = 0; k < reached.length; k++) this.weights[reached[k]] += this.weight[k];
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
  const [reached, sum] = [factors.columns(u), Number(sums[u])];
  for (let k = 0; k < weight.length; k++) row[target[k]] += (kernel[reached[k]] * weight[k]) / sum;
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
    const reached = factors.columns(secret);
    const sum = factors.rowSum(reached);
    if (sum !== sums[secret]) {
      faults.push({ text: `secret ${secret}: the row sums to ${sum}, not to ${sums[secret]}`, secret });
    }
    let loss = 0;
    for (let c = 0; judge && c < reached.length; c++) {
      loss += kernel[reached[c]] * factors.weight[c] * judge(secret, factors.target[c]);
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
