// The proof of a compact map: for every edge of length d and x units S(v) <= R S(u), R <= e^(d - x step), each way, is the
// claim along it (factors.js says why, rows.js adds up S).
//
// A row has a sum over all places nearer than the cap, tens of thousands of them. So the rows of a patch around one cell
// are added up, or all of them when that is asked for, or there are few.

const PATCH = 15; // cells along either side of what is proved at once
const LEVELS_FALL = /^Levels fall from \{most\} to \{least\} nats per [A-Za-z0-9]+\.$/;
const FEW_ROWS = 2500; // of a map that is proved whole
const REGION_CLAIM = new RegExp(
  "^One report satisfies P\\(y\\|u\\) <= exp\\(d\\(u,u'\\)\\) P\\(y\\|u'\\) for every report y and all (?<secrets>[0-9]+) secrets " +
    "\\(cells of a (?<grid>[0-9]+ x [0-9]+) grid(?: on the azimuthal equidistant plane about [^()]+)?\\), where d is the " +
    "shortest-path distance of the (?<stencil>8|16)-neighbour graph, every edge as long as the line integral, rounded down by " +
    "less than 2\\^-27 nats, of a privacy level that is bilinear between the centres of cells, and there a whole number of " +
    `(?<quantum>${NUMBER}) nats per (?<unit>[A-Za-z0-9]+) \\((?<least>${NUMBER}) to (?<most>${NUMBER})\\); levels ` +
    "(?<levels>[0-9a-f]{16})\\. k reports cost k times as much\\.$",
);

/** Faults of what the header says beside the numbers: kernel, lengths of steps, the name of the levels, the claim. */
function regionFaults({ header, arrays }, text) {
  const faults = [];
  const says = (holds, what) => holds || faults.push({ text: what });
  const [ratio, shift] = expLower(header.step * 2 ** -STEP_BITS);
  says(ratio === BigInt(header.ratio) && shift === header.shift, "the kernel falls in other steps than the map says");
  says(header.step * header.cap < Math.trunc(58 * 0.69 * 2 ** STEP_BITS), "step and cap leave the kernel no room");
  const sides = header.cell.map(exactly);
  const [p, q] = exactly(header.level_unit);
  for (const [k, [down, right]] of [[1, 0], [0, 1], [1, 1], [2, 1], [1, 2]].slice(0, header.advance.length).entries()) {
    const [a, b] = [BigInt(down) * sides[0][0] * sides[1][1], BigInt(right) * sides[1][0] * sides[0][1]];
    const under = sides[0][1] * sides[1][1];
    const square = ((p << 48n) ** 2n * (a * a + b * b)) / (24n * q * under) ** 2n;
    const root = BigInt(header.advance[k]);
    says(root * root <= square && square < (root + 1n) ** 2n, `advance ${k} is not the length of its step`);
  }
  const said = REGION_CLAIM.exec(header.claim)?.groups;
  if (!said || header.cost !== "one report; k reports cost k times the epsilon") {
    return [...faults, { text: "the claim or the budget is no sentence that this page knows" }];
  }
  const held = secretLevels({ header, arrays });
  const levels = held.reduce(([least, most], at) => [Math.min(least, at), Math.max(most, at)], [Infinity, 0]);
  says(said.secrets === String(header.cells) && said.grid === header.domain.shape.join(" x "), "the claim is of other cells");
  says(said.stencil === String(header.stencil) && said.unit === header.unit, "the claim is of another graph, or unit");
  says(Number(said.quantum) === header.level_unit, "the claim is of another unit of levels");
  const ends = [said.least, said.most].map(Number);
  says(levels.every((at, k) => agree(at * header.level_unit, ends[k], 1e-8)), "the claim is of other levels");
  says(header.ledger === levelsName(text, held) && header.ledger.startsWith(said.levels), "the claim names other levels");
  return faults;
}

