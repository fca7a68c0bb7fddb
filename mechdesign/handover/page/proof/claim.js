// What the sentence of the claim says, compared with the table: secrets, edges, the fingerprint of their list, grid,
// unit, and lengths, in exact fractions. T is the multiplier before the words, 1 if there is none.
//
//     discrete metric, E nats           no edge is longer than T E, and every pair is within it by edges
//     Euclidean distance times E        the same with T E |p - q|
//     k-neighbour graph, line integral  no edge is longer than T B |p - q|, nor of length 0 unless T is; all neighbours
//     of a level from A to B            have an edge, if no cell of the grid is masked
//     edges or streets listed           nothing: the list is the claim
//
// Taken as given: coordinates and unit; that lengths are integrals where A < B; neighbours where cells are masked;
// lengths that are the claim themselves. `mechdesign verify` rebuilds them all.

const NUMBER = "[0-9]{1,25}(?:\\.[0-9]{1,25})?(?:[eE][+-]?[0-9]{1,3})?";
const TIMES = `(?:(?<times>${NUMBER}) times )?`;
const RATE = `(?<most>${NUMBER}) nats per (?<unit>[A-Za-z0-9]+)`;
const SENTENCE = new RegExp(
  "^One report satisfies P\\(y\\|u\\) <= exp\\(d\\(u,u'\\)\\) P\\(y\\|u'\\) for every report y and all " +
    "(?<secrets>[0-9]+) secrets \\((?:places|cells of a (?<grid>[1-9][0-9]{0,8}(?: x [1-9][0-9]{0,8}){0,2}) grid" +
    `(?: on the azimuthal equidistant plane about ${NUMBER} [NS] ${NUMBER} [EW], WGS84, where distances exceed ` +
    `geodesic ones by less than ${NUMBER} of them)?)\\), where d is (?<words>.+); checked on (?<edges>[0-9]+) edges ` +
    "\\(list (?<list>[0-9a-f]{12})\\)\\. k reports cost k times as much\\.$",
);
const WORDS = {
  discrete: `${TIMES}the discrete metric, (?<most>${NUMBER}) nats between any two secrets \\(local differential privacy\\)`,
  euclidean: `${TIMES}the Euclidean distance over all pairs times ${RATE}`,
  eikonal:
    `${TIMES}the shortest-path distance of the (?<stencil>[0-9]{1,2})-neighbour graph, every edge as long as the ` +
    `line integral of the (?:bi|tri)linear privacy level eps \\((?<least>${NUMBER}) to ${RATE}, map [0-9a-f]{12}\\)`,
  streets: `${TIMES}the shortest-path distance along the streets listed in this file, either way, times ${RATE}`,
  graph: "the shortest-path distance of the edges listed in this file",
};
// By numbers of axes and of neighbours: steps to neighbours, in any order and direction.
const STENCILS = { "3 6": ["100"], "3 18": ["100", "110"], "3 26": ["100", "110", "111"] };
for (const k of [4, 8, 16, 32, 64]) STENCILS[`1 ${k}`] = ["1"];
for (const [k, end] of [
  [4, 1],
  [8, 2],
  [16, 3],
  [32, 5],
  [64, 9],
]) {
  STENCILS[`2 ${k}`] = ["10", "11", "21", "31", "32", "41", "43", "52", "53"].slice(0, end);
}

/** The words of a claim taken apart: { secrets, grid, edges, list, words, kind, times, most, unit, ... }; null for a
 * sentence that this program does not know. kind is null where only the metric is unknown. */
function claimParts(sentence) {
  const said = SENTENCE.exec(sentence)?.groups;
  if (!said) return null;
  for (const [kind, pattern] of Object.entries(WORDS)) {
    const words = new RegExp(`^${pattern}$`).exec(said.words);
    if (words) return { ...said, kind, ...words.groups };
  }
  return { ...said, kind: null };
}

/** Twelve digits that the claim says of its list of edges: SHA-256 of tails, heads and lengths, little-endian. */
function listFingerprint({ tail, head, length }) {
  const long = (values) => new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
  const digest = new Sha256()
    .add(long(tail))
    .add(long(head))
    .add(new Uint8Array(Float64Array.from(length).buffer));
  return digest.hex().slice(0, 12);
}

/** Faults of the sentence. setting = { sentence, cost, count, points (n, k), unit, edges }, edges all those of the
 * claim, and whole: false where only some of them are there. */
