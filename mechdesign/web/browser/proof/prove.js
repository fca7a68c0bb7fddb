// The proof of a page, as a generator that yields its progress: { words, share }, share from 0 to 1.
//
// It returns { faults, proved, assumed, figures }: faults; sentences on proofs and on assumptions; the recomputed
// figures.

const HALVES_OF_PAGE = ["gradients", "rows"]; // edges of the claim and gradients; everything else. Neither needs the other
const ALONE = 500_000; // masses: proved in a second or two
const MOST_WORK = 2e8; // edge relaxations in the proof of factors: some seconds. A button proves the rest.

/** Run `step` as the part from `from` to `to` of the whole. */
function* part(step, words, from, to) {
  for (;;) {
    const { done, value } = step.next();
    if (done) return value;
    yield { words, share: from + (to - from) * value };
  }
}

/** Prove a page. all: add up every row of factors or of a map. Otherwise only rows around the cell `around` of a map.
 * only: one of `HALVES_OF_PAGE` of a large page, for two workers. */
function* prove(page, { all = false, around, only } = {}) {
  const { contents } = page;
  const outcome = { faults: [], proved: [], assumed: [], figures: {} };
  const proofs = { table: proveTable, rows: proveTable, factors: proveFactors, region: proveRegion };
  const claims = contents.kind !== "region";
  if (claims && only !== "rows") yield* proveClaim(page, outcome);
  if (only === "gradients") {
    yield* part(provePositions(page, outcome), "comparing gradients between positions", 0.15, 1);
    return outcome;
  }
  yield* proofs[contents.kind](page, outcome, all, around);
  if (claims && only === undefined && positionClaimOf(page))
    yield* part(provePositions(page, outcome), "comparing gradients between positions", 0.9, 0.96);
  if (claims && capsOf(page).length) yield* part(proveCaps(page, outcome), "comparing discs", 0.96, 0.97);
  // The factor follows from rows and a claim that are proved, so it is computed last.
  if (claims && outcome.faults.length === 0) yield* part(proveSentence(page, outcome), "computing the factor of the sentence", 0.97, 0.99);
  if (claims) {
    outcome.faults.push(...priorFaults(array(page, "prior")), ...figureFaults(page, outcome.figures));
    outcome.assumed.push(contents.designed ?? "Coordinates, units, prior and names are those of the file.");
    if (has(page, "packed"))
      outcome.assumed.push("That this table is near that of the file was computed by mechdesign when this page was made, not here.");
    if (contents.verification.sha256 !== null)
      outcome.assumed.push("The sha256sum of the file was computed by mechdesign: compare it with that of your file.");
    if (contents.comparison) outcome.assumed.push("Figures of other mechanisms come from mechdesign compare.");
    if (outcome.figures.position_loss === undefined)
      outcome.assumed.push("The loss to the true position was computed by mechdesign when this page was made, not here.");
    if (attribute(page, "any_lower_bound") !== undefined)
      outcome.assumed.push("The bound over every mechanism was recomputed by mechdesign verify when this page was made, not here.");
    if (attribute(page, "lower_bound") !== undefined) yield* part(proveBound(page, outcome), "adding up trees of the lower bound", 0.99, 1);
  }
  return outcome;
}

/** The parts of a page that are worth a worker each; [undefined] for the whole. */
function partsOf(page) {
  const { kind } = page.contents;
  const isLarge = kind === "table" && positionClaimOf(page) && array(page, "mass").length > ALONE;
  return isLarge && navigator.hardwareConcurrency > 1 ? HALVES_OF_PAGE : [undefined];
}

/** One outcome from those of parts: of the sentences, those of the first part come first. */
function joinedOutcome(outcomes) {
  const [faults, proved, assumed] = ["faults", "proved", "assumed"].map((name) => outcomes.flatMap((outcome) => outcome[name]));
  return { faults, proved, assumed, figures: Object.assign({}, ...outcomes.map(({ figures }) => figures)) };
}

/** Prove the lower bound by the trees of the page, if it has them. */
function* proveBound(page, outcome) {
  const { verification: verified } = page.contents;
  if (verified.lower_bound_checked !== true) {
    outcome.assumed.push(`The lower bound in the file was not checked: ${verified.lower_bound_reason ?? "the file lacks its proof"}.`);
    return;
  }
  const [stated, bound] = [attribute(page, "lower_bound"), yield* lowerBoundOfTrees(page)];
  if (bound === null) {
    outcome.assumed.push("The lower bound was recomputed by mechdesign verify when this page was made, not here.");
    return;
  }
  outcome.figures.lower_bound = bound;
  if (stated <= bound + AGREE * Math.abs(bound)) outcome.proved.push(treeBoundWords(page, bound));
  else outcome.faults.push({ text: `lower_bound: the page states ${stated}, but its trees prove ${bound}` });
}

