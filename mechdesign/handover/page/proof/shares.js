// The proof of an estimate: counts, distribution and shares of areas, found again from the mechanisms that the page carries.
//
// a(y), the weights of an area's bounds, are carried. With f the shares of the reports, g the indicator of the area and P
// the channel:
//
//     linear    |P a - g| <= bias, so that the mean of a is the share, whatever the truth, up to the bias;
//               share = f a, its ends z s / sqrt(N) + bias away, s^2 = sum_y f(y) (a(y) - mean)^2
//     affine    P a <= g below and P a >= g above, so that the means bound the share, whatever the truth
//
// In doubles: a share agrees up to 1e-9 and a millionth of a standard error. That the distribution is the most likely one
// up to its gap follows from ln max_u sum_y f(y) P(y|u) / q(y), q = P^T p, which bounds the gap of any p.

const SHARE = 1e-9;
const ERRORS = 1e-6; // of a standard error
const KNOWN = 1e-6; // of |P a - g|, for a share that reports tell
const SHOWN = 1.01e-2; // relative, of a figure of three digits
const EFFECTIVE = 20; // effective reports of a 95 % interval
const LAID_IN = 0.01; // of the uniform law in the law fixed beforehand
const NOT_TOLD = /^not identifiable: /;
const TOO_FEW = /^too few reports: ([0-9.e+]+) effective ones, an interval takes ([0-9.e+]+)$/;

function* proveShares(page, outcome) {
  const told = JSON.parse(attribute(page, "mechanisms"));
  const count = array(page, "count");
  outcome.faults.push(...countFaults(page, told, count), ...distributionFaults(page), ...shownFaults(page, told));
  outcome.given.push(
    "That every report is of another person, made independently by one of these mechanisms, and that coordinates, names and areas are as the file has them.",
  );
  const areas = areasOf(page);
  outcome.faults.push(...confidenceFaults(page, areas));
  const carried = page.contents.mechanisms;
  if (carried.length === 0) {
    const why = page.contents.given_mechanisms ? "are too large for a page" : "were not given";
    outcome.found.told = {
      whole: false,
      verdict: "Sealed, not proved",
      words: `Checksum and counts hold together; the tables of the mechanisms ${why}, so neither privacy nor intervals are proved here.`,
    };
    outcome.given.push("Privacy, the distribution, the intervals and the test of fit.");
    return;
  }
  const pages = carried.map((contents) => ({ contents, bytes: page.bytes, sealed: true }));
  const own = yield* proveMechanisms(page, pages, told, outcome);
  if (outcome.faults.length) return;
  const channel = new Channel(pages, split(count, told));
  yield* part(channel.fill(), "multiplying out the channel", 0.6, 0.7);
  outcome.faults.push(...likelihoodFaults(page, channel, outcome));
  const bounds = boundsOf(page);
  if (areas.length && bounds) {
    outcome.faults.push(...(yield* part(intervalFaults(page, channel, areas, bounds), "finding intervals", 0.7, 1)));
    const affine = attribute(page, "interval") === "affine";
    outcome.proved.push(
      affine
        ? `The weights of every bound stay below or above its area for every place (P a <= g, P a >= g, up to ${KNOWN}).`
        : "The weights of every area bring P a as near to it as the bias says, for every place: the estimate is right on average whatever the truth.",
      "Shares, standard errors, effective reports and both ends of every interval follow from the counts and these weights, up to 1e-9 and a millionth of a standard error.",
    );
    if (array(page, "bias").some((bias) => bias > KNOWN))
      outcome.given.push("That no other weights come nearer to an area that is said not to be identifiable.");
  } else if (areas.length) {
    outcome.given.push(
      "The intervals: their weights rest on a guess that the file does not keep, or are too many for a page.",
    );
  }
  if (has(page, "difference"))
    outcome.given.push("Differences: the file keeps no counts of the other period, so they are as it has them.");
  const whole = !own.partial && (bounds !== null || !areas.length);
  const fits = fitOf(page) >= page.contents.refused_below;
  outcome.found.told = {
    whole: whole && fits,
    verdict: `Proved in ${whole ? "this browser" : "part"}${fits ? "" : ", but the reports do not fit"}`,
    words: `Privacy by ${counted(own.inequalities)} inequalities${own.exact ? " in whole numbers" : ""}; ${areas.length && bounds ? `${counted(areas.length)} ${areas.length === 1 ? "share" : "shares"} found again from ${counted(channel.reports)} counted reports` : areas.length ? "shares are as the file has them" : `the likelihood of ${counted(channel.reports)} counted reports was found again`}.`,
  };
}

