// Where places lie on the picture: cells of a grid, dots, or bars along a line.
//
// A ground has kind, extent { left, right, low, high } in the unit of its axes, and for every place its middle (x, y). Three
// axes are laid out as floors side by side.

class Ground {
  constructor(kind, x, y, cell, streets = null) {
    Object.assign(this, { kind, x, y, cell, streets, count: x.length });
    const [w, h] =
      kind === "cells" ? [cell[0] / 2, cell[1] / 2] : kind === "bars" ? [cell[0] / 2, 0.5] : cell.map((c) => 0.6 * c);
    const ends = (axis, half) => [
      axis.reduce((a, b) => Math.min(a, b)) - half,
      axis.reduce((a, b) => Math.max(a, b)) + half,
    ];
    const [[left, right], [low, high]] = [ends(x, w), ends(y, h)];
    this.extent = { left, right, low, high };
  }

  /** The place whose middle is nearest to a point. */
  nearest(x, y) {
    let [best, least] = [-1, Infinity];
    for (let k = 0; k < this.count; k++) {
      const far = this.kind === "bars" ? Math.abs(this.x[k] - x) : Math.hypot(this.x[k] - x, this.y[k] - y);
      if (far < least) [best, least] = [k, far];
    }
    return best;
  }

  /** True if a point lies in the cell of place k, or places have no cells. */
  holds(k, x, y) {
    if (this.kind !== "cells") return true;
    return Math.abs(this.x[k] - x) <= this.cell[0] * 0.51 && Math.abs(this.y[k] - y) <= this.cell[1] * 0.51;
  }

  /** The next place from `k` in a direction; `k` itself at the end. */
  step(k, dx, dy) {
    let [best, least] = [k, Infinity];
    for (let other = 0; other < this.count; other++) {
      const [along, across] =
        this.kind === "bars"
          ? [(this.x[other] - this.x[k]) * (dx || dy), 0]
          : [
              (this.x[other] - this.x[k]) * dx + (this.y[other] - this.y[k]) * dy,
              (this.x[other] - this.x[k]) * dy + (this.y[other] - this.y[k]) * dx,
            ];
      if (along <= 1e-9 * this.cell[0] || Math.abs(across) > 1.001 * along) continue;
      // A place straight ahead wins over a nearer one to the side.
      const far = along + 2.1 * Math.abs(across);
      if (far < least) [best, least] = [other, far];
    }
    return best;
  }
}

/** The ground of secrets. `domain` is the description of the file. */
function groundOf(axes, domain, network, edges) {
  const kind = axes.length === 1 ? "bars" : domain.kind === "grid" ? "cells" : "dots";
  if (kind === "bars") return barsOf(axes[0], domain.cell?.[0]);
  const cell = kind === "cells" ? domain.cell : Array(2).fill(spacing(axes));
  let x = Array.from(axes[0]);
  if (axes.length === 3) {
    const floors = [...new Set(axes[2])].sort((a, b) => a - b);
    const wide = Math.max(...x) - Math.min(...x) + 2 * cell[0];
    x = x.map((at, k) => at + wide * floors.indexOf(axes[2][k]));
  }
  return new Ground(kind, x, Array.from(axes[1]), cell, network ? edges : null);
}

function barsOf(axis, cell) {
  const sorted = [...new Set(axis)].sort((a, b) => a - b);
  const gap = cell ?? sorted.slice(1).reduce((least, at, k) => Math.min(least, at - sorted[k]), Infinity);
  return new Ground("bars", Array.from(axis), Array(axis.length).fill(0.5), [Number.isFinite(gap) ? gap : 1, 1]);
}

/** The size of dots: the side of the square that each would have if all shared the area. */
function spacing(axes) {
  const [wide, high] = axes
    .slice(0, 2)
    .map((axis) => axis.reduce((a, b) => Math.max(a, b)) - axis.reduce((a, b) => Math.min(a, b)));
  return Math.sqrt(((wide || high || 1) * (high || wide || 1)) / axes[0].length);
}
