// The sentences of a page, made from its numbers: protection, error, lower bound and claim. They are those of
// output/sentences.py: change both together. Losses and factors are rounded up, bounds and radii down.

// A Gauss-Legendre rule of 10 nodes on either half of [-1, 1]. It agrees with problem/position_loss.py to 1e-12.
const NODE = [-1, 1].flatMap((half) => device.NODES.flatMap((x) => [(half - x) / 2, (half + x) / 2]));
const WEIGHT = [...device.WEIGHTS, ...device.WEIGHTS].flatMap((weight) => [weight / 2, weight / 2]);
const KILOMETRES = 10_000; // metres; longer lengths are in km
const QUOTED_GAP = 0.2; // largest gap of a bound that a sentence quotes
const EXPECTED_LOSS = "the expected loss"; // the objective, unless a program names another
const LARGE_GAP = 10; // times the target gap: a design that ends above this is reported first, as a shortfall
const UNKNOWN = "it is not known how far the loss is from the minimum";
const BUDGET = "k reports cost k times as much.";

/** A figure in plain digits with thousands separators; up: true to round up, false to round down, null to nearest. */
function figure(value, up = null, digits = 4) {
  if (value === 0 || !Number.isFinite(value)) return value > 0 ? "inf" : String(value);
  const exponent = Math.floor(Math.log10(Math.abs(value))) - digits + 1;
  // 10 ** exponent may be 0 in doubles
  const scaled = exponent > -300 ? (exponent < 300 ? value * 10 ** -exponent : value / 10 ** exponent) : value * 1e300 * 10 ** (-exponent - 300);
  // A figure that rounding in doubles moved off an integer by 1e-12 is not rounded to the next one.
  let near = Math.round(scaled);
  if (up !== null && Math.abs(scaled - near) > 1e-12 * Math.abs(scaled)) near = up ? Math.ceil(scaled) : Math.floor(scaled);
  const shown = Number(`${near}e${exponent}`);
  if (Math.abs(shown) >= 0.99e-4 && Math.abs(shown) < 1e9) return shown.toLocaleString("en", { maximumSignificantDigits: digits + 1 });
  const [mantissa, power] = shown.toExponential(digits - 1).split("e");
  const raised = [...power.replace("+", "")].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("");
  return `${mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa} × 10${raised}`;
}

/** A share in percent, two digits. */
function percent(share, up, digits = 2) {
  return up && share > 0 && share < 1e-6 ? "under 0.0001 %" : `${figure(100 * share, up, digits)} %`;
}

/** An upper limit in percent. */
function upToWords(share) {
  const text = percent(share, true);
  return text.startsWith("under") ? text : `up to ${text}`;
}

/** The word of a unit of length after one, or after several. */
function unitWord(unit, several = true) {
  return { 1: ["unit", "units"], cell: ["cell", "cells"] }[unit]?.[Number(several)] ?? unit;
}

function ofLength(value, unit, up) {
  if (unit === "m" && Math.abs(value) >= KILOMETRES) return `${figure(value / 1000, up)} km`;
  const text = figure(value, up);
  return `${text} ${unitWord(unit, text !== "1")}`;
}

/** A loss in the unit of its table: a length, its square, or a bare number. */
function ofLoss(value, unit, up) {
  const root = unit.replace(/\^2$/, "");
  const text = figure(value, up);
  if (Object.hasOwn(METRES, root) || root === "cell") return root === unit ? ofLength(value, unit, up) : `${text} ${root}²`;
  if (root === "units") return root === unit ? ofLength(value, "1", up) : `${text} squared units`;
  return unit === "1" ? text : `${text} ${unit.replace("^2", "²")}`;
}

/** The first sentences of a page of a mechanism. */
function headline(page) {
  const loss = lossWords(page);
  return [stoppedWords(page), protectedWords(page), capWords(page), loss.words, boundWords(page, loss)].filter(Boolean).join(" ");
}

/** The protected secrets, in words. */
function subjectOf(page) {
  const { kind, unit, cell, labels } = jsonAttribute(page, "domain");
  const [what, nouns] = [protectedKind(page), nounsOfPage(page)];
  if (what === "positions") return "any two positions";
  if (what === "places") {
    const noun = kind === "grid" ? "values" : nouns.many;
    const named = labels ? ` (${labels.slice(0, 4).join(", ")}${labels.length > 4 ? ", ..." : ""})` : "";
    return `these ${array(page, "prior").length.toLocaleString("en")} ${noun}${named}`;
  }
  return cellWords(cell, unit);
}