/** The proof of every mechanism of an estimate, as its own page gives it. */
function* proveMechanisms(page, pages, told, outcome) {
  const own = { inequalities: 0, exact: true, partial: false };
  for (let k = 0; k < pages.length; k++) {
    const [held, name] = [pages[k], pages.length > 1 ? `Mechanism ${k + 1}: ` : "The mechanism: "];
    const steps = prove(held);
    let found;
    for (;;) {
      const { done, value } = steps.next();
      if (done) {
        found = value;
        break;
      }
      yield { words: `the mechanism: ${value.words}`, share: (0.6 * (k + value.share)) / pages.length };
    }
    const fault = (text) => outcome.faults.push({ text: `mechanism ${k + 1}: ${text}` });
    found.faults.forEach(({ text }) => fault(text));
    if (attribute(held, "sha256") !== told[k].sha256) fault("is another than that of the reports");
    if (attribute(held, "claim") !== told[k].claim) fault("has another claim than the estimate says");
    if (rowLength(held) !== told[k].reports) fault("has another number of reports than the estimate says");
    if (!sameAxes(axesOf(held, "secret"), axesOf(page, "secret"))) fault("has other places than the estimate");
    if (attribute(held, "domain") !== attribute(page, "domain")) fault("has another domain than the estimate");
    if (k === 0 && !sameAxes([array(held, "prior")], [array(page, "prior")])) fault("has another prior");
    outcome.proved.push(...found.proved.map((text) => name + text));
    outcome.given.push(...found.given.map((text) => name + text));
    own.inequalities += found.found.inequalities;
    own.exact &&= found.found.compared === found.found.inequalities;
    own.partial ||= found.found.partial;
  }
  outcome.faults.push(...promiseFaults(page, pages));
  return own;
}

function rowLength(page) {
  return has(page, "report_x") ? array(page, "report_x").length : array(page, "prior").length;
}

function sameAxes(one, other) {
  return one.length === other.length && one.every((axis, k) => axis.every((at, u) => at === other[k][u]));
}

/** Names of the areas; none where there are none. */
function areasOf(page) {
  return JSON.parse(attribute(page, "areas") ?? "[]");
}

/** counts (m_j,) of every mechanism as doubles. */
function split(count, told) {
  let from = 0;
  return told.map(({ reports }) => Array.from(count.subarray(from, (from += reports)), Number));
}

/** Columns of the weights { low, high } of every area; null where the page does not carry them. */
function boundsOf(page) {
  if (has(page, "weights_low")) return [columns(page, "weights_low"), columns(page, "weights_high")];
  return has(page, "weights") ? Array(2).fill(columns(page, "weights")) : null;
}

function columns(page, name) {
  const [rows, width] = page.contents.beside[name].shape;
  const values = array(page, name);
  return Array.from({ length: width }, (_, k) => Float64Array.from({ length: rows }, (_, y) => values[y * width + k]));
}

