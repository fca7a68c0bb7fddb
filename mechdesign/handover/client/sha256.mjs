// SHA-256 (FIPS 180-4) in plain JavaScript: crypto.subtle is missing on http pages of other machines.

const ROUNDS = 64;
const START = Int32Array.from(firstPrimes(8), (prime) => fraction(Math.sqrt(prime)));
const CONSTANTS = Int32Array.from(firstPrimes(ROUNDS), (prime) => fraction(Math.cbrt(prime)));

/** The digest of bytes, 64 hexadecimal digits. Cost: about 5 ns a byte. */
export function sha256(bytes) {
  const hash = START.slice();
  const words = new Int32Array(ROUNDS);
  const whole = bytes.length - (bytes.length % 64);
  for (let at = 0; at < whole; at += 64) compress(hash, words, bytes, at);
  const tail = new Uint8Array(bytes.length - whole < 56 ? 64 : 128);
  tail.set(bytes.subarray(whole));
  tail[bytes.length - whole] = 0x80;
  const length = new DataView(tail.buffer);
  length.setUint32(tail.length - 8, Math.floor(bytes.length / 2 ** 29));
  length.setUint32(tail.length - 4, (bytes.length * 8) >>> 0);
  for (let at = 0; at < tail.length; at += 64) compress(hash, words, tail, at);
  return Array.from(hash, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

function compress(hash, words, bytes, at) {
  for (let t = 0; t < 16; t++) {
    const k = at + 4 * t;
    words[t] = (bytes[k] << 24) | (bytes[k + 1] << 16) | (bytes[k + 2] << 8) | bytes[k + 3];
  }
  for (let t = 16; t < ROUNDS; t++) {
    const early = words[t - 15];
    const late = words[t - 2];
    const small = ((early >>> 7) | (early << 25)) ^ ((early >>> 18) | (early << 14)) ^ (early >>> 3);
    const large = ((late >>> 17) | (late << 15)) ^ ((late >>> 19) | (late << 13)) ^ (late >>> 10);
    words[t] = (words[t - 16] + small + words[t - 7] + large) | 0;
  }
  let a = hash[0];
  let b = hash[1];
  let c = hash[2];
  let d = hash[3];
  let e = hash[4];
  let f = hash[5];
  let g = hash[6];
  let h = hash[7];
  for (let t = 0; t < ROUNDS; t++) {
    const high = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const first = (h + high + ((e & f) ^ (~e & g)) + CONSTANTS[t] + words[t]) | 0;
    const low = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const second = (low + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + first) | 0;
    d = c;
    c = b;
    b = a;
    a = (first + second) | 0;
  }
  hash[0] += a;
  hash[1] += b;
  hash[2] += c;
  hash[3] += d;
  hash[4] += e;
  hash[5] += f;
  hash[6] += g;
  hash[7] += h;
}

function firstPrimes(count) {
  const found = [];
  for (let n = 2; found.length < count; n++) if (found.every((prime) => n % prime)) found.push(n);
  return found;
}

/** The first 32 bits behind the point: 20 bits of a square or cubic root stand before the 52 of a double. */
function fraction(root) {
  return Math.floor((root - Math.floor(root)) * 2 ** 32);
}