/** Prove the limits on the posterior of discs. */
function* proveCaps(page, outcome) {
  if (page.contents.kind !== "table") {
    outcome.assumed.push("The limits on discs were checked by mechdesign verify when this page was made.");
    return;
  }
  const { faults, compared, worst } = yield* capFaults(page, array(page, "mass"));
  outcome.faults.push(...faults);
  if (faults.length === 0) {
    outcome.figures.disc = worst;
    const where = worst.byArea ? `the likeliest ${nounsOfPage(page).many} have` : `one ${shapeOf(page)} has`;
    const worstReport = `after report ${worst.report}, the worst, ${where} ${percent(worst.share, true, 3)}`;
    outcome.proved.push(`No limit on the posterior is exceeded after any report: ${countWords(compared)} inequalities in integers; ${worstReport}.`);
  }
  outcome.assumed.push(`The number of people in each ${nounsOfPage(page).one} is that of the file.`);
}

/** Recompute the factor of the first sentence, and the loss to true positions. */
function* proveSentence(page, outcome) {
  const mass = page.contents.kind === "factors" ? null : array(page, "mass");
  outcome.figures.position_loss = positionLoss(page, mass);
  if (positionClaimOf(page) && page.contents.kind === "table")
    outcome.figures.expected_loss = outcome.figures.position_loss ?? centreLoss(page, mass);
  outcome.faults.push(...(yield* protectionFaults(page, outcome, mass && carriedRows(page), mass)));
}

/** The edges of the claim: those of the file, or those that were rebuilt from its geometry. */
function claimEdges(page) {
  const prefix = has(page, "claim_tail") ? "claim" : "edge";
  const length = array(page, `${prefix}_length`);
  return { tail: places(page, `${prefix}_tail`), head: places(page, `${prefix}_head`), length };
}

/** Compare the edges with the metric of the claim. */
function* proveClaim(page, outcome) {
  const count = array(page, "prior").length;
  const [edges, whole] = [claimEdges(page), page.contents.kind !== "rows"];
  const claim = claimOf(jsonAttribute(page, "metric"));
  const setting = {
    claim,
    edges,
    whole,
    domain: jsonAttribute(page, "domain"),
    points: axesOf(page, "secret"),
    unit: unitOf(page, "secret_x"),
  };
  outcome.faults.push(...(yield* part(claimFaults(setting), "comparing the claim with its edges", 0.02, 0.15)));
  const { kind } = claim;
  if (whole) {
    if (!isConnected(count, edges)) outcome.faults.push({ text: "the edges do not connect all secrets" });
    outcome.proved.push(
      `The ${countWords(edges.tail.length)} edges of the claim connect all secrets.`,
    );
  }
  const times = claim.scale === 1 ? "" : `${figure(claim.scale, true)} times `;
  const proved = {
    discrete:
      "No edge is longer than the claim allows, and paths of edges join every pair within its distance. Compared beyond the error of doubles, or in exact fractions.",
    euclidean:
      `No edge is longer than ${times}epsilon times the distance of its ends, and paths of edges join every pair within that length. Compared beyond the error of doubles, or in exact fractions.`,
    eikonal:
      `No edge is longer than ${times}the largest level times the distance of its ends, beyond the error of doubles or in exact fractions, and neighbours are joined.`,
  };
  if (whole && proved[kind]) outcome.proved.push(proved[kind]);
  const assumed = {
    eikonal: "Not checked: that the length of every edge is the integral of the privacy level.",
    streets: "The list of streets and their lengths is part of the claim and was not rebuilt.",
    graph: "The list of edges and their lengths is part of the claim and was not rebuilt.",
  };
  if (assumed[kind]) outcome.assumed.push(assumed[kind]);
}