/** The levels of the secrets, cell by cell. */
function secretLevels({ header: { shape, frame, domain }, arrays: { level } }) {
  const [across, along] = domain.shape;
  const held = new Uint16Array(across * along);
  for (let i = 0; i < across; i++) {
    const from = (i + frame) * shape[1] + frame;
    held.set(level.subarray(from, from + along), i * along);
  }
  return held;
}

/** The SHA-256 that names levels with their grid; text, the header as it was written. */
function levelsName(text, held) {
  const written = (name, value) => new RegExp(`[{ ]"${name}": (${value})[,}]`).exec(text)?.[1];
  const [number, list] = ["[-+.0-9e]+", "\\[[^\\]]*\\]"];
  const kinds = { cell: list, cells: list, level_unit: number, origin: list, plane: "\\{[^}]*\\}", stencil: number };
  kinds.unit = '"[^"]*"';
  const parts = Object.entries(kinds).map(([name, value]) => `"${name}": ${written(name, value) ?? null}`);
  const digest = new Sha256().add(new TextEncoder().encode(`{${parts.join(", ")}}`));
  return digest.add(new Uint8Array(held.buffer)).hex();
}

/** The rows that are added up: those of a patch around a cell that lies in the map, or all. */
function* patchAround([across, along], cell) {
  const start = (at, count) => Math.max(0, Math.min(at - (PATCH >> 1), count - PATCH));
  const [top, left] = [start(Math.floor(cell / along), across), start(cell % along, along)];
  for (let i = top; i < Math.min(across, top + PATCH); i++) {
    for (let j = left; j < Math.min(along, left + PATCH); j++) yield i * along + j;
  }
}

function* proveRegion(page, outcome, all, around = page.contents.first) {
  const { map } = page;
  const bytes = array(page, "compact");
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(12, true);
  outcome.faults.push(...regionFaults(map, new TextDecoder().decode(bytes.subarray(16, 16 + size))));
  if (outcome.faults.length) return;
  yield { words: "laying out the edges", share: 0.05 };
  const region = new RegionSums(map);
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
    const words = `adding up rows, ${counted(k)} of ${counted(asked.length)}`;
    if (k % 4 === 0) yield { words, share: 0.1 + (0.8 * k) / asked.length };
  }
  const { edges, broken } = yield* part(regionEdges(region, sums, outcome.faults), "comparing inequalities", 0.9, 1);
  const rows = `${counted(asked.length)} rows${whole ? "" : ` of ${counted(count)}`}`;
  const told = `${rows}, ${counted(2 * edges)} inequalities, in whole numbers.`;
  outcome.found = { rows: asked.length, inequalities: 2 * edges, violations: broken, partial: !whole };
  if (!whole) outcome.found.cells = asked;
  outcome.found.told = { whole, verdict: whole ? "Proved in this browser" : "Proved around one place", words: told };
  outcome.proved.push(
    "The map, whose checksums were found again, has the kernel, the lengths of steps and the levels that its claim speaks of.",
    `${whole ? "All rows were" : "The rows of the cells around the place were"} added up in whole numbers, ${counted(asked.length)} of ` +
      `${counted(count)}, over all places nearer than the cap, and none exceeds its bound, or is below a quarter of it.`,
    `${counted(2 * edges)} inequalities between row sums hold, two for each of ${counted(edges)} edges, each for all reports` +
      `${whole ? "." : ": the claim along every path between these cells."}`,
  );
  if (!whole)
    outcome.given.push(
      "All other rows and edges: mechdesign verify added them up when this page was made, not this browser.",
    );
  outcome.given.push(
    "The figures of mechdesign verify.",
    "That the plane, the unit and the levels suit the people who live there is as the map has it.",
  );
  faultsOfWords(page, outcome, region);
}

