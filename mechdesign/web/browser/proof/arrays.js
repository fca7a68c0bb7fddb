// The data of a page, gzipped, in base64: first the length of its contents (uint32), then these in JSON. Its arrays begin
// at the next multiple of 8 bytes, little-endian numbers one after another. The checksum of gzip detects damage.
//
// A page is { contents, bytes, start, made }; `array` gives one of its arrays by name: made of a packed table, of the file,
// or beside it.

const NUMBERS = {
  u8: BigUint64Array,
  i8: BigInt64Array,
  f8: Float64Array,
  u4: Uint32Array,
  u2: Uint16Array,
  u1: Uint8Array,
};

/** Unpack the bytes in a base64 text. Rejects if they are damaged. */
async function unpackBytes(text) {
  const packed = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Unpack the page in a base64 text. Rejects if it is damaged. */
async function unpackPage(text) {
  const bytes = await unpackBytes(text);
  const end = 4 + new DataView(bytes.buffer).getUint32(0, true);
  const contents = JSON.parse(new TextDecoder().decode(bytes.subarray(4, end)));
  // A typed array must start at a multiple of its item size, 8 bytes at most.
  return { contents, bytes, start: 8 * Math.ceil(end / 8), made: {} };
}

/** True if a page has an array of this name. */
function has(page, name) {
  return name in page.made || name in page.contents.arrays || name in page.contents.beside;
}

/** The array `name` as typed numbers, in the order of the file, last dimension fastest. */
function array(page, name) {
  if (name in page.made) return page.made[name];
  const entry = page.contents.arrays[name] ?? page.contents.beside[name];
  if (!entry) throw new RangeError(`the page has no array ${name}`);
  const count = entry.shape.reduce((a, b) => a * b, 1);
  return new NUMBERS[entry.dtype](page.bytes.buffer, page.start + entry.start, count);
}

/** The array `name` of place numbers, as 32-bit integers: a page has far fewer than 2^31 places. */
function places(page, name) {
  const values = array(page, name);
  return typeof values[0] === "bigint" ? Int32Array.from(values, Number) : Int32Array.from(values);
}

/** The secrets whose rows a page carries: all of them unless the table is too large. */
function carriedRows(page) {
  if (has(page, "carried")) return places(page, "carried");
  return Int32Array.from({ length: array(page, "prior").length }, (_, u) => u);
}

/** An attribute of the file: a text or a number; undefined if the file lacks it. */
function attribute(page, name) {
  return page.contents.attrs[name];
}

/** The object that an attribute holds as JSON. */
function jsonAttribute(page, name) {
  return JSON.parse(attribute(page, name));
}

/** The unit of an array; undefined if it has none. */
function unitOf(page, name) {
  return page.contents.arrays[name]?.units;
}

/** Coordinates (n, k) of a dimension of places, an array for every axis. */
function axesOf(page, dim) {
  return ["x", "y", "z"].filter((axis) => has(page, `${dim}_${axis}`)).map((axis) => array(page, `${dim}_${axis}`));
}

const DOUBLES = new WeakMap(); // of masses: several parts of a proof need them

/** The doubles nearest to masses. Masses do not change afterwards. */
function inDoubles(mass) {
  if (!DOUBLES.has(mass)) {
    const halves = new Uint32Array(mass.buffer, mass.byteOffset, 2 * mass.length);
    const doubles = new Float64Array(mass.length);
    // The product is exact, so that a sum is rounded once.
    for (let k = 0; k < doubles.length; k++) doubles[k] = halves[2 * k + 1] * 2 ** 32 + halves[2 * k];
    DOUBLES.set(mass, doubles);
  }
  return DOUBLES.get(mass);
}
