// Figures that are found again in floating point, and compared with what the file and the page say.

const AGREE = 1e-9; // relative, of sums in another order
const SHOWN = 1.01e-2; // relative, of a figure of three digits, rounded up or down

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

/** Faults of the prior: it is a probability. */
function priorFaults(prior) {
  const sum = prior.reduce((a, b) => a + b, 0);
  const fits = prior.every((p) => p >= 0) && Math.abs(sum - 1) <= 1e-9;
  return fits ? [] : [{ text: `the prior sums to ${sum}` }];
}

/** Faults of figures that the page says: those of the file, those of `verify`, and those of the sentence. found has
 * expected_loss, effective_epsilon and violations, value, the largest log-ratio over length, and worst, that of the place
 * that `verify` named; each undefined where it was not found again. */
function figureFaults(page, found) {
  const [faults, verified] = [[], page.contents.verification];
  const compare = (name, said, value) => {
    if (value !== undefined && !agree(value, said))
      faults.push({ text: `${name}: the page says ${said}, found ${value}` });
  };
  for (const name of ["expected_loss", "effective_epsilon"]) {
    compare(name, attribute(page, name), found[name]);
    const shown = name === "effective_epsilon" ? (verified.row_ratio ?? verified[name]) : verified[name];
    if (shown !== null && shown !== attribute(page, name) && !agree(shown, attribute(page, name))) {
      faults.push({ text: `${name}: the page says ${shown}, the file ${attribute(page, name)}` });
    }
  }
  if (found.violations !== undefined && verified.violations !== found.violations) {
    faults.push({ text: `violations: the page says ${verified.violations}, found ${found.violations}` });
  }
  const bounded = attribute(page, "objective") ?? attribute(page, "expected_loss");
  if (attribute(page, "lower_bound") > bounded * (1 + AGREE)) {
    faults.push({ text: `lower_bound: ${attribute(page, "lower_bound")} exceeds what it should bound` });
  }
  const { facts } = page.contents;
  if (facts.claim !== attribute(page, "claim")) faults.push({ text: "claim: the page shows another than the file" });
  if (facts.position_claim !== attribute(page, "position_claim"))
    faults.push({ text: "position_claim: the page shows another than the file" });
  if (facts.provenance["checksum of the mechanism"] !== attribute(page, "sha256")) {
    faults.push({ text: "checksum: the page shows another than the file" });
  }
  if (verified.claim !== attribute(page, "claim")) faults.push({ text: "claim: the page says another than the file" });
  if (verified.certified !== true) faults.push({ text: "the page says that the mechanism is not certified" });
  if (found.worst !== undefined && verified.worst && !(found.worst !== null && agree(found.worst, found.value))) {
    faults.push({ text: `worst: ${JSON.stringify(verified.worst)} is not where the table comes closest to its claim` });
  }
  return [...faults, ...sentenceFaults(page)];
}

/** The number in a text of the sentence, thousands apart, or times a raised power of ten. */
function readNumber(text) {
  const [digits, power = ""] = text.replaceAll(",", "").split(" × 10");
  const lowered = [...power].map((c) => (c === "⁻" ? "-" : "⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(c))).join("");
  return digits === "inf" ? Infinity : Number(`${digits}e${lowered || 0}`);
}

/** Faults of the sentence: every figure in it follows from those of the file, and its text from the figure. */
function sentenceFaults(page) {
  const { values, texts } = page.contents.saying;
  const [faults, loss] = [[], attribute(page, "loss")];
  const told = { squared: Math.sqrt, "zero-one": (share) => 100 * (1 - share) }[loss] ?? ((value) => value);
  const placed = POSITIONS.exec(attribute(page, "position_claim") ?? "")?.groups;
  const lost = placed ? attribute(page, "objective") : attribute(page, "expected_loss");
  const wanted = { bound: told(attribute(page, "lower_bound")) };
  if (lost !== undefined) wanted.loss = told(lost);
  if (/any two positions/.test(page.contents.saying.template) !== (placed !== undefined))
    faults.push({ text: "the sentence does not say what the claims are about" });
  for (const [name, value] of Object.entries(values)) {
    if (name in wanted && !agree(value, wanted[name])) {
      faults.push({ text: `the sentence says ${name} ${value}, the file ${wanted[name]}` });
    }
    const read = readNumber(texts[name]);
    if (!(read === value || Math.abs(read - value) <= SHOWN * Math.abs(value))) {
      faults.push({ text: `the sentence shows ${name} as ${texts[name]}, and means ${value}` });
    }
  }
  const parts = placed ? { ...placed, kind: "euclidean" } : claimParts(attribute(page, "claim"));
  if (parts && (parts.kind === "euclidean" || parts.kind === "streets") && "radius" in values) {
    const rate = Number(parts.most) * Number(parts.times ?? 1);
    if (!(Math.exp(rate * values.radius) <= values.factor * (1 + 1e-6))) {
      faults.push({ text: `within ${values.radius} the claim allows a factor of ${Math.exp(rate * values.radius)}` });
    }
  }
  return faults;
}
