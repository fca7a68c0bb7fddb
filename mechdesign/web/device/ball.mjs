// Draw from a device map: places are settled around a cell, nearest first, until the report is found.
//
// Lengths, weights and bounds are computed from five bytes a place when they are needed, in integers. So a map of a
// million places is ready at once. devicemap/device_map.py and draw.py of the package define the numbers and the draw.

import { kernelOf } from "./draw.mjs";
import { ReportError } from "./frame.mjs";

const UNSEEN = 65535;
const LEFT_OUT = 2 ** 29; // subtracted from every length, in 2^-48 nats
const NATURAL = 2 ** 33; // a unit of the potential is 2^-15 nats, in 2^-48 nats
// 4096 times 2^(k / 16), to the nearest integer: weights are MANTISSA[b % 16] 2^(b / 16), below 2^28.
const MANTISSA = [4096, 4277, 4467, 4664, 4871, 5087, 5312, 5547, 5793, 6049, 6317, 6597, 6889, 7194, 7512, 7845];
const RISE = 1082163286n; // e^(2^-7) in units of 2^-30, rounded up: the rise of the bound from one step to the next
const MOST_BOUND = 4n; // times the row sum, at most: a draw then takes at most 8 attempts on average
const DOWN_RIGHT = [[1, 0], [0, 1], [1, 1], [1, -1], [2, 1], [2, -1], [1, 2], [1, -2]]; // prettier-ignore
const SCALE = [0, 1, 2, 2, 3, 3, 4, 4]; // of each of these
const ROUND = 16; // random bytes of an attempt

/** Draws from a device map: P(place|u) = E(q) W / S, q the shortest-path distance in whole units, at most `cap`. A place
 * reports its cell, one in the margin the nearest. */
export class RegionRows {
  #map; // rows, columns, margin, cells along both axes, level, potential, weight, grain, cap
  #both; // steps of either sign
  #weights = Float64Array.from({ length: 256 }, (_, b) => MANTISSA[b % 16] * 2 ** (b >> 4));
  #whole = Array.from(this.#weights, BigInt); // the same for exact products
  #kernel; // E(q) - E(cap)
  #floor; // E(cap)
  #beyond = 0n; // the rest of the number after the last ball: its masses are subtracted
  #above; // weights of all places down to the end of every row, added up
  #bound; // factors of the bound, by the upper byte of the potential
  #distance;
  #lists; // room for buckets: places, the entry after each, and the first entry of every bucket, -1 between draws
  #level = new Uint32Array(64); // places of one distance

