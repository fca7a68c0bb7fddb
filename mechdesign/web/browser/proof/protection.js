// Recomputes the sentence on protection: the largest factor by which a report changes odds. Between cells or places it
// follows from their rows, between positions from the claim, which other parts of this program prove.
//
// Cells are half-open, so that two at a displacement of k cells hold positions at every distance above their gap, the length
// of (|k| - 1)+ sides, and at none up to it. Gaps are compared in exact fractions, ratios of masses in doubles.
//
// In an area with holes every cell is cut into f x f squares. On each square nine Bezier coefficients bound P(y|.). For any
// two squares whose hull leaves the area, the coefficients of one are divided by those of the other.

const MINOR_AXIS = 6356752.314245; // of WGS 84, metres
const CUTS = [4, 2, 1]; // f, the first that is not too much work
const MOST_RATIOS = 4e9;
const MOST_COEFFICIENTS = 4e7;

/** Faults of the sentence on protection, after the rows were proved; adds to `outcome`. rows: the secrets that the page
 * carries; mass: their masses, null for factors. */
function* protectionFaults(page, outcome, rows = null, mass = null) {
  const { within, factor, exact, path } = page.contents.protection;
  if (!((within ?? 0) >= 0 && within !== Infinity)) return [{ text: `the sentence has an invalid radius: ${within}` }];
  if (factor === null) return [];
  const result = yield* new ProtectedDomain(page, rows, mass).factors(page.contents.protection);
  if (result === null) {
    outcome.assumed.push("The factor of the sentence was computed by mechdesign when this page was made, not here.");
    return [];
  }
  const faults = [];
  const claimed = factor === "unbounded" ? Infinity : factor;
  if (!(claimed >= result.factor * (1 - AGREE)))
    faults.push({ text: `the sentence states factor ${claimed}, recomputed ${result.factor}` });
  if (exact && !result.partly && claimed > result.factor * (1 + AGREE))
    faults.push({ text: `the sentence states factor ${claimed}, but the largest is ${result.factor}` });
  if ((path === null) !== (result.path === undefined)) faults.push({ text: "the sentence states wrongly whether the claim is along paths" });
  else if (path !== null && !(path >= result.path * (1 - AGREE)))
    faults.push({ text: `the sentence states path ${path}, recomputed ${result.path}` });
  if (result.partly) outcome.assumed.push("The factor of the sentence between rows that this page does not carry was not checked here.");
  else outcome.proved.push(result.words);
  return faults;
}

/** Recomputes the factor of the sentence from the domain, the lattice and the rows of a page. */
class ProtectedDomain {
  constructor(page, rows, mass) {
    this.page = page;
    this.domain = jsonAttribute(page, "domain");
    this.points = axesOf(page, "secret");
    this.count = this.points[0].length;
    this.positionClaim = positionClaimOf(page);
    this.cells = protectedKind(page) === "cells";
    this.claim = claimOf(jsonAttribute(page, "metric"));
    this.along = this.claim.kind === "streets";
    this.masses = mass ? inDoubles(mass) : null;
    this.rowOf = rows && new Map(Array.from(rows, (u, r) => [u, r]));
    this.partly = rows !== null && rows.length < this.count;
    this.reports = mass ? mass.length / rows.length : 0;
    if (this.domain.kind !== "grid") return;
    this.index = latticeOf(this.domain, this.points);
    this.at = new Map(this.index.map((place, u) => [String(place), u]));
    this.whole = isWhole(this.domain, this.count);
  }

  /** The largest ratio of a length on the plane to that on the ground, as an exact fraction. */
  get stretch() {
    if (!this.domain.plane) return [1n, 1n];
    const reach = this.points[0].reduce((far, x, u) => Math.max(far, Math.hypot(x, this.points[1][u])), 0);
    const corner = this.domain.cell ? Math.hypot(...this.domain.cell) / 2 : 0;
    // On a sphere a circle at distance t has radius sin t, on the plane t: t / sin t = 1 + t^2/6 + 7 t^4/360 + ... Nowhere
    // is WGS 84 more curved than the sphere of its minor axis.
    const t = ((reach + corner) * (1 + 2 ** -50) * METRES[this.domain.unit]) / MINOR_AXIS;
    if (t > 0.79) throw new RangeError("the area is too wide for a plane");
    const [p, q] = times(exactly(((t * t) / 6) * (1 + (t * t) / 8)), [(1n << 40n) + 1n, 1n << 40n]);
    return [p + q, q];
  }

