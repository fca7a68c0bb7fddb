// A state kept under one key of a storage: sealed, written before it counts, never older than what was seen.

import { ReportError } from "./errors.mjs";
import { sha256 } from "./sha256.mjs";

const TURNS = new WeakMap(); // of every storage, the end of the last action on it

/** A storage that lasts as long as the program: for tests and trials. A budget in it is new at every start. */
export function memoryStorage() {
  const kept = new Map();
  return { getItem: (key) => kept.get(key) ?? null, setItem: (key, text) => void kept.set(key, text) };
}

/** The state under `key` of a storage with getItem and setItem (Web Storage, or promises of the same).
 *
 * count, the name of a whole number in it that only rises; sound(state), whether it contradicts nothing (or throws);
 * remedy, what to do where it does. */
export class Kept {
  #storage;
  #key;
  #count;
  #sound;
  #remedy;
  #seen = 0;

  constructor({ storage, key, count, sound, remedy }) {
    [this.#storage, this.#key, this.#count, this.#sound, this.#remedy] = [storage, key, count, sound, remedy];
  }

  /** The count that was read or written last. */
  get seen() {
    return this.#seen;
  }

  /** One action at a time: in this program by turns, among tabs by a Web Lock where the browser grants one. */
  alone(action) {
    const locks = globalThis.navigator?.locks;
    const whole = () => (locks ? locks.request(this.#key, action) : action());
    const done = (TURNS.get(this.#storage) ?? Promise.resolve()).then(whole);
    TURNS.set(this.#storage, done.catch(() => {}));
    return done;
  }

  /** The state, null where there is none. Rejects with ReportError "memory" for one that is altered, or older. */
  async read() {
    let text;
    try {
      text = await this.#storage.getItem(this.#key);
    } catch (error) {
      throw unkept(error);
    }
    const state = text === null || text === undefined ? null : this.#parsed(text);
    const count = state === null ? 0 : state[this.#count];
    if (count < this.#seen) throw this.damaged("was deleted, or put back in an older state");
    this.#seen = count;
    return state;
  }

  /** Replaces the state. Rejects with ReportError "storage" unless the storage gives it back. */
  async write(state) {
    const inner = JSON.stringify(state);
    const text = JSON.stringify({ state: inner, sha256: digest(inner) });
    let found;
    try {
      await this.#storage.setItem(this.#key, text);
      found = await this.#storage.getItem(this.#key);
    } catch (error) {
      throw unkept(error);
    }
    if (found !== text) throw unkept("it does not give back what it was given");
    this.#seen = state[this.#count];
  }

  damaged(why) {
    return new ReportError("memory", `what was remembered ${why}: ${this.#remedy}`);
  }

  #parsed(text) {
    try {
      const { state: inner, sha256: sum } = JSON.parse(text);
      if (digest(inner) !== sum) throw new TypeError("altered");
      const state = JSON.parse(inner);
      if (!this.#sound(state)) throw new TypeError("contradicts itself");
      return state;
    } catch {
      throw this.damaged("is altered, or not of this version");
    }
  }
}

function digest(text) {
  return sha256(new TextEncoder().encode(text));
}

function unkept(error) {
  return new ReportError("storage", `nothing can be kept, so nothing is reported: ${error?.message ?? error}`);
}
