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

/** A report that was given before, and when: milliseconds since 1970. */
export interface LastReport {
  readonly report: Report;
  readonly time: number;
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
  /** [low, high] of the bounding box of the positions that are reported. */
  box(): [number[], number[]];
  /** A bound of the distance from a point to the positions that are reported. */
  farthest(point: readonly number[]): number;
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
  /** The report that was given last; null before the first. */
  lastReport(): Promise<LastReport | null>;
  /** Forget all reports; payments stay. */
  forget(): Promise<void>;
  /** The cell that a report is, by its number; -1 where reports are no cells. */
  cellOfReport(report: number): number;
  /** P(report | cell), in floating point: for looking at. */
  probabilities(cell: number): Float64Array;
}

export function openClient(options?: Options): Promise<Client>;

/** A report in the shape of GeolocationCoordinates. */
export interface ReportedCoordinates {
  /** Degrees, to a tenth of a cell. */
  readonly latitude: number;
  readonly longitude: number;
  /** Metres about the report, rounded up, that hold the true position with 95 % where positions follow the prior; where the
   * table has no such radius, they hold all of the map. */
  readonly accuracy: number;
  readonly altitude: null;
  readonly altitudeAccuracy: null;
  readonly heading: null;
  readonly speed: null;
  toJSON(): Record<string, number | null>;
}

/** A report in the shape of GeolocationPosition. */
export interface ReportedPosition {
  readonly coords: ReportedCoordinates;
  /** Of the fix, milliseconds since 1970; where the budget is spent, that of the last report. */
  readonly timestamp: number;
  toJSON(): { coords: Record<string, number | null>; timestamp: number };
}

/** A failure in the shape of GeolocationPositionError. */
export class ReportPositionError {
  private constructor();
  static readonly PERMISSION_DENIED: 1;
  static readonly POSITION_UNAVAILABLE: 2;
  static readonly TIMEOUT: 3;
  readonly PERMISSION_DENIED: 1;
  readonly POSITION_UNAVAILABLE: 2;
  readonly TIMEOUT: 3;
  readonly code: 1 | 2 | 3;
  readonly message: string;
  /** The ReportError, or the error of the source. */
  readonly cause: unknown;
}

/** What `geolocationOf` asks for fixes: navigator.geolocation, or anything like it. */
export interface FixSource {
  getCurrentPosition(success: (fix: Fix) => void, failure?: ((error: FixError) => void) | null, options?: FixOptions): void;
  watchPosition(success: (fix: Fix) => void, failure?: ((error: FixError) => void) | null, options?: FixOptions): number;
  clearWatch(watch: number): void;
}

export interface Fix {
  readonly coords: { readonly longitude: number; readonly latitude: number };
  readonly timestamp: number;
}

export interface FixError {
  readonly code: number;
  readonly message: string;
}

/** PositionOptions; the source gets them. timeout is counted once more from the fix to the report. */
export interface FixOptions {
  enableHighAccuracy?: boolean;
  maximumAge?: number;
  timeout?: number;
}

export interface GeolocationOptions {
  /** By default navigator.geolocation. */
  source?: FixSource;
  /** Where the budget is spent: "last" (the default), the last report with its time, or the area before the first; "area",
   * the centre of the map with a radius that holds all of it; "refuse", an error with code 2. */
  whenSpent?: "last" | "area" | "refuse";
}

/** The calls of the Geolocation API, answered by reports. Failures go to the error callback alone. */
export class PrivateGeolocation {
  private constructor();
  getCurrentPosition(
    success: (position: ReportedPosition) => void,
    failure?: ((error: ReportPositionError) => void) | null,
    options?: FixOptions,
  ): void;
  /** Calls back whenever the report differs from the last one of this watch. */
  watchPosition(
    success: (position: ReportedPosition) => void,
    failure?: ((error: ReportPositionError) => void) | null,
    options?: FixOptions,
  ): number;
  clearWatch(watch: number): void;
}

/** A drop-in for navigator.geolocation that answers with reports of a client, or of its promise. */
export function geolocationOf(client: Client | Promise<Client>, options?: GeolocationOptions): PrivateGeolocation;

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

/** Of Node: a storage in one file; one process at a time. */
export function fileStorage(path: string): ReportStorage;
