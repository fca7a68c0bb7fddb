// The conditions of positions.js in doubles: true only if they hold by more than rounding.
//
// Let s be the sum of a patch p (3 x 3 masses). X and Y have at most 12 roundings, and terms of at most 2^7 s together. So they
// are right to 2^-38 s. T has positive terms, and is right to 2^-48 of itself.

const PATCH_ERROR = 2 ** -38; // of the sum of a patch
const CLEARLY = 1 - 2 ** -40; // of a square
const [AROUND_MASSES, REFINED, HALFWAY] = [9, 16, 12].map((size) => new Float64Array(size));

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

/** True if the gradient of the patch at `at` of p is clearly within the spline times the levels (4,) at the corners.
 *
 * Rows of p are `stride` apart. The coefficients are those of `isGentle`, column by column, without arrays. */
function isClearlyGentle(p, at, stride, levels) {
  const [a0, b0, c0] = [p[at], p[at + 1], p[at + 2]];
  const [a1, b1, c1] = [p[at + stride], p[at + stride + 1], p[at + stride + 2]];
  const [a2, b2, c2] = [p[at + 2 * stride], p[at + 2 * stride + 1], p[at + 2 * stride + 2]];
  const error = PATCH_ERROR * (a0 + b0 + c0 + (a1 + b1 + c1) + (a2 + b2 + c2));
  const [z00, z01, z10, z11] = [levels[0], levels[1], levels[2], levels[3]];
  // Of each row the coefficients of the value, 4 b in the middle.
  const [r0, r1, r2, s0, s1, s2] = [a0 + b0, a1 + b1, a2 + b2, b0 + c0, b1 + c1, b2 + c2];
  const [m0, m1, m2] = [4 * b0, 4 * b1, 4 * b2];
  return (
    isClearColumn(r0, r1, r2, b0 - a0, b1 - a1, b2 - a2, r0 * z00, r1 * z00, r2 * z00, r0 * z10, r1 * z10, r2 * z10, error) &&
    isClearColumn(r0 + m0, r1 + m1, r2 + m2, b0 + c0 - 2 * a0, b1 + c1 - 2 * a1, b2 + c2 - 2 * a2,
      m0 * z00 + r0 * z01, m1 * z00 + r1 * z01, m2 * z00 + r2 * z01, m0 * z10 + r0 * z11, m1 * z10 + r1 * z11, m2 * z10 + r2 * z11, error) &&
    isClearColumn(m0 + s0, m1 + s1, m2 + s2, 2 * c0 - a0 - b0, 2 * c1 - a1 - b1, 2 * c2 - a2 - b2,
      s0 * z00 + m0 * z01, s1 * z00 + m1 * z01, s2 * z00 + m2 * z01, s0 * z10 + m0 * z11, s1 * z10 + m1 * z11, s2 * z10 + m2 * z11, error) &&
    isClearColumn(s0, s1, s2, c0 - b0, c1 - b1, c2 - b2, s0 * z01, s1 * z01, s2 * z01, s0 * z11, s1 * z11, s2 * z11, error)
  );
}

/** The four coefficients of one column, from three rows: values v, half slopes h, and values times the levels of both ends. */
function isClearColumn(v0, v1, v2, h0, h1, h2, p0, p1, p2, q0, q1, q2, error) {
  return (
    isClearlyBelow(2 * (v1 - v0), 2 * (h0 + h1), p0 + p1, error) &&
    isClearlyBelow(2 * (v1 + v2 - 2 * v0), 2 * (h0 + 5 * h1), 4 * p1 + (q0 + q1), error) &&
    isClearlyBelow(2 * (2 * v2 - v0 - v1), 2 * (5 * h1 + h2), p1 + p2 + 4 * q1, error) &&
    isClearlyBelow(2 * (v2 - v1), 2 * (h1 + h2), q1 + q2, error)
  );
}

/** True if X^2 + Y^2 is clearly at most T^2, for X and Y that are right to `error`. */
function isClearlyBelow(x, y, t, error) {
  const [across, upward] = [Math.abs(x) + error, Math.abs(y) + error];
  return across * across + upward * upward <= t * t * CLEARLY;
}
