// The page of a region: its levels, the reports of a cell that was chosen, and a report drawn from it by the client.

const SHOWN_BLOCKS = 180; // blocks of cells along the longer side of the whole map
const NEAR_CELLS = [8, 36]; // cells shown on either side of the one that was chosen
const MOST_LIKELY = 0.95; // share of the reports within the radius shown
const LEAST_PROBABILITY = 1e-9; // reports less likely are left out of that radius

class RegionView extends View {
  constructor(page) {
    super();
    const { header, arrays } = page.map;
    this.page = page;
    this.facts = page.contents.facts;
    this.header = header;
    this.places = new device.Places(header, arrays);
    this.rows = new device.RegionRows(header, arrays);
    this.levels = secretLevels(page.map);
    [this.across, this.along] = header.domain.shape;
    this.block = Math.max(1, Math.ceil(Math.max(this.across, this.along) / SHOWN_BLOCKS));
    this.whole = this.#ground(0, this.across, 0, this.along, this.block);
    this.whole.values = Float64Array.from(this.whole.of, (cell) => this.#level(cell));
    this.tab = "level";
    this.known = new Set(); // cells whose rows were proved
    this.press = addTabs(Object.entries({ level: TABS.level, reports: TABS.reports }), (name) => this.turn(name));
    this.choose(page.contents.first);
  }

  /** The ground of blocks of cells, with the middle cell of each. */
  #ground(top, bottom, left, right, block) {
    const [of, x, y] = [[], [], []];
    const { cell, domain } = this.header;
    for (let i = top; i < bottom; i += block) {
      for (let j = left; j < right; j += block) {
        of.push(Math.min(i + (block >> 1), bottom - 1) * this.along + Math.min(j + (block >> 1), right - 1));
        x.push(domain.origin[0] + (i + block / 2) * cell[0]);
        y.push(domain.origin[1] + (j + block / 2) * cell[1]);
      }
    }
    return Object.assign(new Ground("cells", x, y, cell.map((side) => side * block)), { of, block });
  }

  #level(cell) {
    return this.levels[cell] * this.header.level_unit * this.page.contents.levels_per;
  }

  /** Take over the results of a proof: outline the cells that were proved, or choose the faulty one. */
  proved({ faults, figures }) {
    if (faults.length === 0) for (const cell of figures.cells ?? []) this.known.add(cell);
    const at = faults.find((fault) => fault.secret !== undefined);
    if (at) this.choose(at.secret);
    else this.show();
  }

  /** Coordinates that were clicked, or a step by keys: over a cell, or a block of the whole map. */
  chosen(place, how) {
    const step = this.tab === "level" ? this.block : 1;
    const [i, j] = [Math.floor(this.cell / this.along), this.cell % this.along];
    const within = (at, count) => Math.max(0, Math.min(at, count - 1));
    const by = (k, axis, count) => within((axis ? j : i) + k * step, count);
    if (place === null) return this.choose(by(how[0], 0, this.across) * this.along + by(how[1], 1, this.along));
    const cell = this.places.cellAt(how);
    this.choose(cell >= 0 ? cell : this.places.nearest(how));
  }

  choose(cell) {
    [this.cell, this.report] = [cell, null];
    this.row = this.rows.probabilities(cell);
    [this.error, this.radius] = this.#spread();
    const cells = Math.ceil((1.4 * this.radius) / Math.min(...this.header.cell));
    const near = Math.max(NEAR_CELLS[0], Math.min(NEAR_CELLS[1], cells));
    const [i, j] = [Math.floor(cell / this.along), cell % this.along];
    const ends = (at, count) => [Math.max(0, at - near), Math.min(count, at + near + 1)];
    this.near = this.#ground(...ends(i, this.across), ...ends(j, this.along), 1);
    this.near.values = Float64Array.from(this.near.of, (other) => this.row[other]);
    this.show();
  }

  /** The expected error, and the radius that holds 95 % of the reports. */
  #spread() {
    const from = this.places.point(this.cell);
    const [{ origin }, sides] = [this.header.domain, this.header.cell];
    const far = (y) => {
      const [i, j] = [Math.floor(y / this.along), y % this.along];
      return Math.hypot(origin[0] + (i + 0.5) * sides[0] - from[0], origin[1] + (j + 0.5) * sides[1] - from[1]);
    };
    let error = 0;
    const likely = [];
    this.row.forEach((p, y) => {
      const distance = far(y);
      error += p * distance;
      if (p > LEAST_PROBABILITY) likely.push([distance, p]);
    });
    return [error, radiusOf(likely, MOST_LIKELY)];
  }

  draw() {
    this.report = this.rows.draw(this.cell, device.randomBytes);
    this.turn("reports");
  }

  #where(cell) {
    const point = this.places.point(cell);
    if (!this.places.plane) return `(${point.map(short).join(", ")}) ${this.facts.unit}`;
    const { longitude, latitude } = this.places.degrees(point);
    return degreeWords(longitude, latitude, (angle) => `${angle}°`);
  }

  show() {
    const { facts, tab, cell } = this;
    const ground = tab === "level" ? this.whole : this.near;
    const scale = { ...scaleOf(ground.values, tab === "level" ? 1e-9 : DEPTH), logarithmic: tab !== "level" };
    const marks = [{ kind: "person", at: this.places.point(cell) }];
    if (this.report !== null) marks.push({ kind: "report", at: this.places.point(this.report) });
    const inside = tab === "level" ? null : ground.of.map((other) => this.known.has(other));
    this.map.show({ ground, values: ground.values, scale, marks, inside, unit: facts.unit, axis: facts.unit });
    this.press(tab);
    const words = tab === "level" ? `privacy level, nats per ${facts.per}` : "probability that a person here reports it";
    fillLegend(byId("legend"), scale, words, false, tab === "level" ? short : chance);
    byId("place-title").textContent = this.#where(cell);
    const level = this.#level(cell);
    describe(byId("place"), {
      "privacy level": `${short(level)} nats per ${facts.per}`,
      "true place reported": chance(this.row[cell]),
      "expected error": withUnit(this.error, facts.unit),
      "95 % of reports within": withUnit(this.radius, facts.unit),
    });
    byId("report-box").hidden = this.report === null;
    if (this.report === null) return;
    const apart = Math.hypot(...this.places.point(this.report).map((at, k) => at - this.places.point(cell)[k]));
    describe(byId("report"), { reported: this.#where(this.report), "off by": withUnit(apart, facts.unit) });
  }
}
