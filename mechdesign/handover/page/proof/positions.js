// The claim about positions: P(y|x) is a quadratic spline of the rows around a cell, and its gradient is at most the level.
//
// On a cell, and on each of its quarters, level times P and gradient have coefficients by Bernstein's polynomials; where
// those of the gradient are at most those of the product, so is the gradient. For masses p of the 3 x 3 rows around and
// levels z (times the side of a cell, in units of 2^-60, rounded down) at the four corners of the cell, in whole numbers:
//
//     (X^2 + Y^2) 2^120 <= T^2 for all 16 sums X, Y, T of `gentle`, on the cell or else on all four quarters of it.
//
// A file may give levels at the corners of the quarters of cells instead, for which the quarters alone count.
//
// Beyond 400,000 pairs of cell and report, or 100,000 where levels are those of quarters, one is let through first where
// all four quarters hold in doubles by more than their roundings. With M the largest mass of a quarter, X and Y are sums
// of products whose absolute values add up to at most 2^6 M, right to fewer than 2^5 roundings of 2^-53 of that: to
// 2^-42 M. T has parts of one sign: to 2^-48 T.
//
// Found again: which rows lie around which cell, the digits of the list, that levels at corners are at most the largest
// that the sentence speaks of, what it says of paths and of rounding. Taken as given: that a level that varies is nowhere
// below the interpolant of those at the corners.

const POSITIONS = new RegExp(
  "^One report satisfies P\\(y\\|x\\) <= exp\\(D\\(x,x'\\) \\+ r\\) P\\(y\\|x'\\) for every report y and all positions x, x' " +
    `in the (?<cells>[0-9]+) cells, (?<wide>${NUMBER}) (?<of>[A-Za-z0-9]+) wide, of a (?<grid>[1-9][0-9]{0,8} x ` +
    `[1-9][0-9]{0,8}) grid(?: on the azimuthal equidistant plane about ${NUMBER} [NS] ${NUMBER} [EW], WGS84, where ` +
    `distances exceed geodesic ones by less than ${NUMBER} of them)?, where D is ${TIMES}(?:(?<plain>the Euclidean ` +
    `distance times )|the length of the shortest path inside the cells times |the least integral of the bilinear privacy ` +
    `level eps \\((?<least>${NUMBER}) to )${RATE}(?<map>, map [0-9a-f]{12}\\) along paths inside the cells)? and r = ` +
    `(?<r>${NUMBER}) is for rounding positions to 2\\^-16 of a cell; drawn by the quadratic B-spline of 3 x 3 cells, ` +
    "checked by the cones of its gradient \\(list (?<list>[0-9a-f]{12})\\)\\. k reports cost k times as much\\.$",
);
const RULE =
  "quadratic B-spline of 3 x 3 cells at steps of 2^-16 cells; a cell outside has the row of the first beside it";
const LEVELS = { corner_level: 4, quarter_level: 16 }; // of each cell, where a file has them
const LEVEL_BITS = 60n;
const MOST_EXACT = 400_000; // pairs compared in whole numbers, whatever their margin, by 4 levels; a quarter by 16
const STEPS = [-1, 0, 1];
const AROUND = STEPS.flatMap((i) => STEPS.map((j) => [i, j]));
const CHAIKIN = [[3, 1, 0], [1, 3, 0], [0, 3, 1], [0, 1, 3]];
const HALVES = [[2, 0], [1, 1], [0, 2]];
const ENDS = [[0, 0], [0, 1], [1, 0], [1, 1]];

/** Whether a page says anything of positions. */
function speaksOfPositions(page) {
  return ["around_row", ...Object.keys(LEVELS)].some((name) => has(page, name)) || attribute(page, "position_claim") !== undefined;
}

