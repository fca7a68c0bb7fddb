// e^d from below, in integers, and doubles as the exact fractions that they are.

const WORKING_BITS = 160n; // of the Taylor sum
const KEPT_BITS = 62; // of the bound
const VACUOUS = 80; // nats: e^80 > 2^115 exceeds every ratio of two masses of a table

const { exactly } = device;

function times([a, b], [c, d]) {
  return [a * c, b * d];
}

/** True if one fraction exceeds another. */
function exceedsFraction([a, b], [c, d]) {
  return a * d > c * b;
}

/** The double nearest to a fraction, up to a truncation of 2^-79 of it. */
function nearestDouble([p, q]) {
  // A quotient of about 80 bits: Number then rounds it to 53, and scaling by a power of 2 is exact.
  const shift = bitLength(q) - bitLength(p) + 80;
  return Number(shift < 0 ? p / (q << BigInt(-shift)) : (p << BigInt(shift)) / q) * 2 ** -shift;
}

/** How many binary digits an integer >= 0 has. */
function bitLength(value) {
  return value === 0n ? 0 : value.toString(2).length;
}

/** Integers [R, s] with R 2^-s <= e^length and 2^61 <= R < 2^62: partial Taylor sums of e^(length / 2^h), rounded
 * down, then h squarings, each rounded down. Throws RangeError for a negative length, or one that is not a number. */
function expLower(length) {
  if (!(Number.isFinite(length) && length >= 0)) throw new RangeError(`an edge cannot be ${length} nats long`);
  const [p, q] = exactly(Math.min(length, VACUOUS));
  // x is below 2^-4: the terms of the Taylor series shrink fast, and each squaring loses about one binary digit.
  const halvings = BigInt(bitLength((p + q - 1n) / q) + 4);
  const x = (p << WORKING_BITS) / (q << halvings);
  // Every division and shift rounds down, and all terms are positive: the sum stays below e^x.
  let term = 1n << WORKING_BITS;
  let total = term;
  for (let k = 1n; term; k++) {
    term = ((term * x) >> WORKING_BITS) / k;
    total += term;
  }
  // The square of a lower bound is a lower bound.
  for (let k = 0n; k < halvings; k++) total = (total * total) >> WORKING_BITS;
  const drop = bitLength(total) - KEPT_BITS;
  return [total >> BigInt(drop), Number(WORKING_BITS) - drop];
}

/** True if a 2^s > R b, for [R, s] of `expLower`. As R 2^-s <= e^length, false proves a <= e^length b. */
function exceeds(a, [factor, shift], b) {
  return shift >= 0 ? a << BigInt(shift) > factor * b : a > (factor << BigInt(-shift)) * b;
}
