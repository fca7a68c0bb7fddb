// The curve of a sweep: loss against the scale of the metric, the interval that holds the optimum, and every baseline at
// the scale that it truly has; a slider over the scales.

const STYLES = [
  ["#0072B2", "D"],
  ["#D55E00", "s"],
  ["#009E73", "^"],
  ["#CC79A7", "v"],
  ["#E69F00", "x"],
  ["#56B4E9", "p"],
];
const BOX = { wide: 760, high: 420, left: 56, right: 12, top: 24, bottom: 48 };

function svg(tag, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

class Curve {
  constructor(page, { chart, slider, told, table, key }) {
    const figures = (name) => (has(page, name) ? array(page, name) : null);
    Object.assign(this, { chart, told, table, unit: page.contents.facts.loss_unit, atClaim: page.contents.at_claim });
    [this.scale, this.loss, this.bound] = ["multiplier", "loss", "lower_bound"].map(figures);
    this.baselines = page.contents.baselines.map((name, k) => {
      const [loss, level] = [figures(`${name}_loss`), figures(`${name}_effective_epsilon`)];
      return { name, loss, level, ink: STYLES[k % STYLES.length][0], shape: STYLES[k % STYLES.length][1] };
    });
    this.axes();
    for (const line of this.baselines) this.name(line, key);
    slider.max = this.scale.length - 1;
    slider.value = this.scale.reduce(
      (best, s, k) => (Math.abs(Math.log(s)) < Math.abs(Math.log(this.scale[best])) ? k : best),
      0,
    );
    slider.addEventListener("input", () => this.at(slider));
    new ResizeObserver(() => {
      BOX.wide = Math.max(300, chart.parentElement.clientWidth);
      BOX.high = Math.max(300, Math.min(440, 0.62 * BOX.wide));
      this.draw();
      this.at(slider);
    }).observe(chart.parentElement);
  }

  axes() {
    const all = (name) =>
      this.baselines.flatMap((line) => Array.from(line[name])).filter((value) => Number.isFinite(value) && value > 0);
    const levels = [...this.scale, ...all("level")];
    const losses = [...this.loss, ...all("loss")];
    const range = (values) => [Math.min(...values), Math.max(...values)];
    this.x = range(levels.filter((value) => value <= 4 * Math.max(...this.scale))).map(Math.log);
    this.y = range(losses).map(Math.log);
    if (this.y[0] === this.y[1]) this.y[1] += 1;
    this.y[0] -= 0.04 * (this.y[1] - this.y[0]);
    const share = (value, [low, high]) => (Math.log(value) - low) / (high - low);
    this.toX = (value) => BOX.left + share(value, this.x) * (BOX.wide - BOX.left - BOX.right);
    this.toY = (value) => BOX.high - BOX.bottom - share(value, this.y) * (BOX.high - BOX.top - BOX.bottom);
  }

  /** A line of the key. */
  name(line, key) {
    const broken = line.level.some((level, k) => level > this.scale[k] * this.atClaim);
    const mark = svg("svg", { viewBox: "-8 -8 16 16", width: 16, height: 16, "aria-hidden": "true" });
    mark.append(
      svg("path", {
        d: symbol(line.shape, 0, 0),
        fill: broken ? "none" : line.ink,
        stroke: line.ink,
        "stroke-width": 2,
      }),
    );
    key.append(element("li", "", "", [mark, ` ${named(line.name)}${broken ? " (hollow: breaks its claim)" : ""}`]));
  }

  draw() {
    const { chart } = this;
    chart.replaceChildren();
    chart.setAttribute("viewBox", `0 0 ${BOX.wide} ${BOX.high}`);
    for (const value of ticks(this.x)) this.tick(this.toX(value), null, value);
    for (const value of ticks(this.y)) this.tick(null, this.toY(value), value);
    chart.append(
      svg("text", { x: (BOX.left + BOX.wide) / 2, y: BOX.high - 6, class: "axis" }, "times the privacy level"),
    );
    chart.append(svg("text", { x: BOX.left, y: 12, class: "axis start" }, this.unit ? `loss (${this.unit})` : "loss"));
    for (const line of this.baselines) {
      for (let k = 0; k < this.scale.length; k++) {
        if (!(line.loss[k] > 0 && line.level[k] > 0 && Math.log(line.level[k]) <= this.x[1] + 1e-9)) continue;
        const broken = line.level[k] > this.scale[k] * this.atClaim;
        chart.append(
          svg("path", {
            d: symbol(line.shape, this.toX(line.level[k]), this.toY(line.loss[k])),
            fill: broken ? "none" : line.ink,
            stroke: line.ink,
            "stroke-width": 2,
          }),
        );
      }
    }
    const up = Array.from(this.scale, (s, k) => `${this.toX(s)},${this.toY(this.loss[k])}`);
    const down = Array.from(
      this.scale,
      (s, k) => `${this.toX(s)},${this.toY(Math.max(this.bound[k], Math.exp(this.y[0])))}`,
    ).reverse();
    chart.append(svg("polygon", { points: [...up, ...down].join(" "), class: "interval" }));
    chart.append(svg("polyline", { points: up.join(" "), class: "optimum" }));
    this.cursor = svg("g", { class: "cursor" });
    chart.append(this.cursor);
  }

  tick(x, y, value) {
    const [across, text] =
      x === null
        ? [
            { x1: BOX.left, x2: BOX.wide - BOX.right, y1: y, y2: y },
            { x: BOX.left - 8, y: y + 4, class: "tick end" },
          ]
        : [
            { x1: x, x2: x, y1: BOX.top, y2: BOX.high - BOX.bottom },
            { x, y: BOX.high - BOX.bottom + 18, class: "tick" },
          ];
    this.chart.append(svg("line", { ...across, class: "grid" }), svg("text", text, short(value)));
  }

  at(slider) {
    const k = Number(slider.value);
    const [s, loss, bound] = [this.scale[k], this.loss[k], this.bound[k]];
    slider.setAttribute("aria-valuetext", `${short(s)} times the privacy level`);
    this.told.textContent = `At ${short(s)} times the privacy level the least loss is between ${measured(bound, this.unit)} and ${measured(loss, this.unit)}.`;
    const x = this.toX(s);
    this.cursor.replaceChildren(
      svg("line", { x1: x, x2: x, y1: BOX.top, y2: BOX.high - BOX.bottom }),
      svg("circle", { cx: x, cy: this.toY(loss), r: 6 }),
    );
    const rows = this.baselines.map((line) => {
      const [own, level] = [line.loss[k], line.level[k]];
      const name = element("th", named(line.name));
      name.scope = "row";
      const broken = level > s * this.atClaim;
      const kept = !Number.isFinite(own)
        ? element("td", "–")
        : broken
          ? element("td", "✗", "bad")
          : element("td", "✓", "good");
      const figures = [own, level].map((value) => element("td", Number.isFinite(value) ? short(value) : "–", "number"));
      return element("tr", "", broken ? "broken" : "", [name, ...figures, kept]);
    });
    this.table.tBodies[0].replaceChildren(...rows);
  }
}

/** Round numbers between the ends of a logarithmic range. */
function ticks([low, high]) {
  const found = [];
  for (let power = Math.floor(low / Math.LN10); power <= Math.ceil(high / Math.LN10); power++) {
    for (const digit of high - low < 2.5 ? [1, 1.5, 2, 3, 5, 7] : high - low < 7 ? [1, 2, 5] : [1]) {
      const value = digit * 10 ** power;
      if (Math.log(value) >= low - 1e-9 && Math.log(value) <= high + 1e-9) found.push(value);
    }
  }
  return found;
}

function symbol(shape, x, y, r = 5) {
  const turns = { s: [4, 45], D: [4, 0], "^": [3, 0], v: [3, 180], p: [5, 0] }[shape];
  if (!turns) return `M${x - r},${y - r}L${x + r},${y + r}M${x + r},${y - r}L${x - r},${y + r}`;
  const corner = (k) => ((360 * k) / turns[0] + turns[1] - 90) * (Math.PI / 180);
  const points = Array.from(
    { length: turns[0] },
    (_, k) => `${x + 1.2 * r * Math.cos(corner(k))},${y + 1.2 * r * Math.sin(corner(k))}`,
  );
  return `M${points.join("L")}Z`;
}