/** The claim about positions of a table that is there whole, into `outcome`. */
function* provePositions(page, outcome) {
  const told = attribute(page, "position_claim");
  const said = POSITIONS.exec(told ?? "")?.groups;
  const wrong = (text) => outcome.faults.push({ text });
  if (!said || !said.least !== !said.map || attribute(page, "position_rule") !== RULE)
    return wrong("the claim about positions or its rule is no sentence that this page knows");
  if (page.contents.kind !== "table") {
    outcome.given.push("The claim between any two positions was checked by mechdesign verify when this page was made, not here.");
    return;
  }
  const kinds = Object.keys(LEVELS).filter((name) => has(page, name));
  if (kinds.length !== 1) return wrong("the claim about positions has no levels at corners, or those of cells and of quarters");
  const [around, levels] = [places(page, "around_row"), array(page, kinds[0])];
  const cells = cellsOf(page, said);
  if (!cells) return wrong("the coordinates are not those of different cells of the grid of the positions");
  const rows = rowsAround(cells);
  if (rows.length !== around.length || rows.some((row, k) => row !== around[k]))
    return wrong("the rows around a cell are not those of the claim about positions");
  if (levels.length !== LEVELS[kinds[0]] * cells.length || listOfPositions(rows, levels) !== said.list)
    return wrong("the levels at the corners of cells are not those of the claim about positions");
  const [p, q] = largestLevel(said);
  const rounding = (Math.SQRT2 * Number((p << 80n) / q) * 2 ** -80 * Number(said.wide)) / 65536;
  if ((said.plain && !isConvex(said, cells.length)) || !(Number(said.r) >= rounding))
    return wrong("the claim about positions says more of distances, or less of rounding, than holds");
  if (Number(said.cells) !== cells.length || !levels.every((level) => level > 0 && !more(exactly(level), [p, q])))
    return wrong("the claim about positions is about other cells, or lower levels");
  const found = yield* steepPairs(array(page, "mass"), rows, levels, Number(said.wide));
  if (found.broken) {
    const [secret, report] = found.first;
    outcome.faults.push({ text: `${counted(found.broken)} gradients of positions are too steep, first of P(${report}|x) in cell ${secret}`, secret });
  }
  Object.assign(outcome.found, { gradients: found.pairs, exact: found.exact });
  outcome.proved.push(
    `Between any two positions the claim holds: in ${counted(cells.length)} cells, for each of ${counted(found.pairs / cells.length)} reports, the gradient of P(y|x) is at most the level times P(y|x).`,
    found.exact === found.pairs
      ? "Each of these gradients was compared in whole numbers."
      : `${counted(found.exact)} of these gradients were compared in whole numbers; the others hold by more than the roundings of doubles.`,
    "Every cell draws from the rows around it that the rule names, and no level at a corner is above that of the claim.",
  );
  if (said.least) outcome.given.push("That the privacy level is nowhere below the interpolant of the levels at the corners of a cell is as the file has it.");
}

/** The largest level of a claim about positions, an exact fraction of nats per unit. */
function largestLevel(said) {
  const rate = most(said.most, said.least ? 9 : 17);
  return said.times ? times(rate, most(said.times, 12)) : rate;
}

/** Whether a claim about positions is about straight lines too: D is at most its largest level times their length. */
function isConvex(said, count) {
  return said.grid.split(" x ").reduce((a, b) => a * Number(b), 1) === count;
}

/** Lattice places [i, j] of the secrets; null where they are not those of different cells of the grid. */
function cellsOf(page, said) {
  const [points, side] = [axesOf(page, "secret"), Number(said.wide)];
  const unit = page.contents.arrays.secret_x.attrs.units?.[1];
  if (points.length !== 2 || said.of !== said.unit || said.unit !== (unit === "1" ? "unit" : unit) || !(side > 0)) return null;
  const sizes = said.grid.split(" x ").map(Number);
  const low = points.map((axis) => axis.reduce((a, b) => Math.min(a, b)));
  const cells = Array.from(points[0], (_, u) => points.map((axis, k) => Math.round((axis[u] - low[k]) / side)));
  const off = (u) => points.reduce((sum, axis, k) => sum + Math.abs(axis[u] - low[k] - cells[u][k] * side), 0);
  const fit = cells.every((cell, u) => cell.every((at, k) => at >= 0 && at < sizes[k]) && off(u) < side / 1e6);
  return fit && new Set(cells.map(String)).size === cells.length ? cells : null;
}