function cellWords(cell, unit) {
  if (unit === "cell") return "cells, not positions";
  const sides = [...new Set(cell.map((side) => side.toLocaleString("en", { maximumSignificantDigits: 6 })))];
  return `cells of ${sides.join(" x ")} ${unitWord(unit, sides.join() !== "1")}, not positions`;
}

/** The protected secrets and the factor by which one report changes odds. */
function protectedWords(page) {
  const { within, factor, exact, path } = page.contents.protection;
  const [subject, what] = [`Protects ${subjectOf(page)}`, protectedKind(page)];
  if (factor === null) return `${subject}; the factor by which a report changes the odds between two people is not known.`;
  if (factor === 1) return `${subject}: a report reveals nothing about anybody.`;
  const change = factor === "unbounded" ? "an unbounded factor" : `a factor of ${exact ? "up to" : "at most"} ${figure(factor, true)}`;
  const { unit } = jsonAttribute(page, "domain");
  const near = within ? `within ${radiusWords(within)} ${unitWord(unit, radiusWords(within) !== "1")}` : "";
  if (what === "cells") return `${subject}: between two people ${near || "however close"}, one report changes the odds by ${change}.`;
  if (what === "places") {
    const metric = claimOf(jsonAttribute(page, "metric")).kind;
    const pairs = { discrete: "any two of them", eikonal: "two of them side by side", graph: "two of them that an edge joins" };
    const between = pairs[metric] ?? `two of them ${near}${metric === "streets" ? " along the streets" : ""}`;
    return `${subject}: between ${between}, one report changes the odds by ${change}.`;
  }
  const ways = path === null ? "" : `, along paths inside the area by at most ${figure(path, true)}`;
  return `${subject}: ${near}${path === null ? "" : " in a straight line"}, one report changes anybody's odds by ${change}${ways}.`;
}

/** A radius: exact if six digits suffice, else rounded down to four. */
function radiusWords(within) {
  const whole = figure(within, false, 6);
  return Number(whole.replaceAll(",", "")) === within ? whole : figure(within, false);
}

/** The mean error: { words, value, format }; format(loss, up) prints a loss. */
function lossWords(page) {
  const { position_loss: at, facts } = page.contents;
  const [loss, { unit }] = [attribute(page, "loss"), jsonAttribute(page, "domain")];
  const value = at ?? attribute(page, "expected_loss");
  const units = unitOf(page, "loss_table") ?? "1";
  if (!WORD.test(units)) throw new RangeError("the unit of the loss is not a plain name");
  const format = {
    squared: (of, up) => ofLength(Math.sqrt(Math.max(of, 0)), unit, up),
    distance: (of, up) => ofLength(of, unit, up),
    "zero-one": (of, up) => percent(1 - of, !up, 4),
  }[loss] ?? ((of, up) => ofLoss(of, units, up));
  const answers = facts.same_places || at !== null ? "" : " of the answers";
  const error = at === null ? `error${answers}` : `distance to the true ${nounsOfPage(page).truth}`;
  const words = {
    squared: `The root mean square ${error} is ${format(value, true)}.`,
    distance: `The mean ${error} is ${format(value, true)}.`,
    "zero-one": `A report is correct with probability ${format(value, true)}.`,
  }[loss] ?? `The mean loss${answers} is ${format(value, true)}.`;
  return { words, value, format };
}

/** The name of the objective. */
function objectiveOf(page) {
  return attribute(page, "objective_of") ?? EXPECTED_LOSS;
}

/** The objective, its lower bound (0 unless it was checked) and the relative gap (null without one). */
function boundOf(page) {
  const objective = attribute(page, "objective") ?? attribute(page, "expected_loss");
  if (page.contents.verification.lower_bound_checked !== true) return { objective, bound: 0, gap: null };
  const bound = attribute(page, "lower_bound");
  return { objective, bound, gap: objective > 0 ? Math.max(0, (objective - bound) / objective) : 0 };
}

/** The gap to the bound over every mechanism between positions, which `verify` checked; null without one. */
function anyGapOf(page, objective) {
  const bound = attribute(page, "any_lower_bound");
  if (attribute(page, "program") !== "positions" || !(bound > 0) || !(objective > 0)) return null;
  return Math.max(0, (objective - bound) / objective);
}

