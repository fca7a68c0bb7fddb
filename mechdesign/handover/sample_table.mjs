// Draw reports from an exported mechanism table (JSON), with whole numbers only.
//
//   import { readTable } from "./sample_table.mjs";
//   const table = await readTable(text);          // the text of TABLE.json; refuses one that was altered
//   const report = table.sample(secret);          // a number 0..m-1, with probability mass / 2^62
//   const place = table.reportPoints[report];     // its coordinates, in table.unit
//
//   node sample_table.mjs TABLE.json SECRET [COUNT]
//
// Let C[y] be the sum of the first y + 1 masses of a row. For x drawn from 0 .. 2^62 - 1, each equally likely, the
// report is the number of y with C[y] <= x: report y is drawn for exactly mass[y] values of x. Every C[y] is compared,
// whatever x is, so that the time tells little. One report; k reports cost k times the epsilon: keep a report and give
// it again rather than drawing another for the same secret.
//
// It needs no package: Node 20 or a browser.

const FORMAT = "mechdesign/table/1";
const ROW_SUM = 1n << 62n;
const HIGH_MASK = 0x3fffffff; // 30 high and 32 low bits make 62
const PLAIN = /^(0|[1-9][0-9]{0,18})$/; // digits of a mass: 2^62 has 19
const STRINGS = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?/g; // of JSON, and the colon behind a name

/** A table: claim, budget, unit, secretPoints (n, k), reportPoints (m, k). Throws RangeError where a mass is no plain
 * number of at least 1, a row does not sum to exactly 2^62, or rows, masses and places are not as many as said. */
export class Table {
  #high; // of every cumulative sum, n arrays of m
  #low;

  constructor(parsed) {
    if (parsed.format !== FORMAT) throw new TypeError(`not a table of format ${FORMAT}`);
    this.claim = parsed.claim;
    this.budget = parsed.budget;
    this.unit = parsed.unit;
    this.secretPoints = parsed.secret_points;
    this.reportPoints = parsed.report_points;
    for (const name of ["claim", "budget", "unit"]) {
      if (typeof parsed[name] !== "string") throw new RangeError(`${name} is not said`);
    }
    if (!arePoints(parsed.secret_points, parsed.secrets) || !arePoints(parsed.report_points, parsed.reports)) {
      throw new RangeError("not as many places as secrets and reports, or not as many finite coordinates");
    }
    if (!Array.isArray(parsed.mass) || parsed.mass.length !== parsed.secrets) {
      throw new RangeError("not as many rows as secrets");
    }
    const sums = parsed.mass.map((row, secret) => cumulative(row, secret, parsed.reports));
    this.#high = sums.map((row) => Uint32Array.from(row, (sum) => Number(sum >> 32n)));
    this.#low = sums.map((row) => Uint32Array.from(row, (sum) => Number(sum & 0xffffffffn)));
  }

  /** The report for 62 random bits given as two numbers: high in 0 .. 2^30 - 1, low in 0 .. 2^32 - 1. */
  report(secret, high, low) {
    if (!Number.isInteger(secret) || !this.#high[secret]) throw new RangeError(`no such secret: ${secret}`);
    if (high >>> 0 !== high || high > HIGH_MASK || low >>> 0 !== low) throw new RangeError("not 30 and 32 bits");
    const [highs, lows] = [this.#high[secret], this.#low[secret]];
    let found = 0;
    for (let y = 0; y < highs.length; y++) {
      const same = Number(highs[y] === high) & Number(lows[y] <= low);
      found += Number(highs[y] < high) | same;
    }
    return found;
  }

  /** A report for a secret, with bits from the cryptographic generator. */
  sample(secret) {
    const [high, low] = crypto.getRandomValues(new Uint32Array(2));
    return this.report(secret, high & HIGH_MASK, low);
  }
}

/** The table in the text of a JSON export. Rejects with RangeError where it is not what was written. */
export async function readTable(text) {
  const start = text.lastIndexOf("\n", text.length - 2) + 1;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text.slice(0, start)));
  const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (text.slice(start) !== `"content_sha256": "${hex}"}\n`) throw new RangeError("the table was altered, or cut short");
  const parsed = JSON.parse(text);
  const names = Array.from(text.matchAll(STRINGS)).filter(([, , colon]) => colon).map(([, name]) => JSON.parse(name));
  if (new Set(names).size < names.length) throw new RangeError("a name is said twice");
  return new Table(parsed);
}

function arePoints(points, count) {
  const finite = (point) => Array.isArray(point) && point.length === points[0].length && point.every(Number.isFinite);
  return Array.isArray(points) && points.length === count && points.every(finite);
}

function cumulative(row, secret, reports) {
  let sum = 0n;
  const sums = (typeof row === "string" ? row : "").split(" ").map((digits) => {
    if (!PLAIN.test(digits)) throw new RangeError(`secret ${secret}: a mass is no plain whole number`);
    if (digits === "0") throw new RangeError(`secret ${secret}: a mass is below 1`);
    return (sum += BigInt(digits));
  });
  if (sum !== ROW_SUM) throw new RangeError(`secret ${secret}: the masses sum to ${sum}, not 2^62`);
  if (sums.length !== reports) throw new RangeError(`secret ${secret}: not as many masses as reports`);
  return sums;
}

if (globalThis.process?.argv?.[1]) {
  const { pathToFileURL } = await import("node:url");
  if (import.meta.url === pathToFileURL(process.argv[1]).href) {
    const { readFile } = await import("node:fs/promises");
    const [path, secret, count = "1"] = process.argv.slice(2);
    if (!PLAIN.test(secret) || !PLAIN.test(count)) throw new RangeError("SECRET and COUNT are plain numbers");
    const table = await readTable(await readFile(path, "utf8"));
    for (let k = 0; k < Number(count); k++) {
      const report = table.sample(Number(secret));
      console.log([report, ...table.reportPoints[report]].join(","));
    }
  }
}
