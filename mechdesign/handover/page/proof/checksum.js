// The checksum of a mechanism or sweep file: SHA-256 over every variable and attribute in a canonical order.
//
// Variables by name: name, dims, dtype, shape, little-endian bytes, whether it is a coordinate, attributes by name; then
// the attributes of the file by name, without sha256 itself. Every part comes with its length in front.

/** The checksum of the file that a complete page carries. */
function fileChecksum(page) {
  const digest = new Sha256();
  const put = (...parts) => {
    for (const part of parts) {
      const bytes = part instanceof Uint8Array ? part : new TextEncoder().encode(part);
      const length = new DataView(new ArrayBuffer(8));
      length.setBigUint64(0, BigInt(bytes.length), true);
      digest.add(new Uint8Array(length.buffer)).add(bytes);
    }
  };
  const { arrays, attrs } = page.contents;
  for (const name of sorted(Object.keys(arrays))) {
    const told = arrays[name];
    const shape = told.shape.length === 1 ? `(${told.shape[0]},)` : `(${told.shape.join(", ")})`;
    const values = array(page, name);
    put("variable", name, ...told.dims, told.dtype, shape);
    put(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), told.coordinate ? "True" : "False");
    for (const key of sorted(Object.keys(told.attrs))) put("attribute", key, canonical(told.attrs[key]));
  }
  for (const key of sorted(Object.keys(attrs))) {
    if (key !== "sha256") put("global", key, canonical(attrs[key]));
  }
  return digest.hex();
}

/** Names in the order of their code points, as the file sorts them. */
function sorted(names) {
  return names.sort((a, b) => (a < b ? -1 : 1));
}

function canonical([kind, value]) {
  return `${kind} ${kind === "float" ? hexadecimal(value) : value}`;
}

/** A double in hexadecimal digits, as Python's float.hex writes it. */
function hexadecimal(value) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const sign = bits >> 63n ? "-" : "";
  const [power, digits] = [Number((bits >> 52n) & 0x7ffn), (bits & ((1n << 52n) - 1n)).toString(16).padStart(13, "0")];
  if (power === 0x7ff) return digits === "0".repeat(13) ? `${sign}inf` : "nan";
  if (power === 0) return /^0+$/.test(digits) ? `${sign}0x0.0p+0` : `${sign}0x0.${digits}p-1022`;
  return `${sign}0x1.${digits}p${power < 1023 ? "" : "+"}${power - 1023}`;
}
