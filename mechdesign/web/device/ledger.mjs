// A private ledger: a state under one key of a storage. It is written before it counts, refused if it is older than the
// last one read, and sealed by its SHA-256 if the browser computes one.

import { ReportError, sha256 } from "./frame.mjs";

const TURNS = new WeakMap(); // of every storage, the end of the last action on it

/** A storage that lasts as long as the program: for tests and trials. A budget in it is new at every start. */
export function memoryStorage() {
  const texts = new Map();
  return { getItem: (key) => texts.get(key) ?? null, setItem: (key, text) => void texts.set(key, text) };
}

/** The state under `key` of a storage with getItem and setItem (Web Storage, or promises of the same).
 *
 * count: the name of a number in the state that only rises; sound(state): true if the state is consistent (it may throw);
 * remedy: the advice for a damaged state. */
export class PrivateLedger {
  #of;
  #seen = -Infinity; // the last count read or written
  #checked = null; // {text, inner} of the last text that was found sound: an app that reports often reads the same again

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
    const runLocked = () => (locks ? locks.request(key, action) : action());
    const turn = (TURNS.get(storage) ?? Promise.resolve()).then(runLocked);
    // A failed action must not block the next one.
    TURNS.set(storage, turn.catch(() => {}));
    return turn;
  }

  /** Read the state, or null. Rejects with ReportError "memory" if it was altered, or is older than the last one read. */
  async read() {
    const { storage, key, count } = this.#of;
    let text;
    try {
      text = await storage.getItem(key);
    } catch (error) {
      throw storageError(error);
    }
    const state = text === null || text === undefined ? null : await this.#parse(text);
    const seen = state === null ? -Infinity : state[count];
    if (seen < this.#seen) throw this.damaged("was deleted, or put back in an older state");
    this.#seen = seen;
    return state;
  }

  /** Replace the state. Rejects with ReportError "storage" unless the storage returns it. */
  async write(state) {
    const { storage, key, count } = this.#of;
    const inner = JSON.stringify(state);
    const text = JSON.stringify({ state: inner, sha256: await digest(inner) });
    let stored;
    try {
      // A storage may drop a write silently, so the text is read back.
      await storage.setItem(key, text);
      stored = await storage.getItem(key);
    } catch (error) {
      throw storageError(error);
    }
    if (stored !== text) throw storageError("it does not return the stored text");
    this.#seen = state[count];
    this.#checked = { text, inner };
  }

  damaged(why) {
    return new ReportError("memory", `the memory ${why}: ${this.#of.remedy}`);
  }

  async #parse(text) {
    if (text === this.#checked?.text) return JSON.parse(this.#checked.inner);
    try {
      const { state: inner, sha256: sum } = JSON.parse(text);
      const state = JSON.parse(inner);
      if ((await digest(inner)) === sum && this.#of.sound(state)) {
        this.#checked = { text, inner };
        return state;
      }
    } catch {
      // Invalid JSON, or of another form: reported below.
    }
    throw this.damaged("is altered, or not of this version");
  }
}

function digest(text) {
  return sha256(new TextEncoder().encode(text));
}

function storageError(error) {
  return new ReportError("storage", `nothing can be kept, so nothing is reported: ${error?.message ?? error}`);
}