function* claimFaults(setting) {
  const said = claimParts(setting.sentence);
  if (!said || setting.cost !== "one report; k reports cost k times the epsilon") {
    return [{ text: "the claim or the budget is no sentence that this page knows" }];
  }
  const own = { secrets: String(setting.count) };
  if (setting.whole)
    Object.assign(own, { edges: String(setting.edges.tail.length), list: listFingerprint(setting.edges) });
  const faults = Object.keys(own)
    .filter((what) => said[what] !== own[what])
    .map((what) => ({ text: `the claim says ${what} ${said[what]}, not ${own[what]}` }));
  if (said.kind === null)
    return [...faults, { text: `the claim says of lengths what this page does not know: ${said.words}` }];
  return [...faults, ...(yield* lengthFaults(setting, said))];
}

function* lengthFaults({ points, unit, edges, whole }, said) {
  if (said.unit && said.unit !== (unit === "1" ? "unit" : unit)) {
    return [{ text: `the claim is in nats per ${said.unit}, and the coordinates are in ${unit}` }];
  }
  const cells = ranked(points);
  const sizes = said.grid ? said.grid.split(" x ").map(Number) : [];
  const lines = cells.map((axis) => axis.count);
  const position = (u) => cells.map((axis) => axis.rank[u]);
  const names = Array.from(points[0], (_, u) => position(u).join());
  if (said.grid) {
    const fits = sizes.length === lines.length && lines.every((count, k) => count <= sizes[k]);
    if (!fits || new Set(names).size < names.length) {
      return [{ text: `the coordinates are not those of different cells of a ${said.grid} grid` }];
    }
  }
  if (said.kind === "graph" || said.kind === "streets") return [];
  const steps = STENCILS[`${lines.length} ${said.stencil}`];
  if (said.kind === "eikonal" && !(said.grid && steps)) {
    return [{ text: `no places have a graph of ${said.stencil} neighbours but those of a grid` }];
  }
  const rate = most(said.most, said.kind === "eikonal" ? 9 : 17);
  const limit = said.times ? times(rate, most(said.times, 12)) : rate;
  const over = overLimit(points, said.kind === "discrete", limit);
  for (let e = 0; e < edges.tail.length; e++) {
    const [u, v, nats] = [edges.tail[e], edges.head[e], edges.length[e]];
    if (over(exactly(nats), u, v) || (said.kind === "eikonal" && nats === 0 && limit[0] > 0n)) {
      return [
        {
          text: `the edge from ${u} to ${v} is ${nats} nats long, which is not what the claim says`,
          secret: u,
          other: v,
        },
      ];
    }
    if (e % 512 === 0) yield (0.5 * e) / edges.tail.length;
  }
  if (!whole) return [];
  if (said.kind !== "eikonal") return yield* apart(points[0].length, position, edges, over);
  if (sizes.reduce((a, b) => a * b, 1) > names.length) return [];
  return missingNeighbours(names, position, steps, edges);
}

/** Coordinates along every axis as whole ranks among those that there are. */
function ranked(points) {
  return points.map((axis) => {
    const values = [...new Set(axis)].sort((a, b) => a - b);
    const places = new Map(values.map((value, k) => [value, k]));
    return { count: values.length, rank: Array.from(axis, (value) => places.get(value)) };
  });
}

/** Whether a fraction of nats exceeds the limit between two places, by squares, all exact. */
function overLimit(points, discrete, limit) {
  const [p, q] = times(limit, limit);
  if (discrete) return ([a, b]) => a * a * q > p * b * b;
  const fine = points.flatMap((axis) => Array.from(axis, (at) => exactly(at)[1])).reduce((a, b) => (a > b ? a : b));
  const whole = points.map((axis) => Array.from(axis, (at) => exactly(at)).map(([a, b]) => (a * fine) / b));
  const [scale, under] = [p, q * fine * fine];
  return ([a, b], u, v) => {
    let square = 0n;
    for (const axis of whole) square += (axis[u] - axis[v]) ** 2n;
    return a * a * under > scale * square * b * b;
  };
}

function missingNeighbours(names, position, steps, { tail, head }) {
  const at = new Map(names.map((name, u) => [name, u]));
  const joined = new Set(Array.from(tail, (u, e) => `${Math.min(u, head[e])} ${Math.max(u, head[e])}`));
  const turns = steps.flatMap((step) => turned([...step].map(Number)));
  for (let u = 0; u < names.length; u++) {
    for (const turn of turns) {
      const v = at.get(
        position(u)
          .map((k, axis) => k + turn[axis])
          .join(),
      );
      if (v !== undefined && !joined.has(`${Math.min(u, v)} ${Math.max(u, v)}`)) {
        return [{ text: `no edge joins the neighbours ${u} and ${v}`, secret: u, other: v }];
      }
    }
  }
  return [];
}

/** All orders and signs of a step. */
function turned(step) {
  if (step.length === 0) return [[]];
  return step.flatMap((size, k) => {
    const rest = turned(step.filter((_, other) => other !== k));
    return rest.flatMap((others) => [
      [size, ...others],
      [-size, ...others],
    ]);
  });
}
