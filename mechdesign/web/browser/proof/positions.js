// The claim about positions: P(y|x) is a quadratic spline of the rows around a cell, and its gradient is at most the level.
//
// On a cell, and on each of its quarters, the gradient and level times P have Bernstein coefficients. If those of the
// gradient are at most those of the product, so is the gradient. Let p be the masses of the 3 x 3 rows around. Let z be
// the levels at the four corners of the cell, times its side, in units of 2^-60, rounded down. Then in integers:
//
//     (X^2 + Y^2) 2^120 <= T^2 for all 16 sums X, Y, T of `gentle`, on the cell or else on all four quarters of it.
//
// A file may give levels at the corners of the quarters of cells instead, for which the quarters alone count.
//
// Beyond 100,000 of them a condition passes in doubles if it holds by more than their rounding (gentle.js).
//
// Recomputed: which rows lie around which cell, and that levels at corners are at most the largest of the claim. Not
// checked: that a level that varies is nowhere below the interpolant of those at the corners.

const ROUNDED = 1.01 * Math.SQRT2 * 2 ** -16; // sides by which rounding to 2^-16 of a cell parts two positions, and a percent
const LEVELS = { corner_level: 4, quarter_level: 16 }; // of each cell, where a file has them
const LEVEL_BITS = 60n;
const MOST_EXACT_GRADIENTS = 100_000; // compared in BigInt, whatever their margin: seconds
const STEPS = [-1, 0, 1];
const AROUND = STEPS.flatMap((i) => STEPS.map((j) => [i, j]));
const CHAIKIN = [[3, 1, 0], [1, 3, 0], [0, 3, 1], [0, 1, 3]];
const HALVES = [[2, 0], [1, 1], [0, 2]];
const ENDS = [[0, 0], [0, 1], [1, 0], [1, 1]];

/** The claim about positions: the metric of the problem, the side of cells, and the nats of rounding. Null if the page
 * has none. */
function positionClaimOf(page) {
  if (!["around_row", ...Object.keys(LEVELS)].some((name) => has(page, name))) return null;
  const claim = claimOf(jsonAttribute(page, "problem_metric" in page.contents.attrs ? "problem_metric" : "metric"));
  const side = jsonAttribute(page, "domain").cell?.[0];
  return { ...claim, side, rounding: nearestDouble(claim.rate) * ROUNDED * side };
}

/** Prove the claim about positions of a complete table; adds to `outcome`. */
function* provePositions(page, outcome) {
  const [placed, domain] = [positionClaimOf(page), jsonAttribute(page, "domain")];
  const refuse = (text) => outcome.faults.push({ text });
  if (page.contents.kind !== "table") {
    outcome.assumed.push("The claim between any two positions was checked by mechdesign verify when this page was made, not here.");
    return;
  }
  const kinds = Object.keys(LEVELS).filter((name) => has(page, name));
  if (kinds.length !== 1 || !has(page, "around_row") || !["euclidean", "eikonal"].includes(placed.kind))
    return refuse("the claim about positions needs its rows, and levels at corners of either cells or quarters");
  const [around, levels] = [places(page, "around_row"), array(page, kinds[0])];
  const cells = domain.kind === "grid" && domain.cell.length === 2 && domain.cell[0] === domain.cell[1] ? latticeOf(domain, axesOf(page, "secret")) : null;
  if (!cells) return refuse("the coordinates are not centres of different square cells");
  const rows = rowsAround(cells);
  if (rows.length !== around.length || rows.some((row, k) => row !== around[k]))
    return refuse("the rows around a cell do not follow the rule of the claim about positions");
  if (levels.length !== LEVELS[kinds[0]] * cells.length || !levels.every((level) => level > 0 && !exceedsFraction(exactly(level), placed.rate)))
    return refuse("the claim about positions has another number of levels, or a level above its largest");
  const result = yield* steepGradients(array(page, "mass"), rows, levels, placed.side);
  if (result.broken) {
    const [secret, report] = result.first;
    outcome.faults.push({ text: `${countWords(result.broken)} gradients are too steep between positions, first of P(${report}|x) in cell ${secret}`, secret });
  }
  outcome.figures.gradients = result.pairs;
  outcome.proved.push(
    `Between any two positions the claim holds: in ${countWords(cells.length)} cells, for each of ${countWords(result.pairs / cells.length)} reports, the gradient of P(y|x) is at most the level times P(y|x).`,
    comparedWords(result),
    "Every cell draws from the rows that the rule names, and no level at a corner exceeds that of the claim.",
  );
  if (placed.kind === "eikonal") outcome.assumed.push("Not checked: that the privacy level is nowhere below the interpolant of the levels at the corners of a cell.");
}

/** How gradients were compared, as a sentence. */
function comparedWords({ pairs, compared }) {
  const margin = "hold with a margin above floating-point error.";
  if (compared === pairs) return "Each of these gradients was compared in integers.";
  return compared ? `${countWords(compared)} of these gradients were compared in integers, the others ${margin}` : `All of these gradients ${margin}`;
}

