// Computes for the map of a page: rows, posteriors, distances in nats, draws in integers.

class Model {
  constructor(page) {
    const { contents } = page;
    this.page = page;
    this.facts = contents.facts;
    this.secrets = axesOf(page, "secret");
    this.reports = this.facts.same_places ? this.secrets : axesOf(page, "report");
    this.prior = array(page, "prior");
    this.level = has(page, "level") ? array(page, "level") : null;
    this.lines = linesOf(page);
    this.edges = claimEdges(page);
    this.count = this.prior.length;
    this.width = this.reports[0].length;
    this.losses = null; // from the proof
    this.positionClaim = positionClaimOf(page); // the claim about positions
    this.around = this.positionClaim ? places(page, "around_row") : null;
    this.domain = jsonAttribute(page, "domain");
    this.degrees = has(page, "degrees") ? array(page, "degrees") : degreesOn(this.domain, this.secrets);
    // Nodes and classes without an order have numbers for coordinates, which are not lengths.
    this.hasDistances = this.domain.kind !== "nodes" || this.domain.ordered === true || this.secrets.length > 1;
    this.reportLabels = attribute(page, "reports") ? jsonAttribute(page, "reports").labels : this.domain.labels;
    this.parts = this.#rowParts(); // places along each side of a cell of reports
    this.cellOf = this.#reportPlaces(); // of every report the place that it is; null if reports are not places
    this.located = this.cellOf !== null;
    this.reportAt = this.#reportsOfCells();
    if (contents.kind === "factors") {
      this.rows = this.factors = new Factors(page);
      this.sums = storedSums(page);
    } else {
      this.mass = array(page, "mass");
      const carried = has(page, "carried") ? places(page, "carried") : null;
      this.rowOf = carried ? new Map(Array.from(carried, (u, r) => [u, r])) : null;
      this.rows = this.#tableRows();
    }
    this.claim = this.positionClaim ?? claimOf(jsonAttribute(page, "metric"));
    this.rate = nearestDouble(this.claim.rate); // nats per unit along straight lines at most
    const { truth, one } = nounsOfPage(page);
    const noun = truth === "position" ? "place" : truth;
    this.nouns = { one: noun, several: noun === "class" ? "classes" : `${noun}s`, cell: one === "cell" && this.secrets.length > 1 };
  }

  /** The table as the client draws from it: low and high halves of its masses, report by report. */
  #tableRows() {
    const cells = this.mass.length / this.width;
    // Little-endian: the low half of a mass comes first.
    const halves = new Uint32Array(this.mass.buffer, this.mass.byteOffset, 2 * this.mass.length);
    const part = (half) => (_, at) => halves[2 * ((at % cells) * this.width + Math.floor(at / cells)) + half];
    const [low, high] = [0, 1].map((half) => Uint32Array.from(this.mass, part(half)));
    const around = this.around?.map((row) => this.#numberOf(row));
    const Rows = around ? device.PositionRows : device.TableRows;
    return new Rows({ cells, reports: this.width }, { low, high, around });
  }

