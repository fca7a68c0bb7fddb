// Where a public model thinks somebody is, after what was released: doubles, added up in the order in which the package
// adds them. Sums over all places of a loss, and of jumps, go from the first place to the last; the package leaves their
// order to a library, so that the last digits of an expected error may differ, and with them what a rule decides exactly
// at a threshold, or which of two equally good places is named.

const LONGEST = 10_000; // ticks without a call after which the filter begins anew

/** States that move by sparse matrices (s, s), one for every tick of a period; the model that "matrices" names. */
export class SparseChain {
  #matrices;
  #place;

  constructor({ cells, movement }, { initial, place, start, state, probability }) {
    const { states, entries } = movement;
    [this.initial, this.cells, this.#place] = [initial, cells, place];
    let from = 0;
    this.#matrices = entries.map((count, k) => {
      const own = [from, (from += count)];
      const rows = start.subarray(k * (states + 1), (k + 1) * (states + 1));
      return { rows, state: state.subarray(...own), probability: probability.subarray(...own) };
    });
  }

  /** The distribution at `tick` that follows from that at the tick before. */
  step(weights, tick) {
    const { rows, state, probability } = this.#matrices[tick % this.#matrices.length];
    const next = new Float64Array(weights.length);
    for (let s = 0; s < weights.length; s++) {
      for (let at = rows[s]; at < rows[s + 1]; at++) next[state[at]] += probability[at] * weights[s];
    }
    return next;
  }

  /** The distribution over places. */
  places(weights) {
    const found = new Float64Array(this.cells);
    weights.forEach((weight, s) => (found[this.#place[s]] += weight));
    return found;
  }

  /** Weights times how likely every place makes what was seen. */
  seen(weights, likelihood) {
    return weights.map((weight, s) => weight * likelihood[this.#place[s]]);
  }
}

/** People who live somewhere, leave, stay elsewhere and come home; the model that "home-away" names. States are a home,
 * then a home and the place where somebody is, this fastest. */
export class HomeAwayChain {
  #rates;
  #far;
  #near;

  constructor({ cells, movement }, { initial, far, near }) {
    [this.initial, this.cells, this.#rates, this.#far, this.#near] = [initial, cells, movement.rates, far, near];
  }

  step(weights, tick) {
    const n = this.cells;
    const [leave, back, wander, mix] = this.#rates[tick % this.#rates.length];
    const jump = this.#far.map((far, k) => mix * far + (1 - mix) * this.#near[k]);
    const next = new Float64Array(weights.length);
    for (let home = 0; home < n; home++) {
      const own = n + home * n;
      let away = 0;
      for (let x = 0; x < n; x++) {
        const here = weights[own + x];
        away += here;
        const moving = (1 - back) * wander * here;
        for (let to = 0; to < n; to++) next[own + to] += moving * jump[x * n + to];
      }
      for (let to = 0; to < n; to++) {
        next[own + to] += (1 - back) * (1 - wander) * weights[own + to] + leave * weights[home] * jump[home * n + to];
      }
      next[home] = (1 - leave) * weights[home] + back * away;
    }
    return next;
  }

  places(weights) {
    const found = weights.slice(0, this.cells);
    for (let s = this.cells; s < weights.length; s++) found[s % this.cells] += weights[s];
    return found;
  }

  seen(weights, likelihood) {
    return weights.map((weight, s) => weight * likelihood[s % this.cells]);
  }
}

/** What is believed at a tick: weights of the states, sum 1; a row of them for every offset of a test that runs, else one.
 * It never changes; `at`, `seen`, `open` and `hiding` give another. */
export class Belief {
  #chain;
  #losses;
  #named = null;

  constructor(chain, losses, rows = [chain.initial], tick = 0) {
    [this.#chain, this.#losses, this.rows, this.tick] = [chain, losses, rows, tick];
  }

  /** At a later tick: a step of the model for every tick. */
  at(tick) {
    if (tick - this.tick > LONGEST) return this.#with([this.#chain.initial], tick);
    let { rows } = this;
    for (let each = this.tick + 1; each <= tick; each++) rows = rows.map((row) => this.#chain.step(row, each));
    return this.#with(rows, tick);
  }

  /** After something whose probability from every place is in `likelihoods`: one row for all, or one for every offset. */
  seen(likelihoods) {
    const of = (k) => likelihoods[likelihoods.length === 1 ? 0 : k];
    const rows = this.rows.map((row, k) => this.#chain.seen(row, of(k)));
    const all = new Float64Array(rows.length * rows[0].length);
    rows.forEach((row, k) => all.set(row, k * row.length));
    const total = pairwise(all, 0, all.length);
    if (!(total > 0 && total < Infinity)) return this;
    return this.#with(rows.map((row) => row.map((weight) => weight / total)));
  }

  /** Without offsets. */
  get open() {
    return this.rows.length === 1 ? this : this.#with([this.#summed()]);
  }

  /** With an offset drawn afresh from probabilities. */
  hiding(prior) {
    const summed = this.#summed();
    return this.#with(Array.from(prior, (chance) => summed.map((weight) => chance * weight)));
  }

  /** The place with the least expected loss, the first of equals. */
  get estimate() {
    return this.#best().place;
  }

  /** The expected loss of the estimate. */
  get error() {
    return this.#best().error;
  }

  #best() {
    if (this.#named) return this.#named;
    const places = this.#chain.places(this.#summed());
    const expected = new Float64Array(places.length);
    places.forEach((chance, u) => {
      for (let v = 0; v < expected.length; v++) expected[v] += chance * this.#losses[u * expected.length + v];
    });
    const error = expected.reduce((least, value) => Math.min(least, value), Infinity);
    this.#named = { place: expected.indexOf(error), error };
    return this.#named;
  }

  #summed() {
    if (this.rows.length === 1) return this.rows[0];
    const summed = this.rows[0].slice();
    for (const row of this.rows.slice(1)) row.forEach((weight, s) => (summed[s] += weight));
    return summed;
  }

  #with(rows, tick = this.tick) {
    return new Belief(this.#chain, this.#losses, rows, tick);
  }
}

/** The sum of values, in pairs of blocks of at most 128, each in eight strands: as NumPy adds. */
function pairwise(values, from, count) {
  if (count < 8) {
    let sum = 0;
    for (let k = 0; k < count; k++) sum += values[from + k];
    return sum;
  }
  if (count > 128) {
    const half = Math.floor(count / 2);
    const first = half - (half % 8);
    return pairwise(values, from, first) + pairwise(values, from + first, count - first);
  }
  const r = values.slice(from, from + 8);
  let k = 8;
  for (; k < count - (count % 8); k++) r[k % 8] += values[from + k];
  let sum = r[0] + r[1] + (r[2] + r[3]) + (r[4] + r[5] + (r[6] + r[7]));
  for (; k < count; k++) sum += values[from + k];
  return sum;
}
