// The arrays of a page: little-endian numbers one after another, gzipped, in base64.
//
// { contents, bytes } is what a page carries; `array` gives one of its arrays by name, first of the file, then beside it.

const NUMBERS = {
  u8: BigUint64Array,
  i8: BigInt64Array,
  f8: Float64Array,
  u4: Uint32Array,
  u2: Uint16Array,
  u1: Uint8Array,
};

/** The bytes in a base64 text, unpacked. Rejects where they are damaged. */
async function unpacked(text) {
  const packed = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Whether a page has an array of this name. */
function has(page, name) {
  return name in page.contents.arrays || name in page.contents.beside;
}

/** The array `name` as typed numbers, in the order of the file, last dimension fastest. */
function array(page, name) {
  const told = page.contents.arrays[name] ?? page.contents.beside[name];
  if (!told) throw new RangeError(`${name} is not there`);
  const count = told.shape.reduce((a, b) => a * b, 1);
  return new NUMBERS[told.dtype](page.bytes.buffer, told.start, count);
}

/** The array `name` of place numbers as doubles below 2^53. */
function places(page, name) {
  return Int32Array.from(array(page, name), Number);
}

/** An attribute of the file: a text, or a number; undefined where there is none. */
function attribute(page, name) {
  const [kind, value] = page.contents.attrs[name] ?? [];
  return kind === "int" ? Number(value) : value;
}

/** Coordinates (n, k) of a dimension of places, an array for every axis. */
function axesOf(page, dim) {
  return ["x", "y", "z"].filter((axis) => has(page, `${dim}_${axis}`)).map((axis) => array(page, `${dim}_${axis}`));
}