/** Faults of the counts: whole, as many as said, and those that the digest was made of. */
function countFaults(page, told, count) {
  const faults = [];
  const digest = new Sha256();
  let from = 0;
  for (const { sha256: own, reports, made } of told) {
    const part = count.subarray(from, from + reports);
    from += reports;
    if (part.some((number) => number < 0n)) faults.push({ text: "a count is negative" });
    if (Number(part.reduce((a, b) => a + b, 0n)) !== made)
      faults.push({ text: `counts of a mechanism do not add up to ${made}` });
    digest
      .add(new TextEncoder().encode(own))
      .add(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
  }
  const sum = told.reduce((a, { made }) => a + made, 0);
  if (from !== count.length || sum !== attribute(page, "reports"))
    faults.push({ text: `there are ${sum} reports, not ${attribute(page, "reports")}` });
  if (digest.hex() !== attribute(page, "reports_sha256"))
    faults.push({ text: "reports_sha256 is not that of the counts" });
  return faults;
}

/** Faults of the distribution: it is one, and so are its shares of areas those that are said. */
function distributionFaults(page) {
  const p = array(page, "distribution");
  const sum = p.reduce((a, b) => a + b, 0);
  const faults = [];
  if (!(p.every((value) => value >= 0) && Math.abs(sum - 1) <= SHARE))
    faults.push({ text: `the distribution sums to ${sum}` });
  const names = areasOf(page);
  if (!names.length) return faults;
  const shares = new Float64Array(names.length);
  places(page, "area_of").forEach((k, u) => (shares[k] += p[u]));
  array(page, "likelihood_share").forEach((said, k) => {
    if (!(Math.abs(shares[k] - said) <= SHARE))
      faults.push({ text: `likelihood_share of ${names[k]}: the file says ${said}, found ${shares[k]}` });
  });
  return faults;
}

/** Faults of likelihood, gap and test of fit. */
function likelihoodFaults(page, channel, outcome) {
  const faults = [];
  const { counts, reports } = channel;
  const law = channel.law(array(page, "distribution"));
  let [likelihood, entropy] = [0, 0];
  counts.forEach((count, y) => {
    if (count) likelihood += (count / reports) * Math.log(law[y]);
    if (count) entropy += count * Math.log(count / reports);
  });
  const said = (name) => attribute(page, name);
  if (!agree(likelihood, said("log_likelihood")))
    faults.push({ text: `log_likelihood: the file says ${said("log_likelihood")}, found ${likelihood}` });
  const freedom = channel.parts.reduce((sum, { from, to }) => sum + to - from - 1, 0);
  if (freedom !== said("fit_freedom")) faults.push({ text: `fit_freedom: found ${freedom}` });
  const all = tailBound(said("fit_statistic"), freedom);
  if (!(said("fit_p") >= 0 && said("fit_p") <= Math.min(1, 2 * all) * (1 + 1e-6)))
    faults.push({ text: `fit_p: the file says ${said("fit_p")}, the statistic allows ${2 * all} at most` });
  outcome.given.push("What the test of fit found in two halves of the reports: mechdesign tried it again when this page was made, not here.");
  if (said("method").startsWith("expectation")) {
    outcome.given.push("Where the distribution was stopped on its way to the most likely one, and the statistic of the test of fit.");
    return faults;
  }
  const reached = channel.rows.map((row) => row.reduce((sum, p, y) => sum + (counts[y] * p) / (reports * law[y]), 0));
  const gap = Math.log(reached.reduce((a, b) => Math.max(a, b)));
  if (!(gap <= said("gap") + SHARE)) faults.push({ text: `gap: the file says ${said("gap")}, found ${gap}` });
  const statistic = Math.max(entropy - reports * (likelihood + said("gap")), 0);
  if (!(Math.abs(statistic - said("fit_statistic")) <= AGREE * Math.max(1, Math.abs(entropy))))
    faults.push({ text: `fit_statistic: the file says ${said("fit_statistic")}, found ${statistic}` });
  outcome.proved.push(
    `No distribution makes these reports more likely by more than ${Math.max(gap, 0).toExponential(1)} nats per report.`,
    "The p value of the test of fit is at most what the statistic of all reports allows.",
  );
  return faults;
}

/** Faults of the confidence. */
function confidenceFaults(page, names) {
  if (!names.length) return [];
  const z = attribute(page, "z");
  const together = attribute(page, "simultaneous") ? names.length : 1;
  const fits = agree(normalTail(z), (1 - attribute(page, "confidence")) / 2 / together);
  return fits ? [] : [{ text: `z: ${z} is not that of this confidence` }];
}

/** Faults of shares and intervals. */
function* intervalFaults(page, channel, names, [lows, highs]) {
  const faults = [];
  const z = attribute(page, "z");
  const affine = attribute(page, "interval") === "affine";
  const [label, prior, n] = [places(page, "area_of"), array(page, "prior"), channel.secrets];
  const law = channel.law(prior.map((p) => (1 - LAID_IN) * p + LAID_IN / n));
  const reasons = JSON.parse(attribute(page, "reasons"));
  const columnsSaid = ["share", "low", "high", "standard_error", "bias"].map((name) => [name, array(page, name)]);
  for (let k = 0; k < names.length; k++) {
    const [below, above] = [off(channel, lows[k], label, k), off(channel, highs[k], label, k)];
    const found = affine ? affineEnds(channel, lows[k], highs[k], law, z) : linearEnds(channel, lows[k], law, z, below);
    if (affine && !(below.over <= KNOWN && above.under <= KNOWN))
      faults.push({ text: `${names[k]}: the weights of a bound are not on its safe side` });
    const needed = EFFECTIVE * (z / 1.959963984540054) ** 2;
    const effective = array(page, "effective")[k];
    if (found.standard_error > SHARE && !agree(found.effective, effective, 1e-6))
      faults.push({ text: `${names[k]}: effective reports are ${found.effective}, not ${effective}` });
    const reason = reasons[k] ?? "";
    const few = TOO_FEW.exec(reason);
    const told = few ? Number(few[1]) : effective;
    const fits = found.bias > KNOWN ? NOT_TOLD.test(reason) : effective < needed ? few !== null : reason === "";
    if (!fits || !agree(told, effective, SHOWN)) faults.push({ text: `${names[k]}: "${reason}" is not the reason` });
    if (reason) [found.low, found.high] = [NaN, NaN];
    const slack = SHARE + ERRORS * found.standard_error;
    for (const [name, said] of columnsSaid) {
      const same = Number.isNaN(found[name]) ? Number.isNaN(said[k]) : Math.abs(found[name] - said[k]) <= slack;
      if (!same) faults.push({ text: `${names[k]}: ${name} is ${found[name]}, not ${said[k]}` });
    }
    yield k / names.length;
  }
  return faults;
}

/** How far P a lies over and under the indicator of area k at most. */
function off(channel, weights, label, k) {
  let [over, under] = [-Infinity, -Infinity];
  channel.rows.forEach((row, u) => {
    let sum = -Number(label[u] === k);
    for (let y = 0; y < row.length; y++) sum += row[y] * weights[y];
    [over, under] = [Math.max(over, sum), Math.max(under, -sum)];
  });
  return { over, under };
}

const within = (share) => Math.min(Math.max(share, 0), 1);

function linearEnds(channel, weights, law, z, { over, under }) {
  const { mean, error, effective } = channel.mean(weights, law, z);
  const bias = Math.max(over, under);
  const away = z * error + bias;
  const told = { standard_error: error, effective, bias };
  if (bias > KNOWN) return { ...told, share: NaN, low: NaN, high: NaN };
  return { ...told, share: within(mean), low: within(mean - away), high: within(mean + away) };
}

function affineEnds(channel, lows, highs, law, z) {
  const [below, above] = [lows, highs].map((weights) => channel.mean(weights, law, z));
  const [low, high] = [within(below.mean - z * below.error), within(above.mean + z * above.error)];
  const effective = Math.min(below.effective, above.effective);
  return { share: (low + high) / 2, low, high, standard_error: Math.max(below.error, above.error), effective, bias: 0 };
}

/** The p value of the test of fit: that of the file, or what was found when the page was made, where that is smaller. */
function fitOf(page) {
  return Math.min(attribute(page, "fit_p"), page.contents.fit_p);
}

/** Faults of what the page shows: the first sentence, checksums and claims. */
function shownFaults(page, told) {
  const { facts, saying, mechanisms } = page.contents;
  const faults = [];
  const wrong = (text) => faults.push({ text });
  faults.push(...checksumFaults(page));
  told.forEach(({ claim, sha256: own }, k) => {
    const name = told.length > 1 ? `mechanism ${k + 1}` : "mechanism";
    if (facts.claims[k] !== claim) wrong("claim: the page shows another than the file");
    if (!facts.provenance[name].endsWith(own)) wrong(`${name}: the page shows another checksum than the file`);
  });
  if (mechanisms.length && mechanisms.length !== told.length) wrong("mechanisms: the page lacks some");
  const { values, texts, area } = saying;
  if (values.reports !== attribute(page, "reports") || readNumber(texts.reports) !== values.reports)
    wrong(`the sentence says ${texts.reports} reports`);
  const refused = fitOf(page) < page.contents.refused_below;
  if (page.contents.refused_below !== 1e-3 || refused !== saying.template.startsWith("Do not trust"))
    wrong("the sentence does not say whether the reports fit");
  if (area === null) return faults;
  const name = areasOf(page)[area];
  const shown = texts.area.endsWith("…") ? texts.area.slice(0, -1) : texts.area;
  if (!name?.startsWith(shown) || (shown !== name && shown.length < 59)) wrong(`the sentence calls ${name} ${texts.area}`);
  const [low, high] = ["low", "high"].map((end) => 100 * array(page, end)[area]);
  if (!agree(values.low, low) || !agree(values.high, high)) wrong(`the sentence speaks of ${values.low} to ${values.high} %`);
  const step = high - low >= 3 ? 1 : (high - low) / 3;
  const ends = [low - Number(texts.low), Number(texts.high) - high];
  if (!ends.every((away) => away >= -1e-6 && away <= step * 1.01))
    wrong(`the sentence shows ${texts.low} % and ${texts.high} %, and means ${low} and ${high}`);
  if (!agree(Number(texts.confidence), 100 * attribute(page, "confidence"), 1e-5)) wrong("the sentence shows another confidence");
  return faults;
}

/** Faults of the sentences after the first: those of every mechanism. */
function promiseFaults(page, pages) {
  const { saying } = page.contents;
  const own = pages.map((held) => {
    const { template, values, texts } = held.contents.saying;
    const words = PROTECTS.exec(template)?.[0].trim() ?? "";
    return { words: `${words.charAt(0).toLowerCase()}${words.slice(1)}`, values, texts };
  });
  const made = JSON.parse(attribute(page, "mechanisms")).map((each) => each.made);
  const one = own.length === 1;
  const of = (k) => (one ? "Every report" : `Mechanism ${k + 1} (${counted(made[k])} reports)`);
  const named = (words, k) => (one ? words : words.replace(/\{(\w+)\}/g, `{$1_${k}}`));
  const all = own.map(({ words }, k) => `${of(k)} ${named(words, k)}`);
  if (!saying.template.endsWith(` ${all.join(" ")}`)) return [{ text: "the sentence says other than the mechanisms" }];
  return own.flatMap(({ words, values, texts }, k) =>
    [...words.matchAll(/\{(\w+)\}/g)].flatMap(([, name]) => {
      const said = one ? name : `${name}_${k}`;
      if (agree(saying.values[said], values[name], AGREE) && saying.texts[said] === texts[name]) return [];
      return [{ text: `the sentence says ${said} ${saying.texts[said]}, the mechanism ${texts[name]}` }];
    }),
  );
}
