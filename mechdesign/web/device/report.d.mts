/** What a client throws, or rejects with: `code` says which kind, `message` what to do. */
export class ReportError extends Error {
  code: "table" | "position" | "outside" | "budget" | "memory" | "storage" | "tick" | "option";
  /** With "budget" of a client: when a report is next possible, milliseconds since 1970. */
  until?: number;
}

/** What to send: the report, and where it lies. It is a cell of the map, never arithmetic of the position. */
export interface Report {
  readonly number: number;
  /** Coordinates in `unit`. */
  readonly x: number;
  readonly y?: number;
  readonly z?: number;
  readonly unit: string;
  /** Degrees, to a tenth of a cell, where the table says where on Earth it lies. */
  readonly longitude?: number;
  readonly latitude?: number;
  /** The radius about the report, in `unit`, that holds the true position with 95 % where positions follow the prior. With
   * remember "visit" it holds all positions of the visit. */
  readonly accuracy?: number;
}

export interface Reported {
  /** Send this, and nothing else of it. */
  readonly report: Report;
  /** Whether it was drawn before for the same cell or visit, and cost nothing. */
  readonly remembered: boolean;
  /** New reports that remain in these 24 hours. */
  readonly remaining: number;
}

export interface Status {
  remaining: number;
  spent: number;
  remembered: number;
}

/** localStorage, or anything like it; promises are awaited. */
export interface ReportStorage {
  getItem(key: string): string | null | undefined | Promise<string | null | undefined>;
  setItem(key: string, text: string): void | Promise<void>;
}

export interface Options {
  /** The bytes of report.bin, or where to fetch them; by default report.bin beside the module. */
  table?: Uint8Array | ArrayBuffer | URL | string | Promise<Uint8Array | ArrayBuffer | URL | string>;
  /** By default localStorage. */
  storage?: ReportStorage;
  /** Under which the storage keeps what is remembered; by default one for each metric and grid. */
  key?: string;
  /** New reports in any 24 hours; 10 by default. */
  perDay?: number;
  /** Positions off the map: "refuse" (the default) or "nearest". */
  outside?: "refuse" | "nearest";
  /** For which secrets a report is drawn once and repeated: cells (the default), visits, or none. */
  remember?: "cell" | "visit" | "none";
  /** With remember "visit", its radius in the unit of the map. */
  visit?: number;
  /** Milliseconds from a request to its answer: by default 100 for the map of a region, where draws take the longer the
   * farther they lead, 0 for tables. */
  answerAfter?: number;
  /** So many random bytes, for tests; by default crypto.getRandomValues. */
  bits?: (count: number) => Uint8Array;
  /** Milliseconds, for tests; by default Date.now. */
  now?: () => number;
}

/** Where the cells of a table are. */
export interface Places {
  readonly count: number;
  readonly axes: number;
  readonly unit: string;
  readonly kind: "grid" | "points" | "nodes";
  /** Sides of a cell of a grid. */
  readonly sides: readonly number[] | null;
  readonly plane: { readonly longitude: number; readonly latitude: number; readonly metres: number } | null;
  point(cell: number): number[];
  degrees(point: readonly number[]): { longitude: number; latitude: number };
  onEarth(longitude: number, latitude: number): [number, number];
  fromMetres(east: number, north: number): [number, number];
  /** The cell of a position in `unit`, -1 outside. */
  cellAt(position: readonly number[], near?: boolean): number;
  /** Whether degrees name no cell, and the same exchanged do. */
  isExchanged(longitude: number, latitude: number): boolean;
  nearest(position: readonly number[]): number;
}

export class Client {
  private constructor();
  /** About many reports, as `remember` repeats them: to be shown before `claim`. */
  readonly memoryClaim: string;
  /** About one report. */
  readonly claim: string;
  readonly cost: string;
  readonly unit: string;
  readonly about: Readonly<Record<string, string | number>>;
  readonly places: Places;
  /** Degrees, longitude first. */
  report(longitude: number, latitude: number): Promise<Reported>;
  /** Metres east and north of the centre of the map's plane. */
  reportMetres(east: number, north: number): Promise<Reported>;
  /** In the unit of the map. */
  reportAt(...position: number[]): Promise<Reported>;
  /** From a cell, or from its centre where positions are drawn. */
  reportCell(cell: number): Promise<Reported>;
  status(): Promise<Status>;
  /** Forget all reports; payments stay. */
  forget(): Promise<void>;
  /** The cell that a report is, by its number; -1 where reports are no cells. */
  cellOfReport(report: number): number;
  /** P(report | cell), in floating point: for looking at. */
  probabilities(cell: number): Float64Array;
}

export function openClient(options?: Options): Promise<Client>;

/** What may be released at a tick; all of it. */
export interface Estimate {
  readonly tick: number;
  /** The place with the least expected loss. */
  readonly place: Report;
  /** That expected loss, in the unit of the design's loss. */
  readonly error: number;
  /** Whether a report was drawn, and which. */
  readonly drawn: boolean;
  readonly report: number | null;
  /** What was paid at this tick, and the rest of the window that ends with it: exact fractions, "3" or "7/2". */
  readonly charge: string;
  readonly remaining: string;
}

/** What a session paid: exact fractions, in multiples of the metric. */
export interface Account {
  readonly window: string;
  readonly limit: string;
  readonly spent: string;
  /** The most in one window so far, which begins at tick `first`. */
  readonly worst: string;
  readonly first: number;
  readonly remaining: string;
  /** The most that the design can cost in a window, for every transcript. */
  readonly promised: string;
  readonly last: number;
  readonly reports: number;
}

export interface SessionOptions extends Pick<Options, "table" | "storage" | "key" | "bits" | "now"> {
  /** What a window may cost, in multiples of the metric: a number, or an exact fraction as text. */
  limit: number | string;
  /** "1d" (the default), calendar days, "24h", any 24 hours, "7d", "14d" or "30d". */
  window?: string;
  /** How far the time that midnights are in is ahead of UTC; 0 by default. */
  minutes?: number;
}

/** tick, a number that rises; by default it follows from the clock. */
export interface At {
  tick?: number;
}

/** A report, and the number of the table that it was drawn from. */
export interface Step {
  readonly tick: number;
  readonly table: number;
  readonly report: number;
}

export class Session {
  private constructor();
  readonly claim: string;
  /** Of a day. */
  readonly ticks: number;
  readonly unit: string;
  readonly about: Readonly<Record<string, string | number>>;
  readonly places: Places;
  tick(): number;
  /** Degrees, longitude first; numbers that are not finite are no fix. */
  report(longitude: number, latitude: number, at?: At): Promise<Estimate>;
  /** In the unit of the map. */
  reportAt(position: readonly number[], at?: At): Promise<Estimate>;
  reportCell(cell: number, at?: At): Promise<Estimate>;
  /** Without a fix: a draw is made and charged all the same. */
  reportNothing(at?: At): Promise<Estimate>;
  account(): Promise<Account>;
  /** What was released: all that an observer knows. */
  transcript(): Promise<readonly Step[]>;
}

export function openSession(options: SessionOptions): Promise<Session>;

/** A storage that lasts as long as the program: for tests and trials. */
export function memoryStorage(): ReportStorage;
