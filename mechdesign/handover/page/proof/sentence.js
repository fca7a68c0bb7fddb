// The first sentences of a page: each is one that this program knows, every figure in it follows from those of the file,
// and its text is rounded to the safe side: losses and factors up, bounds and radii down.

const STEP_SHOWN = 1.01e-3; // relative, of the last of four digits
const OFF = "(?:Reports|Answers) are \\{loss\\} off(?<at> the true position)?(?: on average| \\(root mean square\\))\\.";
const BETTER = "mechanism (?<whose>of this form|with this claim(?: and its limits)?) (?:does better than|has less than) \\{bound\\}(?: \\(gap (?<gap>[^()]+) %\\))?\\.";
const FORMS = new RegExp(
  `^(?:${OFF}|A report is the true one with probability \\{loss\\}\\.|(?:Reports|Answers) have a loss of \\{loss\\} on average\\.)` +
    `(?<bound> (?:Between centres of cells that is \\{cell_loss\\}, and no|No) ${BETTER})?` +
    "(?<stopped> Stopped (?:at its time limit|by hand): (?:up to \\{avoidable\\} of the loss may be avoidable|how much better the " +
    "best is was not found); (?:a longer --time-limit|the same command without an interruption) goes on\\.)?$",
);
const UPWARDS = { within: false, factor: true, path: true, loss: true, cell_loss: true, bound: false, avoidable: true };
const QUADRATURE = 20; // nodes along an axis: right to 1e-12 (setting/objective/true_position.py)

