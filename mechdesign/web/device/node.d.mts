import type { ReportStorage } from "./report.mjs";

// Compilers for Node take these types for code of browsers too ("moduleResolution": "nodenext"), where localStorage is the
// storage: so `storage` is not demanded here. In Node `openClient` without one rejects with the code "storage".
export * from "./report.mjs";

/** A storage in one file; one process at a time. */
export function fileStorage(path: string): ReportStorage;
