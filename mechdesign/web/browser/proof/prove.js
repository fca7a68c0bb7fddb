// The whole proof of a page, step by step: a generator that says what it is at, and how far it is as a share of one.
//
// Returns { faults, proved, given, found }: what is wrong; sentences of what was proved and of what is taken as given; the
// figures that were found again.

const MOST_WORK = 2e8; // relaxations of edges in the proof of factors: seconds; the rest when it is asked for

/** Run `step` as the part from `from` to `to` of the whole. */
function* part(step, words, from, to) {
  for (;;) {
    const { done, value } = step.next();
    if (done) return value;
    yield { words, share: from + (to - from) * value };
  }
}

/** The proof of a page; all, whether to add up every row of factors or of a map, however long that takes; around, the cell
 * of a map around which rows are added up otherwise. */
function* prove(page, { all = false, around } = {}) {
  const { contents } = page;
  const outcome = { faults: [], proved: [], given: [], found: {} };
  const proofs = { table: proveTable, rows: proveTable, factors: proveFactors, region: proveRegion };
  const claims = contents.kind !== "region";
  if (claims) yield* proveClaim(page, outcome);
  yield* proofs[contents.kind](page, outcome, all, around);
  if (claims && placedOf(page))
    yield* part(provePositions(page, outcome), "comparing gradients between positions", 0.9, 0.96);
  if (claims && capsOf(page).length) yield* part(proveCaps(page, outcome), "comparing discs", 0.96, 0.97);
  if (claims && outcome.faults.length === 0) yield* part(proveSentence(page, outcome), "finding the factor of the sentence", 0.97, 1);
  if (claims) {
    outcome.faults.push(...priorFaults(array(page, "prior")), ...figureFaults(page, outcome.found));
    outcome.given.push("Coordinates, units, prior and names are as the file has them.");
    if (contents.verification.sha256 !== null)
      outcome.given.push("The sha256sum of the file is as mechdesign found it: compare it with that of your file.");
    if (contents.comparison) outcome.given.push("Figures of other mechanisms are those of mechdesign compare.");
    if (outcome.found.position_loss === undefined)
      outcome.given.push("The loss to the true position was found by mechdesign when this page was made, not here.");
    if (attribute(page, "lower_bound") !== undefined) {
      const checked = contents.verification.lower_bound_checked === true;
      outcome.given.push(
        checked
          ? "The lower bound was found again by mechdesign verify when this page was made, not here."
          : `The lower bound that the file names was not checked: ${contents.verification.lower_bound_reason ?? "what it rests on is not in the file"}.`,
      );
    }
  }
  return outcome;
}

/** The limits on the posterior of discs. */
function* proveCaps(page, outcome) {
  if (page.contents.kind !== "table") {
    outcome.given.push("The limits on discs were checked by mechdesign verify when this page was made.");
    return;
  }
  const { faults, compared, worst } = yield* capFaults(page, array(page, "mass"));
  outcome.faults.push(...faults);
  if (faults.length === 0) {
    outcome.found.disc = worst;
    const where = worst.byArea ? `the likeliest ${nounsOfPage(page).many} have` : `one ${shapeOf(page)} has`;
    const most = `after report ${worst.report}, the worst, ${where} ${percent(worst.share, true, 3)}`;
    outcome.proved.push(`No limit on the posterior is exceeded after any report: ${counted(compared)} inequalities in integers; ${most}.`);
  }
  outcome.given.push(`How many people there are in each ${nounsOfPage(page).one} is as the file has it.`);
}

/** The factor of the first sentence, and the loss to true positions. */
function* proveSentence(page, outcome) {
  const mass = page.contents.kind === "factors" ? null : array(page, "mass");
  outcome.found.position_loss = positionLoss(page, mass);
  if (placedOf(page) && page.contents.kind === "table")
    outcome.found.expected_loss = outcome.found.position_loss ?? centreLoss(page, mass);
  outcome.faults.push(...(yield* protectionFaults(page, outcome, mass && carriedRows(page), mass)));
}

/** The edges of the claim: those of the file, or those that were rebuilt from its geometry. */
function claimEdges(page) {
  const prefix = has(page, "claim_tail") ? "claim" : "edge";
  const length = array(page, `${prefix}_length`);
  return { tail: places(page, `${prefix}_tail`), head: places(page, `${prefix}_head`), length };
}

