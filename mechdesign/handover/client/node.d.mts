import type { Client, Options, ReportStorage, Session, SessionOptions } from "./report.mjs";

export * from "./report.mjs";

/** A client with the table beside this file; `storage` is needed. */
export function openClient(options: Options & { storage: ReportStorage }): Promise<Client>;

/** A session of the design beside this file; `storage` is needed. */
export function openSession(options: SessionOptions & { storage: ReportStorage }): Promise<Session>;

/** A storage in one file; one process at a time. */
export function fileStorage(path: string): ReportStorage;
