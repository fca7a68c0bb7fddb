// Figures recomputed in floating point, and compared with those of the file and of the page.

// Relative: sums of a million doubles in two orders differ by at most about 10^6 2^-53, a tenth of this.
const AGREE = 1e-9;

/** True if two figures are equal, but for rounding. */
function agree(computed, stated, tolerance = AGREE) {
  return computed === stated || Math.abs(computed - stated) <= tolerance * Math.abs(stated);
}

/** The function l(u, y) of a page; null unless the loss is a known formula of coordinates or a table of the file. */
function lossOf(page) {
  if (has(page, "loss_table")) {
    const [table, reports] = [array(page, "loss_table"), page.contents.arrays.loss_table.shape[1]];
    return (u, y) => table[u * reports + y];
  }
  const secrets = axesOf(page, "secret");
  const reports = has(page, "report_x") ? axesOf(page, "report") : secrets;
  const [x, ...others] = secrets;
  const [along, ...across] = reports;
  const square = (u, y) => {
    let sum = (x[u] - along[y]) ** 2;
    for (let k = 0; k < others.length; k++) sum += (others[k][u] - across[k][y]) ** 2;
    return sum;
  };
  const known = {
    squared: square,
    distance: (u, y) => Math.sqrt(square(u, y)),
    "zero-one": (u, y) => Number(secrets.some((axis, k) => axis[u] !== reports[k][y])),
  };
  return known[attribute(page, "loss")] ?? null;
}

/** The expected loss of every row that the page carries; null if the loss is not known. */
function* rowLosses(page, mass, rows, reports) {
  const lossBetween = lossOf(page);
  if (!lossBetween) return null;
  const [losses, masses] = [new Float64Array(rows.length), inDoubles(mass)];
  for (let r = 0; r < rows.length; r++) {
    for (let y = 0; y < reports; y++) losses[r] += masses[r * reports + y] * lossBetween(rows[r], y);
    losses[r] *= 2 ** -62;
    if (r % 16 === 0) yield r / rows.length;
  }
  return losses;
}

/** The expected loss from the centres of cells, which draw nine rows by the weights of the spline; undefined where the
 * loss is not known. */
function centreLoss(page, mass) {
  const lossBetween = lossOf(page);
  if (!lossBetween) return undefined;
  const [around, prior] = [places(page, "around_row"), array(page, "prior")];
  // The quadratic B-spline at the middle of a cell has the weights 1/8, 6/8, 1/8 on each axis.
  const masses = inDoubles(mass);
  const [weights, reports] = [[1, 6, 1].flatMap((a) => [1, 6, 1].map((b) => (a * b) / 64)), mass.length / prior.length];
  let total = 0;
  for (let u = 0; u < prior.length; u++) {
    for (let y = 0; y < reports; y++) {
      const drawn = weights.reduce((sum, weight, k) => sum + weight * masses[around[9 * u + k] * reports + y], 0);
      total += prior[u] * drawn * lossBetween(u, y);
    }
  }
  return total * 2 ** -62;
}

/** Faults of the prior: it must be a probability distribution. */
function priorFaults(prior) {
  const sum = prior.reduce((a, b) => a + b, 0);
  const fits = prior.every((p) => p >= 0) && Math.abs(sum - 1) <= 1e-9;
  return fits ? [] : [{ text: `the prior sums to ${sum}` }];
}

/** The objective of the program of a page, { words, value }; each undefined if it is not known here. */
function recomputedObjective(page, { expected_loss: loss, losses }) {
  const mean = (prior) => prior.reduce((sum, p, u) => sum + p * losses[u], 0);
  const known = {
    bounded: () => [EXPECTED_LOSS, loss],
    constrained: () => [EXPECTED_LOSS, loss],
    positions: () => ["the mean loss to the true position", loss],
    minimax: () => ["the largest loss over the secrets", losses && Math.max(...losses)],
    robust: () => ["the largest expected loss over the priors", losses && Math.max(...jsonAttribute(page, "parameters").priors.map(mean))],
  };
  const program = attribute(page, "program");
  const [words, value] = Object.hasOwn(known, program) ? known[program]() : [];
  return { words, value: page.contents.kind === "table" ? value : undefined };
}

/** Faults of the figures of the file and of `verify` on the page. The recomputed `figures` have expected_loss, ratio and
 * violations. Their value is the largest log-ratio over length, and worst that of the place that `verify` named. Each is
 * undefined if it was not recomputed. */
function figureFaults(page, figures) {
  const [faults, { verification: verified, position_loss: placedLoss }] = [[], page.contents];
  const compare = (name, stated, value) => {
    if (value !== undefined && !(value === stated || (value !== null && stated !== null && agree(value, stated))))
      faults.push({ text: `${name}: the page states ${stated}, recomputed ${value}` });
  };
  for (const name of ["expected_loss", "ratio"]) {
    compare(name, attribute(page, name), figures[name]);
    // With a claim about positions the file has the ratio of its rows, and `ratio` of `verify` is that of positions.
    const shown = name === "ratio" ? (verified.row_ratio ?? verified.ratio) : verified[name];
    if (shown !== null && shown !== attribute(page, name) && !agree(shown, attribute(page, name))) {
      faults.push({ text: `${name}: the page states ${shown}, the file ${attribute(page, name)}` });
    }
  }
  compare("position_loss", placedLoss, figures.position_loss);
  const { words, value } = recomputedObjective(page, figures);
  if (words !== undefined && attribute(page, "objective_of") !== words) faults.push({ text: `objective_of: is not ${words}` });
  compare("objective", attribute(page, "objective"), value);
  if (verified.ratio !== null && !agree(verified.ratio, positionClaimOf(page) ? 1 : attribute(page, "ratio")))
    faults.push({ text: `ratio: the page states ${verified.ratio}, the file another` });
  compare("violations", verified.violations, figures.violations);
  // A bound above its objective would be a contradiction; rounding may lift it by AGREE.
  const bounded = attribute(page, "objective") ?? attribute(page, "expected_loss");
  if (attribute(page, "lower_bound") > bounded * (1 + AGREE)) {
    faults.push({ text: `lower_bound: ${attribute(page, "lower_bound")} exceeds the objective that it bounds` });
  }
  if (verified.certified !== true) faults.push({ text: "the page states that the mechanism is not certified" });
  if (figures.worst !== undefined && verified.worst && !(figures.worst !== null && agree(figures.worst, figures.value))) {
    faults.push({ text: `worst: ${JSON.stringify(verified.worst)} is not the place where the table is closest to its claim` });
  }
  const added = jsonAttribute(page, "parameters").own_constraints ?? [];
  if (verified.lower_bound_checked && (added.length || attribute(page, "lower_bound") === undefined))
    faults.push({ text: "lower_bound: the page states that it was checked, but the file lacks its proof" });
  return faults;
}
