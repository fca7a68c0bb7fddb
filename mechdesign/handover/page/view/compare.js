// The comparison: every mechanism at the epsilon that it truly has, those that break their claim marked.

/** An element with a text, a class, and children. */
function element(tag, text = "", kind = "", children = []) {
  const made = document.createElement(tag);
  if (text !== "") made.textContent = text;
  if (kind) made.className = kind;
  made.append(...children);
  return made;
}

function named(mechanism) {
  return mechanism.replaceAll("_", " ").replace("laplac", "Laplac");
}

/** Fill the table of a comparison. */
function showComparison(table, rows, unit) {
  const figure = (value) => (value === null ? "–" : short(value));
  const head = [
    "mechanism",
    "verdict",
    unit ? `loss (${unit})` : "loss",
    "claimed epsilon",
    "smallest epsilon",
    "ratio",
  ];
  const columns = head.map((text, k) => {
    const cell = element("th", text, k > 1 ? "number" : "");
    cell.scope = "col";
    return cell;
  });
  table.tHead.append(element("tr", "", "", columns));
  for (const row of rows) {
    const name = element("th", named(row.mechanism));
    name.scope = "row";
    const figures = [row.loss, row.claimed_epsilon, row.smallest_epsilon, row.effective_epsilon];
    const cells = figures.map((value) => element("td", figure(value), "number"));
    const verdict = row.broken ? element("td", "✗ breaks its claim", "bad") : element("td", "✓ as claimed", "good");
    table.tBodies[0].append(element("tr", "", row.broken ? "broken" : "", [name, verdict, ...cells]));
  }
}
