// What the map asks of a page: rows, posteriors, distances in nats, draws in whole numbers.

class Model {
  constructor(page) {
    const { contents } = page;
    this.page = page;
    this.facts = contents.facts;
    this.secrets = axesOf(page, "secret");
    this.same = this.facts.same_places;
    this.reports = this.same ? this.secrets : axesOf(page, "report");
    this.prior = array(page, "prior");
    this.level = has(page, "level") ? array(page, "level") : null;
    this.degrees = has(page, "degrees") ? array(page, "degrees") : null;
    this.edges = claimEdges(page);
    this.count = this.prior.length;
    this.width = this.reports[0].length;
    this.losses = null; // from the proof
    if (contents.kind === "factors") {
      this.factors = new Factors(page);
      this.kernel = Float64Array.from(this.factors.kernel, Number);
      this.sums = storedSums(page);
    } else {
      this.mass = array(page, "mass");
      const carried = has(page, "carried") ? places(page, "carried") : null;
      this.rowOf = carried ? new Map(Array.from(carried, (u, r) => [u, r])) : null;
    }
  }

  /** The masses of a row in the order of their drawing, [mass, report], and their sum. */
  #masses(u) {
    if (this.factors) {
      const { weight, kernel, target } = this.factors;
      const reached = this.factors.columns(u);
      return {
        count: weight.length,
        mass: (k) => kernel[reached[k]] * BigInt(weight[k]),
        report: (k) => target[k],
        sum: this.sums[u],
      };
    }
    const from = (this.rowOf ? this.rowOf.get(u) : u) * this.width;
    return { count: this.width, mass: (y) => this.mass[from + y], report: (y) => y, sum: ROW_SUM };
  }

  /** Whether the page carries the row of a secret. */
  carries(u) {
    return !this.rowOf || this.rowOf.has(u);
  }

  /** P(.|u) as doubles; null where the page does not carry the row. */
  row(u) {
    if (!this.carries(u)) return null;
    if (this.factors) return factorRow(this.factors, this.kernel, this.sums, u);
    const from = (this.rowOf ? this.rowOf.get(u) : u) * this.width;
    return Float64Array.from({ length: this.width }, (_, y) => Number(this.mass[from + y]) * 2 ** -62);
  }

  /** What an attacker who knows the prior believes after report y, (n,); null where not every row is there. */
  posterior(y) {
    if (this.rowOf) return null;
    const joint = new Float64Array(this.count);
    if (this.factors) {
      const { weight, target, inner } = this.factors;
      for (let k = 0; k < weight.length; k++) {
        if (target[k] !== y) continue;
        const column = this.factors.column(k);
        for (let u = 0; u < this.count; u++)
          joint[u] += (this.kernel[column[inner[u]]] * weight[k]) / Number(this.sums[u]);
      }
    } else {
      for (let u = 0; u < this.count; u++) joint[u] = Number(this.mass[u * this.width + y]);
    }
    let sum = 0;
    for (let u = 0; u < this.count; u++) sum += joint[u] *= this.prior[u];
    return joint.map((value) => value / sum);
  }

  /** A report drawn with the random source of the browser: uniform whole numbers below the sum of the row. */
  draw(u) {
    const { count, mass, report, sum } = this.#masses(u);
    const bits = bitLength(sum - 1n);
    let x;
    do {
      const words = crypto.getRandomValues(new Uint32Array(Math.ceil(bits / 32)));
      x = words.reduce((value, word) => (value << 32n) | BigInt(word), 0n) & ((1n << BigInt(bits)) - 1n);
    } while (x >= sum);
    for (let k = 0; k < count; k++) {
      x -= mass(k);
      if (x < 0n) return report(k);
    }
    throw new RangeError("the row does not sum to what it should");
  }

  /** Nats of the claim between a secret and all others: shortest paths over its edges. */
  nats(u) {
    if (this.natsOf === u) return this.natsFound;
    this.beside ??= neighboursOf(this.count, this.edges);
    [this.natsOf, this.natsFound] = [u, shortestPaths(this.beside, this.count, u)];
    return this.natsFound;
  }

  /** How far secret u and report y are apart; null where reports are no places. */
  apart(u, y) {
    if (!this.same) return null;
    return Math.hypot(...this.secrets.map((axis) => axis[u] - axis[y]));
  }

  /** The radius around a secret that holds a report with this probability; null where reports are no places. */
  radius(u, row, share) {
    if (!this.same) return null;
    const far = Array.from(row, (p, y) => [this.apart(u, y), p]).sort((a, b) => a[0] - b[0]);
    let held = 0;
    for (const [distance, p] of far) if ((held += p) >= share) return distance;
    return far.at(-1)[0];
  }
}

function neighboursOf(count, { tail, head, length }) {
  const beside = Array.from({ length: count }, () => []);
  for (let e = 0; e < tail.length; e++) {
    beside[tail[e]].push([head[e], length[e]]);
    beside[head[e]].push([tail[e], length[e]]);
  }
  return beside;
}

/** Dijkstra's distances from one place, with a binary heap of [distance, place]. */
function shortestPaths(beside, count, source) {
  const found = new Float64Array(count).fill(Infinity);
  const heap = [[(found[source] = 0), source]];
  const swap = (i, j) => ([heap[i], heap[j]] = [heap[j], heap[i]]);
  while (heap.length) {
    const [distance, place] = heap[0];
    const last = heap.pop();
    if (heap.length) heap[0] = last;
    for (let i = 0; ;) {
      const least = [2 * i + 1, 2 * i + 2].reduce((a, b) => (b < heap.length && heap[b][0] < heap[a][0] ? b : a), i);
      if (least === i) break;
      swap(i, (i = least));
    }
    if (distance > found[place]) continue;
    for (const [other, length] of beside[place]) {
      if (distance + length >= found[other]) continue;
      found[other] = distance + length;
      let i = heap.push([found[other], other]) - 1;
      for (let up; i > 0 && heap[(up = (i - 1) >> 1)][0] > heap[i][0]; i = up) swap(i, up);
    }
  }
  return found;
}