/** The rows (9 n) of the 3 x 3 cells around each. A missing cell has the row of the nearest one, the first of several. */
function rowsAround(cells) {
  const at = new Map(cells.map((cell, u) => [String(cell), u]));
  const row = (x, y) => {
    let [best, least] = [-1, Infinity];
    for (const [i, j] of AROUND) {
      const [u, far] = [at.get(`${x + i},${y + j}`), i * i + j * j];
      if (u !== undefined && (far < least || (far === least && u < best))) [best, least] = [u, far];
    }
    return best;
  };
  return Int32Array.from(cells.flatMap(([x, y]) => AROUND.map(([i, j]) => row(x + i, y + j))));
}

/** floor(2^60 level side), exactly. */
function integerLevel(level, side) {
  const [p, q] = times(exactly(level), exactly(side));
  return (p << LEVEL_BITS) / q;
}

/** The number of pairs of cell and report, the number of broken ones, and the first of these. */
function* steepGradients(mass, rows, levels, side) {
  const cells = rows.length / 9;
  const [reports, corners] = [mass.length / cells, levels.length / cells];
  const result = { pairs: mass.length, compared: 0, broken: 0, first: null };
  const rounded = mass.length > MOST_EXACT_GRADIENTS ? inDoubles(mass) : null;
  for (let u = 0; u < cells; u++) {
    const z = Array.from(levels.subarray(corners * u, corners * (u + 1)), (level) => integerLevel(level, side));
    const quarters = levelsOfQuarters(z);
    const starts = Array.from(rows.subarray(9 * u, 9 * u + 9), (row) => row * reports);
    const asked = rounded ? unclearReports(rounded, starts, z, quarters, reports) : Array(reports).keys();
    for (const y of asked) {
      result.compared++;
      const patch = [0, 3, 6].map((k) => starts.slice(k, k + 3).map((from) => mass[from + y]));
      if (isGentlePatch(patch, z, quarters)) continue;
      result.broken++;
      result.first ??= [u, y];
    }
    yield u / cells;
  }
  return result;
}

/** Four times the levels at the corners (2, 2) of each quarter, from those of the cell (4) or of its quarters (16). */
function levelsOfQuarters(z) {
  if (z.length === 16) return [0, 4, 8, 12].map((q) => [0, 2].map((i) => [4n * z[q + i], 4n * z[q + i + 1]]));
  // Levels between the corners are means of two or four of them: times 4 they stay integers.
  const half = weightedSums([z.slice(0, 2), z.slice(2)], HALVES);
  return ENDS.map(([i, j]) => block(half, i, j, 2));
}

/** The block of `matrix` with `size` rows and columns from (i, j) on. */
function block(matrix, i, j, size) {
  return matrix.slice(i, i + size).map((row) => row.slice(j, j + size));
}

/** True if the conditions hold on a cell by its own four levels, or on all its quarters, in integers. */
function isGentlePatch(patch, z, quarters) {
  const one = 1n << LEVEL_BITS;
  if (z.length === 4 && isGentle(patch, [z.slice(0, 2), z.slice(2)], one)) return true;
  const fine = weightedSums(patch, CHAIKIN);
  // 8: levels of quarters are times 4, and slopes on half a side are half as large.
  return ENDS.every(([i, j], q) => isGentle(block(fine, i, j, 3), quarters[q], 8n * one));
}

/** Sums of rows and of columns with weights. */
function weightedSums(matrix, weights) {
  const sum = (values) => weights.map((ws) => ws.reduce((total, w, k) => (w ? total + BigInt(w) * values[k] : total), 0n));
  const columns = matrix[0].map((_, j) => sum(matrix.map((row) => row[j])));
  return weights.map((_, i) => sum(columns.map((column) => column[i])));
}

/** True if the gradient of the spline of p (3, 3) has coefficients at most those of the spline times z / one (2, 2). */
function isGentle(p, z, one) {
  // Bezier coefficients of degree 2, times their binomials 1, 2, 1 and times 2, so that all are integers.
  const value = ([a, b, c]) => [a + b, 4n * b, b + c];
  const slope = ([a, b, c]) => [2n * (b - a), 2n * (c - a), 2n * (c - b)];
  const both = (across, upward) => {
    const rows = p.map(upward);
    const columns = [0, 1, 2].map((j) => across(rows.map((row) => row[j])));
    return (i, j) => columns[j][i];
  };
  const parts = [both(slope, value), both(value, slope), both(value, value)];
  const square = one * one;
  for (let a = 0; a < 4; a++) {
    for (let c = 0; c < 4; c++) {
      let [x, y, t] = [0n, 0n, 0n];
      // Products with polynomials of degree 1: of the gradient with 1, of the value with the level.
      for (const [k, m] of ENDS) {
        const [i, j] = [a - k, c - m];
        if (i < 0 || i > 2 || j < 0 || j > 2) continue;
        x += parts[0](i, j);
        y += parts[1](i, j);
        t += parts[2](i, j) * z[k][m];
      }
      // Squares, so that no root is needed; T >= 0, since masses and levels are.
      if ((x * x + y * y) * square > t * t) return false;
    }
  }
  return true;
}