  #rowParts() {
    const { parts } = jsonAttribute(this.page, "parameters").problem_parameters ?? {};
    const divides = this.domain.kind === "grid" && Number.isInteger(parts) && parts > 1 && this.domain.shape.every((count) => count % parts === 0);
    return divides ? parts : 1;
  }

  #reportPlaces() {
    if (this.facts.same_places) return Int32Array.from({ length: this.count }, (_, u) => u);
    if (this.reports.length !== this.secrets.length || this.facts.report_unit !== this.facts.unit) return null;
    const corners = this.parts % 2 === 0; // reports in the middle of an even number of rows: the place above it
    const low = (u) => this.secrets.map((axis, k) => this.#steps(axis[u], k, 0.5)).join();
    const name = (axes, labels, k) => [...axes.map((axis) => axis[k]), labels?.[k]].join();
    const at = new Map(Array.from({ length: this.count }, (_, u) => [corners ? low(u) : name(this.secrets, this.domain.labels, u), u]));
    const cells = Array.from({ length: this.width }, (_, y) =>
      at.get(corners ? this.reports.map((axis, k) => this.#steps(axis[y], k, 0)).join() : name(this.reports, this.reportLabels, y)));
    return cells.includes(undefined) ? null : Int32Array.from(cells);
  }

  /** Steps of a coordinate from the low border of the grid, less a shift, as a whole number. */
  #steps(value, k, shift) {
    return Math.round((value - this.domain.origin[k]) / this.domain.cell[k] - shift);
  }

  /** A row (m,) as values of places, NaN if a place is not a report; unchanged if reports are not places. */
  spread(row) {
    if (!this.located) return row;
    const values = new Float64Array(this.count).fill(NaN);
    this.cellOf.forEach((u, y) => (values[u] = row[y]));
    return this.reportAt ? values.map((_, u) => row[this.reportAt[u]] ?? NaN) : values;
  }

  /** For rows finer than reports, of every place the report of the cell that holds it; null for others. */
  #reportsOfCells() {
    if (!this.cellOf || this.parts === 1) return null;
    const name = (u) => this.secrets.map((axis, k) => Math.floor(this.#steps(axis[u], k, 0.5) / this.parts)).join();
    const at = new Map(Array.from(this.cellOf, (u, y) => [name(u), y]));
    return Array.from({ length: this.count }, (_, u) => at.get(name(u)));
  }

  /** The number of the row of a secret among those that the page carries. */
  #numberOf(u) {
    return this.rowOf ? this.rowOf.get(u) : u;
  }

  /** True if the page carries the row of a secret, with positions those around it. */
  carries(u) {
    if (!this.rowOf) return true;
    return this.around ? this.around.subarray(9 * u, 9 * u + 9).every((row) => this.rowOf.has(row)) : this.rowOf.has(u);
  }

  /** P(.|u) as doubles, or with positions that of a point of cell u; null where the page does not carry the row. */
  row(u, point) {
    return this.carries(u) ? this.rows.probabilities(this.around ? u : this.#numberOf(u), point) : null;
  }

  /** The posterior (n,) of an attacker who knows the prior, after report y; null unless the page carries every row. */
  posterior(y) {
    if (this.rowOf) return null;
    const joint = new Float64Array(this.count);
    if (this.factors) {
      const { weight, target, inner } = this.factors;
      const kernel = Float64Array.from(this.factors.kernel, Number);
      for (let k = 0; k < weight.length; k++) {
        if (target[k] !== y) continue;
        const column = this.factors.column(k);
        for (let u = 0; u < this.count; u++)
          joint[u] += (kernel[column[inner[u]]] * weight[k]) / Number(this.sums[u]);
      }
    } else {
      for (let u = 0; u < this.count; u++) joint[u] = this.#mean(u, y);
    }
    let sum = 0;
    for (let u = 0; u < this.count; u++) sum += joint[u] *= this.prior[u];
    return joint.map((value) => value / sum);
  }

  /** The mass of report y for secret u, or for positions spread evenly over its cell. */
  #mean(u, y) {
    if (!this.around) return Number(this.mass[u * this.width + y]);
    // 1/6, 2/3, 1/6: means of the quadratic B-spline over a cell, on each axis.
    const [shares, at] = [[1 / 6, 2 / 3, 1 / 6], (step) => this.around[9 * u + step] * this.width + y];
    return AROUND.reduce((sum, _, step) => sum + shares[Math.floor(step / 3)] * shares[step % 3] * Number(this.mass[at(step)]), 0);
  }

  /** The loss of a report drawn at the centre of every cell; null where the loss is not known. */
  centreLosses() {
    const lossBetween = lossOf(this.page);
    const all = (u) => this.row(u)?.reduce((sum, p, y) => sum + p * lossBetween(u, y), 0) ?? NaN;
    return lossBetween && Float64Array.from({ length: this.count }, (_, u) => all(u));
  }

  /** A report drawn by the client with the random source of the browser; with positions for a point of cell u. */
  draw(u, point) {
    return this.rows.draw(this.around ? u : this.#numberOf(u), device.randomBytes, point);
  }

  /** Nats of the claim between a secret and all others at most: shortest paths over its edges; between centres with
   * positions, over cells that touch. */
  nats(u) {
    if (this.natsOf === u) return this.natsFound;
    this.beside ??= neighboursOf(this.count, this.positionClaim ? this.#touching() : this.edges);
    [this.natsOf, this.natsFound] = [u, shortestPaths(this.beside, u)];
    return this.natsFound;
  }

  /** Cells that touch, and the length between their centres times the largest level. */
  #touching() {
    const [cells, side] = [latticeOf(this.domain, this.secrets), this.positionClaim.side];
    const at = new Map(cells.map((cell, u) => [String(cell), u]));
    const edges = { tail: [], head: [], length: [] };
    cells.forEach(([x, y], u) => {
      for (const [i, j] of [[0, 1], [1, -1], [1, 0], [1, 1]]) {
        const v = at.get(`${x + i},${y + j}`);
        if (v === undefined) continue;
        edges.tail.push(u);
        edges.head.push(v);
        edges.length.push(Math.hypot(i, j) * side * this.rate);
      }
    });
    return edges;
  }

  /** The radius within which odds change by a factor of at most, along straight lines: with positions on the ground. */
  reach(factor) {
    // The rounding of positions uses up some of the nats, and lengths on the plane exceed those on the ground.
    const nats = Math.log(factor) - (this.positionClaim ? this.positionClaim.rounding : 0);
    const [p, q] = this.positionClaim ? new ProtectedDomain(this.page, null, null).stretch : [1n, 1n];
    return Math.max(nats, 0) / this.rate / (Number(p) / Number(q));
  }

  /** True if the claim is at most its rate times the straight-line distance. */
  straight() {
    return this.positionClaim ? isWhole(this.domain, this.count) : this.claim.kind === "euclidean";
  }

  /** The point [a, b] of a cell that coordinates are rounded to, 2^-16 of a side from its centre each. */
  pointIn(u, coordinates) {
    const half = 2 ** 15;
    const rounded = coordinates.map((x, k) => Math.round(((x - this.secrets[k][u]) / this.positionClaim.side) * 2 * half));
    return rounded.map((a) => Math.max(-half, Math.min(half, a)));
  }

  /** Coordinates of a point of a cell, of a secret without one. */
  coordinates(u, point = [0, 0, 0]) {
    return this.secrets.map((axis, k) => axis[u] + (this.positionClaim ? (point[k] / 2 ** 16) * this.positionClaim.side : 0));
  }

  /** Where report y, which is a place or a corner of four, lies. */
  reportPoint(y) {
    return this.reports.map((axis) => axis[y]);
  }

  /** Longitude and latitude of report y: at a corner the mean of the two places across it. */
  reportDegrees(y) {
    const u = this.cellOf[y];
    const across = this.secrets.map((axis, k) => 2 * this.reports[k][y] - axis[u]);
    const far = (v) => Math.hypot(...this.secrets.map((axis, k) => axis[v] - across[k]));
    let v = u;
    if (this.parts % 2 === 0) for (let w = 0; w < this.count; w++) if (far(w) < far(v)) v = w;
    return [0, 1].map((k) => (this.degrees[2 * u + k] + this.degrees[2 * v + k]) / 2);
  }

  /** How far secret u, or a point of its cell, and report y are apart; null if reports are not places. */
  apart(u, y, point = undefined) {
    if (!this.located) return null;
    const from = this.coordinates(u, point);
    return Math.hypot(...this.reports.map((axis, k) => from[k] - axis[y]));
  }

  /** The radius around a secret that holds a report with this probability; null if reports are not places. */
  radius(u, row, share, point = undefined) {
    if (!this.located) return null;
    return radiusOf(Array.from(row, (p, y) => [this.apart(u, y, point), p]), share);
  }
}

/** Degrees (longitude, latitude) of points on the plane of a domain; null where it has none. */
function degreesOn({ plane, unit }, axes) {
  if (!plane) return null;
  const places = Array.from(axes[0], (x, u) => device.backward(plane, x * METRES[unit], axes[1][u] * METRES[unit]));
  return Float64Array.from(places.flat());
}

/** The lines of the basemap of a page, { x, y, first }; null if it has none. */
function linesOf(page) {
  if (!has(page, "over_box")) return null;
  const [left, low, right, high] = array(page, "over_box");
  const scale = (name, from, to) => Float64Array.from(array(page, name), (step) => from + ((to - from) * step) / 65535);
  return { x: scale("over_x", left, right), y: scale("over_y", low, high), first: array(page, "over_first") };
}

/** The least of the distances in pairs [distance, probability] within which a share of one lies. */
function radiusOf(pairs, share) {
  pairs.sort((a, b) => a[0] - b[0]);
  let sum = 0;
  return (pairs.find(([, p]) => (sum += p) >= share) ?? pairs.at(-1))[0];
}
