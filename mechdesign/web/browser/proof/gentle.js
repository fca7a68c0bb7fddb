// The conditions of positions.js in doubles: true only if they hold by more than rounding.
//
// Let s be the sum of a patch p (3 x 3 masses). X and Y have at most 12 roundings, and terms of at most 2^7 s together. So they
// are right to 2^-38 s. T has positive terms, and is right to 2^-48 of itself.

const PATCH_ERROR = 2 ** -38; // of the sum of a patch
const CLEARLY = 1 - 2 ** -40; // of a square
const [AROUND_MASSES, REFINED, HALFWAY] = [9, 16, 12].map((size) => new Float64Array(size));
const [ROWS_VALUE, ROWS_SLOPE, VALUE, ACROSS, UPWARD] = Array.from({ length: 5 }, () => new Float64Array(9));

/** The reports that do not clearly keep the condition on a cell: they are compared in integers.
 *
 * starts (9,) has the first mass of each row of its patch. z and quarters are integer levels, those of quarters times 4. */
function unclearReports(masses, starts, z, quarters, reports) {
  const level = (value, scale) => Number(value) * 2 ** -60 * scale;
  const own = z.length === 4 ? z.map((value) => level(value, 1)) : null;
  // On half a side slopes are half as large: levels of quarters, times 4 here, count by a half.
  const fine = quarters.map(([[a, b], [c, d]]) => [a, b, c, d].map((value) => level(value, 1 / 8)));
  const unclear = [];
  for (let y = 0; y < reports; y++) {
    for (let k = 0; k < 9; k++) AROUND_MASSES[k] = masses[starts[k] + y];
    if (own && isClearlyGentle(AROUND_MASSES, 0, 3, own)) continue;
    refine(AROUND_MASSES);
    let isClear = true;
    // The quarters begin at 0, 1, 4 and 5 of 4 x 4 masses.
    for (let q = 0; q < 4 && isClear; q++) isClear = isClearlyGentle(REFINED, 4 * (q >> 1) + (q & 1), 4, fine[q]);
    if (!isClear) unclear.push(y);
  }
  return unclear;
}

/** The masses of the quarters (4 x 4), times 16, by Chaikin's rule along both axes. */
function refine(p) {
  for (let i = 0; i < 3; i++) {
    const [a, b, c] = [p[3 * i], p[3 * i + 1], p[3 * i + 2]];
    HALFWAY[4 * i] = 3 * a + b;
    HALFWAY[4 * i + 1] = a + 3 * b;
    HALFWAY[4 * i + 2] = 3 * b + c;
    HALFWAY[4 * i + 3] = b + 3 * c;
  }
  for (let j = 0; j < 4; j++) {
    const [a, b, c] = [HALFWAY[j], HALFWAY[4 + j], HALFWAY[8 + j]];
    REFINED[j] = 3 * a + b;
    REFINED[4 + j] = a + 3 * b;
    REFINED[8 + j] = 3 * b + c;
    REFINED[12 + j] = b + 3 * c;
  }
}

/** True if the gradient of the patch at `at` of p, with rows `stride` apart, clearly has coefficients at most those of the
 * spline times the levels (4,) at the corners. */
function isClearlyGentle(p, at, stride, levels) {
  const error = PATCH_ERROR * coefficientsOf(p, at, stride);
  const [z00, z01, z10, z11] = levels;
  for (let a = 0; a < 4; a++) {
    for (let c = 0; c < 4; c++) {
      let [x, y, t] = [0, 0, 0];
      const k = 3 * a + c;
      if (a < 3 && c < 3) {
        x += ACROSS[k];
        y += UPWARD[k];
        t += VALUE[k] * z00;
      }
      if (a < 3 && c > 0) {
        x += ACROSS[k - 1];
        y += UPWARD[k - 1];
        t += VALUE[k - 1] * z01;
      }
      if (a > 0 && c < 3) {
        x += ACROSS[k - 3];
        y += UPWARD[k - 3];
        t += VALUE[k - 3] * z10;
      }
      if (a > 0 && c > 0) {
        x += ACROSS[k - 4];
        y += UPWARD[k - 4];
        t += VALUE[k - 4] * z11;
      }
      x = Math.abs(x) + error;
      y = Math.abs(y) + error;
      if (!(x * x + y * y <= t * t * CLEARLY)) return false;
    }
  }
  return true;
}

/** Fill VALUE, ACROSS and UPWARD (3 x 3) with the coefficients of `isGentle`; returns the sum of the patch. */
function coefficientsOf(p, at, stride) {
  let sum = 0;
  for (let k = 0, from = at; k < 9; k += 3, from += stride) {
    const [a, b, c] = [p[from], p[from + 1], p[from + 2]];
    sum += a + b + c;
    ROWS_VALUE[k] = a + b;
    ROWS_VALUE[k + 1] = 4 * b;
    ROWS_VALUE[k + 2] = b + c;
    ROWS_SLOPE[k] = 2 * (b - a);
    ROWS_SLOPE[k + 1] = 2 * (c - a);
    ROWS_SLOPE[k + 2] = 2 * (c - b);
  }
  for (let j = 0; j < 3; j++) {
    const [a, b, c] = [ROWS_VALUE[j], ROWS_VALUE[j + 3], ROWS_VALUE[j + 6]];
    const [d, e, f] = [ROWS_SLOPE[j], ROWS_SLOPE[j + 3], ROWS_SLOPE[j + 6]];
    VALUE[j] = a + b;
    VALUE[j + 3] = 4 * b;
    VALUE[j + 6] = b + c;
    ACROSS[j] = 2 * (b - a);
    ACROSS[j + 3] = 2 * (c - a);
    ACROSS[j + 6] = 2 * (c - b);
    UPWARD[j] = d + e;
    UPWARD[j + 3] = 4 * e;
    UPWARD[j + 6] = e + f;
  }
  return sum;
}
