// A table of integers from columns in doubles, and a lower bound from multipliers. Both are proved in integers.

const FIRST_SHARE = 1e-11; // of the uniform table in the mixture; raised until every inequality holds
const LARGEST_SHARE = 1e-2;
const BOUND_BITS = 60n; // of costs and multipliers, relative to the largest cost
const COST_MARGIN = 1 - 2 ** -48; // a cost is a product of at most five doubles
const LENGTH_MARGIN = 1 + 2 ** -40; // the bound also holds for lengths of the claim, which edges fall short of by 2^-44

/** Masses (secrets x reports) that satisfy every inequality in integers: of the columns, and of as much of the uniform
 * table as rounding needs. Throws RangeError if there are none. */
function repairedMasses(columns, edges) {
  const tail = edges.map((edge) => edge.tail);
  const head = edges.map((edge) => edge.head);
  const length = edges.map((edge) => edge.nats);
  const rows = Int32Array.from(columns[0], (_, u) => u);
  for (let share = FIRST_SHARE; share <= LARGEST_SHARE; share *= 10) {
    const mass = mixedMasses(columns, share);
    const faults = [
      ...lastOf(rowFaults(mass, rows, columns.length)),
      ...lastOf(edgeFaults(mass, rows, columns.length, { tail, head, length }, null)).faults,
    ];
    if (faults.length === 0) return mass;
  }
  throw new RangeError("the table could not be repaired: use fewer cells, a smaller box, or a larger factor");
}

/** Rows of masses that sum to 2^62: of the columns, and a share of the uniform table. */
function mixedMasses(columns, share) {
  const [n, width] = [columns[0].length, columns.length];
  const mass = new BigUint64Array(n * width);
  for (let u = 0; u < n; u++) {
    const sum = columns.reduce((total, x) => total + x[u], 0);
    let rest = ROW_SUM;
    for (let y = 0; y < width; y++) {
      const part = ((1 - share) * columns[y][u]) / sum + share / width;
      mass[u * width + y] = BigInt(Math.floor(part * 2 ** 62));
      rest -= mass[u * width + y];
    }
    // The rest is rounding: some 2^10 for each report. Spread evenly it moves no mass by much.
    const [each, left] = [rest / BigInt(width), rest % BigInt(width)];
    for (let y = 0; y < width; y++) mass[u * width + y] += each;
    mass[u * width] += left;
  }
  return mass;
}

/** A lower bound of the expected loss of every table with this claim, from multipliers { w, l, rows } of its edges.
 *
 * For columns z >= 0 of such a table, w (q z_low - z_high) >= 0 with any q >= e^d and w >= 0. Costs after l and
 * these charges bound the loss: sum_u l_u minus the largest deficit of each secret over the reports. Costs are rounded
 * down, charges up. */
function provedBound(costs, edges, { w, l, rows }) {
  const largest = costs.reduce((most, c) => c.reduce((a, b) => Math.max(a, b), most), 0);
  const unit = 2 ** (Math.ceil(Math.log2(largest)) - Number(BOUND_BITS));
  const whole = (value) => BigInt(Math.floor(value / unit));
  const ratios = edges.map(({ nats }) => {
    const [ratio, shift] = expLower(nats * LENGTH_MARGIN);
    return { ratio: ratio + 2n, shift: BigInt(shift) };
  });
  const prices = Array.from(l, whole);
  const deficits = new Array(l.length).fill(0n);
  costs.forEach((cost, y) => {
    const rest = Array.from(cost, (value, u) => whole(value * COST_MARGIN) - prices[u]);
    rows.forEach(({ low, high, down }, e) => {
      const weight = whole(w[y][e] * down);
      const { ratio, shift } = ratios[e >> 1];
      // Two rows for each edge. A right shift of the negative rounds the charge up.
      rest[low] += shift >= 0n ? (-weight * ratio) >> shift : (-weight * ratio) << -shift;
      rest[high] += weight;
    });
    rest.forEach((value, u) => (deficits[u] = -value > deficits[u] ? -value : deficits[u]));
  });
  const bound = prices.reduce((sum, price) => sum + price, 0n) - deficits.reduce((sum, deficit) => sum + deficit, 0n);
  return bound > 0n ? Number(bound) * unit * (1 - 2 ** -50) : 0;
}

/** The value that a generator returns. */
function lastOf(steps) {
  return run(steps).value;
}