/** Every edge between the secrets whose sums are there: how many, and how many inequalities do not hold. */
function* regionEdges(region, sums, faults) {
  const bounds = new Map();
  let [edges, broken, k] = [0, 0, 0];
  for (const [u, sum] of sums) {
    const [i, j] = [Math.floor(u / region.cells[1]), u % region.cells[1]];
    for (const [which, [down, right]] of region.steps.entries()) {
      if (i + down >= region.cells[0] || j + right < 0 || j + right >= region.cells[1]) continue;
      const v = u + down * region.cells[1] + right;
      const other = sums.get(v);
      if (other === undefined) continue;
      edges++;
      const place = region.placeOf(u);
      const spare = BigInt(region.lengthOf(place, which)) - BigInt(region.step) * BigInt(region.units[which][place]);
      const key = spare < 0n ? -1n : spare >> SPARE_BITS;
      if (key >= 0n && !bounds.has(key)) bounds.set(key, expLower(Number(key) * 2 ** (Number(SPARE_BITS) - STEP_BITS)));
      const bound = bounds.get(key);
      const wrong = bound ? Number(exceeds(sum, bound, other)) + Number(exceeds(other, bound, sum)) : 2;
      broken += wrong;
      const text = `the edge from ${u} to ${v} is not covered by the row sums`;
      if (wrong && broken === wrong) faults.push({ text, secret: u, other: v });
    }
    if (k++ % 64 === 0) yield k / sums.size;
  }
  return { edges, broken };
}

/** Faults of the sentence and of what the page shows beside the map. */
function faultsOfWords(page, outcome, region) {
  const { contents, map } = page;
  const { template, values, texts } = contents.saying;
  const { cell, domain, unit } = map.header;
  const { most, least } = REGION_CLAIM.exec(map.header.claim).groups;
  const kilo = contents.levels_per; // of the unit, that the sentence speaks of levels per
  const says = (holds, text) => holds || outcome.faults.push({ text });
  const said = PROTECTS.exec(template)?.groups;
  const sides = said?.sides?.replaceAll(",", "").split(" x ").map(Number) ?? [];
  const own = cell.every((side, k) => agree(sides[k] ?? sides[0] ?? NaN, side, 1e-5));
  const words = lengthWords(unit).includes(said?.of) && said.exactly && said.near === "however close";
  says(own && words, "the sentence does not say what the claims are about");
  says(LEVELS_FALL.test(template.replace(PROTECTS, "").trim()), "the sentence is none that this page knows");
  const factor = Math.exp(longestStep(region, domain.shape));
  says(values.factor >= factor * (1 - AGREE), `the sentence says factor ${values.factor}, found ${factor}`);
  const wanted = { most: Number(most) * kilo, least: Number(least) * kilo };
  for (const [name, value] of Object.entries(wanted)) {
    says(agree(values[name], value, 1e-8), `the sentence says ${name} ${values[name]}, the map ${value}`);
  }
  for (const [name, value] of Object.entries(values)) {
    const shown = showsRounded(readNumber(texts[name]), value, name !== "least");
    says(shown, `the sentence shows ${name} as ${texts[name]}, and means ${value}`);
  }
  says(contents.facts.claim === map.header.claim, "claim: the page shows another than the map");
  says(contents.verification.claim === map.header.claim, "claim: the page says another than the map");
  says(contents.verification.certified === true, "the page says that the map is not certified");
  const { provenance } = contents.facts;
  says(provenance["seal of its contents"] === mapChecksum(page), "seal: the page shows another than the map");
  says(provenance["sha256sum of the file"] === sha256(array(page, "compact")), "sha256sum: the page shows another than the map");
}

/** The nats of the longest edge between two secrets whose cells touch. */
function longestStep(region, [across, along]) {
  let longest = 0;
  for (const [which, [down, right]] of region.steps.entries()) {
    if (down > 1 || Math.abs(right) > 1) continue;
    for (let i = 0; i + down < across; i++) {
      for (let j = Math.max(0, -right); j + right < along && j < along; j++) {
        longest = Math.max(longest, region.lengthOf(region.placeOf(i * along + j), which));
      }
    }
  }
  return longest * 2 ** -STEP_BITS;
}

function mapChecksum(page) {
  return Array.from(array(page, "compact").subarray(-32), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
