// The page: its texts from its data, the map or the curve, and the proof.

const byId = (id) => document.getElementById(id);

/** Put the texts that the data have in place of those that stand in the HTML. */
function showFacts(page) {
  const { facts, saying, verification } = page.contents;
  const texts = saying ? saying.texts : {};
  byId("sentence").textContent = saying
    ? saying.template.replace(/\{(\w+)\}/g, (_, name) => texts[name])
    : facts.sentence;
  document.title = `${facts.name}: ${facts.kind}`;
  for (const part of document.querySelectorAll("[data-fact]")) part.textContent = facts[part.dataset.fact];
  for (const part of document.querySelectorAll("[data-claim]")) part.textContent = facts.claims[part.dataset.claim];
  for (const part of document.querySelectorAll("[data-provenance]"))
    part.textContent = facts.provenance[part.dataset.provenance];
  for (const part of document.querySelectorAll("[data-figure]")) {
    const name = part.dataset.figure;
    const value = name in verification ? verification[name] : attribute(page, name);
    part.textContent =
      typeof value === "object" && value
        ? Object.entries(value)
            .map(([k, v]) => `${k} ${v}`)
            .join(", ")
        : String(value);
  }
}

/** The verdict of the proof, and what it said. */
function showOutcome(page, outcome) {
  const [badge, good] = [byId("proof"), outcome.faults.length === 0];
  const { found } = outcome;
  const told = found.told ?? {
    whole: !found.partial,
    verdict: found.partial ? "Proved in part" : "Proved in this browser",
    words: good
      ? `${counted(found.rows)} rows, ${counted(found.inequalities)} inequalities${found.gradients ? `, ${counted(found.gradients)} gradients between positions` : ""}${found.compared === found.inequalities && found.exact === found.gradients ? ", in whole numbers" : ""}.`
      : "",
  };
  badge.className = `badge ${good ? (told.whole ? "proved" : "partly") : "refused"}`;
  byId("progress").hidden = true;
  byId("verdict").textContent = good ? told.verdict : "Refused";
  byId("saying").textContent = good ? told.words : outcome.faults[0].text;
  const list = (id, texts) => {
    byId(id).replaceChildren(...texts.map((text) => element("li", text)));
    byId(id).parentElement.hidden = texts.length === 0;
  };
  list(
    "proved",
    outcome.proved.filter(() => good),
  );
  list("given", outcome.given);
  list(
    "faults",
    outcome.faults.map((fault) => fault.text),
  );
  byId("all").hidden = !(good && found.partial && ["factors", "region"].includes(page.contents.kind));
}

function runProof(page, texts, explore, options) {
  byId("proof").className = "badge waiting";
  byId("verdict").textContent = "Proving";
  byId("saying").textContent = "reading the numbers";
  byId("progress").hidden = false;
  beforePrint = () => byId("proof").classList.contains("waiting") && showOutcome(page, provenAtOnce(page, texts, options));
  const tell = ({ words, share }) => {
    byId("progress").value = share;
    byId("saying").textContent = words;
  };
  const source = byId("program").textContent;
  return proven(texts, options, tell, source).then((outcome) => {
    showOutcome(page, outcome);
    if (!explore) return;
    if (explore instanceof RegionView) {
      explore.proved(outcome);
      return;
    }
    if (outcome.found.losses) explore.lost(outcome.found.losses, has(page, "carried") ? places(page, "carried") : null);
    const at = outcome.faults.find((fault) => fault.secret !== undefined);
    if (at && at.secret < explore.model.count) explore.choose(at.secret);
  });
}

/** What is to be done before this page is printed: a proof that has not ended is made at once, so that paper says how it ended. */
let beforePrint = () => {
  byId("verdict").textContent = "Not proved";
  byId("saying").textContent = "This was printed before the proof had begun.";
};

function startExplore(page) {
  byId("explore").hidden = false;
  return new Explore(new Model(page), {
    canvas: byId("map"),
    tabs: byId("tabs"),
    legend: byId("legend"),
    title: byId("place-title"),
    place: byId("place"),
    draw: byId("draw"),
    reportBox: byId("report-box"),
    report: byId("report"),
    factor: byId("factor"),
    reach: byId("reach"),
    factorText: byId("factor-text"),
    missing: byId("missing"),
  });
}

async function start() {
  byId("saying").textContent = "reading the numbers";
  addEventListener("beforeprint", () => beforePrint());
  const [contents, packed] = [byId("data").textContent, byId("arrays").textContent];
  const texts = { contents, packed, seal: byId("data").dataset.seal };
  let [page, explore] = [null, null];
  try {
    page = await opened(texts);
    showFacts(page);
    if (page.contents.kind === "curve") {
      byId("curve").hidden = false;
      new Curve(page, {
        chart: byId("chart"),
        slider: byId("scale"),
        told: byId("at-scale"),
        table: byId("baselines"),
        key: byId("key"),
      });
    } else if (page.contents.kind === "shares") startShares(page);
    else if (page.contents.kind === "region") {
      explore = startRegion(page, (around) => runProof(page, texts, explore, { around }));
    }
    else explore = startExplore(page);
    if (page.contents.comparison) {
      byId("comparison").hidden = false;
      showComparison(byId("compared"), page.contents.comparison, page.contents.facts.loss_unit);
    }
  } catch (error) {
    showOutcome(
      { contents: { kind: "none" } },
      { faults: [{ text: `the data cannot be shown: ${error.message}` }], proved: [], given: [], found: {} },
    );
    return;
  }
  byId("all").addEventListener("click", () => runProof(page, texts, explore, { all: true }));
  byId("copy").addEventListener("click", () => navigator.clipboard?.writeText(byId("bibtex").textContent));
  await runProof(page, texts, explore, {});
}

start();
