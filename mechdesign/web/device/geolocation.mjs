// A drop-in for navigator.geolocation: the same calls and shapes, with reports in the place of positions.
//
// | part of a position | meaning |
// |---|---|
// | longitude, latitude | of the report, to a tenth of a cell |
// | accuracy | metres, rounded up: the radius that holds the true position with 95 %; without one in the table, all of the map |
// | timestamp | of the fix; of the last report where it stands in for a new one |
// | altitude, heading, speed | null: they would reveal more |

import { checkOptions } from "./client.mjs";
import { ReportError } from "./frame.mjs";

const GEOLOCATION_OPTIONS = ["source", "whenSpent"];
const WHEN_SPENT = ["last", "area", "refuse"];
const [DENIED, UNAVAILABLE, TIMEOUT] = [1, 2, 3]; // Geolocation API, 2022, section 10

/** An error in the shape of GeolocationPositionError; `cause` is the ReportError or the error of the source. */
export class ReportPositionError {
  constructor(code, message, cause) {
    Object.assign(this, { code, message, cause });
    Object.freeze(this);
  }
}
const CODES = { PERMISSION_DENIED: DENIED, POSITION_UNAVAILABLE: UNAVAILABLE, TIMEOUT };
for (const of of [ReportPositionError, ReportPositionError.prototype]) Object.assign(of, CODES);

/** The calls of the Geolocation API, answered by the reports of a client; `geolocationOf` makes one. No failure is an
 * exception or a rejected promise: each goes to the error callback. */
export class PrivateGeolocation {
  #client;
  #source;
  #whenSpent;
  #watches = new Map(); // by number: {own, place, newest, turn}
  #count = 0;

