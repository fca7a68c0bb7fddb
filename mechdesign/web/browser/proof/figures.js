// Figures that are found again in floating point, and compared with what the file and the page say.

const AGREE = 1e-9; // relative, of sums in another order

function agree(found, said, most = AGREE) {
  return found === said || Math.abs(found - said) <= most * Math.abs(said);
}

/** l(u, y) of a page as a function; null for a loss that is not a formula of coordinates or a table of the file. */
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

/** The expected loss from every secret of a table whose rows are there; null where the loss is not known. */
function* rowLosses(page, mass, rows, reports) {
  const judge = lossOf(page);
  if (!judge) return null;
  const losses = new Float64Array(rows.length);
  for (let r = 0; r < rows.length; r++) {
    for (let y = 0; y < reports; y++) losses[r] += Number(mass[r * reports + y]) * judge(rows[r], y);
    losses[r] *= 2 ** -62;
    if (r % 16 === 0) yield r / rows.length;
  }
  return losses;
}

/** The expected loss from the centres of cells, which draw nine rows by the weights of the spline; undefined where the
 * loss is not known. */
function centreLoss(page, mass) {
  const judge = lossOf(page);
  if (!judge) return undefined;
  const [around, prior] = [places(page, "around_row"), array(page, "prior")];
  const [weights, reports] = [[1, 6, 1].flatMap((a) => [1, 6, 1].map((b) => (a * b) / 64)), mass.length / prior.length];
  let total = 0;
  for (let u = 0; u < prior.length; u++) {
    for (let y = 0; y < reports; y++) {
      const drawn = weights.reduce((sum, weight, k) => sum + weight * Number(mass[around[9 * u + k] * reports + y]), 0);
      total += prior[u] * drawn * judge(u, y);
    }
  }
  return total * 2 ** -62;
}

/** Faults of the prior: it is a probability. */
function priorFaults(prior) {
  const sum = prior.reduce((a, b) => a + b, 0);
  const fits = prior.every((p) => p >= 0) && Math.abs(sum - 1) <= 1e-9;
  return fits ? [] : [{ text: `the prior sums to ${sum}` }];
}

/** What the program of a page makes small: its words and its value at the table, undefined where they are not known here. */
function objectiveFound(page, { expected_loss: loss, losses }) {
  const mean = (prior) => prior.reduce((sum, p, u) => sum + p * losses[u], 0);
  const known = {
    bounded: () => [EXPECTED_LOSS, loss],
    constrained: () => [EXPECTED_LOSS, loss],
    positions: () => ["the mean loss to the true position", loss],
    minimax: () => ["the largest loss over the secrets", losses && Math.max(...losses)],
    robust: () => ["the largest expected loss over the priors", losses && Math.max(...described(page, "parameters").priors.map(mean))],
  };
  const program = attribute(page, "program");
  const [words, value] = Object.hasOwn(known, program) ? known[program]() : [];
  return { words, value: page.contents.kind === "table" ? value : undefined };
}

/** Faults of figures that the page says: those of the file and those of `verify`. found has expected_loss,
 * ratio and violations, value, the largest log-ratio over length, and worst, that of the place that `verify`
 * named; each undefined where it was not found again. */
function figureFaults(page, found) {
  const [faults, { verification: verified, position_loss: placedLoss }] = [[], page.contents];
  const compare = (name, said, value) => {
    if (value !== undefined && !(value === said || (value !== null && said !== null && agree(value, said))))
      faults.push({ text: `${name}: the page says ${said}, found ${value}` });
  };
  for (const name of ["expected_loss", "ratio"]) {
    compare(name, attribute(page, name), found[name]);
    const shown = name === "ratio" ? (verified.row_ratio ?? verified.ratio) : verified[name];
    if (shown !== null && shown !== attribute(page, name) && !agree(shown, attribute(page, name))) {
      faults.push({ text: `${name}: the page says ${shown}, the file ${attribute(page, name)}` });
    }
  }
  compare("position_loss", placedLoss, found.position_loss);
  const { words, value } = objectiveFound(page, found);
  if (words !== undefined && attribute(page, "objective_of") !== words) faults.push({ text: `objective_of: is not ${words}` });
  compare("objective", attribute(page, "objective"), value);
  if (verified.ratio !== null && !agree(verified.ratio, placedOf(page) ? 1 : attribute(page, "ratio")))
    faults.push({ text: `ratio: the page says ${verified.ratio}, the file another` });
  compare("violations", verified.violations, found.violations);
  const bounded = attribute(page, "objective") ?? attribute(page, "expected_loss");
  if (attribute(page, "lower_bound") > bounded * (1 + AGREE)) {
    faults.push({ text: `lower_bound: ${attribute(page, "lower_bound")} exceeds what it should bound` });
  }
  if (verified.certified !== true) faults.push({ text: "the page says that the mechanism is not certified" });
  if (found.worst !== undefined && verified.worst && !(found.worst !== null && agree(found.worst, found.value))) {
    faults.push({ text: `worst: ${JSON.stringify(verified.worst)} is not where the table comes closest to its claim` });
  }
  const own = described(page, "parameters").own_constraints ?? [];
  if (verified.lower_bound_checked && (own.length || attribute(page, "lower_bound") === undefined))
    faults.push({ text: "lower_bound: the page says that it was checked, and the file does not hold what it rests on" });
  return faults;
}
