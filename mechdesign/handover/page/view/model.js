// What the map asks of a page: rows, posteriors, distances in nats, draws in whole numbers.

class Model {
  constructor(page) {
    const { contents } = page;
    this.page = page;
    this.facts = contents.facts;
    this.secrets = axesOf(page, "secret");
    this.reports = this.facts.same_places ? this.secrets : axesOf(page, "report");
    this.prior = array(page, "prior");
    this.level = has(page, "level") ? array(page, "level") : null;
    this.degrees = has(page, "degrees") ? array(page, "degrees") : null;
    this.edges = claimEdges(page);
    this.count = this.prior.length;
    this.width = this.reports[0].length;
    this.losses = null; // from the proof
    this.cellOf = this.#reportPlaces(); // of every report the place that it is; null where reports are no places
    this.located = this.cellOf !== null;
    if (contents.kind === "factors") {
      this.factors = new Factors(page);
      this.kernel = Float64Array.from(this.factors.kernel, Number);
      this.sums = storedSums(page);
    } else {
      this.mass = array(page, "mass");
      const carried = has(page, "carried") ? places(page, "carried") : null;
      this.rowOf = carried ? new Map(Array.from(carried, (u, r) => [u, r])) : null;
    }
    this.placed = POSITIONS.exec(attribute(page, "position_claim") ?? "")?.groups ?? null; // the claim about positions
    this.around = this.placed ? places(page, "around_row") : null;
  }

