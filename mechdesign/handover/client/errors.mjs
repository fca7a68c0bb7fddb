// The one error that a client throws: `code` says which kind, the message what to do.

/** code: "table" (not what was written), "position" (no position), "outside" (of the area), "budget" (of the day is
 * spent), "memory" (what was remembered is damaged), "storage" (nothing can be kept), "tick" (of a session: not after the last one), "option". */
export class ReportError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "ReportError";
    this.code = code;
  }
}
