// A private ledger: a state under one key of a storage: written before it counts, never older than what was seen, and
// sealed by its SHA-256 where the browser computes one.

import { ReportError, sha256 } from "./frame.mjs";

const TURNS = new WeakMap(); // of every storage, the end of the last action on it

/** A storage that lasts as long as the program: for tests and trials. A budget in it is new at every start. */
export function memoryStorage() {
  const kept = new Map();
  return { getItem: (key) => kept.get(key) ?? null, setItem: (key, text) => void kept.set(key, text) };
}

/** The state under `key` of a storage with getItem and setItem (Web Storage, or promises of the same).
 *
 * count, the name of a number in it that only rises; sound(state), whether it contradicts nothing (or throws); remedy,
 * what to do where it does. */
export class PrivateLedger {
  #of;
  #seen = -Infinity; // the count that was read or written last

  constructor({ storage, key, count, sound, remedy }) {
    this.#of = { storage, key, count, sound, remedy };
  }

  get seen() {
    return this.#seen;
  }

  /** One action at a time: in this program by turns, among tabs by a Web Lock where the browser grants one. */
  alone(action) {
    const { storage, key } = this.#of;
    const locks = globalThis.navigator?.locks;
    const whole = () => (locks ? locks.request(key, action) : action());
    const done = (TURNS.get(storage) ?? Promise.resolve()).then(whole);
    TURNS.set(storage, done.catch(() => {}));
    return done;
  }

  /** The state, null where there is none. Rejects with ReportError "memory" for one that is altered, or older. */
  async read() {
    const { storage, key, count } = this.#of;
    let text;
    try {
      text = await storage.getItem(key);
    } catch (error) {
      throw unkept(error);
    }
    const state = text === null || text === undefined ? null : await this.#parsed(text);
    const seen = state === null ? -Infinity : state[count];
    if (seen < this.#seen) throw this.damaged("was deleted, or put back in an older state");
    this.#seen = seen;
    return state;
  }

  /** Replaces the state. Rejects with ReportError "storage" unless the storage gives it back. */
  async write(state) {
    const { storage, key, count } = this.#of;
    const inner = JSON.stringify(state);
    const text = JSON.stringify({ state: inner, sha256: await digest(inner) });
    let stored;
    try {
      await storage.setItem(key, text);
      stored = await storage.getItem(key);
    } catch (error) {
      throw unkept(error);
    }
    if (stored !== text) throw unkept("it does not give back what it was given");
    this.#seen = state[count];
  }

  damaged(why) {
    return new ReportError("memory", `what was remembered ${why}: ${this.#of.remedy}`);
  }

  async #parsed(text) {
    try {
      const { state: inner, sha256: sum } = JSON.parse(text);
      const state = JSON.parse(inner);
      if ((await digest(inner)) === sum && this.#of.sound(state)) return state;
    } catch {
      // no JSON, or not of this form: said below
    }
    throw this.damaged("is altered, or not of this version");
  }
}

function digest(text) {
  return sha256(new TextEncoder().encode(text));
}

function unkept(error) {
  return new ReportError("storage", `nothing can be kept, so nothing is reported: ${error?.message ?? error}`);
}
