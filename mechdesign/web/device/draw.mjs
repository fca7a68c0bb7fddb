// Draw a report with exactly the probability of its integers, from random bits. Nothing is rounded.

import { HALF, POINT_BITS } from "./places.mjs";

const LIMB = 43n;
const KERNEL_BITS = 58n;

/** Draws from a table: P(y|u) = mass / 2^62. */
export class TableRows {
  constructor({ cells, reports }, { low, high }) {
    Object.assign(this, { cells, reports, low, high });
  }

  /** The report for the upper 62 bits x of 8 random bytes, little-endian: the number of y with
   * mass[0] + ... + mass[y] <= x. Every mass of the row is added whatever x is, so that the time reveals little. */
  draw(cell, bits) {
    const [low, high] = words(bits(8));
    const [xHigh, xLow] = [high >>> 2, ((high << 30) | (low >>> 2)) >>> 0];
    // Two 32-bit halves: sums of high halves stay below 2^31, and a carry is one bit. No branch depends on x.
    let [sumLow, sumHigh, report] = [0, 0, 0];
    for (let at = cell; at < this.low.length; at += this.cells) {
      const sum = sumLow + this.low[at];
      sumLow = sum >>> 0;
      sumHigh += this.high[at] + Number(sum > 0xffffffff);
      report += Number(sumHigh < xHigh) | (Number(sumHigh === xHigh) & Number(sumLow <= xLow));
    }
    return report;
  }

  /** P(.|cell) in floating point: for looking at. */
  probabilities(cell) {
    const mass = (at) => this.high[at] * 2 ** 32 + this.low[at];
    return Float64Array.from({ length: this.reports }, (_, y) => mass(cell + y * this.cells) / 2 ** 62);
  }

  canReport(report) {
    return report < this.reports;
  }
}

/** Draws for positions. A step along each axis is drawn by the weights of the quadratic B-spline at a point of a cell,
 * integers that sum to 2^33. Then a report is drawn from the row of the cell that the steps lead to. The steps must stay
 * secret. */
export class PositionRows extends TableRows {
  #around;

  constructor(header, arrays) {
    super(header, arrays);
    this.#around = arrays.around;
  }