/** {value, unit} of a text: thousands apart, times a raised power of ten, with a unit. */
function readFigure(text) {
  const found = /^(?<digits>-?[0-9][0-9,]*(?:\.[0-9]+)?|inf)(?: × 10(?<power>[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?(?: (?<unit>.+))?$/.exec(text)?.groups;
  if (!found) return { value: NaN, unit: "" };
  const power = [...(found.power ?? "")].map((c) => (c === "⁻" ? "-" : "⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(c))).join("");
  const value = found.digits === "inf" ? Infinity : Number(`${found.digits.replaceAll(",", "")}e${power || 0}`);
  return { value, unit: found.unit ?? "" };
}

/** The number in a text of the sentence. */
function readNumber(text) {
  return readFigure(text).value;
}

/** Whether a text shows a value rounded up, or down, by a step of four digits at most. */
function showsRounded(shown, value, up) {
  if (shown === value) return true;
  const over = (up ? shown - value : value - shown) / Math.abs(value);
  return over >= -1e-9 && over <= STEP_SHOWN;
}

/** Whether a text shows a percentage rounded up to two digits, or says that it is under 0.0001. */
function showsShare(text, value) {
  if (text.startsWith("under ")) return text === "under 0.0001" && value < 1e-4;
  const shown = readNumber(text);
  return shown >= value * (1 - 1e-6) - 1e-9 && shown <= value * 1.101 + 1e-9;
}

/** Faults of the sentences and of their figures; found.position_loss, the loss to true positions, null where there is none,
 * undefined where it was not found again. */
function sentenceFaults(page, found) {
  const { template, values, texts } = page.contents.saying;
  const faults = [];
  const wrong = (text) => faults.push({ text });
  const rest = template.replace(PROTECTS, "").trim();
  const said = FORMS.exec(rest)?.groups;
  if (!said) wrong("the sentence is none that this page knows");
  const loss = attribute(page, "loss");
  const told = { squared: (value) => Math.sqrt(Math.max(value, 0)), "zero-one": (value) => 100 * (1 - value) }[loss] ?? ((value) => value);
  const [bound, own] = [attribute(page, "lower_bound"), attribute(page, "objective") ?? attribute(page, "expected_loss")];
  const at = found.position_loss;
  const ofForm = attribute(page, "position_claim") !== undefined;
  const wanted = { cell_loss: told(own), avoidable: own > 0 ? (100 * (own - bound)) / own : 0 };
  if (said && at !== undefined && (said.at !== undefined) !== (at !== null) && /\{loss\} off/.test(rest))
    wrong("the sentence does not say whether it speaks of true positions");
  if (at !== undefined) wanted.loss = told(at ?? attribute(page, "expected_loss"));
  if (at !== undefined || loss !== "squared") wanted.bound = told(bound + (loss === "squared" && at !== null && !ofForm ? (at - own) * (1 - 1e-12) : 0));
  if (page.contents.verification.lower_bound_checked !== true && said && (said.bound || "avoidable" in values))
    wrong("the sentence speaks of a lower bound that was not checked");
  const limited = ["bounded", "constrained"].includes(attribute(page, "program"));
  const whose = ofForm ? "of this form" : `with this claim${limited ? " and its limits" : ""}`;
  if (said?.bound && said.whose !== whose) wrong(`the lower bound is one of mechanisms ${whose}, the sentence says ${said.whose}`);
  if (said?.gap !== undefined && !showsShare(said.gap, Math.max(wanted.avoidable, 0)))
    wrong(`the sentence says gap ${said.gap} %, the file ${wanted.avoidable} %`);
  const units = shownUnits(page);
  const named = [...template.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  if (named.length !== Object.keys(values).length || named.some((name) => !(name in values && name in texts)))
    wrong("the sentence has other figures than it names");
  for (const [name, value] of Object.entries(values)) {
    if (name in wanted && !agree(value, wanted[name])) wrong(`the sentence says ${name} ${value}, the file ${wanted[name]}`);
    const { value: shown, unit } = readFigure(texts[name] ?? "");
    const scale = unit === "km" && units.domain === "m" ? 1000 : 1;
    const up = UPWARDS[name] !== (loss === "zero-one" && (name === "loss" || name === "bound"));
    const fits = name === "avoidable" ? showsShare(texts[name].replace(" %", ""), value) : showsRounded(shown * scale, value, up);
    if (!(name in UPWARDS && fits && (units.of(name).includes(unit) || texts[name] === "under 0.0001 %")))
      wrong(`the sentence shows ${name} as ${texts[name]}, and means ${value}`);
  }
  return faults;
}

/** The words that may stand after a figure: those of the domain's unit, of its square, or of a table of losses. */
function shownUnits(page) {
  const { unit } = JSON.parse(attribute(page, "domain"));
  const lengths = [...lengthWords(unit).filter((word) => word !== "1"), ...(unit === "m" ? ["km"] : [])];
  const squares = [`${unit}²`, "cell²", "squared units"];
  const table = page.contents.arrays.loss_table?.attrs.units?.[1];
  const own = table === undefined ? [] : [table.replace("^2", "²")];
  const loss = attribute(page, "loss");
  const losses = { distance: lengths, squared: lengths, "zero-one": ["%"] }[loss] ?? ["", ...own, ...lengths, ...squares];
  const of = (name) => (["factor", "path", "within"].includes(name) ? [""] : name === "avoidable" ? ["%"] : losses);
  return { domain: unit, of };
}

/** The mean loss to the true position, uniform in its cell, under the prior: null where the file has none (utility/loss/
 * true_position.py says where), undefined where this page does not carry every row. */
function positionLoss(page, mass) {
  const domain = JSON.parse(attribute(page, "domain"));
  const [loss, { cell }] = [attribute(page, "loss"), domain];
  if (domain.kind !== "grid" || cell.length > 2 || !["squared", "distance"].includes(loss)) return null;
  if (page.contents.kind === "factors") {
    return loss === "squared" ? attribute(page, "expected_loss") + cell.reduce((sum, h) => sum + (h * h) / 12, 0) : null;
  }
  const [secrets, reports] = [axesOf(page, "secret"), axesOf(page, "report")];
  const unit = (name) => page.contents.arrays[name]?.attrs.units?.[1];
  if (reports.length !== secrets.length || reports[0].length < 2 || unit("report_x") !== unit("secret_x")) return null;
  const away = (u, y) => secrets.map((axis, k) => reports[k][y] - axis[u]);
  const onLattice = reports.every((axis, k) =>
    axis.every((at) => Math.abs((at - domain.origin[k]) / cell[k] - 0.5 - Math.round((at - domain.origin[k]) / cell[k] - 0.5)) <= 1e-9),
  );
  if (loss === "distance" && (new Set(cell).size > 1 || !onLattice)) return null;
  if (page.contents.kind !== "table") return undefined;
  const around = has(page, "around_row") ? places(page, "around_row") : null;
  const [prior, width] = [array(page, "prior"), reports[0].length];
  const steps = around ? AROUND : [null];
  const cost = loss === "squared" ? meanSquares(cell) : meanDistances(cell[0]);
  let total = 0;
  for (const [k, step] of steps.entries()) {
    const of = cost(step);
    for (let u = 0; u < prior.length; u++) {
      const from = (around ? around[9 * u + k] : u) * width;
      let row = 0;
      for (let y = 0; y < width; y++) row += Number(mass[from + y]) * of(away(u, y));
      total += prior[u] * row;
    }
  }
  return total * 2 ** -62;
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
  const { node, weight } = gaussLegendre(QUADRATURE);
  return (step) => {
    const known = new Map();
    const [first, second] = step ?? [];
    const mean = (a, b) => {
      let sum = 0;
      node.forEach((x, i) =>
        node.forEach((z, j) => {
          const share = (weight[i] * weight[j]) / 4;
          sum += share * stepWeight(first, x / 2) * stepWeight(second, z / 2) * Math.hypot(a - x / 2, b - z / 2);
        }),
      );
      return sum;
    };
    const inside = () => {
      let sum = 0;
      for (const [across, upward] of ENDS.map((ends) => ends.map((end) => 2 * end - 1))) {
        node.forEach((x, i) =>
          node.forEach((z, j) => {
            const [s, v] = [(x + 1) / 4, (z + 1) / 2];
            const share = (weight[i] / 4) * (weight[j] / 2) * s * s * Math.sqrt(1 + v * v);
            for (const [p, q] of [[s, s * v], [s * v, s]]) sum += share * stepWeight(first, across * p) * stepWeight(second, upward * q);
          }),
        );
      }
      return sum;
    };
    return (away) => {
      if (away.length === 1) return side * (Math.round(away[0] / side) === 0 ? 0.25 : Math.abs(Math.round(away[0] / side)));
      const [a, b] = away.map((x) => Math.round(x / side));
      const key = `${a},${b}`;
      if (!known.has(key)) known.set(key, side * (a === 0 && b === 0 ? inside() : mean(a, b)));
      return known.get(key);
    };
  };
}

/** Nodes and weights of a Gauss-Legendre rule on [-1, 1], by Newton's method. */
function gaussLegendre(count) {
  const [node, weight] = [[], []];
  for (let k = 0; k < count; k++) {
    let x = Math.cos((Math.PI * (k + 0.75)) / (count + 0.5));
    let slope = 0;
    for (let turn = 0; turn < 100; turn++) {
      let [value, before] = [1, 0];
      for (let n = 1; n <= count; n++) [value, before] = [((2 * n - 1) * x * value - (n - 1) * before) / n, value];
      slope = (count * (x * value - before)) / (x * x - 1);
      const move = value / slope;
      x -= move;
      if (Math.abs(move) < 1e-16) break;
    }
    node.push(x);
    weight.push(2 / ((1 - x * x) * slope * slope));
  }
  return { node, weight };
}
