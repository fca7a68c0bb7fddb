// The map on a canvas: values in colours, marks on them, the pointer and the keys.

const PRINTED = 3; // pixels of a canvas on paper, a pixel of the layout
const LEAST_WIDE = 180; // room for the scale bar

class PlaceMap {
  /** Draws on `canvas`. Calls chosen(place, how, outside) for a click at coordinates, outside every cell or not, and for a
   * step by keys; entered() for Enter. */
  constructor(canvas, chosen, entered) {
    Object.assign(this, { canvas, chosen, entered, shown: null });
    canvas.addEventListener("click", (event) => this.#clicked(event));
    canvas.addEventListener("keydown", (event) => this.#pressed(event));
    this.printing = false;
    new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    for (const [event, printing] of [["beforeprint", true], ["afterprint", false]])
      addEventListener(event, () => {
        this.printing = printing;
        document.documentElement.classList.toggle("paper", printing);
        this.draw();
      });
  }

  /** shown = { ground, values, scale, at, marks: [{ place, kind, at }], circle: { place, at, radius }, inside: (n,) of booleans, axis,
   * labels: (n,) names of bars, if they are classes, lines: { x, y, first } of a basemap }. */
  show(shown) {
    this.shown = shown;
    this.draw();
  }

  draw() {
    if (!this.shown) return;
    const { canvas, shown } = this;
    const { ground } = shown;
    const { left, right, low, high } = ground.extent;
    const whole = canvas.parentElement.clientWidth;
    if (!whole) return;
    const bars = ground.kind === "bars";
    const scaled = !bars && shown.unit && !["units", "cells"].includes(shown.unit);
    const [maximal, room] = [Math.max(260, Math.min(window.innerHeight * 0.72, 700)), bars ? 26 : scaled ? 30 : 0];
    const shape = (high - low) / (right - left);
    const tall = bars ? Math.min(maximal, 300) : Math.min(maximal, whole * shape);
    const wide = bars ? whole : Math.max(tall / shape, Math.min(whole, LEAST_WIDE));
    const height = tall + (bars ? 0 : room);
    const ratio = Math.max(window.devicePixelRatio || 1, this.printing ? PRINTED : 1);
    [canvas.width, canvas.height] = [Math.round(wide * ratio), Math.round(height * ratio)];
    canvas.style.width = `${wide}px`; // the height follows, on narrow paper too
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(document.documentElement);
    this.ink = (name) => style.getPropertyValue(`--${name}`).trim();
    const scale = bars ? wide / (right - left) : Math.min(wide / (right - left), (height - room) / (high - low));
    const shiftY = bars ? 0 : room + (height - room - scale * (high - low)) / 2;
    this.toX = (x) => (x - left) * scale;
    this.toY = bars ? (y) => (height - room) * (1 - y) : (y) => height - shiftY - (y - low) * scale;
    this.fromX = (x) => left + x / scale;
    this.fromY = (y) => low + (height - shiftY - y) / scale;
    this.scale = scale;
    pen.clearRect(0, 0, wide, height);
    if (bars) this.#bars(pen, wide, height - room);
    else this.#area(pen);
    if (scaled) this.#scaleBar(pen, scale * (right - left), height);
  }

  #fill(k) {
    const { values, scale } = this.shown;
    return Number.isFinite(values[k]) ? `rgb(${colour(scale.share(values[k])).join()})` : this.ink("blank");
  }

  #area(pen) {
    const { ground, marks, circle, inside, lines } = this.shown;
    if (ground.streets) this.#lines(pen);
    const [w, h] = ground.cell.map((side) => side * this.scale);
    const dot = Math.max(3.5, Math.min(9, 0.3 * w));
    for (let k = 0; k < ground.count; k++) {
      pen.fillStyle = this.#fill(k);
      if (ground.kind === "cells") {
        const [x, y] = [this.toX(ground.x[k] - ground.cell[0] / 2), this.toY(ground.y[k] + ground.cell[1] / 2)];
        pen.fillRect(Math.floor(x), Math.floor(y), Math.ceil(x + w) - Math.floor(x), Math.ceil(y + h) - Math.floor(y));
      } else {
        pen.beginPath();
        pen.arc(this.toX(ground.x[k]), this.toY(ground.y[k]), dot, 0, 7);
        pen.fill();
        pen.lineWidth = 1;
        pen.strokeStyle = this.ink("line");
        pen.stroke();
      }
    }
    if (lines) this.#basemap(pen, lines);
    if (circle) {
      pen.beginPath();
      // Angles end at 7, beyond 2 pi: a full circle.
      const [x, y] = circle.at ?? [ground.x[circle.place], ground.y[circle.place]];
      pen.arc(this.toX(x), this.toY(y), circle.radius * this.scale, 0, 7);
      this.#outlined(pen, [6, 4]);
    } else if (inside) this.#outline(pen, inside, dot);
    for (const { place, kind, at } of marks)
      this.#mark(pen, at ?? [ground.x[place], ground.y[place]], kind, ground.kind === "cells" ? Math.min(w, h) : 3 * dot);
  }

