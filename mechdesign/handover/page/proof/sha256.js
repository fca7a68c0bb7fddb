// SHA-256 (FIPS 180-4) of bytes, without crypto.subtle, which pages from plain http do not have.

const ROUND = new Uint32Array(64);
const INITIAL = new Uint32Array(8);
for (let candidate = 2, found = 0; found < 64; candidate++) {
  let prime = true;
  for (let d = 2; d * d <= candidate; d++) prime &&= candidate % d !== 0;
  if (!prime) continue;
  if (found < 8) INITIAL[found] = (Math.sqrt(candidate) % 1) * 2 ** 32;
  ROUND[found++] = (Math.cbrt(candidate) % 1) * 2 ** 32;
}

/** A hash under way: `add(bytes)` any number of times, then `hex()`. */
class Sha256 {
  #state = INITIAL.slice();
  #block = new Uint8Array(64);
  #words = new Uint32Array(64);
  #held = 0;
  #length = 0;

  add(bytes) {
    this.#length += bytes.length;
    for (let from = 0; from < bytes.length;) {
      const count = Math.min(64 - this.#held, bytes.length - from);
      this.#block.set(bytes.subarray(from, from + count), this.#held);
      this.#held += count;
      from += count;
      if (this.#held === 64) this.#compress();
    }
    return this;
  }

  hex() {
    const bits = new DataView(new ArrayBuffer(8));
    bits.setBigUint64(0, BigInt(this.#length) * 8n);
    this.add(new Uint8Array([0x80, ...new Array((119 - this.#held) % 64).fill(0)])).add(new Uint8Array(bits.buffer));
    return Array.from(this.#state, (word) => word.toString(16).padStart(8, "0")).join("");
  }

  #compress() {
    const [w, view] = [this.#words, new DataView(this.#block.buffer)];
    const turn = (x, k) => (x >>> k) | (x << (32 - k));
    for (let t = 0; t < 16; t++) w[t] = view.getUint32(4 * t);
    for (let t = 16; t < 64; t++) {
      const [a, b] = [w[t - 15], w[t - 2]];
      w[t] = w[t - 16] + (turn(a, 7) ^ turn(a, 18) ^ (a >>> 3)) + w[t - 7] + (turn(b, 17) ^ turn(b, 19) ^ (b >>> 10));
    }
    let [a, b, c, d, e, f, g, h] = this.#state;
    for (let t = 0; t < 64; t++) {
      const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + ROUND[t] + w[t]) | 0;
      const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + one) | 0;
      d = c;
      c = b;
      b = a;
      a = (one + two) | 0;
    }
    const state = this.#state;
    [a, b, c, d, e, f, g, h].forEach((value, k) => (state[k] += value));
    this.#held = 0;
  }
}

/** The SHA-256 of bytes in hexadecimal digits. */
function sha256(bytes) {
  return new Sha256().add(bytes).hex();
}
