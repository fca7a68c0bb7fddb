// The proof of a table: integers >= 1, rows that sum to exactly 2^62, and every inequality of every edge.
//
// a(u, y) 2^s <= R a(v, y) with R 2^-s <= e^d for every edge (u, v) of d nats, both ways, and every report y, each compared
// in BigInt. Beyond 20 million of them doubles decide first. An edge passes if the logarithms of its two rows differ by less
// than d with a margin (rises.js). It also passes if the largest ratio of the rows is below R 2^-s by more than 8 u, u = 2^-53. None
// of its inequalities can then be broken: a mass, a bound and a quotient are each right to u. Generators yield their
// progress, as shares of one.

const ROW_SUM = 1n << 62n;
const SAFE = 1 - 2 ** -50;
const NEAR = 1 + 2 ** -20; // the logarithm of a larger ratio in doubles is right to the nine digits that are compared
const MOST_COMPARED = 2e7; // inequalities compared in BigInt, whatever their margin: seconds

/** Faults of masses and of row sums. `rows` names the secrets whose rows there are. */
function* rowFaults(mass, rows, reports) {
  const faults = [];
  const halves = new Uint32Array(mass.buffer, mass.byteOffset, 2 * mass.length);
  for (let r = 0; r < rows.length; r++) {
    // Sums of 32-bit halves are exact in doubles.
    let [low, high, isPositive] = [0, 0, true];
    for (let k = 2 * r * reports; k < 2 * (r + 1) * reports; k += 2) {
      low += halves[k];
      high += halves[k + 1];
      if ((halves[k] | halves[k + 1]) === 0) isPositive = false;
    }
    const sum = (BigInt(high) << 32n) + BigInt(low);
    const secret = rows[r];
    if (!isPositive) faults.push({ text: `secret ${secret}: a mass is below 1`, secret });
    if (sum !== ROW_SUM) faults.push({ text: `secret ${secret}: the masses sum to ${sum}, not to 2^62`, secret });
    if (r % 32 === 0) yield r / rows.length;
  }
  return faults;
}

/** Compare every inequality of `edges` = { tail, head, length }, by row numbers. blocks: those of rises.js, for large tables.
 *
 * Returns faults, and the numbers of inequalities, of those compared in BigInt, and of broken ones. `value` is the largest
 * log-ratio over length in doubles, valueAtWorst that at `worst` = { secret, other, report }. */
function* edgeFaults(mass, rows, reports, { tail, head, length }, worst, blocks = rows.map((_, r) => r >> 2)) {
  const rounded = inDoubles(mass);
  const bounds = new Map();
  const result = { faults: [], broken: 0, inequalities: 2 * tail.length * reports, compared: 0, value: -1, valueAtWorst: null };
  // With margin 0 no edge passes in doubles: each inequality is compared in integers.
  const margin = result.inequalities > MOST_COMPARED ? SAFE : 0;
  const clear = margin ? yield* clearEdges(rounded, reports, { tail, head, length }, blocks) : null;
  if (clear) result.value = clear.value;
  for (let e = 0; e < tail.length; e++) {
    if (!bounds.has(length[e])) bounds.set(length[e], expLower(length[e]));
    const bound = bounds.get(length[e]);
    const [u, v] = [tail[e] * reports, head[e] * reports];
    if (worst && isEdge(worst, rows[tail[e]], rows[head[e]])) {
      const [high, low] = worst.secret === rows[tail[e]] ? [u, v] : [v, u];
      result.valueAtWorst = overLength(logRatio(mass[high + worst.report], mass[low + worst.report]), length[e]);
    }
    if (e % 256 === 0) yield clear ? 0.9 + (0.1 * e) / tail.length : e / tail.length;
    if (clear?.isClear[e]) continue;
    const steep = extremeRatios(rounded, u, v, reports);
    result.value = Math.max(result.value, overLength(largestLogRatio(steep, mass, u, v, reports), length[e]));
    const limit = Number(bound[0]) * 2 ** -bound[1] * margin;
    // low >= 1 / limit, multiplied out: a division would be rounded once more.
    if (!(steep.high <= limit && 1 <= steep.low * limit)) {
      for (let y = 0; y < reports; y++) {
        const [a, b] = [mass[u + y], mass[v + y]];
        result.compared += 2;
        const over = a > b ? exceeds(a, bound, b) : exceeds(b, bound, a);
        if (!over) continue;
        result.broken++;
        const [secret, other] = a > b ? [rows[tail[e]], rows[head[e]]] : [rows[head[e]], rows[tail[e]]];
        if (result.faults.length === 0) {
          const text = `P(${y}|${secret}) exceeds e^d P(${y}|${other}), with d = ${length[e]} nats`;
          result.faults.push({ text, secret, other, report: y });
        }
      }
    }
  }
  return result;
}

/** The largest and the least ratio of masses of two rows, in doubles. */
function extremeRatios(rounded, u, v, reports) {
  let [high, low] = [-Infinity, Infinity];
  for (let y = 0; y < reports; y++) {
    const ratio = rounded[u + y] / rounded[v + y];
    if (ratio > high) high = ratio;
    if (ratio < low) low = ratio;
  }
  return { high, low };
}

/** The largest log-ratio of two rows; of rows that are almost alike, from their integers. */
function largestLogRatio({ high, low }, mass, u, v, reports) {
  if (high > NEAR || low * NEAR < 1) return Math.max(Math.log(high), -Math.log(low));
  let most = 0;
  for (let y = 0; y < reports; y++) {
    const [a, b] = [mass[u + y], mass[v + y]];
    most = Math.max(most, a > b ? logRatio(a, b) : logRatio(b, a));
  }
  return most;
}

/** ln(a / b) of two masses, by their exact difference: their quotient in doubles loses it near 1. */
function logRatio(a, b) {
  return Math.log1p(Number(a - b) / Number(b));
}

/** A log-ratio over the length of its edge: any rise over length 0 is infinite. */
function overLength(rise, length) {
  return length > 0 ? rise / length : rise > 0 ? Infinity : 0;
}

function isEdge({ secret, other }, u, v) {
  return (secret === u && other === v) || (secret === v && other === u);
}

/** True if edges connect all of `count` places. */
function isConnected(count, { tail, head }) {
  const root = Int32Array.from({ length: count }, (_, k) => k);
  const top = (k) => {
    // Union-find with path halving: near-linear in the number of edges.
    while (root[k] !== k) k = root[k] = root[root[k]];
    return k;
  };
  let parts = count;
  for (let e = 0; e < tail.length; e++) {
    const [a, b] = [top(tail[e]), top(head[e])];
    if (a !== b) [root[a], parts] = [b, parts - 1];
  }
  return parts === 1;
}