/** The rows (9 n) of the nine cells around each: a cell's own, or that of the nearest one, the first of several. */
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

/** Twelve digits that the claim says of rows around cells and levels at corners. */
function listOfPositions(rows, levels) {
  const digest = new Sha256().add(new Uint8Array(BigInt64Array.from(rows, BigInt).buffer));
  return digest.add(new Uint8Array(Float64Array.from(levels).buffer)).hex().slice(0, 12);
}

/** floor(2^60 level side), exactly. */
function wholeLevel(level, side) {
  const [p, q] = times(exactly(level), exactly(side));
  return (p << LEVEL_BITS) / q;
}

/** How many pairs of cell and report there are, were compared in whole numbers and are broken, and the first of them. */
function* steepPairs(mass, rows, levels, side) {
  const cells = rows.length / 9;
  const [reports, corners] = [mass.length / cells, levels.length / cells];
  const found = { pairs: mass.length, exact: 0, broken: 0, first: null };
  const rounded = mass.length * corners > 4 * MOST_EXACT ? Float64Array.from(mass, Number) : null;
  const margin = rounded && new Margin();
  for (let u = 0; u < cells; u++) {
    const z = Array.from(levels.subarray(corners * u, corners * (u + 1)), (level) => wholeLevel(level, side));
    const quarters = levelsOfQuarters(z);
    const own = Array.from(rows.subarray(9 * u, 9 * u + 9), (row) => row * reports);
    margin?.levels(quarters);
    for (let y = 0; y < reports; y++) {
      if (margin?.holds(rounded, own, y)) continue;
      found.exact++;
      const patch = [0, 3, 6].map((k) => own.slice(k, k + 3).map((from) => mass[from + y]));
      if (gentlePatch(patch, z, quarters)) continue;
      found.broken++;
      found.first ??= [u, y];
    }
    yield u / cells;
  }
  return found;
}

/** Four times the levels at the corners (2, 2) of each quarter, from those of the cell (4) or of its quarters (16). */
function levelsOfQuarters(z) {
  if (z.length === 16) return [0, 4, 8, 12].map((q) => [0, 2].map((i) => [4n * z[q + i], 4n * z[q + i + 1]]));
  const half = along([z.slice(0, 2), z.slice(2)], HALVES);
  return ENDS.map(([i, j]) => square(half, i, j, 2));
}

/** The square of `held` with `size` rows and columns from (i, j) on. */
function square(held, i, j, size) {
  return held.slice(i, i + size).map((row) => row.slice(j, j + size));
}

/** Whether the conditions hold on a cell by its own four levels, or on all quarters of it, in whole numbers. */
function gentlePatch(patch, z, quarters) {
  const one = 1n << LEVEL_BITS;
  if (z.length === 4 && gentle(patch, [z.slice(0, 2), z.slice(2)], one)) return true;
  const fine = along(patch, CHAIKIN);
  return ENDS.every(([i, j], q) => gentle(square(fine, i, j, 3), quarters[q], 8n * one));
}

/** Sums of rows and of columns with weights. */
function along(held, weights) {
  const sum = (values) => weights.map((ws) => ws.reduce((total, w, k) => (w ? total + BigInt(w) * values[k] : total), 0n));
  const columns = held[0].map((_, j) => sum(held.map((row) => row[j])));
  return weights.map((_, i) => sum(columns.map((column) => column[i])));
}