  /** The report for a cell and a point [a, b] in it: 8 random bytes for each step, the upper 33 bits of which count, and
   * those of the row. */
  draw(cell, bits, point = [0, 0]) {
    const random = words(bits(16));
    const [first, second] = point.map((a, axis) => {
      const number = random[2 * axis + 1] * 2 + (random[2 * axis] >>> 31);
      const [low, middle] = stepWeights(a);
      return Number(number >= low) + Number(number >= low + middle);
    });
    return super.draw(this.#around[9 * cell + 3 * first + second], bits);
  }

  /** P(.|point of a cell) in floating point: for looking at. */
  probabilities(cell, point = [0, 0]) {
    const [across, upward] = point.map((a) => stepWeights(a).map((weight) => weight / 2 ** (2 * POINT_BITS + 1)));
    const found = new Float64Array(this.reports);
    for (let step = 0; step < 9; step++) {
      const share = across[Math.floor(step / 3)] * upward[step % 3];
      super.probabilities(this.#around[9 * cell + step]).forEach((chance, y) => (found[y] += share * chance));
    }
    return found;
  }
}

/** The weights of the steps -1, 0, 1 at a: integers that sum to 8 HALF^2 = 2^33. */
function stepWeights(a) {
  return [(HALF - a) ** 2, 6 * HALF ** 2 - 2 * a ** 2, (HALF + a) ** 2];
}

/** Draws from factors: P(column|u) = E(q) W / S, with W the weight of the column and S the sum over columns.
 *
 * q is the least of `cap` and offset + distance from u, over the places that generate the column. Distances are along
 * edges of integer lengths. Without generators a column is the distance from a place. The kernel is E(0) = 2^58 and
 * E(t + 1) = ceil(E(t) 2^shift / ratio). A column reports its target. */
export class FactorRows {
  #weight;
  #lists; // room for buckets: places, the entry after each, and the first entry of every bucket, -1 between draws

  /** `kernel` has E(0..cap). `start` is the index at which the neighbours of every place begin, `length` has the edges to
   * them. `generators` has the first of each column, their places and offsets; null if columns are places. */
  constructor({ cells, places, edges, cap, ratio, shift }, arrays) {
    const { weight, target, inner, tail, ahead, units, first, from: origins, offset } = arrays;
    Object.assign(this, { cells, reports: cells, weight, target, inner, cap });
    this.kernel = kernelOf(cap, BigInt(ratio), BigInt(shift));
    this.#weight = Array.from(weight, BigInt);
    this.generators = first ? { first, origins, offset } : null;
    const ends = [tail, tail.map((place, e) => place + ahead[e])];
    this.start = new Uint32Array(places + 1);
    for (const end of ends) end.forEach((place) => this.start[place + 1]++);
    for (let place = 0; place < places; place++) this.start[place + 1] += this.start[place];
    const next = this.start.slice();
    [this.neighbour, this.length] = [new Uint32Array(2 * edges), new Uint16Array(2 * edges)];
    const sources = first ? first.reduce((most, at, k) => Math.max(most, this.#endOf(k) - at), 1) : 1;
    const room = 2 * edges + sources;
    this.#lists = [new Uint32Array(room), new Int32Array(room), new Int32Array(cap).fill(-1)];
    for (const [from, to] of [ends, [...ends].reverse()]) {
      for (let e = 0; e < edges; e++) {
        const at = next[from[e]]++;
        [this.neighbour[at], this.length[at]] = [to[e], units[e]];
      }
    }
  }

  /** The report for random bytes, 16 an attempt. A number is built from the upper bits of two 64-bit words: as many bits
   * of the first as S has beyond 43, and 43 of the second. A number of S or more is drawn again. */
  draw(cell, bits) {
    let total = 0n;
    const sums = Array.from(this.columns(cell), (q, k) => (total += this.kernel[q] * this.#weight[k]));
    // S < 2^105 (table.mjs), so the first word has at least one bit to spare.
    const spare = 64 - (total >> LIMB).toString(2).length;
    for (;;) {
      const [low, high, restLow, restHigh] = words(bits(16)).map(BigInt);
      const number = ((((high << 32n) | low) >> BigInt(spare)) << LIMB) + (((restHigh << 32n) | restLow) >> 21n);
      if (number < total) return this.target[sums.findIndex((sum) => sum > number)];
    }
  }

  /** P(.|cell) in floating point: for looking at. */
  probabilities(cell) {
    const found = new Float64Array(this.cells);
    const masses = Float64Array.from(this.columns(cell), (q, k) => Number(this.kernel[q] * this.#weight[k]));
    const total = masses.reduce((sum, mass) => sum + mass, 0);
    masses.forEach((mass, k) => (found[this.target[k]] += mass / total));
    return found;
  }

  canReport(report) {
    return this.target.includes(report);
  }

  /** q of every column from a cell. */
  columns(cell) {
    const distances = this.#distances([[this.inner[cell], 0]]);
    if (!this.generators) return distances;
    const { first, origins, offset } = this.generators;
    const found = new Uint16Array(first.length).fill(this.cap);
    for (let k = 0; k < first.length; k++) {
      const end = this.#endOf(k);
      for (let g = first[k]; g < end; g++) found[k] = Math.min(found[k], distances[origins[g]] + offset[g]);
    }
    return found;
  }

  /** q of a column from every place. */
  column(k) {
    if (!this.generators) return this.#distances([[k, 0]]);
    const { first, origins, offset } = this.generators;
    const own = origins.subarray(first[k], this.#endOf(k));
    return this.#distances(Array.from(own, (place, g) => [place, offset[first[k] + g]]));
  }

  /** Where the generators of a column end. */
  #endOf(k) {
    const { first, origins } = this.generators;
    return k + 1 < first.length ? first[k + 1] : origins.length;
  }

  /** The least of the cap and offset + shortest-path distance from sources [place, offset], for all places. Dial's
   * buckets (1969): a list for every integer distance. A place enters a list when its distance falls, at most once for
   * each source and directed edge. */
  #distances(sources) {
    const found = new Uint16Array(this.start.length - 1).fill(this.cap);
    const { start, neighbour, length } = this;
    const [listed, next, first] = this.#lists;
    let [entries, waiting] = [0, 0];
    const enter = (place, distance) => {
      if (distance >= found[place]) return;
      found[place] = distance;
      listed[entries] = place;
      next[entries] = first[distance];
      first[distance] = entries++;
      waiting++;
    };
    for (const [place, offset] of sources) enter(place, offset);
    for (let distance = 0; waiting > 0; distance++) {
      while (first[distance] >= 0) {
        const place = listed[first[distance]];
        first[distance] = next[first[distance]];
        waiting--;
        if (found[place] !== distance) continue;
        for (let at = start[place]; at < start[place + 1]; at++) enter(neighbour[at], distance + length[at]);
      }
    }
    return found;
  }
}

/** E(0..cap): E(0) = 2^58, E(t + 1) = ceil(E(t) 2^shift / ratio). */
export function kernelOf(cap, ratio, shift) {
  const kernel = [1n << KERNEL_BITS];
  for (let t = 0; t < cap; t++) kernel.push(((kernel[t] << shift) + ratio - 1n) / ratio);
  return kernel;
}

/** 32-bit words of bytes, little-endian. */
function words(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.byteLength / 4 }, (_, k) => view.getUint32(4 * k, true));
}

/** Bytes of the random source of the system. */
export function randomBytes(count) {
  return crypto.getRandomValues(new Uint8Array(count));
}
