// A table that was rounded: its masses in units of 2^(62 - bits), and the edges of its claim, in a container of the kind
// "page" (page_table.py). Edges are sorted by their direction. Rows of one shape have the units
//
//     floor(shape(y - u) factor(u) + common(y) + 1/2) + coarse(y, u),                                                 (1)
//
// by the same operations of doubles as in shared_shape.py; coarse is modulo 2^32.

const MOST_SECRETS = 1 << 16;
const MOST_UNITS = 1 << 23;
const MOST_EDGES = 1 << 25;

/** The arrays mass, edge_tail, edge_head and edge_length of a packed table. Rejects if it is damaged. */
async function unpackTable(bytes) {
  const { header, arrays } = await device.readFrame(bytes, packedLayout);
  const { bits, secrets, reports, edges, displacements } = header;
  const { order, coarse, tail, ahead, kind, lengths } = arrays;
  if (new Set(order).size !== reports || order.some((report) => report >= reports))
    throw new RangeError("its rows do not name every report once");
  if (displacements) addSharedShape(arrays, secrets);
  const mass = new BigUint64Array(secrets * reports);
  // Little-endian: the low half of a mass comes first.
  const halves = new Uint32Array(mass.buffer);
  const shift = 62 - bits; // 38 or 30
  for (let row = 0, from = 0; row < reports; row++) {
    for (let u = 0, to = 2 * order[row]; u < secrets; u++, from++, to += 2 * reports) {
      halves[to] = shift >= 32 ? 0 : coarse[from] << shift;
      halves[to + 1] = shift >= 32 ? coarse[from] << (shift - 32) : coarse[from] >>> (32 - shift);
    }
  }
  const length = new Float64Array(edges);
  for (let e = 0; e < edges; e++) length[e] = lengths[kind[e]];
  return { mass, edge_tail: tail, edge_head: tail.map((u, e) => u + ahead[e]), edge_length: length };
}

/** Add (1) to `coarse`. */
function addSharedShape({ order, coarse, shape, factor, common, index, sides }, secrets) {
  const across = Int32Array.from(index, (at) => Math.floor(at / sides[1]));
  const upward = Int32Array.from(index, (at) => at % sides[1]);
  for (let row = 0, at = 0; row < order.length; row++) {
    const y = order[row];
    const start = (across[y] + sides[0] - 1) * (2 * sides[1] - 1) + upward[y] + sides[1] - 1;
    for (let u = 0; u < secrets; u++, at++) {
      const place = start - across[u] * (2 * sides[1] - 1) - upward[u];
      coarse[at] += Math.floor(shape[place] * factor[u] + common[y] + 0.5);
    }
  }
}

/** [name, type, shape, differences] of the arrays of a packed table. */
function packedLayout({ kind, bits, secrets, reports, edges, distinct, displacements }) {
  const within = (number, most) => Number.isInteger(number) && number >= 1 && number <= most;
  const fits = kind === "page" && [32, 24].includes(bits) && within(secrets, MOST_SECRETS) && within(reports, MOST_SECRETS);
  if (!(fits && secrets * reports <= MOST_UNITS && within(edges, MOST_EDGES) && within(distinct, edges)))
    throw new RangeError("its table has an invalid header");
  if (displacements !== 0 && !(within(displacements, 4 * MOST_SECRETS) && reports === secrets))
    throw new RangeError("its table has an invalid header");
  const shared = [
    ["shape", "f8", [displacements], 0],
    ["factor", "f8", [secrets], 0],
    ["common", "f8", [reports], 0],
    ["index", "u4", [secrets], 0],
    ["sides", "u4", [2], 0],
  ];
  return [
    ["order", "u4", [reports], 0],
    ...(displacements ? shared : []),
    ["coarse", "u4", [reports, secrets], 0],
    ["tail", "u4", [edges], 1],
    ["ahead", "u4", [edges], 1],
    ["kind", "u4", [edges], 1],
    ["lengths", "f8", [distinct], 0],
  ];
}