/** The lower bound next to the loss that it bounds; "" without one that was checked, or if the gap is large. */
function boundWords(page, { value, format }) {
  const [{ objective, bound, gap }, at] = [boundOf(page), page.contents.position_loss];
  const [loss, program, placed] = [attribute(page, "loss"), attribute(page, "program"), positionClaimOf(page) !== null];
  const overAll = anyGapOf(page, objective);
  if (placed && overAll !== null && overAll <= QUOTED_GAP) {
    const least = format(attribute(page, "any_lower_bound"), false);
    return `No mechanism at all with this claim and these reports does better than ${least} (gap ${percent(overAll, true)}).`;
  }
  if (!(bound > 0) || (placed && program !== "positions") || (!placed && objectiveOf(page) !== EXPECTED_LOSS)) return "";
  if (objective > 0 && gap > QUOTED_GAP) return "";
  const rivals = placed ? "of this form" : `with this claim${["bounded", "constrained"].includes(program) ? " and its limits" : ""}`;
  const end = objective > 0 ? ` (gap ${percent(gap, true)}).` : ".";
  // To true positions a squared distance has the variance of a cell on top, whatever the mechanism: so has its bound.
  const added = loss === "squared" && at !== null && !placed ? (value - objective) * (1 - 1e-12) : 0;
  const best = `mechanism ${rivals} does better than ${format(bound + added, false)}${end}`;
  if (loss !== "distance" || at === null || placed) return `No ${best}`;
  return `Between centres of ${nounsOfPage(page).many} the mean distance is ${format(objective, true)}, and no ${best}`;
}

/** The possible shortfall of a design that stopped early or has a large gap, with the remedy; "" for others. */
function stoppedWords(page) {
  const [stopped, { gap }] = [attribute(page, "stopped"), boundOf(page)];
  const target = jsonAttribute(page, "parameters").gap;
  const hasTarget = typeof target === "number" && target > 0;
  const isKnown = gap !== null && gap >= 0 && gap < 1 && gap <= (hasTarget ? 1 : QUOTED_GAP);
  const shortfall = isKnown ? `${upToWords(gap)} of the loss may be avoidable` : UNKNOWN;
  const why = { time: "Stopped at the time limit", interrupt: "Stopped by hand" }[stopped];
  if (!why) {
    if (!hasTarget || gap === null || !(gap > LARGE_GAP * target)) return "";
    return `${shortfall[0].toUpperCase()}${shortfall.slice(1)}.`;
  }
  const remedy = stopped === "time" ? "pass a longer --time-limit" : "run the command again without an interruption";
  return `${why}: ${shortfall}. To search longer, ${remedy}.`;
}

/** The cells of a grid in words, with the plane that they lie on. */
function gridWords({ shape, plane }, stretch) {
  if (!plane) return `${shape.join(" x ")} grid`;
  const angle = (value, letters) => `${Math.abs(value)} ${letters[Number(value < 0)]}`;
  const about = `${angle(plane.latitude, "NS")} ${angle(plane.longitude, "EW")}, WGS84`;
  const excess = nearestDouble([stretch[0] - stretch[1], stretch[1]]);
  return `${shape.join(" x ")} grid on the azimuthal equidistant plane about ${about}, where distances exceed geodesic ones by less than ${figure(excess, true, 3)} of them`;
}

/** The claim of the rows of a page in one sentence. */
function claimWords(page) {
  const [claim, domain, count] = [claimOf(jsonAttribute(page, "metric")), jsonAttribute(page, "domain"), array(page, "prior").length];
  const where = domain.kind === "grid" ? `${nounsOfPage(page).many} of a ${gridWords(domain, new ProtectedDomain(page, null, null).stretch)}` : domain.labels ? "classes" : "places";
  const rate = `${claim.most} nats per ${unitWord(domain.unit, false)}`;
  const distance = {
    discrete: `the discrete metric, ${claim.most} nats between any two secrets (local differential privacy)`,
    euclidean: `the Euclidean distance over all pairs times ${rate}`,
    eikonal: `the shortest-path distance of the ${claim.stencil}-neighbour graph, every edge as long as the line integral of the privacy level eps (${claim.least} to ${rate})`,
    streets: `the shortest-path distance along the streets listed in the file, either way, times ${rate}`,
    graph: "the shortest-path distance of the edges listed in the file",
  }[claim.kind];
  const scale = claim.scale === 1 || claim.kind === "graph" ? "" : `${claim.scale} times `;
  return `One report satisfies P(y|u) <= exp(d(u,u')) P(y|u') for every report y and all ${count} secrets (${where}), where d is ${scale}${distance}; checked on ${page.contents.edges} edges. ${BUDGET}`;
}

