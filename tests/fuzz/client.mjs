// The readers of the client on untrusted tables, maps and sessions. See loops.py, which starts it:
// node client.mjs FOLDER SECONDS SEED FILE...; it prints executions, files opened and reports drawn.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { deflateSync, inflateSync } from "node:zlib";

const [folder, seconds, seed, ...files] = process.argv.slice(2);
const { ReportError, memoryStorage, openClient, openSession } = await import(pathToFileURL(`${folder}/report.mjs`));
const SLOW = 20_000; // milliseconds: no small file takes so long
const ENDS = [0, -1, 1, 2, 0.5, -0, 1e-320, 1e300, 255, 65535, 65536, 2 ** 31, 2 ** 32, 2 ** 53, null, true, "", "1/3", "1e9", [], {}];

let state = BigInt(seed) + 1n;
const next = (below) => { // xorshift64*, Vigna 2016
  state ^= state >> 12n;
  state = BigInt.asUintN(64, state ^ (state << 25n));
  state ^= state >> 27n;
  return Number((BigInt.asUintN(64, state * 0x2545f4914f6cdd1dn) >> 20n) % BigInt(below));
};
const one = (list) => list[next(list.length)];
const bits = (count) => Uint8Array.from({ length: count }, () => next(256));

/** Replace a value by any other one, or change it somewhere below. */
function alterValue(value) {
  if (typeof value !== "object" || value === null || next(8) === 0) return one(ENDS);
  const names = Object.keys(value);
  const copy = Array.isArray(value) ? [...value] : { ...value };
  if (names.length === 0 || next(12) === 0) return one(ENDS);
  const name = one(names);
  if (next(10) === 0) delete copy[name];
  else copy[name] = alterValue(value[name]);
  return Array.isArray(copy) ? copy.filter((_, k) => k in copy) : copy;
}

function alterBytes(bytes) {
  const copy = Uint8Array.from(bytes);
  for (let k = next(4); k >= 0 && copy.length > 0; k--) copy[next(copy.length)] = one([0, 1, 127, 128, 255, next(256)]);
  const end = next(6) === 0 ? next(copy.length + 1) : copy.length;
  return copy.subarray(0, end);
}

/** Header and body changed, put together and sealed; or bytes of the file changed anywhere. */
function mutate(bytes) {
  if (next(8) === 0) return withChecksum(alterBytes(bytes.subarray(0, -32)));
  const start = 16 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(12, true);
  const which = next(3);
  let header = JSON.parse(Buffer.from(bytes.subarray(16, start)).toString());
  if (which > 0) header = alterValue(header);
  const text = Buffer.from(JSON.stringify(header));
  const body = which === 1 ? bytes.subarray(start, -32) : deflateSync(alterBytes(inflateSync(bytes.subarray(start, -32))), { level: 1 });
  const size = Buffer.alloc(4);
  size.writeUInt32LE(text.length);
  return withChecksum(Buffer.concat([bytes.subarray(0, 12), size, text, body]));
}

function withChecksum(bytes) {
  return new Uint8Array(Buffer.concat([bytes, next(32) === 0 ? bits(32) : createHash("sha256").update(bytes).digest()]));
}

const counts = { executions: 0, opened: 0, reports: 0 };

async function openAndDraw(table) {
  const options = { table, bits, storage: memoryStorage() };
  if (next(2) === 0) {
    const client = await openClient({ ...options, answerAfter: 0 });
    counts.opened++;
    const { report } = await client.reportCell(next(client.places.count));
    if (!Number.isInteger(report.number) || report.number < 0) throw new Error(`report ${report.number}`);
    await client.reportAt(...client.places.point(0));
  } else {
    const session = await openSession({ ...options, limit: 1e6, now: () => 0 });
    counts.opened++;
    for (const tick of [0, 1, 5]) await session.reportCell(next(session.places.count), { tick });
    await session.account();
  }
  counts.reports++;
}

const seeds = files.map((file) => new Uint8Array(readFileSync(file)));
const end = Date.now() + 1000 * seconds;
while (Date.now() < end) {
  const table = mutate(one(seeds));
  const begun = process.cpuUsage().user;
  counts.executions++;
  try {
    await openAndDraw(table);
  } catch (error) {
    if (!(error instanceof ReportError)) fault(table, error.stack);
  }
  const milliseconds = (process.cpuUsage().user - begun) / 1000;
  if (milliseconds > SLOW) fault(table, `${milliseconds} ms`);
}
console.log(`${counts.executions} executions, ${counts.opened} files opened, ${counts.reports} drawn from`);

function fault(table, words) {
  writeFileSync("fault.bin", table);
  console.error(`fault.bin: ${words}`);
  process.exit(1);
}
