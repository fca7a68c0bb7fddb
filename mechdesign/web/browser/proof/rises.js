// Edges of a large table whose inequalities hold clearly, by logarithms of masses in doubles.
//
// Rows of one block are neighbours, so they are alike. Let a be the largest logarithm of a report in one block less the least
// one in another: no two rows of these blocks differ by more. If a is below all lengths between the blocks, and a over the
// shortest of them is at most the `value` that was already found, the report is skipped. Nine in ten of a city are.

const LOG_ERROR = 2 ** -40; // nats: logarithms of masses are below 43, so that two differ by an error of at most 2^-45
const SHORT = 2 ** -10; // nats: the ratio of shorter edges needs more digits than logarithms of masses have
const ROWS_OF_BLOCK = 4; // 9 and 16 skip less
const MOST_BLOCKS = 1 << 14; // so that numbers of pairs of blocks, and of edges up to 2^25, are one exact double

/** { isClear, value }: the edges longer than SHORT whose rows differ by clearly less than their length, and the largest
 * difference over length of these. `blocks` has the block of each row. */
function* clearEdges(doubles, reports, { tail, head, length }, blocks) {
  const logs = doubles.map(Math.log);
  const [most, least] = extremesOfBlocks(logs, reports, blocks);
  // An edge that no pair of blocks has is never clear.
  const rises = new Float64Array(tail.length).fill(Infinity);
  const [isClear, asked] = [new Uint8Array(tail.length), new Int32Array(reports)];
  const { order, starts } = pairsOfBlocks(tail, head, blocks);
  let value = -1;
  for (let k = 0; k + 1 < starts.length; k++) {
    const [a, b] = [blocks[tail[order[starts[k]]]], blocks[head[order[starts[k]]]]].map((block) => block * reports);
    let shortest = Infinity;
    for (let i = starts[k]; i < starts[k + 1]; i++) shortest = Math.min(shortest, length[order[i]]);
    const bound = Math.min(shortest - LOG_ERROR, value * shortest);
    let count = 0;
    for (let y = 0; y < reports; y++) if (!(most[a + y] - least[b + y] < bound && most[b + y] - least[a + y] < bound)) asked[count++] = y;
    for (let i = starts[k]; i < starts[k + 1]; i++) {
      const e = order[i];
      rises[e] = largestDifference(logs, tail[e] * reports, head[e] * reports, asked, count);
      if (length[e] > SHORT) value = Math.max(value, rises[e] / length[e]);
    }
    if (k % 256 === 0) yield k / starts.length;
  }
  value = -1;
  for (let e = 0; e < tail.length; e++) {
    if (!(length[e] > SHORT && rises[e] + LOG_ERROR < length[e])) continue;
    isClear[e] = 1;
    value = Math.max(value, rises[e] / length[e]);
  }
  return { isClear, value };
}

/** The largest and the least value of each report over the rows of each block. */
function extremesOfBlocks(values, reports, blocks) {
  const count = 1 + blocks.reduce((a, b) => Math.max(a, b), 0);
  const [most, least] = [-Infinity, Infinity].map((start) => new Float64Array(count * reports).fill(start));
  for (let r = 0; r < blocks.length; r++) {
    const [from, at] = [r * reports, blocks[r] * reports];
    for (let y = 0; y < reports; y++) {
      const value = values[from + y];
      if (value > most[at + y]) most[at + y] = value;
      if (value < least[at + y]) least[at + y] = value;
    }
  }
  return [most, least];
}

/** The edges in an order in which those between the same two blocks follow one another. starts: where each such run begins, and
 * the number of edges. */
function pairsOfBlocks(tail, head, blocks) {
  const edges = 2 ** 25;
  const sorted = new Float64Array(tail.length);
  for (let e = 0; e < tail.length; e++) {
    const [a, b] = [blocks[tail[e]], blocks[head[e]]];
    sorted[e] = (Math.min(a, b) * MOST_BLOCKS + Math.max(a, b)) * edges + e;
  }
  sorted.sort();
  const order = Int32Array.from(sorted, (number) => number % edges);
  const starts = [0];
  for (let i = 1; i < order.length; i++) if (Math.floor(sorted[i] / edges) !== Math.floor(sorted[i - 1] / edges)) starts.push(i);
  return { order, starts: [...starts, order.length] };
}

/** The largest difference of two rows from u and v on, over `count` of the reports. */
function largestDifference(values, u, v, reports, count) {
  let most = 0;
  for (let i = 0; i < count; i++) {
    const apart = Math.abs(values[u + reports[i]] - values[v + reports[i]]);
    if (apart > most) most = apart;
  }
  return most;
}

/** The block of each row of a page: squares of the area with some ROWS_OF_BLOCK rows each. */
function blocksOfRows(page, rows) {
  const axes = axesOf(page, "secret").map((axis) => Float64Array.from(rows, (u) => axis[u]));
  const low = axes.map((axis) => axis.reduce((a, b) => Math.min(a, b)));
  const wide = axes.map((axis, k) => axis.reduce((a, b) => Math.max(a, b)) - low[k]).filter((width) => width > 0);
  // Centres of n cells span n - 1 sides of an axis; the half keeps them off the borders of blocks.
  const side = ((wide.reduce((a, b) => a * b, 1) * ROWS_OF_BLOCK) / rows.length) ** (1 / Math.max(1, wide.length)) || 1;
  const numbers = new Map();
  return Int32Array.from(rows, (_, r) => {
    const place = axes.map((axis, k) => Math.floor((axis[r] - low[k]) / side + 2 ** -20)).join();
    if (!numbers.has(place)) numbers.set(place, numbers.size % MOST_BLOCKS);
    return numbers.get(place);
  });
}