/** The claim about positions in one sentence; null where there is none. */
function positionClaimWords(page) {
  const [placed, domain, count] = [positionClaimOf(page), jsonAttribute(page, "domain"), array(page, "prior").length];
  if (!placed) return null;
  const grid = gridWords(domain, new ProtectedDomain(page, null, null).stretch);
  const rate = `${placed.most} nats per ${unitWord(domain.unit, false)}`;
  const straight = isWhole(domain, count) ? "the Euclidean distance" : "the length of the shortest path inside the cells";
  const distance = placed.kind === "eikonal"
    ? `the least integral of the privacy level eps (${placed.least} to ${rate}) along paths inside the cells`
    : `${straight} times ${rate}`;
  const scale = placed.scale === 1 ? "" : `${placed.scale} times `;
  return `One report satisfies P(y|x) <= exp(D(x,x') + r) P(y|x') for every report y and all positions x, x' in the ${count} cells, ${placed.side} ${unitWord(domain.unit, false)} wide, of a ${grid}, where D is ${scale}${distance} and r = ${figure(placed.rounding, true, 3)} is for rounding positions to 2^-16 of a cell; drawn by the quadratic B-spline of 3 x 3 cells, checked by its gradient. ${BUDGET}`;
}

/** The mean loss to the true position, uniform in its cell, under the prior. It is null if the file has none
 * (see evaluation/loss.py), and undefined if this page does not carry every row. */
function positionLoss(page, mass) {
  const domain = jsonAttribute(page, "domain");
  const [loss, { cell }] = [attribute(page, "loss"), domain];
  if (domain.kind !== "grid" || cell.length > 2 || !["squared", "distance"].includes(loss)) return null;
  if (page.contents.kind === "factors") {
    return loss === "squared" ? attribute(page, "expected_loss") + cell.reduce((sum, h) => sum + (h * h) / 12, 0) : null;
  }
  const [secrets, reports] = [axesOf(page, "secret"), axesOf(page, "report")];
  if (reports.length !== secrets.length || reports[0].length < 2 || unitOf(page, "report_x") !== unitOf(page, "secret_x")) return null;
  const onLattice = reports.every((axis, k) =>
    // At centres or corners of cells, in halves of a cell.
    axis.every((at) => Math.abs((2 * (at - domain.origin[k])) / cell[k] - Math.round((2 * (at - domain.origin[k])) / cell[k])) <= 1e-9),
  );
  if (loss === "distance" && (new Set(cell).size > 1 || !onLattice)) return null;
  if (page.contents.kind !== "table") return undefined;
  const around = has(page, "around_row") ? places(page, "around_row") : null;
  const [prior, width] = [array(page, "prior"), reports[0].length];
  const steps = around ? AROUND : [null];
  const cost = loss === "squared" ? meanSquares(cell) : meanDistances(cell[0]);
  const masses = inDoubles(mass);
  let total = 0;
  for (const [k, step] of steps.entries()) {
    const costsOf = costsBetween(secrets, reports, onLattice ? cell : null, cost(step));
    for (let u = 0; u < prior.length; u++) {
      const [from, costs] = [(around ? around[9 * u + k] : u) * width, costsOf(u)];
      let row = 0;
      for (let y = 0; y < width; y++) row += masses[from + y] * costs[y];
      total += prior[u] * row;
    }
  }
  return total * 2 ** -62;
}