  #outlined(pen, dashes = []) {
    pen.setLineDash(dashes);
    this.#twice(pen, 3.5, 1.75);
    pen.setLineDash([]);
  }

  /** The border of the cells that are inside, or rings around the dots. */
  #outline(pen, inside, dot) {
    const { ground } = this.shown;
    pen.beginPath();
    if (ground.kind === "dots") {
      for (let k = 0; k < ground.count; k++) {
        if (!inside[k]) continue;
        pen.moveTo(this.toX(ground.x[k]) + dot + 2.5, this.toY(ground.y[k]));
        pen.arc(this.toX(ground.x[k]), this.toY(ground.y[k]), dot + 2.5, 0, 7);
      }
    } else {
      this.#border(pen, inside);
    }
    this.#outlined(pen, ground.kind === "dots" ? [] : [6, 4]);
  }

  /** The sides of the cells inside whose neighbour is not. */
  #border(pen, inside) {
    const { ground } = this.shown;
    const [w, h] = ground.cell;
    // Half sides as integers: centres in doubles would not be equal keys.
    const key = (x, y) => `${Math.round((x / w) * 2)},${Math.round((y / h) * 2)}`;
    const insideAt = new Map(Array.from(inside, (isInside, k) => [key(ground.x[k], ground.y[k]), isInside]));
    for (let k = 0; k < ground.count; k++) {
      if (!inside[k]) continue;
      const [x, y] = [ground.x[k], ground.y[k]];
      for (const [dx, dy] of [
        [1, 0],
        [-1, 0],
        [0, 1],
        [0, -1],
      ]) {
        if (insideAt.get(key(x + dx * w, y + dy * h))) continue;
        const [cx, cy] = [x + (dx * w) / 2, y + (dy * h) / 2];
        pen.moveTo(this.toX(cx - (dy * w) / 2), this.toY(cy - (dx * h) / 2));
        pen.lineTo(this.toX(cx + (dy * w) / 2), this.toY(cy + (dx * h) / 2));
      }
    }
  }

  #lines(pen) {
    const { ground } = this.shown;
    pen.beginPath();
    for (let e = 0; e < ground.streets.tail.length; e++) {
      const [u, v] = [ground.streets.tail[e], ground.streets.head[e]];
      pen.moveTo(this.toX(ground.x[u]), this.toY(ground.y[u]));
      pen.lineTo(this.toX(ground.x[v]), this.toY(ground.y[v]));
    }
    [pen.lineWidth, pen.strokeStyle] = [2, this.ink("street")];
    pen.stroke();
  }

  /** Lines such as coast and roads, dark within light, so that they show on every colour. */
  #basemap(pen, { x, y, first }) {
    pen.beginPath();
    for (let line = 0; line + 1 < first.length; line++) {
      for (let k = first[line]; k < first[line + 1]; k++) {
        if (k === first[line]) pen.moveTo(this.toX(x[k]), this.toY(y[k]));
        else pen.lineTo(this.toX(x[k]), this.toY(y[k]));
      }
    }
    for (const [width, style] of [[2.2, "rgb(255 255 255 / 0.75)"], [0.9, "#1b4f72"]]) {
      [pen.lineWidth, pen.strokeStyle] = [width, style];
      pen.stroke();
    }
  }

  /** The person is a ring, the report a cross. */
  #mark(pen, at, kind, size) {
    const [x, y] = [this.toX(at[0]), this.toY(at[1])];
    const r = Math.max(6, Math.min(11, 0.42 * size));
    pen.beginPath();
    if (kind === "person") pen.arc(x, y, r, 0, 7);
    else this.#cross(pen, x, y, r);
    this.#twice(pen, 6, 2.5);
  }

  #cross(pen, x, y, r) {
    pen.moveTo(x - r, y - r);
    pen.lineTo(x + r, y + r);
    pen.moveTo(x - r, y + r);
    pen.lineTo(x + r, y - r);
  }

  /** A line in white within one in black, so that it shows on every colour. */
  #twice(pen, outer, inner) {
    for (const [width, style] of [
      [outer, "#000"],
      [inner, "#fff"],
    ]) {
      pen.lineWidth = width;
      pen.strokeStyle = style;
      pen.stroke();
    }
  }

  #bars(pen, wide, height) {
    const { ground, values, scale, marks, inside, axis, labels } = this.shown;
    const top = scale.most || 1;
    const floor = scale.logarithmic ? scale.least : 0;
    const tall = (value) => (scale.logarithmic ? scale.share(value) : (value - floor) / (top - floor)) * (height - 14);
    const width = Math.max(1.5, ground.cell[0] * this.scale - 1);
    if (inside) {
      pen.fillStyle = this.ink("soft");
      for (let k = 0; k < ground.count; k++)
        if (inside[k]) pen.fillRect(this.toX(ground.x[k]) - width / 2 - 1, 0, width + 2, height);
    }
    for (let k = 0; k < ground.count; k++) {
      const tallness = Number.isFinite(values[k]) ? Math.max(1.5, tall(values[k])) : 0;
      pen.fillStyle = this.ink("bar");
      pen.fillRect(this.toX(ground.x[k]) - width / 2, height - tallness, width, tallness);
    }
    for (const { place, kind } of marks) {
      const x = this.toX(ground.x[place]);
      pen.beginPath();
      if (kind === "person") pen.arc(x, 9, 6, 0, 7);
      else this.#cross(pen, x, 9, 5);
      pen.moveTo(x, 16);
      pen.lineTo(x, height);
      [pen.lineWidth, pen.strokeStyle] = [2, this.ink("accent")];
      pen.stroke();
    }
    pen.fillStyle = pen.strokeStyle = this.ink("muted");
    [pen.font, pen.lineWidth] = ["12px system-ui, sans-serif", 1];
    pen.beginPath();
    pen.moveTo(0, height + 0.5);
    pen.lineTo(wide, height + 0.5);
    pen.stroke();
    if (labels) {
      // As many names as have 48 pixels each.
      const step = Math.ceil((48 * ground.count) / wide);
      pen.textAlign = "center";
      for (let k = 0; k < ground.count; k += step)
        pen.fillText(labels[k], this.toX(ground.x[k]), height + 17, Math.min(step * width, wide));
      return;
    }
    const { left, right } = ground.extent;
    [
      [left, "left"],
      [(left + right) / 2, "center"],
      [right, "right"],
    ].forEach(([at, align]) => {
      pen.textAlign = align;
      pen.fillText(align === "center" && axis ? axis : short(at), this.toX(at), height + 17);
    });
  }

  /** A round length below the map, a quarter of it at most. */
  #scaleBar(pen, wide, height) {
    const target = (0.25 * wide) / this.scale;
    const power = 10 ** Math.floor(Math.log10(target));
    const length = [5, 2, 1].map((k) => k * power).find((value) => value <= target);
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = this.ink("muted");
    pen.textAlign = "left";
    pen.fillRect(0, height - 16, length * this.scale, 3);
    const far = this.shown.unit === "m" && length >= 1000;
    pen.fillText(far ? `${(length / 1000).toLocaleString("en")} km` : `${length.toLocaleString("en")} ${this.shown.unit}`, 0, height - 2);
  }

  #clicked(event) {
    const box = this.canvas.getBoundingClientRect();
    const at = [this.fromX(event.clientX - box.left), this.fromY(event.clientY - box.top)];
    const place = this.shown.ground.nearest(...at);
    if (place >= 0) this.chosen(place, at, !this.shown.ground.holds(place, ...at));
  }

  #pressed(event) {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (way) this.chosen(null, way);
    else if (event.key === "Enter" || event.key === " ") this.entered();
    else return;
    event.preventDefault();
  }
}