  #reportPlaces() {
    if (this.facts.same_places) return Int32Array.from({ length: this.count }, (_, u) => u);
    if (this.reports.length !== this.secrets.length || this.facts.report_unit !== this.facts.unit) return null;
    const name = (axes, k) => axes.map((axis) => axis[k]).join();
    const at = new Map(Array.from({ length: this.count }, (_, u) => [name(this.secrets, u), u]));
    const found = Array.from({ length: this.width }, (_, y) => at.get(name(this.reports, y)));
    return found.includes(undefined) ? null : Int32Array.from(found);
  }

  /** A row (m,) as values of places, no number where a place is no report; as it is where reports are no places. */
  spread(row) {
    if (!this.located) return row;
    const found = new Float64Array(this.count).fill(NaN);
    this.cellOf.forEach((u, y) => (found[u] = row[y]));
    return found;
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

  /** Whether the page carries the row of a secret, with positions those around it. */
  carries(u) {
    if (!this.rowOf) return true;
    return this.around ? this.around.subarray(9 * u, 9 * u + 9).every((row) => this.rowOf.has(row)) : this.rowOf.has(u);
  }

  /** P(.|u) as doubles, or with positions that of a point of cell u; null where the page does not carry the row. */
  row(u, point = [0, 0]) {
    if (!this.carries(u)) return null;
    if (this.around) return this.#mixture(u, point.map((a) => stepWeights(a).map((weight) => weight * 2 ** -33)));
    return this.#row(u);
  }

  /** The mean of the rows around a cell with weights along both axes. */
  #mixture(u, [across, upward]) {
    const found = new Float64Array(this.width);
    for (let step = 0; step < 9; step++) {
      const share = across[Math.floor(step / 3)] * upward[step % 3];
      this.#row(this.around[9 * u + step]).forEach((p, y) => (found[y] += share * p));
    }
    return found;
  }

  #row(u) {
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
      for (let u = 0; u < this.count; u++) joint[u] = this.#mean(u, y);
    }
    let sum = 0;
    for (let u = 0; u < this.count; u++) sum += joint[u] *= this.prior[u];
    return joint.map((value) => value / sum);
  }

  /** The mass of report y for secret u, or for positions spread evenly over its cell. */
  #mean(u, y) {
    if (!this.around) return Number(this.mass[u * this.width + y]);
    const [shares, at] = [[1 / 6, 2 / 3, 1 / 6], (step) => this.around[9 * u + step] * this.width + y];
    return AROUND.reduce((sum, _, step) => sum + shares[Math.floor(step / 3)] * shares[step % 3] * Number(this.mass[at(step)]), 0);
  }

  /** The loss of what is drawn at the centre of every cell, to that centre; null where the loss is not known. */
  centreLosses() {
    const judge = lossOf(this.page);
    const all = (u) => this.row(u)?.reduce((sum, p, y) => sum + p * judge(u, y), 0) ?? NaN;
    return judge && Float64Array.from({ length: this.count }, (_, u) => all(u));
  }

  /** A report drawn with the random source of the browser: uniform whole numbers below the sum of the row. With positions
   * the row is drawn first, by the weights of a point of cell u, from bits of its own. */
  draw(u, point = [0, 0]) {
    if (!this.around) return this.#drawn(u);
    const [i, j] = point.map((a) => {
      const [high, low] = crypto.getRandomValues(new Uint32Array(2));
      const [asked, [less, same]] = [high * 2 + (low >>> 31), stepWeights(a)];
      return Number(asked >= less) + Number(asked >= less + same);
    });
    return this.#drawn(this.around[9 * u + 3 * i + j]);
  }

  #drawn(u) {
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

  /** Nats of the claim between a secret and all others at most: shortest paths over its edges; between centres with
   * positions, over cells that touch. */
  nats(u) {
    if (this.natsOf === u) return this.natsFound;
    this.beside ??= neighboursOf(this.count, this.placed ? this.#touching() : this.edges);
    [this.natsOf, this.natsFound] = [u, shortestPaths(this.beside, this.count, u)];
    return this.natsFound;
  }

  /** Cells that touch, and the length between their centres times the largest level. */
  #touching() {
    const [cells, side] = [cellsOf(this.page, this.placed), this.side()];
    const at = new Map(cells.map((cell, u) => [String(cell), u]));
    const found = { tail: [], head: [], length: [] };
    cells.forEach(([x, y], u) => {
      for (const [i, j] of [[0, 1], [1, -1], [1, 0], [1, 1]]) {
        const v = at.get(`${x + i},${y + j}`);
        if (v === undefined) continue;
        found.tail.push(u);
        found.head.push(v);
        found.length.push(Math.hypot(i, j) * side * this.rate());
      }
    });
    return found;
  }

  /** The side of a cell where positions are drawn. */
  side() {
    return Number(this.placed.wide);
  }

  /** Nats per unit of the claim along straight lines at most: with positions, of the largest level. */
  rate() {
    const said = this.placed ?? claimParts(attribute(this.page, "claim"));
    return Number(said.most) * Number(said.times ?? 1);
  }

  /** The radius within which odds change by a factor of at most, along straight lines: with positions on the ground. */
  reach(factor) {
    const nats = Math.log(factor) - (this.placed ? Number(this.placed.r) : 0);
    const [p, q] = this.placed ? new Setting(this.page, null, null).stretch : [1n, 1n];
    return Math.max(nats, 0) / this.rate() / (Number(p) / Number(q));
  }

  /** Whether the claim is at most its rate times the distance. */
  straight() {
    if (this.placed) return isConvex(this.placed, this.count);
    return claimParts(attribute(this.page, "claim"))?.kind === "euclidean";
  }

  /** The point [a, b] of a cell that coordinates are rounded to, 2^-16 of a side from its centre each. */
  pointIn(u, coordinates) {
    const half = 2 ** 15;
    const rounded = coordinates.map((x, k) => Math.round(((x - this.secrets[k][u]) / this.side()) * 2 * half));
    return rounded.map((a) => Math.max(-half, Math.min(half, a)));
  }

  /** Coordinates of a point of a cell, of a secret without one. */
  coordinates(u, point = [0, 0, 0]) {
    return this.secrets.map((axis, k) => axis[u] + (this.placed ? (point[k] / 2 ** 16) * this.side() : 0));
  }

  /** How far secret u, or a point of its cell, and report y are apart; null where reports are no places. */
  apart(u, y, point = undefined) {
    if (!this.located) return null;
    const from = this.coordinates(u, point);
    return Math.hypot(...this.secrets.map((axis, k) => from[k] - axis[this.cellOf[y]]));
  }

  /** The radius around a secret that holds a report with this probability; null where reports are no places. */
  radius(u, row, share, point = undefined) {
    if (!this.located) return null;
    const far = Array.from(row, (p, y) => [this.apart(u, y, point), p]).sort((a, b) => a[0] - b[0]);
    let held = 0;
    for (const [distance, p] of far) if ((held += p) >= share) return distance;
    return far.at(-1)[0];
  }
}

/** The weights of the steps -1, 0, 1 at a point, whole numbers of 2^33 together. */
function stepWeights(a) {
  const half = 2 ** 15;
  return [(half - a) ** 2, 6 * half ** 2 - 2 * a ** 2, (half + a) ** 2];
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
