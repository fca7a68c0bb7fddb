// The one error that a client throws: `code` says which kind, the message what to do.

/** code: "table" (not what was written), "position" (no position), "outside" (of the area), "budget" (of the day is
 * spent), "memory" (what was remembered is damaged), "storage" (nothing can be kept), "tick" (of a session: not after the last one), "option".
 * until, milliseconds since 1970: for "budget" of a client, when a report is next possible. */
export class ReportError extends Error {
  constructor(code, message, { until } = {}) {
    super(message);
    this.name = "ReportError";
    this.code = code;
    if (until !== undefined) this.until = until;
  }
}
