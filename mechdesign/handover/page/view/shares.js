// The page of an estimate: the map of the distribution and of the shares, the area that is chosen, whether reports fit.

const COLUMNS = ["share", "low", "high", "standard_error", "effective", "likelihood_share"];
const COMPARED = ["against_share", "difference", "difference_low", "difference_high"];

class Shares {
  constructor(page, parts) {
    Object.assign(this, { page, parts, tab: "distribution" });
    const { facts } = page.contents;
    this.model = {
      facts,
      secrets: axesOf(page, "secret"),
      degrees: has(page, "degrees") ? array(page, "degrees") : null,
    };
    this.p = array(page, "distribution");
    this.label = has(page, "area_of") ? places(page, "area_of") : null;
    this.rows = areaRows(page);
    this.ground = groundOf(this.model.secrets, facts.domain, false, null);
    this.map = new PlaceMap(
      parts.canvas,
      (place, way) => this.choose(place ?? this.ground.step(this.place, ...way)),
      () => this.show(),
    );
    this.confidence = Number((100 * (attribute(page, "confidence") ?? 0)).toPrecision(6));
    this.#tabs();
    if (this.rows.length) {
      showBars(parts.bars, this.rows, this.confidence, (k) => this.choose(this.#likeliest(k)));
      parts.areas.hidden = false;
      const without = this.rows.filter((row) => row.reason);
      parts.reasons.replaceChildren(...without.map(({ name, reason }) => element("li", `${name}: ${reason}.`)));
      parts.reasons.parentElement.hidden = without.length === 0;
    }
    showFit(parts.fit, page);
    this.choose(this.#likeliest(page.contents.saying.area));
  }

  /** The likeliest place of area k; of all where that is null. */
  #likeliest(k) {
    return this.p.reduce(
      (best, p, u) => ((k === null || this.label[u] === k) && (best < 0 || p > this.p[best]) ? u : best),
      -1,
    );
  }

  #tabs() {
    const texts = { distribution: "Most likely distribution", ...(this.label && { share: "Shares of areas" }) };
    this.buttons = new Map();
    if (!this.label) return;
    for (const [name, text] of Object.entries(texts)) {
      const button = element("button", text);
      button.type = "button";
      button.addEventListener("click", () => {
        this.tab = name;
        this.show();
      });
      this.buttons.set(name, button);
      this.parts.tabs.append(button);
    }
  }

  choose(u) {
    this.place = u;
    this.show();
  }

  show() {
    const { parts, place, label, rows, ground, model, tab } = this;
    const row = label ? rows[label[place]] : null;
    const values = tab === "share" ? Float64Array.from(label, (k) => rows[k].share) : this.p;
    const scale = ground.kind === "bars" ? { ...scaleOf(values), least: 0 } : scaleOf(values);
    this.map.show({
      ground,
      values,
      scale,
      label,
      marks: [{ place, kind: "person" }],
      unit: model.facts.unit,
      inside: label ? Array.from(label, (k) => k === label[place]) : null,
      axis: model.facts.unit,
    });
    const words = tab === "share" ? "estimated share of people in each area" : "share of people at each place";
    fillLegend(parts.legend, scale, words, ground.kind === "bars", (value) => percent(value));
    for (const [name, button] of this.buttons) button.setAttribute("aria-pressed", String(name === tab));
    parts.title.textContent = row ? row.name : where(model, place);
    describe(parts.place, this.#facts(place, row));
    parts.missing.hidden = !row?.reason;
    parts.missing.textContent = row?.reason ? `No interval: ${row.reason}.` : "";
    for (const line of parts.bars.tBodies[0].rows)
      line.classList.toggle("chosen", row !== null && Number(line.dataset.area) === row.k);
  }

  #facts(place, row) {
    const own = { "most likely, at this place": percent(this.p[place], 3) };
    if (!row) return own;
    const facts = { "estimated share": percent(row.share) };
    if (Number.isFinite(row.low)) {
      const together = attribute(this.page, "simultaneous") ? ", all together" : "";
      facts[`${this.confidence} % interval${together}`] = `${(100 * row.low).toFixed(2)} to ${percent(row.high)}`;
    }
    facts["standard error"] = percent(row.standard_error);
    facts["effective reports"] = short(row.effective);
    facts["most likely share"] = percent(row.likelihood_share);
    return { ...facts, place: where(this.model, place), ...own };
  }
}

/** The figures of every area: { k, name, reason, share, low, high, ... }. */
function areaRows(page) {
  const names = areasOf(page);
  if (!names.length) return [];
  const reasons = JSON.parse(attribute(page, "reasons"));
  const figures = [...COLUMNS, ...COMPARED].filter((name) => has(page, name)).map((name) => [name, array(page, name)]);
  return names.map((name, k) => ({
    k,
    name,
    reason: reasons[k],
    ...Object.fromEntries(figures.map(([column, values]) => [column, values[k]])),
  }));
}

/** Whether the reports fit, in words. */
function showFit(place, page) {
  const several = JSON.parse(attribute(page, "mechanisms")).length > 1;
  const from = several ? "these mechanisms" : "this mechanism";
  const p = fitOf(page);
  const other = attribute(page, "against_fit_p");
  const bad = [p, other].some((value) => value < page.contents.refused_below);
  place.className = `fit ${bad ? "refused" : ""}`;
  const told = (value, which) => {
    if (value < page.contents.refused_below)
      return `${which} cannot have come from ${from} (p below ${Math.max(value, 1e-300).toExponential(1)}): do not trust the shares.`;
    return value < 0.05
      ? `It is in doubt whether ${which.toLowerCase()} came from ${from} (p at most ${short(value)}).`
      : `${which} fit ${from}: the test of fit finds nothing against it (p at most ${short(value)}).`;
  };
  const texts = [told(p, "These reports")];
  if (other !== undefined) texts.push(told(other, "The reports of the other period"));
  place.textContent = texts.join(" ");
}

function startShares(page) {
  byId("shares").hidden = false;
  return new Shares(page, {
    canvas: byId("map"),
    tabs: byId("tabs"),
    legend: byId("legend"),
    title: byId("place-title"),
    place: byId("place"),
    missing: byId("missing"),
    areas: byId("areas"),
    bars: byId("bars"),
    reasons: byId("reasons"),
    fit: byId("fit"),
  });
}