  constructor(client, source, whenSpent) {
    // A failed client is reported to every caller; before the first one nobody listens.
    this.#client = Promise.resolve(client);
    this.#client.catch(() => {});
    [this.#source, this.#whenSpent] = [source, whenSpent];
  }

  /** One report of the current position. */
  getCurrentPosition(success, failure = null, options = {}) {
    requireCallbacks(success, failure);
    const give = ({ position, error }) => (error ? callLater(failure, error) : callLater(success, position));
    this.#locate("getCurrentPosition", options, (located) => this.#outcome(located, options?.timeout).then(give));
  }

  /** A report whenever it differs from the last one given to this watch: the times of other fixes reveal movements within a
   * cell. Returns the number for clearWatch. */
  watchPosition(success, failure = null, options = {}) {
    requireCallbacks(success, failure);
    const number = ++this.#count;
    const watch = { place: null, newest: null, turn: Promise.resolve() };
    this.#watches.set(number, watch);
    const give = ({ position, error }) => {
      if (!this.#watches.has(number)) return;
      const place = error ? null : JSON.stringify(position.coords);
      if (error) callLater(failure, error);
      else if (place !== watch.place) callLater(success, position);
      watch.place = place;
    };
    watch.own = this.#locate("watchPosition", options, (located) => {
      watch.newest = located;
      watch.turn = watch.turn.then(async () => {
        // A fix that waited behind a newer one must not cost a report.
        if (watch.newest === located && this.#watches.has(number)) give(await this.#outcome(located, options?.timeout));
      });
    });
    return number;
  }

  /** End a watch; nothing is called after it. */
  clearWatch(number) {
    const watch = this.#watches.get(number);
    if (!this.#watches.delete(number) || watch.own === undefined) return;
    this.#source.clearWatch(watch.own);
  }

  /** Ask the source; `take` gets {fix} or {error} each time. */
  #locate(call, options, take) {
    try {
      if (!this.#source) throw new ReportError("option", "no geolocation here: pass source, an object with its calls");
      return this.#source[call]((fix) => take({ fix }), (error) => take({ error }), options ?? {});
    } catch (error) {
      void take({ error });
      return undefined;
    }
  }

  /** {position} or {error}; never rejects. */
  async #outcome({ fix, error }, milliseconds) {
    try {
      if (error) throw error;
      return { position: await withinTime(this.#position(fix), milliseconds) };
    } catch (failed) {
      return { error: positionError(failed) };
    }
  }

  async #position({ coords, timestamp }) {
    const client = await this.#client;
    const time = Number.isFinite(timestamp) ? timestamp : Date.now();
    try {
      return positionOf(client.places, (await client.report(coords.longitude, coords.latitude)).report, time);
    } catch (error) {
      if (error?.code !== "budget" || this.#whenSpent === "refuse") throw error;
      const last = this.#whenSpent === "last" ? await client.lastReport() : null;
      return last ? positionOf(client.places, last.report, last.time) : positionOfArea(client.places, time);
    }
  }
}

/** A drop-in for navigator.geolocation that asks `source` and answers with reports of a client, or of its promise.
 * report.d.mts describes the options. */
export function geolocationOf(client, options = {}) {
  checkOptions(options, GEOLOCATION_OPTIONS);
  const { source = globalThis.navigator?.geolocation, whenSpent = "last" } = options;
  if (!WHEN_SPENT.includes(whenSpent)) throw new ReportError("option", `whenSpent is ${WHEN_SPENT.join(", ")}`);
  return new PrivateGeolocation(client, source, whenSpent);
}

/** As the Geolocation API does: a call without functions is an error of the program. */
function requireCallbacks(success, failure) {
  if (typeof success !== "function") throw new TypeError("the first argument is a function that takes a position");
  if (failure !== null && typeof failure !== "function") throw new TypeError("the second argument is a function or null");
}

/** Call a function of the app outside our promises: its exceptions are reported as those of any callback. */
function callLater(callback, value) {
  if (callback) queueMicrotask(() => callback(value));
}

/** Resolve as a promise does, or reject with code 3 after so many milliseconds; undefined for no limit. */
function withinTime(promise, milliseconds) {
  if (!Number.isFinite(milliseconds)) return promise;
  let timer;
  const late = new ReportPositionError(TIMEOUT, `no report within ${milliseconds} ms`);
  const limit = new Promise((_, reject) => (timer = setTimeout(() => reject(late), Math.max(0, milliseconds))));
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}

function positionError(error) {
  if (error instanceof ReportPositionError) return error;
  const code = [DENIED, UNAVAILABLE, TIMEOUT].includes(error?.code) ? error.code : UNAVAILABLE;
  return new ReportPositionError(code, String(error?.message ?? error), error);
}

/** A report as a GeolocationPosition. */
function positionOf(places, report, time) {
  if (report.unit !== places.unit || report.y === undefined) {
    throw new ReportError("position", "the reports of this table are not on Earth");
  }
  const point = [report.x, report.y];
  return positionAt(places, point, report.accuracy ?? places.farthest(point), time);
}

/** The report that costs nothing: the centre of the map, with a radius that holds all of it. */
function positionOfArea(places, time) {
  const [low, high] = places.box();
  const centre = low.map((value, axis) => (value + high[axis]) / 2);
  return positionAt(places, centre, places.farthest(centre), time);
}

function positionAt(places, point, radius, timestamp) {
  const { longitude, latitude } = places.degrees(point);
  // The radius is about the point; degrees have fewer digits.
  const rounded = places.onEarth(longitude, latitude);
  const off = Math.hypot(rounded[0] - point[0], rounded[1] - point[1]);
  const accuracy = Math.ceil((radius + off) * places.plane.metres);
  const numbers = { latitude, longitude, accuracy, altitude: null, altitudeAccuracy: null, heading: null, speed: null };
  const coords = Object.freeze({ ...numbers, toJSON: () => ({ ...numbers }) });
  return Object.freeze({ coords, timestamp, toJSON: () => ({ coords: { ...numbers }, timestamp }) });
}
