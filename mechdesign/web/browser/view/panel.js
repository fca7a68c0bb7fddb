// The figures next to the map: of the place that was chosen, and of a report from it.

/** A length or an angle with the word of its direction. */
function withDirection(value, text, [plus, minus]) {
  return `${text(Math.abs(value))} ${value < 0 ? minus : plus}`;
}

/** Degrees in words. */
function degreeWords(longitude, latitude, text) {
  return `${withDirection(latitude, text, "NS")}, ${withDirection(longitude, text, "EW")}`;
}

/** Coordinates of a place in words. */
function where(model, k, axes = model.secrets, unit = model.facts.unit) {
  if (axes === model.secrets && model.degrees) {
    return degreeWords(model.degrees[2 * k], model.degrees[2 * k + 1], (angle) => `${angle.toFixed(4)}°`);
  }
  const labels = axes === model.secrets ? model.domain.labels : model.reportLabels;
  if (labels) return labels[k];
  if (model.domain.kind === "nodes" && axes.length === 1) return `secret ${k}`;
  const numbers = axes.map((axis) => Number(axis[k].toPrecision(4)).toLocaleString("en"));
  return numbers.length === 1 ? `${numbers[0]} ${unit}` : `(${numbers.join(", ")})${unit ? ` ${unit}` : ""}`;
}

function reportWords(model, y) {
  if (!model.located) return where(model, y, model.reports, model.facts.report_unit);
  if (model.degrees) return degreeWords(...model.reportDegrees(y), (angle) => `${angle.toFixed(4)}°`);
  return model.parts % 2 === 0 ? where(model, y, model.reports) : where(model, model.cellOf[y]);
}

/** Fill the legend of a map: the ends of its scale, printed by `format`, and the name of its values. */
function fillLegend(legend, scale, words, bars, format) {
  legend.hidden = false;
  legend.querySelector(".ramp").style.background = bars ? "" : gradient();
  legend.querySelector(".ramp").hidden = bars || scale.constant;
  const known = Number.isFinite(scale.most);
  const one = bars || scale.constant;
  legend.querySelector(".least").textContent =
    !known || one ? "" : `${scale.logarithmic ? "≤ " : ""}${format(scale.least)}`;
  legend.querySelector(".most").textContent = !known || one ? "" : format(scale.most);
  legend.querySelector(".words").textContent =
    known && one ? `${words}: ${bars && !scale.constant ? "at most " : ""}${format(scale.most)}` : words;
}

/** Fill a list of terms and their descriptions. */
function describe(list, facts) {
  list.replaceChildren(
    ...Object.entries(facts).flatMap(([term, value]) => [element("dt", term), element("dd", value)]),
  );
}

function placeFacts(model, u, row, point) {
  const facts = { prior: chance(model.prior[u]) };
  if (model.positionClaim) facts["from the centre"] = offsetWords(model, point);
  if (model.level) facts["privacy level"] = `${short(model.level[u])} nats per ${unitWord(model.domain.unit, false)}`;
  if (model.losses?.has(u)) facts["expected loss"] = withUnit(model.losses.get(u), model.facts.loss_unit);
  if (!row) return facts;
  if (model.located) {
    const own = trueReport(model, u);
    facts[`true ${model.nouns.one} reported`] = own < 0 ? "never: no report lies here" : chance(row[own]);
    if (model.hasDistances) {
      facts["95 % of reports within"] = withUnit(model.radius(u, row, 0.95, point), model.facts.unit);
    }
  }
  return facts;
}

/** The report whose place or cell holds secret u; -1 if no report does, or reports are not places. */
function trueReport(model, u) {
  if (!model.located) return -1;
  return model.reportAt ? (model.reportAt[u] ?? -1) : model.cellOf.indexOf(u);
}

/** How often the true place is reported, as a sentence; "" where reports are not places. */
function placeWords(model, u, row) {
  const own = trueReport(model, u);
  if (own < 0) return "";
  return `A report from here names this very ${model.nouns.one} with probability ${chance(row[own])}.`;
}

/** The belief of whoever knows the prior, before and after a report, as sentences. */
function beliefWords(model, u, posterior) {
  const { one } = model.nouns;
  const best = posterior.reduce((top, p, k) => (p > posterior[top] ? k : top), 0);
  const words = `Whoever knows the prior gives your ${one} a probability of ${chance(model.prior[u])} before this report, and of ${chance(posterior[u])} after it.`;
  return `${words} ${best === u ? `No ${one} has a larger one.` : `The largest is ${chance(posterior[best])}, of another ${one}.`}`;
}

/** Where a point lies, from the centre of its cell. */
function offsetWords(model, point) {
  const [east, north] = point.map((a) => (a / 2 ** 16) * model.positionClaim.side);
  if (east === 0 && north === 0) return "at it";
  const distance = (far) => withUnit(far, model.facts.unit);
  const words = model.degrees ? [["east", "west"], ["north", "south"]] : [["right", "left"], ["above", "below"]];
  return `${withDirection(east, distance, words[0])}, ${withDirection(north, distance, words[1])}`;
}

/** Facts about a report, and an attacker's belief after it. */
function reportFacts(model, u, y, posterior, point) {
  const facts = { reported: reportWords(model, y) };
  const apart = model.apart(u, y, point);
  if (apart !== null && (model.hasDistances))
    facts["off by"] = withUnit(apart, model.facts.unit);
  if (posterior) {
    facts["belief before"] = chance(model.prior[u]);
    facts["belief after"] = chance(posterior[u]);
    const best = posterior.reduce((top, p, k) => (p > posterior[top] ? k : top), 0);
    facts[best === u ? "best guess: right" : "best guess: elsewhere"] = chance(posterior[best]);
  }
  return facts;
}
