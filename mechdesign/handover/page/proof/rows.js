// The row sums of a compact map, P(p|u) = E(q(u, p)) W(p) / S(u): q is the shortest-path distance in whole units that follow
// from five bytes a place; mechanism/compact/formulas.py of the package states lengths, kernel and bounds.

const NOT_THERE = 65535; // units where no edge is
const REGION_STEPS = [[1, 0], [0, 1], [1, 1], [1, -1], [2, 1], [2, -1], [1, 2], [1, -2]]; // prettier-ignore
const REGION_KINDS = [0, 1, 2, 2, 3, 3, 4, 4]; // of advances
const REGION_SLACK = 2 ** 29; // of every length, in 2^-48 nats
const REGION_POTENTIAL = 2 ** 33; // of a unit of the potential
const REGION_RISE = 1082163286n; // of the bound, in 2^-30
const LOOSEST = 4n; // times a sum that its bound may be
const MANTISSAS = [4096, 4277, 4467, 4664, 4871, 5087, 5312, 5547, 5793, 6049, 6317, 6597, 6889, 7194, 7512, 7845];
const LIMB_BITS = 20n;
const FULL = 2 ** 52; // sums of limbs are carried from here on

/** The integers of a compact map, { header, arrays } as its client reads them, ready for `rowSum`. */
class RegionSums {
  constructor({ header, arrays }) {
    const { shape, frame, domain, stencil, advance, grain, cap, step, bound } = header;
    const { level, potential, weight } = arrays;
    Object.assign(this, { shape, frame, cells: domain.shape, advance, cap, step, level, potential });
    this.bound = [BigInt(bound[0])];
    while (this.bound.length < 256) this.bound.push((this.bound.at(-1) * REGION_RISE + (1n << 30n) - 1n) >> 30n);
    this.raised = BigInt(bound[1]);
    this.weight = Float64Array.from(weight, (b) => MANTISSAS[b % 16] * 2 ** (b >> 4));
    this.total = this.weight.reduce((sum, w) => sum + w, 0); // below 2^52
    const values = kernelOf(step, cap);
    this.floor = values[cap];
    const limb = (k) => Float64Array.from(values, (value) => Number(((value - this.floor) >> (LIMB_BITS * k)) & 0xfffffn));
    this.limbs = [limb(0n), limb(1n), limb(2n)];
    this.steps = REGION_STEPS.slice(0, stencil / 2);
    this.ahead = this.steps.map(([down, right]) => down * shape[1] + right);
    this.units = this.steps.map((_, k) => this.#unitsAlong(k, grain));
    this.distance = new Uint16Array(this.weight.length).fill(NOT_THERE);
    this.lists = [new Uint32Array(2 ** 16), new Int32Array(2 ** 16), new Int32Array(cap).fill(-1)];
  }

  /** Length d in 2^-48 nats of the edge from a place along a step, below 2^53. */
  lengthOf(place, k) {
    const { level, shape: [, columns] } = this;
    const [down, right] = this.steps[k];
    const at = (a, b) => level[place + a * columns + b];
    const ends = level[place] + at(down, right);
    const side = Math.sign(right);
    let levels = 12 * ends;
    if (down === 2) levels = 5 * ends + 6 * (at(1, 0) + at(1, right)) + at(0, right) + at(2, 0);
    else if (right === 2 * side && side) levels = 5 * ends + 6 * (at(0, side) + at(1, side)) + at(1, 0) + at(0, right);
    else if (down && right) levels = 8 * ends + 4 * (at(1, 0) + at(0, right));
    return this.advance[REGION_KINDS[k]] * levels;
  }

  /** Units of the edges along a step, from every place. */
  #unitsAlong(k, grain) {
    const { shape: [rows, columns], cap, potential } = this;
    const [[down, right], ahead] = [this.steps[k], this.ahead[k]];
    const found = new Uint16Array(rows * columns).fill(NOT_THERE);
    for (let i = 0; i + down < rows; i++) {
      for (let j = Math.max(0, -right); j < columns - Math.max(0, right); j++) {
        const place = i * columns + j;
        const d = this.lengthOf(place, k);
        let left = d;
        if (this.#isSecret(i, j) && this.#isSecret(i + down, j + right)) {
          const most = d - REGION_SLACK - REGION_POTENTIAL * Math.abs(potential[place] - potential[place + ahead]);
          const tenths = Math.floor(d / 10);
          left = Math.max(most, 3 * tenths + Math.floor((3 * (d - 10 * tenths)) / 10));
        }
        found[place] = Math.max(1, Math.min(cap, Math.floor(left / grain)));
      }
    }
    return found;
  }

  #isSecret(row, column) {
    const { frame, cells } = this;
    return row >= frame && column >= frame && row < frame + cells[0] && column < frame + cells[1];
  }

  placeOf(cell) {
    return (Math.floor(cell / this.cells[1]) + this.frame) * this.shape[1] + (cell % this.cells[1]) + this.frame;
  }

  /** S(u), exact: Dial's buckets (1969) over the places nearer than the cap, and the floor for all. */
  rowSum(cell) {
    const { distance, cap, units, ahead } = this;
    let [listed, next, first] = this.lists;
    const [sums, full] = [[0, 0, 0], [0, 0, 0]];
    const source = this.placeOf(cell);
    let [entries, waiting] = [1, 1];
    [distance[source], listed[0], next[0], first[0]] = [0, source, -1, 0];
    for (let at = 0; waiting > 0; at++) {
      for (; first[at] >= 0; waiting--) {
        const entry = first[at];
        const place = listed[entry];
        first[at] = next[entry];
        if (distance[place] !== at) continue;
        for (let k = 0; k < 3; k++) {
          sums[k] += this.limbs[k][at] * this.weight[place]; // each below 2^48
          if (sums[k] < FULL) continue;
          sums[k] -= FULL;
          full[k]++;
        }
        if (entries + 16 > listed.length) [listed, next] = this.#wider();
        for (let k = 0; k < ahead.length; k++) {
          for (let way = 0; way < 2; way++) {
            const other = way ? place - ahead[k] : place + ahead[k];
            const through = at + units[k][way ? other : place];
            if (!(through < cap && through < distance[other])) continue; // nor where a place is not there
            distance[other] = through;
            listed[entries] = other;
            next[entries] = first[through];
            first[through] = entries++;
            waiting++;
          }
        }
      }
    }
    for (let at = 0; at < entries; at++) distance[listed[at]] = NOT_THERE;
    const near = sums.reduce((sum, part, k) => sum + ((BigInt(part) + (BigInt(full[k]) << 52n)) << (LIMB_BITS * BigInt(k))), 0n);
    return near + this.floor * BigInt(this.total);
  }

  /** Sbar(u), which draws rest on: from S(u) to four times that. */
  boundOf(cell) {
    const above = this.potential[this.placeOf(cell)] + 32768;
    return (this.bound[above >> 8] * BigInt(2 ** 22 + 129 * (above % 256))) << this.raised;
  }

  #wider() {
    const [listed, next, first] = this.lists;
    const twice = [listed, next].map((list) => {
      const wider = new list.constructor(2 * list.length);
      wider.set(list);
      return wider;
    });
    this.lists = [...twice, first];
    return twice;
  }
}
