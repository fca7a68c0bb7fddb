// SHA-256 (FIPS 180-4) in plain JavaScript: crypto.subtle is missing on http pages of other machines.

/** A hash under way: `add(bytes)` any number of times, then `hex()` once. Cost: about 5 ns a byte. */
export class Sha256 {
  static #first = Int32Array.from(Sha256.#primes(8), (prime) => Sha256.#fraction(Math.sqrt(prime)));
  static #constants = Int32Array.from(Sha256.#primes(64), (prime) => Sha256.#fraction(Math.cbrt(prime)));
  #state = Sha256.#first.slice();
  #words = new Int32Array(64);
  #block = new Uint8Array(64);
  #held = 0;
  #length = 0;

  add(bytes) {
    this.#length += bytes.length;
    let from = 0;
    if (this.#held > 0) {
      from = Math.min(64 - this.#held, bytes.length);
      this.#block.set(bytes.subarray(0, from), this.#held);
      this.#held += from;
      if (this.#held < 64) return this;
      this.#compress(this.#block, 0);
    }
    for (; from + 64 <= bytes.length; from += 64) this.#compress(bytes, from);
    this.#block.set(bytes.subarray(from));
    this.#held = bytes.length - from;
    return this;
  }

  hex() {
    const length = this.#length;
    const tail = new Uint8Array(this.#held < 56 ? 64 - this.#held : 128 - this.#held);
    const view = new DataView(tail.buffer);
    tail[0] = 0x80;
    view.setUint32(tail.length - 8, Math.floor(length / 2 ** 29));
    view.setUint32(tail.length - 4, (length * 8) >>> 0);
    this.add(tail);
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #compress(bytes, at) {
    const hash = this.#state;
    const words = this.#words;
    const constants = Sha256.#constants;
    for (let t = 0; t < 16; t++) {
      const k = at + 4 * t;
      words[t] = (bytes[k] << 24) | (bytes[k + 1] << 16) | (bytes[k + 2] << 8) | bytes[k + 3];
    }
    for (let t = 16; t < 64; t++) {
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
    for (let t = 0; t < 64; t++) {
      const high = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const first = (h + high + ((e & f) ^ (~e & g)) + constants[t] + words[t]) | 0;
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
    this.#held = 0;
  }

  static #primes(count) {
    const found = [];
    for (let n = 2; found.length < count; n++) if (found.every((prime) => n % prime)) found.push(n);
    return found;
  }

  /** The first 32 bits behind the point: 20 bits of a square or cubic root stand before the 52 of a double. */
  static #fraction(root) {
    return Math.floor((root - Math.floor(root)) * 2 ** 32);
  }
}

/** The digest of bytes, 64 hexadecimal digits. */
export function sha256(bytes) {
  return new Sha256().add(bytes).hex();
}
