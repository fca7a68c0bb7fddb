// The proof of a device map. Along an edge of length d and x units the claim is S(v) <= R S(u), R <= e^(d - x step), each
// way, as factors.js explains. In the client, ball.mjs lays out rows, lengths and bounds, and adds up S.
//
// A row has a sum over all places nearer than the cap, tens of thousands of them. So the rows of a patch around one cell
// are added up, or all of them when that is asked for, or there are few.

const PATCH = 15; // cells along either side of the patch that is proved at once
const FEW_ROWS = 2500; // a map of at most so many is proved completely
const LOOSEST = 4n; // times a sum that its bound may be: a draw then takes at most 8 attempts on average

/** Faults of the header: kernel, step lengths, checksum of the levels. */
function regionFaults({ header, seals }) {
  const faults = [];
  const require = (condition, text) => condition || faults.push({ text });
  const [ratio, shift] = expLower(header.step * 2 ** -STEP_BITS);
  require(ratio === BigInt(header.ratio) && shift === header.shift, "the kernel does not match the step of the map");
  require(header.step * header.cap < Math.trunc(58 * 0.69 * 2 ** STEP_BITS), "step times cap is too large for the kernel");
  const sides = header.cell.map(exactly);
  const [p, q] = exactly(header.level_unit);
  for (const [k, [down, right]] of [[1, 0], [0, 1], [1, 1], [2, 1], [1, 2]].slice(0, header.length_scales.length).entries()) {
    const [a, b] = [BigInt(down) * sides[0][0] * sides[1][1], BigInt(right) * sides[1][0] * sides[0][1]];
    const under = sides[0][1] * sides[1][1];
    const square = ((p << 48n) ** 2n * (a * a + b * b)) / (24n * q * under) ** 2n;
    // A scale is floor(2^48 level_unit |step| / 24), compared by its square.
    const root = BigInt(header.length_scales[k]);
    require(root * root <= square && square < (root + 1n) ** 2n, `length scale ${k} is not the length of its step`);
  }
  // A browser without SubtleCrypto cannot compute the digest: it is then listed as assumed.
  require(header.claim_digest === (seals.levels ?? header.claim_digest), "the checksum of the levels in the claim does not match");
  return faults;
}

/** The levels of the secrets, cell by cell. */
function secretLevels({ header: { shape, margin, domain }, arrays: { level } }) {
  const [across, along] = domain.shape;
  const levels = new Uint16Array(across * along);
  for (let i = 0; i < across; i++) {
    const from = (i + margin) * shape[1] + margin;
    levels.set(level.subarray(from, from + along), i * along);
  }
  return levels;
}

/** SHA-256 of the file of a map, and of its levels with their grid; null on pages without a secure connection. */
async function sealsOf(bytes, map) {
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(12, true);
  const text = new TextDecoder().decode(bytes.subarray(16, 16 + size)); // the header as it was written
  // Numbers are copied as the header spells them: JSON.stringify may spell them otherwise, which changes the digest.
  const spellingOf = (name, value) => new RegExp(`[{ ]"${name}": (${value})[,}]`).exec(text)?.[1];
  const [number, list] = ["[-+.0-9e]+", "\\[[^\\]]*\\]"];
  const kinds = { cell: list, cells: list, level_unit: number, origin: list, plane: "\\{[^}]*\\}", stencil: number };
  kinds.unit = '"[^"]*"';
  const parts = Object.entries(kinds).map(([name, value]) => `"${name}": ${spellingOf(name, value) ?? null}`);
  const levels = new Blob([`{${parts.join(", ")}}`, secretLevels(map)]);
  return { file: await device.sha256(bytes), levels: await device.sha256(await levels.arrayBuffer()) };
}

/** The cells of a patch around a cell, moved so that it lies in the map. */
function* patchAround([across, along], cell) {
  const start = (at, count) => Math.max(0, Math.min(at - (PATCH >> 1), count - PATCH));
  const [top, left] = [start(Math.floor(cell / along), across), start(cell % along, along)];
  for (let i = top; i < Math.min(across, top + PATCH); i++) {
    for (let j = left; j < Math.min(along, left + PATCH); j++) yield i * along + j;
  }
}

