// Shares of areas as a table with a bar and an interval in every row, largest first.

const percent = (share, digits = 2) => (Number.isFinite(share) ? `${(100 * share).toFixed(digits)}\u00a0%` : "–");

/** A round share that is not below `most`, the end of the bars' axis; all where there is no share. */
function axisEnd(most) {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(Math.max(most, 1e-6)));
  return Math.min(1, [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((k) => k * power).find((end) => end >= most * (1 - 1e-9)));
}

/** One bar: the share, and its interval as a line with two ends. */
function shareBar({ share, low, high }, end) {
  const at = (value) => `${(100 * Math.min(value, end)) / end}%`;
  const made = svg("svg", { class: "share-bar", "aria-hidden": "true" });
  const told = Number.isFinite(low);
  if (Number.isFinite(share))
    made.append(svg("rect", { x: 0, y: 4, width: at(share), height: 14, class: told ? "told" : "untold" }));
  if (!told) return made;
  made.append(svg("line", { x1: at(low), x2: at(high), y1: 11, y2: 11 }));
  for (const value of [low, high]) made.append(svg("line", { x1: at(value), x2: at(value), y1: 6, y2: 16 }));
  return made;
}

/** Fill the table of areas: rows, { name, share, low, high, ... }; chosen(k) is called for the area that is clicked. */
function showBars(table, rows, confidence, chosen) {
  const end = axisEnd(rows.reduce((most, row) => Math.max(most, row.share || 0, row.high || 0), 0));
  const axis = svg("svg", { class: "share-axis", role: "img", "aria-label": `bars from 0 to ${percent(end, 0)}` });
  for (const [x, anchor, value] of [
    ["0%", "start", 0],
    ["50%", "middle", end / 2],
    ["100%", "end", end],
  ])
    axis.append(svg("text", { x, y: 12, "text-anchor": anchor }, `${Number((100 * value).toPrecision(3))} %`));
  const compared = "difference" in rows[0];
  const heads = ["area", axis, "share", `${confidence} % interval`, "standard error", "effective reports", "most likely"];
  if (compared) heads.push("other period", "difference");
  const head = heads.map((text, k) => {
    const cell = k === 1 ? element("th", "", "", [text]) : element("th", text, k > 1 ? "number" : "");
    cell.scope = "col";
    return cell;
  });
  table.tHead.replaceChildren(element("tr", "", "", head));
  table.caption.textContent = `Bars: the share; lines: its interval of ${confidence} % confidence. The name of an area shows it on the map.`;
  const figure = (text, value, kind = "number") => {
    const cell = element("td", text, kind);
    cell.dataset.value = String(value);
    return cell;
  };
  const between = (low, high, words) => (Number.isFinite(low) ? words(low, high) : "none");
  const range = (low, high) => `${(100 * low).toFixed(2)} to ${percent(high)}`;
  const made = [...rows]
    .sort((a, b) => (Number.isNaN(b.share) ? -1 : b.share) - (Number.isNaN(a.share) ? -1 : a.share))
    .map((row) => {
      const button = element("button", row.name, "area");
      button.type = "button";
      button.addEventListener("click", () => chosen(row.k));
      const name = element("th", "", "", [button]);
      name.scope = "row";
      const cells = [
        element("td", "", "", [shareBar(row, end)]),
        figure(percent(row.share), row.share),
        figure(between(row.low, row.high, range), `${row.low},${row.high}`),
        figure(percent(row.standard_error), row.standard_error),
        figure(short(row.effective), row.effective),
        figure(percent(row.likelihood_share), row.likelihood_share),
      ];
      if (compared)
        cells.push(
          figure(percent(row.against_share), row.against_share),
          figure(
            Number.isFinite(row.difference_low)
              ? `${(100 * row.difference).toFixed(2)} (${range(row.difference_low, row.difference_high)})`
              : "none",
            row.difference,
          ),
        );
      const line = element("tr", "", "", [name, ...cells]);
      line.dataset.area = row.k;
      return line;
    });
  table.tBodies[0].replaceChildren(...made);
}