/** The costs of all reports for a secret u; on half the cells of a lattice each displacement is computed once. */
function costsBetween(secrets, reports, cell, cost) {
  const costs = new Float64Array(reports[0].length);
  if (cell === null) return (u) => costs.map((_, y) => cost(secrets.map((axis, k) => reports[k][y] - axis[u])));
  const steps = secrets.map((axis, k) => {
    const places = [axis, reports[k]].map((values) => Int32Array.from(values, (at) => Math.round((2 * (at - axis[0])) / cell[k])));
    const [low, high] = [Math.min, Math.max].map((end) => places.map((values) => values.reduce((a, b) => end(a, b))));
    return { own: places[0], report: places[1], least: low[1] - high[0], count: high[1] - low[0] - low[1] + high[0] + 1 };
  });
  const known = new Float64Array(steps.reduce((size, { count }) => size * count, 1)).fill(NaN);
  // A line is a lattice of one more axis on which nothing is apart.
  const [first, second] = [steps[0], steps[1] ?? { own: new Int32Array(secrets[0].length), report: new Int32Array(costs.length), least: 0, count: 1 }];
  const numbers = first.report.map((at, y) => at * second.count + second.report[y]);
  return (u) => {
    const start = (first.own[u] + first.least) * second.count + second.own[u] + second.least;
    for (let y = 0; y < costs.length; y++) {
      const at = numbers[y] - start;
      // NaN: not yet known.
      if (!(known[at] >= 0)) {
        const away = [first.report[y] - first.own[u], second.report[y] - second.own[u]];
        known[at] = cost(away.slice(0, cell.length).map((halves, k) => (halves * cell[k]) / 2));
      }
      costs[y] = known[at];
    }
    return costs;
  };
}

/** The weight of a step of the spline at s of [-1/2, 1/2]; 1 for none. */
function stepWeight(step, s) {
  return step === undefined ? 1 : step === 0 ? 0.75 - s * s : (0.5 + step * s) ** 2 / 2;
}

/** Means over a cell, times the weight of a step, of the squared distance to y - u away. */
function meanSquares(cell) {
  const moments = { "-1": [1 / 6, -1 / 24, 1 / 60], 0: [2 / 3, 0, 1 / 20], 1: [1 / 6, 1 / 24, 1 / 60] };
  return (step) => {
    const own = cell.map((_, k) => (step ? moments[step[k]] : [1, 0, 1 / 12]));
    const weight = own.reduce((product, [zeroth]) => product * zeroth, 1);
    const parts = own.map(([zeroth, first, second], k) => [cell[k], weight / zeroth, zeroth, first, second]);
    return (away) =>
      parts.reduce((sum, [h, share, zeroth, first, second], k) => sum + share * (zeroth * away[k] ** 2 - 2 * h * first * away[k] + h * h * second), 0);
  };
}

/** The same of the distance, on square cells and lattices: by Gauss-Legendre rules, in two triangles a quadrant where the
 * report lies in the cell itself. */
function meanDistances(side) {
  return (step) => {
    const known = new Map();
    const [first, second] = step ?? [];
    const points = NODE.flatMap((x, i) => NODE.map((z, j) => [x / 2, z / 2, ((WEIGHT[i] * WEIGHT[j]) / 4) * stepWeight(first, x / 2) * stepWeight(second, z / 2)]));
    const [across, upward, shares] = [0, 1, 2].map((k) => Float64Array.from(points, (point) => point[k]));
    const mean = (a, b) => {
      let sum = 0;
      for (let k = 0; k < shares.length; k++) sum += shares[k] * Math.sqrt((a - across[k]) ** 2 + (b - upward[k]) ** 2);
      return sum;
    };
    // For a report at (a, b) of the closed cell, in each quadrant about it: at (r w, r v h) the distance and the area
    // element, r w h dr dv, are smooth, unlike in x and y.
    const within = (a, b) => {
      let sum = 0;
      for (const [across, upward] of ENDS.map((ends) => ends.map((end) => 2 * end - 1))) {
        const [w, h] = [across / 2 - a, upward / 2 - b];
        NODE.forEach((x, i) =>
          NODE.forEach((z, j) => {
            const [r, v] = [(x + 1) / 2, (z + 1) / 2];
            const share = (WEIGHT[i] / 2) * (WEIGHT[j] / 2) * r * Math.abs(w * h);
            for (const [p, q] of [[r * w, r * v * h], [r * v * w, r * h]])
              sum += share * Math.hypot(p, q) * stepWeight(first, a + p) * stepWeight(second, b + q);
          }),
        );
      }
      return sum;
    };
    return (away) => {
      const halves = away.map((x) => Math.round((2 * x) / side) / 2);
      if (away.length === 1) return side * (halves[0] === 0 ? 0.25 : Math.abs(halves[0]));
      const [a, b] = halves;
      const key = `${a},${b}`;
      if (!known.has(key)) known.set(key, side * (Math.max(Math.abs(a), Math.abs(b)) <= 0.5 ? within(a, b) : mean(a, b)));
      return known.get(key);
    };
  };
}
