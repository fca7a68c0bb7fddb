// e^d from below, in whole numbers, and doubles as the exact fractions that they are.

const WORKING_BITS = 160n; // of the Taylor sum
const KEPT_BITS = 62; // of the bound
const VACUOUS = 80; // nats: e^80 > 2^115 exceeds every ratio of two masses of a table

/** The exact fraction [p, q] of a finite double, q a power of two. */
function exactly(value) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const power = Number((bits >> 52n) & 0x7ffn);
  let p = (bits & ((1n << 52n) - 1n)) | (power ? 1n << 52n : 0n);
  const shift = (power || 1) - 1075;
  if (bits >> 63n) p = -p;
  return shift < 0 ? [p, 1n << BigInt(-shift)] : [p << BigInt(shift), 1n];
}

/** How many binary digits a whole number >= 0 has. */
function bitLength(value) {
  return value === 0n ? 0 : value.toString(2).length;
}

/** Whole numbers [R, s] with R 2^-s <= e^length and 2^61 <= R < 2^62: partial Taylor sums of e^(length / 2^h), rounded
 * down, then h squarings, each rounded down. Throws RangeError for a negative length, or one that is no number. */
function expLower(length) {
  if (!(Number.isFinite(length) && length >= 0)) throw new RangeError(`an edge cannot be ${length} nats long`);
  const [p, q] = exactly(Math.min(length, VACUOUS));
  const halvings = BigInt(bitLength((p + q - 1n) / q) + 4);
  const x = (p << WORKING_BITS) / (q << halvings);
  let term = 1n << WORKING_BITS;
  let total = term;
  for (let k = 1n; term; k++) {
    term = ((term * x) >> WORKING_BITS) / k;
    total += term;
  }
  for (let k = 0n; k < halvings; k++) total = (total * total) >> WORKING_BITS;
  const drop = bitLength(total) - KEPT_BITS;
  return [total >> BigInt(drop), Number(WORKING_BITS) - drop];
}

/** Whether a 2^s > R b: whether a exceeds e^length b beyond doubt, for [R, s] of `expLower`. */
function exceeds(a, [factor, shift], b) {
  return shift >= 0 ? a << BigInt(shift) > factor * b : a > (factor << BigInt(-shift)) * b;
}