/** Prove a device map: all rows of a small one, else those of a patch around a cell. */
function* proveRegion(page, outcome, all, around = page.contents.first) {
  const { map } = page;
  outcome.faults.push(...regionFaults(map));
  if (outcome.faults.length) return;
  const region = new device.RegionRows(map.header, map.arrays);
  const count = map.header.cells;
  const whole = all || count <= FEW_ROWS;
  const asked = whole ? Array.from({ length: count }, (_, u) => u) : [...patchAround(region.cells, around)];
  const sums = new Map();
  for (const [k, u] of asked.entries()) {
    const sum = region.rowSum(u);
    if (sum > region.boundOf(u))
      outcome.faults.push({ text: `cell ${u}: the row sums to more than its bound`, secret: u });
    if (region.boundOf(u) > LOOSEST * sum)
      outcome.faults.push({ text: `cell ${u}: the row sums to less than a quarter of its bound`, secret: u });
    sums.set(u, sum);
    const words = `adding up rows, ${countWords(k)} of ${countWords(asked.length)}`;
    if (k % 4 === 0) yield { words, share: 0.1 + (0.8 * k) / asked.length };
  }
  const { edges, broken } = yield* part(regionEdges(region, map.header.step, sums, outcome.faults), "comparing inequalities", 0.9, 1);
  const rows = `${countWords(asked.length)} rows${whole ? "" : ` of ${countWords(count)}`}`;
  const words = `${rows}, ${countWords(2 * edges)} inequalities, in integers.`;
  outcome.figures = { rows: asked.length, inequalities: 2 * edges, violations: broken, partial: !whole };
  if (!whole) outcome.figures.cells = asked;
  outcome.figures.badge = { whole, verdict: whole ? "Proved in this browser" : "Proved around one place", words };
  outcome.proved.push(
    "The kernel, the step lengths and the levels of the map are those of its claim.",
    `${whole ? "All rows were" : "The rows of the cells around the place were"} added up in integers, ${countWords(asked.length)} of ` +
      `${countWords(count)}, over all places within the cap. Each is at most its bound and at least a quarter of it.`,
    `${countWords(2 * edges)} inequalities between row sums hold, two for each of ${countWords(edges)} edges, each for all reports` +
      `${whole ? "." : ": the claim along every path between these cells."}`,
  );
  if (!whole)
    outcome.assumed.push(
      "All other rows and edges were checked by mechdesign verify when this page was made, not in this browser.",
    );
  outcome.assumed.push(
    `${map.seals.file ? "The" : "The checksums of the map (browsers compute them only on secure connections) and the"} figures of mechdesign verify.`,
    "Not checked: that the projection, the unit and the levels match the place and its population.",
  );
  faultsOfWords(page, outcome, region);
}

/** The number of edges between the secrets whose sums are there, and the number of inequalities that do not hold. */
function* regionEdges(region, unit, sums, faults) {
  const bounds = new Map();
  let [edges, broken, k] = [0, 0, 0];
  for (const [u, sum] of sums) {
    const [i, j] = [Math.floor(u / region.cells[1]), u % region.cells[1]];
    for (const step of region.steps) {
      const { down, right } = step;
      if (i + down >= region.cells[0] || j + right < 0 || j + right >= region.cells[1]) continue;
      const v = u + down * region.cells[1] + right;
      const other = sums.get(v);
      if (other === undefined) continue;
      edges++;
      const length = BigInt(region.lengthOf(region.placeOf(u), step));
      const wrong = brokenWays(bounds, length - BigInt(unit) * BigInt(region.unitsOf(u, step)), sum, other);
      broken += wrong;
      const text = `the edge from ${u} to ${v} is not covered by the row sums`;
      // Only the first broken edge is named.
      if (wrong && broken === wrong) faults.push({ text, secret: u, other: v });
    }
    if (k++ % 64 === 0) yield k / sums.size;
  }
  return { edges, broken };
}

/** Faults of the texts of the page. */
function faultsOfWords(page, outcome, region) {
  const { contents, map } = page;
  const require = (condition, text) => condition || outcome.faults.push({ text });
  const factor = Math.exp(longestStep(region, map.header.domain.shape));
  require(contents.protection.factor >= factor * (1 - AGREE), `the sentence states factor ${contents.protection.factor}, recomputed ${factor}`);
  require(contents.verification.certified === true, "the page states that the map is not certified");
  const own = contents.facts.provenance["sha256sum of the file"];
  require(own === (map.seals.file ?? own), "sha256sum: the page shows a checksum that is not that of the map");
}

/** The range of the levels of the secrets. */
function levelRange(map) {
  return secretLevels(map).reduce(([low, high], level) => [Math.min(low, level), Math.max(high, level)], [Infinity, 0]);
}

/** The sentence on protection by a map, and its range of levels, per kilometre on metres. */
function regionHeadline({ map, contents }) {
  const { cell, unit, level_unit: quantum } = map.header;
  const [least, most] = levelRange(map).map((at) => at * quantum * contents.levels_per);
  const per = contents.levels_per === 1 ? unitWord(unit, false) : "km";
  const odds = `between two people however close, one report changes the odds by a factor of at most ${figure(contents.protection.factor, true)}.`;
  return `Protects ${cellWords(cell, unit)}: ${odds} Levels range from ${figure(least, false)} to ${figure(most, true)} nats per ${per}.`;
}

/** The claim of a map in one sentence. */
function regionClaimWords({ map }) {
  const { cells, domain, plane, stencil, level_unit: quantum, unit, claim_digest: digest } = map.header;
  const [least, most] = levelRange(map).map((at) => at * quantum);
  const about = plane ? ` on the azimuthal equidistant plane about ${plane.latitude}, ${plane.longitude}, WGS84` : "";
  return `One report satisfies P(y|u) <= exp(d(u,u')) P(y|u') for every report y and all ${cells} secrets (cells of a ${domain.shape.join(" x ")} grid${about}), where d is the shortest-path distance of the ${stencil}-neighbour graph, every edge as long as the line integral, rounded down by less than 2^-27 nats, of a privacy level that is bilinear between the centres of cells, and there an integer multiple of ${quantum} nats per ${unitWord(unit, false)} (${least} to ${most}); levels ${digest.slice(0, 16)}. ${BUDGET}`;
}

/** The nats of the longest edge between two secrets whose cells touch. */
function longestStep(region, [across, along]) {
  let longest = 0;
  for (const step of region.steps) {
    const { down, right } = step;
    if (down > 1 || Math.abs(right) > 1) continue;
    for (let i = 0; i + down < across; i++) {
      for (let j = Math.max(0, -right); j + right < along && j < along; j++) {
        longest = Math.max(longest, region.lengthOf(region.placeOf(i * along + j), step));
      }
    }
  }
  return longest * 2 ** -STEP_BITS;
}
