// The page: its texts from its data, the map, and the proof.

const byId = (id) => document.getElementById(id);

/** Replace the texts of the HTML by texts made from the data. */
function showFacts(page) {
  const { facts, verification, kind } = page.contents;
  const region = kind === "region";
  byId("sentence").textContent = region ? regionHeadline(page) : headline(page);
  const claims = region ? { claim: regionClaimWords(page) } : { claim: claimWords(page), position_claim: positionClaimWords(page) };
  if (!byId("title")) document.title = `${facts.name}: ${facts.kind}`;
  for (const part of document.querySelectorAll("[data-fact]")) part.textContent = claims[part.dataset.fact] ?? facts[part.dataset.fact];
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

/** Show the verdict of the proof, its sentences and its faults. */
function showOutcome(page, outcome) {
  const [badge, good] = [byId("proof"), outcome.faults.length === 0];
  const { figures } = outcome;
  const result = figures.badge ?? {
    whole: !figures.partial,
    verdict: figures.partial ? "Proved in part" : "Proved in this browser",
    words: good
      ? `${countWords(figures.rows)} rows, ${countWords(figures.inequalities)} inequalities${figures.gradients ? `, ${countWords(figures.gradients)} gradients between positions` : ""}${figures.compared === figures.inequalities ? ", in integers" : ""}.`
      : "",
  };
  badge.className = `badge ${good ? (result.whole ? "proved" : "partly") : "refused"}`;
  byId("progress").hidden = true;
  byId("verdict").textContent = good ? result.verdict : "Refused";
  byId("saying").textContent = good ? result.words : outcome.faults[0].text;
  const list = (id, texts) => {
    byId(id).replaceChildren(...texts.map((text) => element("li", text)));
    byId(id).parentElement.hidden = texts.length === 0;
  };
  list(
    "proved",
    outcome.proved.filter(() => good),
  );
  list("assumed", outcome.assumed);
  list(
    "faults",
    outcome.faults.map((fault) => fault.text),
  );
  byId("all").hidden = !(good && figures.partial && ["factors", "region"].includes(page.contents.kind));
}

function runProof(page, packed, explore, options) {
  byId("proof").className = "badge waiting";
  byId("verdict").textContent = "Proving";
  byId("saying").textContent = "reading the numbers";
  byId("progress").hidden = false;
  beforePrint = () => byId("proof").classList.contains("waiting") && showOutcome(page, run(prove(page, options)).value);
  const onProgress = ({ words, share }) => {
    byId("progress").value = share;
    byId("saying").textContent = words;
  };
  const source = byId("program").textContent;
  return proveInWorkers(packed, options, onProgress, source, partsOf(page)).then((outcome) => {
    showOutcome(page, outcome);
    explore?.proved(outcome);
  });
}

/** Called before printing: finishes a running proof at once, so that the paper shows its verdict. */
let beforePrint = () => {
  byId("verdict").textContent = "Not proved";
  byId("saying").textContent = "This was printed before the proof had begun.";
};

async function start() {
  byId("saying").textContent = "reading the numbers";
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details")) part.open = true;
    beforePrint();
  });
  const packed = byId("data").textContent;
  let [page, explore] = [null, null];
  try {
    page = await openPage(packed);
    showFacts(page);
    byId("explore").hidden = false;
    explore = page.contents.kind === "region" ? new RegionView(page) : new Explore(new Model(page));
    byId("here")?.addEventListener("click", () => runProof(page, packed, explore, { around: explore.cell }));
  } catch (error) {
    showOutcome(
      { contents: { kind: "none" } },
      { faults: [{ text: `the data cannot be shown: ${error.message}` }], proved: [], assumed: [], figures: {} },
    );
    return;
  }
  byId("all").addEventListener("click", () => runProof(page, packed, explore, { all: true }));
  byId("copy").addEventListener("click", () => navigator.clipboard?.writeText(byId("bibtex").textContent));
  await runProof(page, packed, explore, {});
}

start();
