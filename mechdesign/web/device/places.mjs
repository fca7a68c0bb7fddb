// The cells of a table, and the cell of a position, by the same rules as in the package.

import { ReportError } from "./frame.mjs";
import { backward, forward } from "./plane.mjs";

export const POINT_BITS = 16; // a position is rounded to 2^-16 of a side
export const HALF = 2 ** (POINT_BITS - 1);

/** The cells of a table: how many, and on how many axes, in `unit`; plane, where they lie on Earth, or null. */
export class Places {
  #domain;
  #index; // of a grid: lattice positions, last axis fastest; ascending; none where every cell of it is a place
  #points;

  constructor(header, arrays) {
    this.#domain = header.domain;
    this.#index = arrays.index;
    this.#points = arrays.points;
    this.count = header.cells;
    this.axes = header.domain.axes;
    this.unit = header.unit;
    this.kind = header.domain.kind;
    this.sides = header.domain.cell ?? null;
    this.plane = header.domain.plane ?? null;
  }

  /** A cell, by its number. Throws ReportError "position" for anything else. */
  checked(cell) {
    if (Number.isInteger(cell) && cell >= 0 && cell < this.count) return cell;
    throw new ReportError("position", `cells are integers 0 to ${this.count - 1}`);
  }

  /** Coordinates of a cell (its centre on a grid), in `unit`. */
  point(cell) {
    if (this.kind !== "grid") return Array.from(this.#points.subarray(cell * this.axes, (cell + 1) * this.axes));
    const { shape, cell: sides, origin } = this.#domain;
    let rest = this.#index ? this.#index[cell] : cell;
    const found = [];
    for (let axis = this.axes - 1; axis >= 0; axis--) {
      found[axis] = origin[axis] + ((rest % shape[axis]) + 0.5) * sides[axis];
      rest = Math.floor(rest / shape[axis]);
    }
    return found;
  }

  /** A report at a point, as apps send it: its number, its coordinates in a unit, to so many decimals (null: unrounded),
   * and its degrees if `earth`. */
  describe(number, point, digits, unit, earth) {
    const named = Object.fromEntries(point.map((value, axis) => ["xyz"[axis], roundTo(value, digits[axis])]));
    return Object.freeze({ number, ...named, unit, ...(this.plane && earth ? this.degrees(point) : {}) });
  }

  /** Degrees {longitude, latitude} of a point in `unit`, to a tenth of a cell. */
  degrees(point) {
    const { metres, decimals } = this.plane;
    const found = backward(this.plane, point[0] * metres, point[1] * metres);
    const [longitude, latitude] = found.map((angle) => Number(angle.toFixed(decimals)));
    return { longitude, latitude };
  }

  /** The position [x, y] in `unit` of degrees. */
  onEarth(longitude, latitude) {
    if (!this.plane) throw new ReportError("position", "the table does not say where on Earth it is: use reportAt");
    const finite = Number.isFinite(longitude) && Number.isFinite(latitude);
    if (!finite || Math.abs(longitude) > 180 || Math.abs(latitude) > 90) {
      throw new ReportError("position", "degrees are a longitude within 180 and a latitude within 90, east and north");
    }
    return forward(this.plane, longitude, latitude).map((length) => length / this.plane.metres);
  }

  /** True if degrees lie outside all cells, and would lie in one if they were exchanged. */
  isExchanged(longitude, latitude) {
    const inRange = (east, north) => Math.abs(east) <= 180 && Math.abs(north) <= 90;
    const namesCell = (east, north) => inRange(east, north) && this.cellAt(this.onEarth(east, north), true) >= 0;
    return this.plane !== null && !namesCell(longitude, latitude) && namesCell(latitude, longitude);
  }

  /** The position of metres east and north of the centre of the plane. */
  fromMetres(east, north) {
    if (!this.plane) throw new ReportError("position", "the table does not say where on Earth it is: use reportAt");
    return [east / this.plane.metres, north / this.plane.metres];
  }

  /** The cell of a position in `unit`, or -1 for one outside.
   *
   * On a grid this is the cell around it, on a border the higher one, on the upper border of the grid the last one. It is
   * decided in integers, for the exact values of the doubles. Among points, a position on Earth takes the nearest place
   * (`near`), others the place with exactly these coordinates. */
  cellAt(position, near = false) {
    if (position.length !== this.axes || !position.every(Number.isFinite)) {
      throw new ReportError("position", `a position is ${this.axes} finite number(s), in ${this.unit}`);
    }
    if (this.kind === "grid") return this.#latticeCell(position);
    if (near) return this.#withinReach(position) ? this.nearest(position) : -1;
    const found = this.nearest(position);
    return this.point(found).every((value, axis) => value === position[axis]) ? found : -1;
  }

  /** The point [a, b] of a cell that a position in it is rounded to: 2^-16 of a side from its centre each, rounded as
   * the package does, in integers. */
  pointIn(cell, position) {
    const { shape, cell: sides, origin } = this.#domain;
    const at = this.#index ? this.#index[cell] : cell;
    const steps = [Math.floor(at / shape[1]), at % shape[1]];
    return steps.map((step, axis) => {
      const [a, b, c] = commonIntegers(position[axis], origin[axis], sides[axis]);
      return Number(floorDivide(((a - b) << BigInt(POINT_BITS + 1)) + c, 2n * c)) - step * 2 ** POINT_BITS - HALF;
    });
  }

  /** The position within a cell that is nearest to one outside. */
  within(cell, position) {
    const centre = this.point(cell);
    const reach = this.sides.map((side) => side / 2);
    return position.map((x, axis) => Math.min(Math.max(x, centre[axis] - reach[axis]), centre[axis] + reach[axis]));
  }

  /** The cell with the least straight-line distance to a position; the first of equals. */
  nearest(position) {
    if (this.kind === "grid" && !this.#index) return this.#nearestOfAll(position);
    let [best, least] = [0, Infinity];
    for (let cell = 0; cell < this.count; cell++) {
      const square = this.point(cell).reduce((sum, value, axis) => sum + (value - position[axis]) ** 2, 0);
      if (square < least) [best, least] = [cell, square];
    }
    return best;
  }

  /** The nearest cell of a whole lattice: along every axis the nearest step. */
  #nearestOfAll(position) {
    const { shape, cell, origin } = this.#domain;
    return position.reduce((at, x, axis) => {
      // On a border both cells are equally near: the lower one, as the first of equals.
      const step = Math.ceil((x - origin[axis]) / cell[axis]) - 1;
      return at * shape[axis] + Math.min(Math.max(step, 0), shape[axis] - 1);
    }, 0);
  }

  #latticeCell(position) {
    const { shape, cell, origin } = this.#domain;
    let at = 0;
    for (let axis = 0; axis < this.axes; axis++) {
      const step = latticeStep(position[axis], origin[axis], cell[axis], shape[axis]);
      if (step < 0) return -1;
      at = at * shape[axis] + step;
    }
    return this.#index ? this.#index.indexOf(at) : at;
  }

