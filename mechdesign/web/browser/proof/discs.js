// Limits on the share of the posterior in a disc, for whoever knows the people N that the file names: for every report y
// and every disc B
//
//     under * sum over u in B of N(u) A(u, y) <= over * sum over all u of N(u) A(u, y),   over / under its limit,
//
// in integers. Discs about places, or through two of them, where they are centred anywhere: what any disc contains
// is part of what one of these does. By area B is any cells of a grid that are together no larger than a disc: those that
// have most of a report. The radius is raised by 2^-40 of itself, beyond rounding.

const RAISED = 1 + 2 ** -40;
const SHARE = /^[0-9]{1,5}\/[0-9]{1,5}$/;
const PARTS = 65536n; // denominators are below it

/** The limits of a page as its file has them: { radius, centres, people, share or factor, wrong_by }. */
function capsOf(page) {
  if (attribute(page, "program") !== "constrained") return [];
  const known = ["posterior-cap", "posterior-lift"];
  return (described(page, "parameters").constraints ?? []).filter(({ constraint }) => known.includes(constraint));
}

/** A fraction "a/b" as two integers. Throws RangeError for other words. */
function sharesOf(words) {
  if (!SHARE.test(words)) throw new RangeError("a limit on discs is no fraction");
  return words.split("/").map(BigInt);
}

/** The share under the counts of the file that keeps a limit if each count is off by up to a factor, either way. */
function designedShare({ share, wrong_by: wrong }) {
  const [[a, b], [c, d]] = [sharesOf(share), sharesOf(wrong).map((k) => k * k)];
  const [over, under] = lowest(a * d, b * c - (c - d) * a);
  return under < PARTS ? [over, under] : lowest((over * (PARTS - 1n)) / under, PARTS - 1n);
}

function lowest(over, under) {
  let [a, b] = [over, under];
  while (b) [a, b] = [b, a % b];
  return [over / a, under / a];
}

/** What discs contain, lists of places; points (axes of n each). */
function discsOf(points, radius, centres) {
  if (!["places", "anywhere"].includes(centres) || !(radius > 0 && radius < 1e150) || points.length > 2)
    throw new RangeError("a limit is on discs of a kind that this page does not know");
  const at = Array.from(points[0], (_, u) => points.map((axis) => axis[u]));
  const [wide, middles] = [radius * RAISED, [...at]];
  for (let u = 0; centres === "anywhere" && u < at.length; u++) {
    for (let v = u + 1; v < at.length; v++) {
      const apart = Math.hypot(...at[u].map((x, k) => x - at[v][k]));
      if (apart > 2 * wide) continue;
      const middle = at[u].map((x, k) => (x + at[v][k]) / 2);
      const high = Math.sqrt(Math.max(wide ** 2 - apart ** 2 / 4, 0)) / apart;
      const aside = middle.length === 1 ? [0] : [(at[u][1] - at[v][1]) * high, (at[v][0] - at[u][0]) * high];
      for (const sign of [-1, 1]) middles.push(middle.map((x, k) => x + sign * aside[k]));
    }
  }
  const found = new Map();
  for (const middle of middles) {
    const inside = [];
    at.forEach((place, u) => {
      if (Math.hypot(...place.map((x, k) => x - middle[k])) <= wide * RAISED) inside.push(u);
    });
    found.set(inside.join(), inside);
  }
  return [...found.values()];
}

/** How many cells of the grid of a page are together no larger than a disc. Throws RangeError where none is. */
function cellsOfArea(page, { radius, constraint }) {
  const { kind, cell } = described(page, "domain");
  const cells = Math.floor(Math.PI * ((radius * RAISED) / cell?.[0]) * ((radius * RAISED) / cell?.[1]));
  if (kind !== "grid" || cell.length !== 2 || !(cells >= 1 && cells < 1e150) || constraint !== "posterior-cap")
    throw new RangeError("a limit is on areas that this page cannot tell");
  return cells;
}

/** The places, at most `cells`, that have most of a report. */
function likeliest(joint, cells) {
  return joint.map((_, u) => u).sort((u, v) => (joint[u] < joint[v] ? 1 : joint[u] > joint[v] ? -1 : 0)).slice(0, cells);
}

/** Faults of the limits of a page, how many inequalities were compared, and the worst report: { share, report, disc, posterior }. */
function* capFaults(page, mass) {
  const [faults, points] = [[], axesOf(page, "secret")];
  const [count, reports] = [points[0].length, array(page, "report_x").length];
  let [compared, worst] = [0, { share: 0 }];
  for (const cap of capsOf(page)) {
    const lift = cap.constraint === "posterior-lift";
    const limit = lift ? sharesOf(cap.factor) : designedShare(cap);
    const cells = cap.centres === "area" ? cellsOfArea(page, cap) : 0;
    const discs = cells ? [] : discsOf(points, cap.radius, cap.centres);
    for (const persons of cap.people) {
      const whole = persons.length === count && persons.every((k) => Number.isInteger(k) && k >= 0);
      const total = persons.reduce((sum, k) => sum + k, 0);
      if (!whole || !(total > 0 && total < 2 ** 32)) return { faults: [{ text: "the people of a limit are not integers" }], compared };
      const people = persons.map(BigInt);
      for (let y = 0; y < reports; y++) {
        const joint = people.map((k, u) => k * mass[u * reports + y]);
        const all = joint.reduce((sum, part) => sum + part, 0n);
        for (const disc of cells ? [likeliest(joint, cells)] : discs) {
          const inside = disc.reduce((sum, u) => sum + joint[u], 0n);
          const living = lift ? disc.reduce((sum, u) => sum + people[u], 0n) : 1n;
          compared++;
          const share = Number(inside) / Number(all);
          if (share > worst.share) worst = { share, report: y, disc, byArea: cells > 0, posterior: joint.map((part) => Number(part) / Number(all)) };
          if (inside * limit[1] * (lift ? BigInt(total) : 1n) > all * limit[0] * living) {
            const what = cells ? `cell ${disc[0]} and others have` : `a disc with cell ${disc[0]} has`;
            faults.push({ text: `after report ${y} ${what} more of the posterior than the limit`, secret: disc[0], report: y });
            return { faults, compared };
          }
        }
        if (y % 8 === 0) yield y / reports;
      }
    }
  }
  return { faults, compared, worst };
}

/** The limits of a page in words. */
function capWords(page) {
  const { unit } = described(page, "domain");
  return capsOf(page).map((cap) => {
    const round = `disc of ${ofLength(cap.radius, unit, false)}${cap.centres === "places" ? " about the centre of a cell" : ""}`;
    const disc = cap.centres === "area" ? `cells that are together no larger than a ${round}` : round;
    const whom = `for somebody who counts people at the centres of cells${cap.people.length > 1 ? `, by any of ${cap.people.length} counts` : ""}`;
    if (cap.constraint === "posterior-lift") {
      const [over, under] = sharesOf(cap.factor).map(Number);
      return `Any one report multiplies the probability of any ${disc} by at most ${figure(over / under, true)}, ${whom}. A second report is a second claim.`;
    }
    const [[a, b], [c, d]] = [sharesOf(cap.share).map(Number), sharesOf(cap.wrong_by).map(Number)];
    const wrong = (k) => `if each of those counts is up to ${k} times too high or too low`;
    const off = c > d ? `, also ${wrong(figure(c / d, false))}` : `; ${percent((4 * a) / (3 * a + b), true, 3)} ${wrong(2)}`;
    return `After any one report at most ${percent(a / b, true, 3)} of the probability lies in any ${disc}, ${whom}${off}. A second report is a second claim.`;
  }).join(" ");
}
