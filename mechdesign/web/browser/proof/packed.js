// A table that was rounded: its masses in units of 2^(62 - bits), and the edges of its claim, in a container of the kind
// "page" (page_table.py). Edges are sorted by their direction.

const MOST_SECRETS = 1 << 16;
const MOST_UNITS = 1 << 23;
const MOST_EDGES = 1 << 25;

/** The arrays mass, edge_tail, edge_head and edge_length of a packed table. Rejects if it is damaged. */
async function unpackTable(bytes) {
  const { header, arrays } = await device.readFrame(bytes, packedLayout);
  const { bits, secrets, reports, edges } = header;
  const { order, coarse, tail, ahead, kind, lengths } = arrays;
  if (new Set(order).size !== reports || order.some((report) => report >= reports))
    throw new RangeError("its rows do not name every report once");
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

/** [name, type, shape, differences] of the arrays of a packed table. */
function packedLayout({ kind, bits, secrets, reports, edges, distinct }) {
  const within = (number, most) => Number.isInteger(number) && number >= 1 && number <= most;
  const fits = kind === "page" && [32, 24].includes(bits) && within(secrets, MOST_SECRETS) && within(reports, MOST_SECRETS);
  if (!(fits && secrets * reports <= MOST_UNITS && within(edges, MOST_EDGES) && within(distinct, edges)))
    throw new RangeError("its table has an invalid header");
  return [
    ["order", "u4", [reports], 0],
    ["coarse", "u4", [reports, secrets], 0],
    ["tail", "u4", [edges], 1],
    ["ahead", "u4", [edges], 1],
    ["kind", "u4", [edges], 1],
    ["lengths", "f8", [distinct], 0],
  ];
}
