// The belief of a public model about where somebody is, after the released reports.
//
// The package adds the same doubles in another order, so the last digits of an expected error may differ. Then a rule may
// decide otherwise exactly at a threshold, and another of two equally good places may be named.

const LONGEST = 10_000; // ticks without a call after which the filter begins anew

/** Hidden states, each at a place: initial, their distribution at tick 0; placeOf, the place of each. */
class Chain {
  constructor(cells, initial, placeOf) {
    Object.assign(this, { cells, initial, placeOf });
  }

  /** The distribution over places. */
  places(weights) {
    const chances = new Float64Array(this.cells);
    weights.forEach((weight, s) => (chances[this.placeOf(s)] += weight));
    return chances;
  }

  /** Weights times the likelihood of the observation at each place. */
  update(weights, likelihood) {
    return weights.map((weight, s) => weight * likelihood[this.placeOf(s)]);
  }
}

/** States that move by sparse matrices (s, s), one for every tick of a period; the model that "matrices" names. */
export class SparseChain extends Chain {
  #matrices;

  constructor({ cells, movement }, { initial, place, start, state, probability }) {
    super(cells, initial, (s) => place[s]);
    const { states, entries } = movement;
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
}

/** People who live somewhere, leave, stay elsewhere and come home; the model that "home-away" names. States are a home,
 * then a home and the place where somebody is, this fastest. */
export class HomeAwayChain extends Chain {
  #rates;
  #far;
  #near;

  constructor({ cells, movement }, { initial, far, near }) {
    super(cells, initial, (s) => s % cells);
    [this.#rates, this.#far, this.#near] = [movement.rates, far, near];
  }

  step(weights, tick) {
    // State `home` is at home; state n + n home + x is away from it, at x.
    const n = this.cells;
    const [leave, back, wander, mix] = this.#rates[tick % this.#rates.length];
    const jump = this.#far.map((far, k) => mix * far + (1 - mix) * this.#near[k]);
    const next = new Float64Array(weights.length);
    for (let home = 0; home < n; home++) {
      const first = n + home * n;
      let away = 0;
      for (let x = 0; x < n; x++) {
        const here = weights[first + x];
        away += here;
        const moving = (1 - back) * wander * here;
        for (let to = 0; to < n; to++) next[first + to] += moving * jump[x * n + to];
      }
      for (let to = 0; to < n; to++) {
        next[first + to] += (1 - back) * (1 - wander) * weights[first + to] + leave * weights[home] * jump[home * n + to];
      }
      next[home] = (1 - leave) * weights[home] + back * away;
    }
    return next;
  }
}

/** The belief at a tick: weights of the states that sum to 1. It never changes; `at` and `update` return another. */
export class Belief {
  #chain;
  #losses;
  #weights;
  #named = null;

  constructor(chain, losses, weights = chain.initial, tick = 0) {
    [this.#chain, this.#losses, this.#weights, this.tick] = [chain, losses, weights, tick];
  }

  /** At a later tick: a step of the model for every tick. */
  at(tick) {
    if (tick - this.tick > LONGEST) return new Belief(this.#chain, this.#losses, this.#chain.initial, tick);
    let weights = this.#weights;
    for (let each = this.tick + 1; each <= tick; each++) weights = this.#chain.step(weights, each);
    return new Belief(this.#chain, this.#losses, weights, tick);
  }

  /** The belief after an observation that has these probabilities at the places (Bayes' rule). */
  update(likelihood) {
    const weights = this.#chain.update(this.#weights, likelihood);
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    // An observation that the model rules out changes nothing: people do not follow the model exactly.
    if (!(total > 0 && total < Infinity)) return this;
    return new Belief(this.#chain, this.#losses, weights.map((weight) => weight / total), this.tick);
  }

  /** {place, error}: the place with the least expected loss, the first of equals, and that loss. */
  get best() {
    if (this.#named) return this.#named;
    const places = this.#chain.places(this.#weights);
    const expected = new Float64Array(places.length);
    places.forEach((chance, u) => {
      for (let v = 0; v < expected.length; v++) expected[v] += chance * this.#losses[u * expected.length + v];
    });
    const error = expected.reduce((least, value) => Math.min(least, value), Infinity);
    this.#named = { place: expected.indexOf(error), error };
    return this.#named;
  }
}