function* proveClaim(page, outcome) {
  const count = array(page, "prior").length;
  const [edges, whole] = [claimEdges(page), page.contents.kind !== "rows"];
  const claim = claimOf(described(page, "metric"));
  const setting = {
    claim,
    edges,
    whole,
    domain: described(page, "domain"),
    points: axesOf(page, "secret"),
    unit: unitOf(page, "secret_x"),
  };
  outcome.faults.push(...(yield* part(claimFaults(setting), "comparing the claim with its edges", 0.02, 0.15)));
  const { kind } = claim;
  if (whole) {
    if (!connected(count, edges)) outcome.faults.push({ text: "the edges do not connect all secrets" });
    outcome.proved.push(
      `The ${counted(edges.tail.length)} edges of the claim connect all secrets.`,
    );
  }
  const times = claim.scale === 1 ? "" : `${figure(claim.scale, true)} times `;
  const proved = {
    discrete:
      "No edge is longer than the claim says, and edges join every pair as closely as it says, in exact fractions.",
    euclidean:
      `No edge is longer than ${times}epsilon times the distance of its ends, and edges join every pair of places as closely as that, in exact fractions.`,
    eikonal:
      `No edge is longer than ${times}the largest level times the distance of its ends, in exact fractions, and neighbours are joined.`,
  };
  if (whole && proved[kind]) outcome.proved.push(proved[kind]);
  const given = {
    eikonal: "That the length of every edge is the integral of the level map is as the file has it.",
    streets: "Which streets there are, and how long, is the claim itself.",
    graph: "Which edges there are, and how long, is the claim itself.",
  };
  if (given[kind]) outcome.given.push(given[kind]);
}

function* proveTable(page, outcome) {
  const mass = array(page, "mass");
  const reports = array(page, "report_x").length;
  const count = array(page, "prior").length;
  const rows = carriedRows(page);
  const row = new Map(Array.from(rows, (u, r) => [u, r]));
  const edges = claimEdges(page);
  const own = {
    tail: edges.tail.map((u) => row.get(u)),
    head: edges.head.map((u) => row.get(u)),
    length: edges.length,
  };
  outcome.faults.push(...(yield* part(rowFaults(mass, rows, reports), "adding up the rows", 0.15, 0.3)));
  const found = yield* part(
    edgeFaults(mass, rows, reports, own, page.contents.verification.worst),
    "comparing inequalities",
    0.3,
    0.9,
  );
  const losses = yield* part(rowLosses(page, mass, rows, reports), "adding up the losses", 0.9, 1);
  const partly = rows.length < count;
  outcome.faults.push(...found.faults);
  const scale = attribute(page, "scale");
  outcome.found = {
    inequalities: found.inequalities,
    compared: found.compared,
    rows: rows.length,
    value: found.value,
    partial: partly,
    losses: losses ?? undefined,
    violations: partly ? undefined : found.broken,
    worst: partly ? undefined : found.said,
    // Positions never draw one row alone: their expected loss is found with the loss to the true position.
    expected_loss:
      partly || !losses || placedOf(page) ? undefined : losses.reduce((sum, loss, u) => sum + loss * array(page, "prior")[u], 0),
    ratio:
      partly || page.contents.verification.ratio === null
        ? undefined
        : scale * (found.broken ? found.value : Math.min(found.value, 1)),
  };
  const which = partly
    ? `The ${counted(rows.length)} rows of ${counted(count)} that this page carries`
    : `All ${counted(count)} rows`;
  outcome.proved.push(
    `${which} have masses of at least 1 and sum to exactly 2^62.`,
    `${counted(found.inequalities)} inequalities P(y|u) <= e^d P(y|v) hold: ${counted(edges.length.length)} edges, both ways, ` +
      `${counted(reports)} reports.`,
  );
  const rest = "hold by more than eight roundings of doubles.";
  if (found.compared === found.inequalities) outcome.proved.push("Each of them was compared in integers.");
  else if (found.compared === 0) outcome.proved.push(`All of them ${rest}`);
  else outcome.proved.push(`${counted(found.compared)} of them were compared in integers, the others ${rest}`);
  if (partly)
    outcome.given.push(
      "The other rows were checked by mechdesign verify when this page was made.",
    );
  if (losses === null) outcome.given.push("The loss is one that this page does not know.");
}

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
  const found = yield* part(
    factorEdges(factors, sums, edges, page.contents.verification.worst),
    "comparing edges",
    0.15,
    0.25,
  );
  outcome.faults.push(...found.faults);
  outcome.faults.push(...(yield* part(factorFaults(page, factors, sums, asked), "adding up rows again", 0.25, 1)));
  const losses = array(page, "row_loss");
  outcome.found = {
    inequalities: found.inequalities,
    compared: found.compared,
    rows: asked.length,
    value: found.value,
    partial: stride > 1,
    losses,
    violations: found.broken,
    worst: found.said,
    expected_loss: losses.reduce((sum, loss, u) => sum + loss * prior[u], 0),
    ratio: Math.min(1, found.value),
  };
  const from = generators
    ? `${counted(factors.weight.length)} columns of ${counted(generators.origins.length)} generators`
    : `${counted(factors.weight.length)} weights`;
  const rows = stride > 1 ? `Every ${stride === 2 ? "second" : `${stride}th`} row was` : "All rows were";
  outcome.proved.push(
    `${rows} added up again in integers, ${counted(asked.length)} of ${counted(sums.length)}: from ${from} and the distances along whole edge lengths.`,
    `${counted(found.inequalities)} inequalities between row sums hold, two for each of ${counted(edges.length.length)} edges. Each stands for all reports.`,
  );
  if (stride > 1)
    outcome.given.push(
      "The sums of the other rows are as the file has them; mechdesign verify added them up when this page was made.",
    );
}

function counted(number) {
  return number.toLocaleString("en");
}