  /** {factor, path, partly, words} for a radius; null if it cannot be computed here. */
  *factors(sentence) {
    const within = sentence.within ?? 0;
    // A position draws a mixture of rows, so ratios of single rows are not its factor.
    if (this.positionClaim) return this.partly ? null : yield* this.#ofPositions(within);
    if (this.masses && !this.along) {
      const pairs = this.cells ? this.#cellPairs(within) : this.#placePairs(within);
      const factor = yield* this.#steepest(pairs);
      const words = `The factor of the sentence is the largest ratio between such ${this.cells ? "cells" : "places"}, both ways, over all reports: recomputed from their rows.`;
      return { factor, partly: this.partly, words };
    }
    const nats = this.cells ? yield* this.#farthest(within, sentence) : this.#farPlaces(within);
    const words = "The factor of the sentence is at least e^d for the largest claimed distance d within its radius.";
    return { factor: Math.exp(nats), words };
  }

  // --- cells ---

  /** Displacements between cells that hold positions at most `within` apart, of each two opposite ones one. */
  steps(within, stretch = this.stretch) {
    const { cell, shape } = this.domain;
    return displacementsWithin(cell, shape, times(exactly(within), stretch), within > 0);
  }

  *#cellPairs(within) {
    for (const step of this.steps(within)) {
      for (let u = 0; u < this.count; u++) {
        const v = this.at.get(String(this.index[u].map((at, k) => at + step[k])));
        if (v !== undefined) yield [u, v];
      }
    }
  }

  /** The largest claimed distance of such cells, in nats. */
  *#farthest(within, sentence) {
    const [steps, { cell }] = [this.steps(within), this.domain];
    if (steps.length === 0) return 0;
    const rate = nearestDouble(this.claim.rate);
    if (this.claim.kind === "discrete") return rate;
    if (this.claim.kind === "euclidean")
      return rate * Math.max(...steps.map((step) => Math.hypot(...step.map((k, axis) => k * cell[axis]))));
    return this.whole ? this.#alongSteps(steps) : yield* this.#aroundHoles(steps, sentence);
  }

  /** An upper bound on distances: a path along edges of a whole lattice, each as long as the longest of its kind. */
  #alongSteps(steps) {
    const edges = claimEdges(this.page);
    const longest = new Map();
    for (let e = 0; e < edges.tail.length; e++) {
      const [a, b] = [this.index[edges.tail[e]], this.index[edges.head[e]]];
      const kind = String(a.map((at, k) => Math.abs(at - b[k])));
      longest.set(kind, Math.max(longest.get(kind) ?? 0, edges.length[e]));
    }
    const axes = this.domain.cell.map((_, k) => longest.get(String(this.domain.cell.map((__, j) => Number(j === k)))) ?? 0);
    const diagonal = axes.length === 2 ? longest.get("1,1") : undefined;
    const far = steps.map((step) => {
      const away = step.map(Math.abs);
      const across = diagonal === undefined ? 0 : Math.min(...away);
      return away.reduce((sum, k, axis) => sum + (k - across) * axes[axis], 0) + (across ? across * diagonal : 0);
    });
    return Math.max(...far);
  }

  /** 0 if no shortest path between such cells exceeds the factor of the sentence, else Infinity. */
  *#aroundHoles(steps, { factor }) {
    const edges = claimEdges(this.page);
    const neighbours = neighboursOf(this.count, edges);
    const unbounded = factor === "unbounded";
    // 1e-9: the factor of the sentence and the sums along paths are rounded in doubles.
    const limit = unbounded ? 0 : Math.log(factor) * (1 + 1e-9);
    for (let u = 0; u < this.count; u++) {
      const targets = steps.map((step) => this.at.get(String(this.index[u].map((at, k) => at + step[k]))));
      const nats = shortestPaths(neighbours, u, limit);
      if (targets.some((v) => nats[v] > limit)) return unbounded ? 0 : Infinity;
      if (u % 64 === 0) yield u / this.count;
    }
    return 0;
  }

  // --- places ---

  *#placePairs(within) {
    if (this.claim.kind !== "euclidean") {
      const { tail, head } = claimEdges(this.page);
      for (let e = 0; e < tail.length; e++) yield [tail[e], head[e]];
      return;
    }
    const [p, q] = this.stretch;
    // Raised beyond rounding: a pair too many can only raise the recomputed factor.
    const most = within * (Number(p) / Number(q)) * (1 + 2 ** -40);
    for (let u = 0; u < this.count; u++) {
      for (let v = u + 1; v < this.count; v++) {
        if (Math.hypot(...this.points.map((axis) => axis[u] - axis[v])) <= most) yield [u, v];
      }
    }
  }

  /** Nats of the claim within a radius, along streets or straight, or of its longest edge. */
  #farPlaces(within) {
    if (this.along) return nearestDouble(this.claim.rate) * within;
    if (this.claim.kind === "euclidean") return nearestDouble(times(this.claim.rate, this.stretch)) * within;
    return claimEdges(this.page).length.reduce((a, b) => Math.max(a, b), 0);
  }

  /** The largest ratio of two masses of a report in the rows of pairs, either way. */
  *#steepest(pairs) {
    let [largest, k] = [1, 0];
    for (const [u, v] of pairs) {
      const [a, b] = [this.rowOf.get(u), this.rowOf.get(v)];
      if (a === undefined || b === undefined) continue;
      const { high, low } = extremeRatios(this.masses, a * this.reports, b * this.reports, this.reports);
      largest = Math.max(largest, high, 1 / low);
      if (k++ % 4096 === 0) yield 0.5;
    }
    return largest;
  }

  // --- positions ---

  /** e^(eps within + rounding), and around the holes of an area the factor of the rows there. */
  *#ofPositions(within) {
    const name = Object.keys(LEVELS).find((each) => has(this.page, each));
    const varies = this.positionClaim.kind === "eikonal";
    const rate = varies ? exactly(array(this.page, name).reduce((a, b) => Math.max(a, b), 0)) : this.positionClaim.rate;
    // Without the percent that ROUNDED adds: else a correct sentence would be refused.
    const path = Math.exp(nearestDouble(times(rate, this.stretch)) * within + this.positionClaim.rounding / 1.01);
    const words = "The factor of the sentence is at least e^(D + r) of the claim about positions, for two at the distance of the sentence.";
    if (this.whole) return { factor: path, words };
    const around = yield* this.#leaving(within);
    return { factor: Math.max(path, around), path, words: `${words} Around the holes of the area it was recomputed from the rows.` };
  }

  /** The largest factor of two positions whose straight line may leave the area. */
  *#leaving(within) {
    const { cell, shape } = this.domain;
    const most = times(times(exactly(within), this.stretch), [(1n << 40n) + 1n, 1n << 40n]);
    // Smaller squares bound the factor more closely, so the finest that is affordable decides.
    for (const parts of CUTS) {
      const side = cell[0] / parts;
      const sizes = shape.map((count) => parts * count);
      const steps = displacementsWithin([side, side], sizes, most, within > 0);
      const work = steps.reduce((sum, step) => sum + Math.abs(step[0]) + Math.abs(step[1]), 0);
      // Estimated before the pairs are listed; the list is then counted exactly.
      if (this.count * parts ** 2 * work > MOST_RATIOS / 4) continue;
      const squares = new Squares(this.index, sizes, parts);
      const [tail, head] = yield* squares.leaving(steps);
      const used = new Set([...tail, ...head]);
      if (used.size * this.reports > MOST_COEFFICIENTS || tail.length * this.reports > MOST_RATIOS) continue;
      return (yield* this.#between(squares, parts, [...used], tail, head)) * (1 + 2 ** -40);
    }
    return Infinity; // no page that is small enough to be written needs so much work
  }

  /** The largest quotient of coefficients on two squares, over all reports. */
  *#between(squares, parts, used, tail, head) {
    const [around, width] = [places(this.page, "around_row"), this.reports];
    const weights = Array.from({ length: parts }, (_, k) => bezierWeights(k / parts, (k + 1) / parts));
    const [low, high] = [new Float64Array(squares.count), new Float64Array(squares.count)];
    let largest = 1;
    for (let y = 0; y < width; y++) {
      for (const square of used) {
        const { cell, part } = squares.of[square];
        const p = STEPS.map((_, i) => STEPS.map((__, j) => this.masses[around[9 * cell + 3 * i + j] * width + y]));
        let [least, most] = [Infinity, 0];
        for (const a of weights[part[0]]) {
          const along = [0, 1, 2].map((j) => a[0] * p[0][j] + a[1] * p[1][j] + a[2] * p[2][j]);
          for (const b of weights[part[1]]) {
            const value = b[0] * along[0] + b[1] * along[1] + b[2] * along[2];
            [least, most] = [Math.min(least, value), Math.max(most, value)];
          }
        }
        [low[square], high[square]] = [least, most];
      }
      for (let e = 0; e < tail.length; e++) {
        const [s, t] = [tail[e], head[e]];
        largest = Math.max(largest, high[s] / low[t], high[t] / low[s]);
      }
      yield y / width;
    }
    return largest;
  }
}
