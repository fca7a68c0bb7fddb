// Exact fractions [p, q], q > 0, for comparing lengths in nats with coordinates.

function times([a, b], [c, d]) {
  return [a * c, b * d];
}

/** Whether one fraction exceeds another. */
function more([a, b], [c, d]) {
  return a * d > c * b;
}

/** A plain decimal number as an exact fraction. */
function decimal(text) {
  const [digits, power = "0"] = text.toLowerCase().split("e");
  const [whole, rest = ""] = digits.split(".");
  const shift = Number(power) - rest.length;
  return shift < 0 ? [BigInt(whole + rest), 10n ** BigInt(-shift)] : [BigInt(whole + rest) * 10n ** BigInt(shift), 1n];
}

/** The largest number that is printed like this with so many digits, or the double that the text names. */
function most(text, digits) {
  const [p, q] = decimal(text);
  const [shown, power = "0"] = text.toLowerCase().split("e");
  const written = shown.replace(".", "").replace(/^0+(?=.)/, "");
  const named = exactly(Math.min(Number(text), Number.MAX_VALUE));
  let value = [p, q];
  if (written.length <= digits && p > 0n) {
    const last = Number(power) - (shown.split(".")[1] ?? "").length; // of the last digit that is written
    const unit = last + written.length - digits; // of the last digit that would be printed
    const half = unit < 0 ? [1n, 2n * 10n ** BigInt(-unit)] : [10n ** BigInt(unit), 2n];
    value = [p * half[1] + half[0] * q, q * half[1]];
  }
  return more(named, value) ? named : value;
}
