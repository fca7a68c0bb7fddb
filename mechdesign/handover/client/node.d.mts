import type { Client, Options, ReportStorage } from "./report.mjs";

export * from "./report.mjs";

/** A client with the table beside this file; `storage` is needed. */
export function openClient(options: Options & { storage: ReportStorage }): Promise<Client>;

/** A storage in one file; one process at a time. */
export function fileStorage(path: string): ReportStorage;
