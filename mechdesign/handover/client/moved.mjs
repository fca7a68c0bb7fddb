// A test with a hidden offset whether somebody is far from a place: whole numbers over 2^62, whose inequalities the package
// proved when it wrote them.

import { need } from "./table.mjs";
import { fraction } from "./windows.mjs";

const WHOLE = 2 ** 62;
const WORD_SHIFT = 2n;

/** p of every offset 0..R; q, from max f - R on, of the answer "far"; distance f of a place (down) from another. */
export class MovedTest {
  #p;
  #q;
  #shift; // R - max f
  #distance;
  #places;

  constructor({ cells, test }, { distance }) {
    [this.#p, this.#q, this.#places, this.#distance] = [test.p.map(BigInt), test.q.map(BigInt), cells, distance];
    this.top = test.p.length - 1;
    this.#shift = this.top - test.far;
    this.cost = fraction(test.cost);
    this.prior = this.#p.map((value) => Number(value) / WHOLE);
  }

  /** An offset, for 62 random bits: the number of sums of p that do not exceed them. */
  drawn(bits) {
    const asked = wordOf(bits);
    let [total, found] = [0n, 0];
    for (const part of this.#p) {
      total += part;
      found += Number(total <= asked);
    }
    return found;
  }

  /** Whether the answer is "far", for 62 random bits. */
  far(against, place, offset, bits) {
    return wordOf(bits) < this.#q[this.#index(against, place, offset)];
  }

  /** The probability of an answer, a row of all places for every offset. */
  chances(against, far) {
    const q = this.#q.map((value) => Number(value) / WHOLE);
    return this.#p.map((_, offset) =>
      Float64Array.from({ length: this.#places }, (__, place) => {
        const chance = q[this.#index(against, place, offset)];
        return far ? chance : 1 - chance;
      }),
    );
  }

  #index(against, place, offset) {
    return Math.max(this.#distance[against * this.#places + place] - offset + this.#shift, 0);
  }
}

/** Refuses the integers of a header that are no distribution, or no probabilities. */
export function checkTest({ p, q, far, cost }) {
  const whole = (text) => typeof text === "string" && /^[0-9]{1,19}$/.test(text);
  const listed = [p, q].every((list) => Array.isArray(list) && list.length > 1 && list.every(whole));
  need(listed && p.length === q.length && p.length <= 2 ** 14 + 1, "has a test without whole numbers");
  const all = 1n << 62n;
  need(p.reduce((sum, value) => sum + BigInt(value), 0n) === all, "has a test whose offsets do not sum to 2^62");
  need(q.every((value) => BigInt(value) <= all), "has a test that answers with no probability");
  need(Number.isInteger(far) && far >= 0 && far < p.length, "has a test of no distance");
  need(typeof cost === "string" && fraction(cost) !== null && fraction(cost)[0] > 0n, "has a test without a cost");
}

function wordOf(bits) {
  const bytes = bits(8);
  return new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true) >> WORD_SHIFT;
}