/** Prove the rows of a table, and recompute its losses. */
function* proveTable(page, outcome) {
  const mass = array(page, "mass");
  const reports = array(page, "report_x").length;
  const count = array(page, "prior").length;
  const rows = carriedRows(page);
  const row = new Map(Array.from(rows, (u, r) => [u, r]));
  const edges = claimEdges(page);
  // Edges between row numbers of the page: of a table in part, rows are numbered as they are carried.
  const rowEdges =
    rows.length === count
      ? edges
      : { tail: edges.tail.map((u) => row.get(u)), head: edges.head.map((u) => row.get(u)), length: edges.length };
  outcome.faults.push(...(yield* part(rowFaults(mass, rows, reports), "adding up the rows", 0.15, 0.3)));
  const result = yield* part(
    edgeFaults(mass, rows, reports, rowEdges, page.contents.verification.worst, blocksOfRows(page, rows)),
    "comparing inequalities",
    0.3,
    0.9,
  );
  const losses = yield* part(rowLosses(page, mass, rows, reports), "adding up the losses", 0.9, 1);
  const partly = rows.length < count;
  outcome.faults.push(...result.faults);
  const scale = attribute(page, "scale");
  outcome.figures = {
    inequalities: result.inequalities,
    compared: result.compared,
    rows: rows.length,
    value: result.value,
    partial: partly,
    losses: losses ?? undefined,
    violations: partly ? undefined : result.broken,
    worst: partly ? undefined : result.valueAtWorst,
    // Positions never draw one row alone: their expected loss is computed with the loss to the true position.
    expected_loss:
      partly || !losses || positionClaimOf(page) ? undefined : losses.reduce((sum, loss, u) => sum + loss * array(page, "prior")[u], 0),
    // In doubles a ratio that is exactly 1 may show as 1 + 2^-52: only a broken inequality exceeds 1.
    ratio:
      partly || page.contents.verification.ratio === null
        ? undefined
        : scale * (result.broken ? result.value : Math.min(result.value, 1)),
  };
  const which = partly
    ? `The ${countWords(rows.length)} rows of ${countWords(count)} that this page carries`
    : `All ${countWords(count)} rows`;
  outcome.proved.push(
    `${which} have masses of at least 1 and sum to exactly 2^62.`,
    `${countWords(result.inequalities)} inequalities P(y|u) <= e^d P(y|v) hold: ${countWords(edges.length.length)} edges, both ways, ` +
      `${countWords(reports)} reports.`,
  );
  const rest = "hold with a margin above floating-point error.";
  if (result.compared === result.inequalities) outcome.proved.push("Each of them was compared in integers.");
  else if (result.compared === 0) outcome.proved.push(`All of them ${rest}`);
  else outcome.proved.push(`${countWords(result.compared)} of them were compared in integers, the others ${rest}`);
  if (partly)
    outcome.assumed.push(
      "The other rows were checked by mechdesign verify when this page was made.",
    );
  if (losses === null) outcome.assumed.push("The loss is of a kind that this page cannot compute.");
}

/** Prove factors: every edge by row sums, and as many row sums again as MOST_WORK allows. */
function* proveFactors(page, outcome, all) {
  const factors = new Factors(page);
  outcome.faults.push(...factors.faults());
  if (outcome.faults.length) return;
  const [sums, prior] = [storedSums(page), array(page, "prior")];
  const edges = claimEdges(page);
  const { generators } = factors;
  const work = factors.neighbour.length + (generators ? generators.origins.length : 0);
  const most = Math.max(1, Math.floor(MOST_WORK / work));
  const stride = all || most >= sums.length ? 1 : Math.ceil(sums.length / most);
  const asked = Array.from({ length: Math.ceil(sums.length / stride) }, (_, k) => k * stride);
  const result = yield* part(
    factorEdges(factors, sums, edges, page.contents.verification.worst),
    "comparing edges",
    0.15,
    0.25,
  );
  outcome.faults.push(...result.faults);
  outcome.faults.push(...(yield* part(factorFaults(page, factors, sums, asked), "adding up rows again", 0.25, 1)));
  const losses = array(page, "row_loss");
  outcome.figures = {
    inequalities: result.inequalities,
    compared: result.compared,
    rows: asked.length,
    value: result.value,
    partial: stride > 1,
    losses,
    violations: result.broken,
    worst: result.valueAtWorst,
    expected_loss: losses.reduce((sum, loss, u) => sum + loss * prior[u], 0),
    ratio: Math.min(1, result.value),
  };
  const from = generators
    ? `${countWords(factors.weight.length)} columns of ${countWords(generators.origins.length)} generators`
    : `${countWords(factors.weight.length)} weights`;
  const rows = stride > 1 ? `Every ${stride === 2 ? "second" : `${stride}th`} row was` : "All rows were";
  outcome.proved.push(
    `${rows} recomputed in integers, ${countWords(asked.length)} of ${countWords(sums.length)}: from ${from} and shortest-path distances of integer edge lengths.`,
    `${countWords(result.inequalities)} inequalities between row sums hold, two for each of ${countWords(edges.length.length)} edges. Each stands for all reports.`,
  );
  if (stride > 1)
    outcome.assumed.push(
      "The sums of the other rows are those of the file. mechdesign verify recomputed them when this page was made.",
    );
}

/** A number with thousands separators. */
function countWords(number) {
  return number.toLocaleString("en");
}
