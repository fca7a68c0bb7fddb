// The claim of a metric and a domain, compared with the edges: in doubles beyond their error, or in exact fractions. T is the scale of the metric, E its
// epsilon, B the largest of its levels.
//
//     discrete    no edge is longer than T E, and every pair is within it by edges
//     euclidean   the same with T E |p - q|
//     eikonal     no edge is longer than T B |p - q|, nor of length 0 unless T is; all neighbours have an edge, if no cell
//                 of the grid is masked
//     streets, graph   nothing: the list is the claim
//
// Not checked: coordinates and unit; that lengths are integrals where levels vary; neighbours where cells are masked;
// lengths that are the claim themselves. `mechdesign verify` rebuilds them all.

// By numbers of axes and of neighbours: steps to neighbours, in any order and direction.
const STENCILS = { "3 6": ["100"], "3 18": ["100", "110"], "3 26": ["100", "110", "111"] };
for (const k of [4, 8, 16, 32, 64]) STENCILS[`1 ${k}`] = ["1"];
for (const [k, end] of [[4, 1], [8, 2], [16, 3], [32, 5], [64, 9]]) {
  STENCILS[`2 ${k}`] = ["10", "11", "21", "31", "32", "41", "43", "52", "53"].slice(0, end);
}
// A unit that may stand in a sentence: a printable name of at most 40 characters and four words, without punctuation.
// The unit is printed inside the claim: free text could pass for a part of that sentence.
const WORD = /^(?!(?:\S* ){4})(?!.*[.] )[^\p{C}\p{Zl}\p{Zp},;:!?"]{1,40}$/u;
const BELOW = 1 - 2 ** -46; // of a square: lengths are rounded down by 2^-44, and doubles of both sides are right to 2^-48
const KINDS = ["discrete", "euclidean", "eikonal", "streets", "graph"];

/** The claim of a metric: { kind, stencil, map, least, most, scale, rate }, levels in nats per unit, rate their largest
 * times the scale, an exact fraction. Throws RangeError for another kind, and for levels that are not numbers. */
function claimOf({ kind, epsilon = 0, level, stencil, multiplier }) {
  if (!KINDS.includes(kind)) throw new RangeError(`unknown metric: ${kind}`);
  const levels = level ? level.eps.flat(Infinity) : [epsilon];
  const [least, most] = levels.reduce(([a, b], at) => [Math.min(a, at), Math.max(b, at)], [Infinity, -Infinity]);
  if (![...levels, multiplier].every((value) => Number.isFinite(value) && value >= 0))
    throw new RangeError("a level of the metric is not a finite number >= 0");
  return { kind, stencil, least, most, scale: multiplier, rate: times(exactly(most), exactly(multiplier)) };
}

/** Lattice places [i, j, ...] of points (axes of n each); null unless they are centres of different cells of the grid. */
function latticeOf({ shape, cell, origin }, points) {
  if (points.length !== shape.length) return null;
  // A centre in doubles is off by far less than a millionth of a side, and another centre by a whole side.
  const index = Array.from(points[0], (_, u) => points.map((axis, k) => Math.round((axis[u] - origin[k]) / cell[k] - 0.5)));
  const fits = index.every((at, u) =>
    at.every((i, k) => i >= 0 && i < shape[k] && Math.abs(origin[k] + (i + 0.5) * cell[k] - points[k][u]) < cell[k] / 1e6),
  );
  return fits && new Set(index.map(String)).size === index.length ? index : null;
}

/** True if no cell of a grid is masked. */
function isWhole({ shape }, count) {
  return shape.reduce((a, b) => a * b, 1) === count;
}

/** Faults of the claim. Of the setting, points (axes of n each) are in `unit`, and `edges` are those of the claim. If only
 * some edges are there, `whole` is false. */
function* claimFaults({ claim, domain, points, unit, edges, whole }) {
  if (!WORD.test(unit)) return [{ text: "the unit of the coordinates is not a plain name" }];
  if (domain.unit !== unit) return [{ text: `the claim is in nats per ${domain.unit}, and the coordinates are in ${unit}` }];
  const index = domain.kind === "grid" ? latticeOf(domain, points) : Array.from(points[0], (_, u) => [u]);
  if (!index) return [{ text: `the coordinates are not centres of different cells of a ${domain.shape.join(" x ")} grid` }];
  if (claim.kind === "graph" || claim.kind === "streets") return [];
  const steps = STENCILS[`${points.length} ${claim.stencil}`];
  if (claim.kind === "eikonal" && !(domain.kind === "grid" && steps))
    return [{ text: `a graph of ${claim.stencil} neighbours needs a grid` }];
  const over = overLimit(points, claim.kind === "discrete", claim.rate);
  for (let e = 0; e < edges.tail.length; e++) {
    const [u, v, nats] = [edges.tail[e], edges.head[e], edges.length[e]];
    if (over(nats, u, v) || (claim.kind === "eikonal" && nats === 0 && claim.rate[0] > 0n)) {
      const text = `the edge from ${u} to ${v} is ${nats} nats long, which the claim does not allow`;
      return [{ text, secret: u, other: v }];
    }
    if (e % 512 === 0) yield (0.5 * e) / edges.tail.length;
  }
  // Without all edges, pairs and neighbours cannot be checked: the page lists that as assumed.
  if (!whole) return [];
  if (claim.kind !== "eikonal") return yield* unjoinedPairs(index, edges, over);
  return isWhole(domain, index.length) ? missingNeighbours(index, steps, edges) : [];
}

/** A function that is true if nats, a double or an exact fraction, exceed the limit between two places. Doubles decide if
 * they are below it by more than rounding, else exact squares. */
function overLimit(points, discrete, limit) {
  const exact = exactLimit(points, discrete, limit);
  const rate = nearestDouble(limit);
  return (nats, u, v) => {
    if (typeof nats !== "number") return exact(nats, u, v);
    let square = discrete ? 1 : 0;
    for (const axis of discrete ? [] : points) square += (axis[u] - axis[v]) ** 2;
    // Each side is right to 20 u, u = 2^-53, on at most three axes.
    if (nats * nats <= rate * rate * square * BELOW) return false;
    return exact(exactly(nats), u, v);
  };
}

/** The same of fractions, by exact squares. */
function exactLimit(points, discrete, limit) {
  const [p, q] = times(limit, limit);
  if (discrete) return ([a, b]) => a * a * q > p * b * b;
  // Denominators of doubles are powers of 2: with the largest one all coordinates are integers.
  const fine = points.flatMap((axis) => Array.from(axis, (at) => exactly(at)[1])).reduce((a, b) => (a > b ? a : b));
  const whole = points.map((axis) => Array.from(axis, (at) => exactly(at)).map(([a, b]) => (a * fine) / b));
  const [scale, under] = [p, q * fine * fine];
  return ([a, b], u, v) => {
    let square = 0n;
    for (const axis of whole) square += (axis[u] - axis[v]) ** 2n;
    return a * a * under > scale * square * b * b;
  };
}

/** The first neighbours of a whole grid that no edge joins, as a list of at most one fault. */
function missingNeighbours(index, steps, { tail, head }) {
  const at = new Map(index.map((place, u) => [String(place), u]));
  const joined = new Set(Array.from(tail, (u, e) => `${Math.min(u, head[e])} ${Math.max(u, head[e])}`));
  const neighbours = steps.flatMap((step) => signedPermutations([...step].map(Number)));
  for (let u = 0; u < index.length; u++) {
    for (const turn of neighbours) {
      const v = at.get(String(index[u].map((k, axis) => k + turn[axis])));
      if (v !== undefined && !joined.has(`${Math.min(u, v)} ${Math.max(u, v)}`)) {
        return [{ text: `no edge joins the neighbours ${u} and ${v}`, secret: u, other: v }];
      }
    }
  }
  return [];
}

/** All orders and signs of a step. */
function signedPermutations(step) {
  if (step.length === 0) return [[]];
  return step.flatMap((size, k) => {
    const rest = signedPermutations(step.filter((_, other) => other !== k));
    return rest.flatMap((others) => [
      [size, ...others],
      [-size, ...others],
    ]);
  });
}