/** Whether the gradient of the spline of p (3, 3) has coefficients at most those of it times z / one (2, 2). */
function gentle(p, z, one) {
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
      for (const [k, m] of ENDS) {
        const [i, j] = [a - k, c - m];
        if (i < 0 || i > 2 || j < 0 || j > 2) continue;
        x += parts[0](i, j);
        y += parts[1](i, j);
        t += parts[2](i, j) * z[k][m];
      }
      if ((x * x + y * y) * square > t * t) return false;
    }
  }
  return true;
}

/** The same on the quarters of a cell in doubles, true only where it holds by more than roundings. */
class Margin {
  constructor() {
    [this.rows, this.fine] = [new Float64Array(12), new Float64Array(16)];
    this.quarters = new Float64Array(16);
    this.parts = [0, 1, 2].map(() => new Float64Array(9));
  }

  /** Levels of the cell at hand, as `levelsOfQuarters` gives them. */
  levels(quarters) {
    this.quarters.set(quarters.flat(2).map((level) => Number(level) * 2 ** -63));
  }

  holds(mass, from, y) {
    const { rows, fine } = this;
    for (let j = 0; j < 3; j++) {
      const [low, middle, high] = [mass[from[j] + y], mass[from[3 + j] + y], mass[from[6 + j] + y]];
      rows[j] = 3 * low + middle;
      rows[3 + j] = low + 3 * middle;
      rows[6 + j] = 3 * middle + high;
      rows[9 + j] = middle + 3 * high;
    }
    for (let i = 0; i < 4; i++) {
      const [low, middle, high] = [rows[3 * i], rows[3 * i + 1], rows[3 * i + 2]];
      fine[4 * i] = 3 * low + middle;
      fine[4 * i + 1] = low + 3 * middle;
      fine[4 * i + 2] = 3 * middle + high;
      fine[4 * i + 3] = middle + 3 * high;
    }
    return this.#quarter(0, 0) && this.#quarter(0, 1) && this.#quarter(1, 0) && this.#quarter(1, 1);
  }

  #quarter(i, j) {
    const { fine, quarters } = this;
    const [sx, sy, sv] = this.parts;
    let largest = 0;
    for (let k = 0; k < 3; k++) {
      const at = 4 * (i + k) + j;
      const [a, b, c] = [fine[at], fine[at + 1], fine[at + 2]];
      largest = Math.max(largest, a, b, c);
      [sv[3 * k], sv[3 * k + 1], sv[3 * k + 2]] = [a + b, 4 * b, b + c];
      [sy[3 * k], sy[3 * k + 1], sy[3 * k + 2]] = [2 * (b - a), 2 * (c - a), 2 * (c - b)];
    }
    for (let k = 0; k < 3; k++) {
      const [a, b, c] = [sv[k], sv[3 + k], sv[6 + k]];
      [sx[k], sx[3 + k], sx[6 + k]] = [2 * (b - a), 2 * (c - a), 2 * (c - b)];
      [sv[k], sv[3 + k], sv[6 + k]] = [a + b, 4 * b, b + c];
      const [d, e, f] = [sy[k], sy[3 + k], sy[6 + k]];
      [sy[k], sy[3 + k], sy[6 + k]] = [d + e, 4 * e, e + f];
    }
    const room = largest * 2 ** -41;
    for (let a = 0; a < 4; a++) {
      for (let c = 0; c < 4; c++) {
        let [x, y, t] = [0, 0, 0];
        for (let k = Math.max(0, a - 2); k < Math.min(2, a + 1); k++) {
          for (let m = Math.max(0, c - 2); m < Math.min(2, c + 1); m++) {
            const at = 3 * (a - k) + c - m;
            x += sx[at];
            y += sy[at];
            t += sv[at] * quarters[8 * i + 4 * j + 2 * k + m];
          }
        }
        const [wide, high] = [Math.abs(x) + room, Math.abs(y) + room];
        if (!(wide * wide + high * high <= t * t * (1 - 2 ** -40))) return false;
      }
    }
    return true;
  }
}
