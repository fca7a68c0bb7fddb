// Numbers as people read them.

/** Three digits, thousands apart; powers of ten where that is shorter. */
function short(value) {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) {
    const [digits, power] = value.toExponential(2).split("e");
    const raised = [...power.replace("+", "")].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("");
    return digits === "1.00" ? `10${raised}` : `${digits} × 10${raised}`;
  }
  return Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });
}

/** A probability: a percentage, or one in so many. */
function chance(probability) {
  const p = Math.min(probability, 1); // sums of doubles may exceed 1 by rounding
  if (p === 0) return "0";
  if (p < 1e-3) return `1 in ${short(1 / p)}`;
  return p > 0.9995 && p < 1 - 1e-12 ? "over 99.9 %" : `${short(100 * p)} %`;
}

/** A number with its unit. */
function withUnit(value, unit) {
  return unit ? `${short(value)} ${unit}` : short(value);
}

/** An element with a text, a class, and children. */
function element(tag, text = "", kind = "", children = []) {
  const made = document.createElement(tag);
  if (text !== "") made.textContent = text;
  if (kind) made.className = kind;
  made.append(...children);
  return made;
}
