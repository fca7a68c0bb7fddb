// The interactive map: tabs, a place that is chosen, a report that is drawn, the reach of a factor of odds.

const TABS = {
  prior: "Prior",
  level: "Privacy level",
  loss: "Expected loss",
  reports: "Reports from here",
  belief: "An attacker's belief",
  worst: "After the worst report",
};
const DEPTH = 1e-6; // of the largest probability shown: smaller ones get the darkest colour

/** Add a button for each [name, text] that selects the values on the map; returns a function that marks one as pressed. */
function addTabs(texts, turn) {
  const buttons = texts.map(([name, text]) => {
    const button = element("button", text);
    button.type = "button";
    button.addEventListener("click", () => turn(name));
    return [name, button];
  });
  byId("tabs").append(...buttons.map(([, button]) => button));
  return (tab) => buttons.forEach(([name, button]) => button.setAttribute("aria-pressed", String(name === tab)));
}

/** A map with the chosen place and the reports drawn from it. */
class View {
  constructor() {
    this.report = null;
    this.map = new PlaceMap(
      byId("map"),
      (place, how, outside = false) => {
        this.chosen(place, how);
        byId("outside").hidden = !outside;
      },
      () => this.draw(),
    );
    byId("draw").addEventListener("click", () => this.draw());
  }

  turn(tab) {
    this.tab = tab;
    this.show();
  }
}

class Explore extends View {
  constructor(model) {
    super();
    Object.assign(this, { model, posterior: null, tab: "reports", worst: null });
    const { domain } = model;
    this.ground = groundOf(model.secrets, domain, model.page.contents.network, model.edges);
    this.reportGround = model.located ? this.ground : groundOf(model.reports, { kind: "points" }, false, null);
    this.secret = this.#likeliest();
    byId("factor").addEventListener("input", () => this.show());
    this.#tabs();
    const factor = model.page.contents.protection.factor;
    this.factor = factor > 1.05 && factor < 50 ? factor : 2; // that of the sentence where the slider reaches it
    byId("factor").value = Math.log(Math.log(this.factor));
    this.choose(this.secret);
  }

