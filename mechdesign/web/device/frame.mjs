// Read a container: a table, factors, a device map or a session. It is untrusted input: sizes are checked before memory
// is allocated, and a file that contradicts its header is refused.
//
//   10 bytes "mechdesign" | version 1, uint16 | bytes of the header, uint32 | header, JSON | body, zlib | SHA-256 of all
//   before it, 32 bytes
//
// The header has kind, arrays ([name, type, shape, differences] for each) and the fields of the kind. The body has the
// arrays, little-endian, each in planes: the lowest byte of every number, then the next, and so on. zlib compresses these
// well. Arrays marked as differences are summed along every axis, modulo their width.

const MAGIC = "mechdesign";
const VERSION = 1;
const HEAD = 16; // bytes before the header
const MOST_HEADER = 1 << 20;
const MOST_BODY = 2 ** 29;
const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i2: Int16Array, f8: Float64Array };

/** The only error that a client throws. Its code names the kind, its message the remedy.
 *
 * | code | meaning |
 * |---|---|
 * | table | the file was altered, or is of another kind |
 * | position | the position is invalid |
 * | outside | the position lies outside the area |
 * | budget | the budget of the day is spent; `until` of a client: the time of the next report, milliseconds since 1970 |
 * | memory | the memory is damaged |
 * | storage | the storage keeps nothing |
 * | tick | of a session: the tick is not after the last one |
 * | option | an option is unknown or invalid | */
export class ReportError extends Error {
  constructor(code, message, { until } = {}) {
    super(message);
    this.name = "ReportError";
    this.code = code;
    if (until !== undefined) this.until = until;
  }
}

/** The SHA-256 of bytes, in hexadecimal digits. Browsers compute none on pages over an insecure connection: undefined
 * there, and the file is as trustworthy as its connection. */
export async function sha256(bytes) {
  if (!crypto.subtle) return undefined;
  return hexadecimal(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

function hexadecimal(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The header of a container; the rest is not read. */
export function headerOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = bytes.length - 32;
  need(end >= HEAD && String.fromCharCode(...bytes.subarray(0, 10)) === MAGIC, "is not a table for this client");
  need(view.getUint16(10, true) === VERSION, "is of another version than this client: write both again");
  const size = view.getUint32(12, true);
  need(size <= Math.min(end - HEAD, MOST_HEADER), "has a header longer than it may be");
  let header;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(HEAD, HEAD + size)));
  } catch {
    need(false, "has a header that is not JSON");
  }
  need(isObject(header), "has no header");
  return header;
}

/** Read {header, arrays} of a container. layoutOf(header) checks the header and returns the arrays that it promises.
 * Rejects with ReportError "table" unless the bytes are as they were written. */
export async function readFrame(bytes, layoutOf) {
  const header = headerOf(bytes);
  const end = bytes.length - 32;
  const digest = hexadecimal(bytes.subarray(end));
  need(((await sha256(bytes.subarray(0, end))) ?? digest) === digest, "was altered, or cut short");
  const { arrays: declared, ...rest } = header;
  const layout = layoutOf(rest);
  const size = layout.reduce((sum, entry) => sum + bytesOfArray(entry), 0);
  // Before the body is unpacked: a few bytes of zlib may claim gigabytes.
  need(size <= MOST_BODY, "is too large");
  need(JSON.stringify(declared) === JSON.stringify(layout), "has arrays of another size than its header says");
  const start = HEAD + new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(12, true);
  const body = await inflate(bytes.subarray(start, end), size);
  const arrays = {};
  let at = 0;
  for (const entry of layout) arrays[entry[0]] = unfoldPlanes(body.subarray(at, (at += bytesOfArray(entry))), entry);
  return { header: rest, arrays };
}

function bytesOfArray([, type, shape]) {
  return shape.reduce((product, side) => product * side, TYPES[type].BYTES_PER_ELEMENT);
}

/** Unpack a body; refuse it unless it has exactly `size` bytes. */
async function inflate(bytes, size) {
  const whole = new Uint8Array(size);
  let filled = 0;
  try {
    const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      if (filled + part.value.length > size) {
        await reader.cancel();
        filled = Infinity;
        break;
      }
      whole.set(part.value, filled);
      filled += part.value.length;
    }
  } catch (error) {
    if (!(error instanceof TypeError) && error?.code === undefined) throw error;
    filled = -1;
  }
  need(filled === size, "has a body of another size than its header says");
  return whole;
}

/** Join the planes of an array, and sum it if it holds differences. */
function unfoldPlanes(planes, [, type, shape, differences]) {
  const width = TYPES[type].BYTES_PER_ELEMENT;
  const count = planes.length / width;
  const bytes = new Uint8Array(planes.length);
  for (let k = 0, from = 0; k < width; k++) for (let at = k; at < bytes.length; at += width) bytes[at] = planes[from++];
  const values = new TYPES[type](bytes.buffer);
  if (!differences) return values;
  // Typed arrays wrap modulo their width, as the differences of the writer do.
  const columns = shape[shape.length - 1];
  for (let row = 0; row < count; row += columns) {
    for (let at = row + 1; at < row + columns; at++) values[at] += values[at - 1];
  }
  for (let at = columns; at < count; at++) values[at] += values[at - columns];
  return values;
}

export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Refuse a file with this message unless a condition holds. */
export function need(holds, message) {
  if (!holds) throw new ReportError("table", `the table ${message}`);
}