  constructor({ shape: [rows, columns], domain, margin, stencil, length_scales: scales, grain, cap, ratio, shift, bound }, arrays) {
    const { level, potential, weight } = arrays;
    this.#map = { rows, columns, margin, cells: domain.shape, grain, cap, bound, level, potential, weight };
    this.cells = domain.shape;
    this.steps = DOWN_RIGHT.slice(0, stencil / 2).map(([down, right], k) => {
      const given = { down, right, sign: 1, ahead: down * columns + right };
      return { ...given, length: scales[SCALE[k]], ...counts(down, right, columns) };
    });
    const back = (step) => ({ ...step, down: -step.down, right: -step.right, sign: -1 });
    this.#both = this.steps.flatMap((step) => [step, back(step)]);
    const kernel = kernelOf(cap, BigInt(ratio), BigInt(shift));
    this.#floor = kernel[cap];
    this.#kernel = kernel.map((value) => value - this.#floor);
    this.#above = new Float64Array(rows);
    for (let row = 0, sum = 0, at = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) sum += this.#weights[weight[at++]];
      this.#above[row] = sum;
    }
    this.#bound = [BigInt(bound[0])];
    for (let a = 0; a < 255; a++) this.#bound.push((this.#bound[a] * RISE + (1n << 30n) - 1n) >> 30n);
    this.#distance = new Uint16Array(rows * columns).fill(UNSEEN);
    this.#lists = [new Uint32Array(2 ** 16), new Int32Array(2 ** 16), new Int32Array(cap).fill(-1)];
  }

  /** The report for random bytes, 16 an attempt: their upper bits, as many as Sbar has, are a number t; one that is not
   * below Sbar, or S, is drawn again. Throws where Sbar is above 4 S: draws from such a map may never end. */
  draw(cell, bits) {
    const bound = this.boundOf(cell);
    const spare = BigInt(8 * ROUND - bound.toString(2).length);
    for (;;) {
      const number = integerOf(bits(ROUND)) >> spare;
      if (number >= bound) continue;
      const place = this.#placeOfNumber(cell, number);
      if (place >= 0) return this.#cellOfPlace(place);
      // The number is at least S, and the whole ball was settled: S follows from the rest of the number.
      const sum = number - this.#beyond + this.#floor * BigInt(this.#above.at(-1));
      if (bound > MOST_BOUND * sum) {
        throw new ReportError("table", "the map has a row bound that exceeds 4 times the row sum: use one that verify certifies");
      }
    }
  }

  /** P(.|cell) in floating point: for looking at. Settles the whole ball of the cell. */
  probabilities(cell) {
    const { rows, columns, weight } = this.#map;
    const mass = Float64Array.from(weight, (b) => this.#weights[b] * Number(this.#floor));
    const kernel = Float64Array.from(this.#kernel, Number);
    this.#settle(this.placeOf(cell), (place, q) => {
      mass[place] += kernel[q] * this.#weights[weight[place]];
      return false;
    });
    const total = mass.reduce((sum, part) => sum + part, 0);
    const probabilities = new Float64Array(this.#map.cells[0] * this.#map.cells[1]);
    for (let place = 0; place < rows * columns; place++) probabilities[this.#cellOfPlace(place)] += mass[place] / total;
    return probabilities;
  }

  /** S, exact: weights at equal distance are added first, below 2^52. */
  rowSum(cell) {
    const { cap, weight } = this.#map;
    const near = new Float64Array(cap);
    this.#settle(this.placeOf(cell), (place, q) => {
      near[q] += this.#weights[weight[place]];
      return false;
    });
    const mass = (sum, w, q) => (w ? sum + this.#kernel[q] * BigInt(w) : sum);
    return near.reduce(mass, this.#floor * BigInt(this.#above.at(-1)));
  }

  canReport(report) {
    return report < this.#map.cells[0] * this.#map.cells[1];
  }

  placeOf(cell) {
    const { columns, margin, cells } = this.#map;
    return (Math.floor(cell / cells[1]) + margin) * columns + (cell % cells[1]) + margin;
  }

  /** The cell that a place reports: its own, or the nearest one for places in the margin. */
  #cellOfPlace(place) {
    const { columns, margin, cells } = this.#map;
    const within = (at, count) => Math.min(Math.max(at - margin, 0), count - 1);
    return within(Math.floor(place / columns), cells[0]) * cells[1] + within(place % columns, cells[1]);
  }

  /** Sbar: at least the sum S of all masses. */
  boundOf(cell) {
    const { bound, potential } = this.#map;
    const above = potential[this.placeOf(cell)] + 32768;
    // Between two steps e^(x 2^-15) <= 1 + 129 x 2^-22 for x of 0 to 255, so the bound is never too small.
    return (this.#bound[above >> 8] * BigInt(2 ** 22 + 129 * (above % 256))) << BigInt(bound[1]);
  }

  /** The place that a number belongs to, or -1 for a number of S or more. In order of distance, places take
   * (E(q) - E(cap)) W numbers each. Then all places take E(cap) W each, in the order of their own numbers. */
  #placeOfNumber(cell, number) {
    const { weight } = this.#map;
    this.#beyond = number;
    const place = this.#settle(this.placeOf(cell), (other, q) => {
      this.#beyond -= this.#kernel[q] * this.#whole[weight[other]];
      return this.#beyond < 0n;
    });
    return place >= 0 ? place : this.#placeBeyondBall(this.#beyond);
  }

  /** The place of a number beyond the ball, or -1. */
  #placeBeyondBall(number) {
    const { rows, columns, weight } = this.#map;
    // All shares here are E(cap) W: the quotient by E(cap) is a rank among weights, whose sum is below 2^52.
    const beyond = number / this.#floor;
    if (beyond >= BigInt(this.#above[rows - 1])) return -1;
    const rank = Number(beyond);
    const row = this.#above.findIndex((sum) => sum > rank);
    let sum = row === 0 ? 0 : this.#above[row - 1];
    let place = row * columns;
    while ((sum += this.#weights[weight[place]]) <= rank) place++;
    return place;
  }

  /** Settles the places nearer than the cap, in order of distance and number, until `take(place, distance)` is true;
   * this place, or -1. Dial's buckets (1969), one for every whole distance, as in FactorRows. */
  #settle(source, take) {
    const { rows, columns, cap } = this.#map;
    const [distance, steps] = [this.#distance, this.#both];
    let [listed, next, first] = this.#lists;
    [distance[source], listed[0], next[0], first[0]] = [0, source, -1, 0];
    let [entries, waiting, farthest, reached, taken] = [1, 1, 0, 0, -1];
    for (; waiting > 0 && taken < 0; reached++) {
      if (first[reached] < 0) continue;
      let equal = 0;
      for (let at = first[reached]; at >= 0; at = next[at]) {
        waiting--;
        // An older entry of a place that was reached by a shorter path since.
        if (distance[listed[at]] !== reached) continue;
        if (equal === this.#level.length) this.#level = doubleLength(this.#level);
        this.#level[equal++] = listed[at];
      }
      first[reached] = -1;
      // By number, as the package takes them: another order would draw another report from the same bits.
      sortFirst(this.#level, equal);
      for (let k = 0; k < equal; k++) {
        const place = this.#level[k];
        if (take(place, reached)) {
          taken = place;
          break;
        }
        const row = (place / columns) | 0;
        const column = place - row * columns;
        const inMargin = this.#inMargin(row, column);
        for (let e = 0; e < steps.length; e++) {
          const step = steps[e];
          const i = row + step.down;
          const j = column + step.right;
          if (i < 0 || j < 0 || i >= rows || j >= columns) continue;
          const other = i * columns + j;
          if (distance[other] <= reached) continue;
          const through = reached + this.#units(place, other, step, inMargin || this.#inMargin(i, j));
          if (through >= cap || through >= distance[other]) continue;
          if (entries === listed.length) [listed, next] = this.#growLists();
          distance[other] = through;
          listed[entries] = other;
          next[entries] = first[through];
          first[through] = entries++;
          waiting++;
          if (through > farthest) farthest = through;
        }
      }
    }
    // Only the entries of this draw are cleared: the map has a million places.
    for (let at = 0; at < entries; at++) distance[listed[at]] = UNSEEN;
    first.fill(-1, reached, farthest + 1);
    return taken;
  }

  #inMargin(row, column) {
    const { margin, cells } = this.#map;
    return row < margin || column < margin || row >= margin + cells[0] || column >= margin + cells[1];
  }

  /** The length of the edge along a step from its upper end, in 2^-48 nats, below 2^53. */
  lengthOf(place, step) {
    const { level } = this.#map;
    let levels = step.ends * (level[place] + level[place + step.ahead]);
    if (step.inner > 0) levels += step.inner * (level[place + step.aside] + level[place + step.besides]);
    if (step.once) levels += level[place + step.outer] + level[place + step.further];
    return step.length * levels;
  }

  /** Units of the edge along a step from a cell to another, from its length. */
  unitsOf(cell, step) {
    const place = this.placeOf(cell);
    return this.#units(place, place + step.ahead, step, false);
  }

  /** Units of an edge: its length d in 2^-48 nats, less the difference of potentials. Every number is below 2^53, where
   * no quotient of integers is rounded up to the next integer. */
  #units(place, other, step, inMargin) {
    const { potential, grain, cap } = this.#map;
    const d = this.lengthOf(step.sign > 0 ? place : other, step);
    let length = d;
    if (!inMargin) {
      const most = d - LEFT_OUT - NATURAL * Math.abs(potential[place] - potential[other]);
      // At least 3 d / 10, rounded down by parts: 3 d itself may exceed 2^53.
      const tenths = Math.floor(d / 10);
      length = Math.max(most, 3 * tenths + Math.floor((3 * (d - 10 * tenths)) / 10));
    }
    return Math.max(1, Math.min(cap, length / grain)) | 0;
  }

  #growLists() {
    const [listed, next, first] = this.#lists;
    this.#lists = [doubleLength(listed), doubleLength(next), first];
    return this.#lists;
  }
}

/** The levels that make up the length of an edge (down, right), by offsets from its upper end. Both ends count `ends`
 * times, two levels in between `inner` times. A long edge counts two further levels once. */
function counts(down, right, columns) {
  const side = Math.sign(right);
  if (down === 0 || right === 0) return { ends: 12, inner: 0, aside: 0, besides: 0, once: false, outer: 0, further: 0 };
  if (down === side * right) return { ends: 8, inner: 4, aside: columns, besides: side, once: false, outer: 0, further: 0 };
  const long = { ends: 5, inner: 6, besides: columns + side, once: true };
  if (down === 2) return { ...long, aside: columns, outer: side, further: 2 * columns };
  return { ...long, aside: side, outer: columns, further: 2 * side };
}

/** The integer of bytes, little-endian. */
function integerOf(bytes) {
  let whole = 0n;
  for (let k = bytes.length - 1; k >= 0; k--) whole = (whole << 8n) | BigInt(bytes[k]);
  return whole;
}

/** Sorts the first entries of a list, mostly few. */
function sortFirst(list, count) {
  if (count > 32) {
    list.subarray(0, count).sort();
    return;
  }
  for (let k = 1; k < count; k++) {
    const value = list[k];
    let at = k;
    for (; at > 0 && list[at - 1] > value; at--) list[at] = list[at - 1];
    list[at] = value;
  }
}

function doubleLength(list) {
  const wider = new list.constructor(2 * list.length);
  wider.set(list);
  return wider;
}
