// A table of integers from columns in doubles, proved in integers.

const FIRST_SHARE = 1e-11; // of the uniform table in the mixture; raised until every inequality holds
const LARGEST_SHARE = 1e-2;

/** Masses (secrets x reports) that satisfy every inequality in integers: of the columns, and of as much of the uniform
 * table as rounding needs. Throws RangeError if no such masses are found. */
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

/** The value that a generator returns. */
function lastOf(steps) {
  return run(steps).value;
}