  /** [low, high] of the bounding box of the positions that are reported. */
  box() {
    const { shape, cell, origin } = this.#domain;
    if (this.kind === "grid") return [origin, origin.map((low, axis) => low + shape[axis] * cell[axis])];
    const { margin = 0 } = this.plane;
    const [low, high] = [Array(this.axes).fill(Infinity), Array(this.axes).fill(-Infinity)];
    for (let at = 0; at < this.#points.length; at++) {
      const axis = at % this.axes;
      low[axis] = Math.min(low[axis], this.#points[at] - margin);
      high[axis] = Math.max(high[axis], this.#points[at] + margin);
    }
    return [low, high];
  }

  /** A bound of the distance from a point to the positions that are reported: to the farthest corner of their box. */
  farthest(point) {
    const [low, high] = this.box();
    return Math.hypot(...point.map((x, axis) => Math.max(Math.abs(x - low[axis]), Math.abs(high[axis] - x))));
  }

  /** True if a position is in the bounding box of the places, widened by the margin of their network. */
  #withinReach(position) {
    const [low, high] = this.box();
    return position.every((value, axis) => value >= low[axis] && value <= high[axis]);
  }
}

/** Round a coordinate to so many decimals: before the point if negative, not at all if null. */
function roundTo(value, decimals) {
  if (decimals === null) return value;
  return decimals < 0 ? Math.round(value / 10 ** -decimals) * 10 ** -decimals : Number(value.toFixed(decimals));
}

/** floor((x - low) / side) in exact arithmetic, count - 1 at the upper border, -1 outside. */
function latticeStep(x, low, side, count) {
  const [a, b, c] = commonIntegers(x, low, side);
  const across = a - b;
  if (across < 0n || across > BigInt(count) * c) return -1;
  return Math.min(Number(across / c), count - 1);
}

/** Integers in the ratio of doubles, exactly. */
function commonIntegers(...values) {
  const parts = values.map(binary);
  const least = Math.min(...parts.map(([, exponent]) => exponent));
  return parts.map(([digits, exponent]) => digits << BigInt(exponent - least));
}

/** floor(dividend / divisor): BigInt division truncates towards 0. */
function floorDivide(dividend, divisor) {
  const quotient = dividend / divisor;
  return dividend < 0n && quotient * divisor !== dividend ? quotient - 1n : quotient;
}

/** The exact fraction [p, q] of a finite double, q a power of two. */
export function exactly(value) {
  const [digits, exponent] = binary(value);
  return exponent < 0 ? [digits, 1n << BigInt(-exponent)] : [digits << BigInt(exponent), 1n];
}

/** [digits, exponent] of a double: digits 2^exponent, exactly. */
function binary(value) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  // IEEE 754: 11 bits of exponent, 52 of the fraction; normal numbers have a hidden leading 1.
  const bits = view.getBigUint64(0);
  const exponent = Number((bits >> 52n) & 0x7ffn);
  const digits = (bits & 0xfffffffffffffn) | (exponent ? 1n << 52n : 0n);
  return [value < 0 ? -digits : digits, Math.max(exponent, 1) - 1075];
}
