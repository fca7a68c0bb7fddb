// Geometry of cells and of the squares that they are cut into: displacements, hulls, bounds on splines.

/** Displacements of cells whose gap is below `most`, an exact fraction, or, where open is false, none; later than the origin
 * in the order of the axes. */
function displacementsWithin(sides, shape, most, open) {
  const about = nearestDouble(most);
  const reach = sides.map((side, k) => Math.min(shape[k] - 1, Math.floor(about / side) + 2));
  const widths = reach.map((k) => 2 * k + 1);
  const total = widths.reduce((a, b) => a * b, 1);
  const whole = sides.map(exactly);
  const steps = [];
  // The origin has the middle number, and opposite displacements lie on either side of it.
  for (let number = (total + 1) / 2; number < total; number++) {
    const step = [];
    let rest = number;
    for (let k = widths.length - 1; k >= 0; k--) {
      step[k] = (rest % widths[k]) - reach[k];
      rest = Math.floor(rest / widths[k]);
    }
    const gaps = step.map((k) => Math.max(Math.abs(k) - 1, 0));
    const square = gaps.reduce((sum, gap, k) => sum + (gap * sides[k]) ** 2, 0);
    // Doubles decide far from the bound, exact fractions within 1e-9 of it.
    if (square > about ** 2 * (1 + 1e-9)) continue;
    if (square > about ** 2 * (1 - 1e-9)) {
      let exact = [0n, 1n];
      gaps.forEach((gap, k) => {
        const [a, b] = times(whole[k], [BigInt(gap), 1n]);
        exact = [exact[0] * b * b + a * a * exact[1], exact[1] * b * b];
      });
      if (open ? !exceedsFraction(times(most, most), exact) : exact[0] > 0n) continue;
    }
    steps.push(step);
  }
  return steps;
}

/** The squares that cells are cut into, numbered, with the cell and the part of each. */
class Squares {
  constructor(index, sizes, parts) {
    this.sizes = sizes;
    this.number = new Int32Array(sizes[0] * sizes[1]).fill(-1);
    this.of = [];
    index.forEach(([i, j], cell) => {
      for (let a = 0; a < parts; a++) {
        for (let b = 0; b < parts; b++) {
          this.number[(i * parts + a) * sizes[1] + j * parts + b] = this.of.length;
          this.of.push({ cell, part: [a, b], place: [i * parts + a, j * parts + b] });
        }
      }
    });
    this.count = this.of.length;
  }

  #at(i, j) {
    return i >= 0 && j >= 0 && i < this.sizes[0] && j < this.sizes[1] ? this.number[i * this.sizes[1] + j] : -1;
  }

  /** Pairs at these displacements whose hull is not inside the area: [tails, heads]. */
  *leaving(steps) {
    const [tail, head] = [[], []];
    for (const [k, step] of steps.entries()) {
      const hull = hullOf(step);
      this.of.forEach(({ place: [i, j] }, square) => {
        const other = this.#at(i + step[0], j + step[1]);
        if (other < 0 || hull.every(([a, b]) => this.#at(i + a, j + b) >= 0)) return;
        tail.push(square);
        head.push(other);
      });
      yield k / steps.length;
    }
    return [tail, head];
  }
}

/** The squares that the hull of two squares at a displacement cuts: |k - t step| < 1 on both axes for a t of [0, 1]. */
function hullOf(step) {
  const squares = [];
  const [rows, columns] = step.map((s) => Array.from({ length: Math.abs(s) + 1 }, (_, k) => Math.min(0, s) + k));
  for (const i of rows) {
    for (const j of columns) {
      let [low, high] = [0, 1];
      for (const [k, s] of [[i, step[0]], [j, step[1]]]) {
        if (s === 0) continue;
        const ends = [(k - 1) / s, (k + 1) / s];
        [low, high] = [Math.max(low, Math.min(...ends)), Math.min(high, Math.max(...ends))];
      }
      if (low < high) squares.push([i, j]);
    }
  }
  return squares;
}

/** Bezier coefficients (3, 3) of a quadratic B-spline between shares of a cell, of the three coefficients around. */
function bezierWeights(start, end) {
  return [[start, start], [start, end], [end, end]].map(([a, b]) => {
    const [before, after] = [((1 - a) * (1 - b)) / 2, (a * b) / 2];
    return [before, 1 - before - after, after];
  });
}