  /** The likeliest place whose row is there; of several, the one nearest to the middle. */
  #likeliest() {
    const { model, ground } = this;
    const { left, right, low, high } = ground.extent;
    const off = (u) => Math.hypot(ground.x[u] - (left + right) / 2, ground.y[u] - (low + high) / 2);
    const there = Array.from({ length: model.count }, (_, u) => u).filter((u) => model.carries(u));
    const most = there.reduce((best, u) => Math.max(best, model.prior[u]), 0);
    return there
      .filter((u) => model.prior[u] >= most * (1 - 1e-9))
      .reduce((best, u) => (off(u) < off(best) ? u : best));
  }

  #tabs() {
    const { model } = this;
    const there = { level: model.level !== null, belief: !model.rowOf, worst: false };
    const constant = (values) => scaleOf(values).constant;
    if (model.level && constant(model.level)) there.level = false;
    if (constant(model.prior)) there.prior = false;
    if (model.page.contents.kind === "table") there.worst = capsOf(model.page).length > 0;
    const texts = model.located ? TABS : { ...TABS, reports: "Answers from here" };
    const tabs = Object.entries(texts).filter(([name]) => there[name] !== false);
    this.press = addTabs(tabs, (name) => this.turn(name));
  }

  /** A place that was clicked at coordinates, or the next one in a direction. */
  chosen(place, how) {
    const onReports = this.tab === "reports" && !this.model.located;
    if (onReports && place !== null) return this.#report(place);
    if (place === null) return this.choose(this.ground.step(this.secret, ...how));
    this.choose(place, this.model.positionClaim ? this.model.pointIn(place, how) : undefined);
  }

  choose(u, point = [0, 0]) {
    [this.secret, this.point] = [u, point];
    this.row = this.model.row(u, point);
    [this.report, this.posterior] = [null, null];
    if (["prior", "level", "loss"].includes(this.tab) === false) this.tab = "reports";
    byId("draw").disabled = !this.row;
    this.show();
  }

  draw() {
    if (this.row) this.#report(this.model.draw(this.secret, this.point));
  }

  /** Show a report, and the attacker's belief after it. */
  #report(report) {
    this.report = report;
    this.posterior = this.model.posterior(this.report);
    if (this.posterior) this.tab = "belief";
    this.show();
  }

  /** Take over the results of a proof: losses, the worst report, the faulty place. */
  proved({ faults, figures: { losses, disc } }) {
    const { model } = this;
    this.worst = disc ?? null;
    if (losses) {
      const numbers = model.around ? null : model.rowOf && [...model.rowOf.keys()];
      const lossList = (model.around && model.centreLosses()) || losses;
      model.losses = new Map(Array.from(lossList, (loss, k) => [numbers ? numbers[k] : k, loss]));
      this.show();
    }
    const at = faults.find((fault) => fault.secret !== undefined);
    if (at && at.secret < model.count) this.choose(at.secret);
  }

  #values() {
    const { model } = this;
    const all = (value) => Float64Array.from({ length: model.count }, (_, u) => value(u));
    if (this.tab === "belief" && this.posterior)
      return { values: this.posterior, depth: DEPTH, words: `probability of each ${model.nouns.one} after the report` };
    if (this.tab === "worst") {
      const where = this.worst?.byArea ? `${model.nouns.many} that are` : `${shapeOf(model.page)} that is`;
      const share = this.worst ? `${percent(this.worst.share, true, 3)} in the ${where} outlined` : "not proved yet";
      return { values: this.worst?.posterior ?? all(() => NaN), depth: DEPTH, words: `probability of each ${model.nouns.one} after the worst report: ${share}` };
    }
    if (this.tab === "loss") {
      const unit = model.facts.loss_unit ? `, ${model.facts.loss_unit}` : "";
      return { values: all((u) => model.losses?.get(u) ?? NaN), words: `expected loss of a report${unit}` };
    }
    if (this.tab === "prior") return { values: model.prior, words: `prior probability of each ${model.nouns.one}` };
    if (this.tab === "level")
      return { values: model.level, words: `privacy level, nats per ${unitWord(model.domain.unit, false)}` };
    return {
      values: this.row ? model.spread(this.row) : all(() => NaN),
      depth: DEPTH,
      words: "probability that a person here reports it",
      reports: true,
    };
  }

  show() {
    const { model, secret, point } = this;
    if (this.tab === "belief" && !this.posterior) this.draw();
    const { values, depth = null, words, reports = false } = this.#values();
    const ground = reports ? this.reportGround : this.ground;
    const onSecrets = ground === this.ground;
    const bars = ground.kind === "bars";
    const scale = bars && depth !== null ? { ...scaleOf(values), least: 0 } : scaleOf(values, depth);
    const worst = this.tab === "worst" ? this.worst : null;
    const marks = onSecrets && !worst ? [{ place: secret, kind: "person", at: model.positionClaim ? model.coordinates(secret, point) : null }] : [];
    const report = worst ? worst.report : this.report;
    const reported = report !== null && model.located ? model.cellOf[report] : report;
    if (report !== null && (model.located || reports)) marks.push({ place: reported, kind: "report", at: onSecrets && model.located && !bars ? model.reportPoint(report) : null });
    this.factor = Math.exp(Math.exp(Number(byId("factor").value)));
    const nats = model.nats(secret);
    const inside = Array.from(nats, (d) => d <= Math.log(this.factor) * (1 + 1e-9));
    const round = model.straight() && ground.kind !== "bars" && onSecrets && !worst;
    const radius = round ? model.reach(this.factor) : null;
    this.map.show({
      ground,
      values,
      scale,
      marks,
      unit: model.facts.unit,
      circle: round && Number.isFinite(radius) ? { place: secret, at: marks[0]?.at, radius } : null,
      inside: worst ? inside.map((_, u) => worst.disc.includes(u)) : onSecrets ? inside : null,
      labels: reports && !model.located ? model.reportLabels : model.domain.labels,
      axis: reports && !model.located ? "answer" : model.facts.unit,
      lines: ground.kind === "bars" ? null : model.lines,
    });
    this.press(this.tab);
    const chances = ["reports", "belief", "prior", "worst"].includes(this.tab);
    fillLegend(byId("legend"), scale, words, bars, chances ? chance : short);
    byId("place-title").textContent = where(model, secret);
    describe(byId("place"), placeFacts(model, secret, this.row, point));
    const within = inside.filter(Boolean).length - 1;
    const far = radius === null ? "" : figure(radius, !model.positionClaim); // cells within it are counted, positions promised
    const factor = figure(this.factor, true);
    const { one, several, cell: cells } = model.nouns;
    const reach = radius === null ? "" : `, all within ${far} ${model.facts.unit}`;
    const others = `${countWords(within)} other ${within === 1 ? (cells ? "cell" : one) : cells ? "cells" : several}`;
    const from = model.positionClaim ? "here" : cells ? "this cell" : "here";
    const reach_text =
      model.positionClaim && radius !== null
        ? `any position within ${far} ${model.facts.unit} by no more`
        : within === 0
          ? `any other ${cells ? "cell" : one} by more`
          : `${others} by no more`;
    byId("reach").textContent = `A report changes the odds between ${from} and ${reach_text} than a factor of ${factor}${model.positionClaim || within === 0 ? "" : reach}.`;
    byId("factor").setAttribute("aria-valuetext", `factor ${factor}`);
    byId("factor-text").textContent = factor;
    byId("place-words").textContent = this.row ? placeWords(model, secret, this.row) : "";
    byId("report-box").hidden = this.report === null;
    byId("report-words").textContent = this.posterior ? beliefWords(model, secret, this.posterior) : "";
    if (this.report !== null) describe(byId("report"), reportFacts(model, secret, this.report, this.posterior, point));
    byId("missing").hidden = this.row !== null;
  }
}
