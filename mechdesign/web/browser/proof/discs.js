// Limits on the share of the posterior in a disc, for whoever knows the people N that the file names: for every report y
// and every disc B
//
//     under * sum over u in B of N(u) A(u, y) <= over * sum over all u of N(u) A(u, y),   over / under its limit,
//
// in integers. Discs about places, or through two of them, if they are centred anywhere: the contents of any disc
// are part of the contents of one of these. By area B is any cells of a grid that are together no larger than a disc: those that
// have most of a report. The radius is raised by 2^-40 of itself, beyond rounding.

const RAISED = 1 + 2 ** -40; // beyond the rounding of distances in doubles
const SHARE = /^[0-9]{1,5}\/[0-9]{1,5}$/;
const PARTS = 65536n; // numerators and denominators are below it
const ON_CIRCLE = 2 ** -37; // of a radius: how far off a circle a point may be that is taken for one on it
const TAU = 2 * Math.PI;
const LIMITS = { "posterior-cap": ["share", "wrong_by"], "posterior-lift": ["factor"] }; // on discs, and their numbers
const OTHER_LIMITS = ["report-cap", "required-report", "error-cap"]; // which a page does not state

/** The limits of a page as its file has them: { radius, centres, people, share or factor, wrong_by }. Throws RangeError
 * where one breaks a rule of posteriors/limits.py. */
function capsOf(page) {
  if (attribute(page, "program") !== "constrained") return [];
  const { constraints } = jsonAttribute(page, "parameters");
  const on = constraints.filter(({ constraint }) => !OTHER_LIMITS.includes(constraint));
  const conflict = positionClaimOf(page) ? "it cannot be combined with a claim between positions, which draw mixtures of rows" : null;
  for (const limit of on) {
    const wrong = brokenRule(limit, array(page, "prior").length) ?? conflict;
    if (wrong) throw new RangeError(`invalid limit on discs: ${wrong}`);
  }
  return on;
}

/** The rule that a limit breaks, in words; null if it breaks none. */
function brokenRule(limit, count) {
  const { constraint, radius, centres, people } = limit;
  const numbers = Object.hasOwn(LIMITS, constraint) ? LIMITS[constraint] : [];
  const names = ["constraint", "radius", "centres", "people", ...numbers];
  if (!numbers.length || Object.keys(limit).sort().join() !== names.sort().join()) return "unknown kind or fields";
  if (typeof radius !== "number" || !(radius > 0 && radius < 1e150)) return "its radius is not a positive number";
  if (!["places", "anywhere", "area"].includes(centres)) return "unknown kind of centres";
  if (!Array.isArray(people) || !people.length || !people.every(Array.isArray)) return "it has no rows of people";
  for (const row of people) {
    const total = row.reduce((sum, k) => sum + k, 0);
    if (row.length !== count || !row.every((k) => Number.isInteger(k) && k >= 0)) return "its people are not one integer >= 0 per place";
    if (!(total > 0 && total < 2 ** 32)) return "the number of its people is 0 or at least 2^32";
  }
  if (!numbers.every((name) => typeof limit[name] === "string" && SHARE.test(limit[name]))) return "its numbers are not fractions";
  const [[a, b], [c, d]] = [fractionOf(limit[numbers[0]]), fractionOf(limit.wrong_by ?? "1/1")];
  if ([a, b, c, d].some((part) => part >= PARTS) || b === 0n || d === 0n) return "its numbers are not fractions";
  if (constraint === "posterior-lift" ? a <= b : a <= 0n || a >= b) return "its share is not between 0 and 1, or its factor not above 1";
  return c < d ? "its counts are off by a factor below 1" : null;
}

/** The two integers of a fraction "a/b". */
function fractionOf(words) {
  return words.split("/").map(BigInt);
}

/** The share under the counts of the file that keeps a limit if each count is off by up to a factor, either way. */
function shareWithMargin({ share, wrong_by: wrong }) {
  const [[a, b], [c, d]] = [fractionOf(share), fractionOf(wrong).map((k) => k * k)];
  // Counts times k inside and 1 / k outside multiply the odds by k^2 = c / d: the share s that becomes a / b solves
  // s c / (s c + (1 - s) d) = a / b.
  const [over, under] = lowestTerms(a * d, b * c - (c - d) * a);
  // A longer fraction is rounded down: a smaller share keeps the limit.
  return under < PARTS ? [over, under] : lowestTerms((over * (PARTS - 1n)) / under, PARTS - 1n);
}

/** A fraction in lowest terms, by Euclid's algorithm. */
function lowestTerms(over, under) {
  let [a, b] = [over, under];
  while (b) [a, b] = [b, a % b];
  return [over / a, under / a];
}

/** The contents of discs, as lists of places; points (axes of n each). With `every`, also parts of larger sets, which a limit
 * by a factor needs. A disc moved off a crossing keeps those points on its circle that lie on that side. */
function discsOf(points, radius, centres, every) {
  if (points.length > 2)
    throw new RangeError("this page checks limits on discs on at most two axes");
  const at = Array.from(points[0], (_, u) => points.map((axis) => axis[u]));
  const [wide, middles] = [radius * RAISED, [...at]];
  for (let u = 0; centres === "anywhere" && u < at.length; u++) {
    for (let v = u + 1; v < at.length; v++) {
      const apart = Math.hypot(...at[u].map((x, k) => x - at[v][k]));
      if (apart > 2 * wide) continue;
      const middle = at[u].map((x, k) => (x + at[v][k]) / 2);
      const high = Math.sqrt(Math.max(wide ** 2 - apart ** 2 / 4, 0)) / apart;
      const offset = middle.length === 1 ? [0] : [(at[u][1] - at[v][1]) * high, (at[v][0] - at[u][0]) * high];
      for (const sign of [-1, 1]) middles.push(middle.map((x, k) => x + sign * offset[k]));
    }
  }
  const withParts = every && centres === "anywhere";
  if (withParts && points.length === 1) for (const [x] of at) middles.push([x - wide], [x + wide]);
  const discs = new Map();
  for (const middle of middles) {
    const steps = at.map((place) => place.map((x, k) => x - middle[k]));
    // Raised once more: a centre through two places is itself rounded, and both must stay inside its disc.
    const inside = steps.map((_, u) => u).filter((u) => Math.hypot(...steps[u]) <= wide * RAISED);
    const on = inside.filter((u) => Math.hypot(...steps[u]) >= wide * (1 - ON_CIRCLE));
    const ahead = (way, u) => steps[u].reduce((sum, x, k) => sum + x * way[k], 0) > 0;
    const faces = withParts ? separatingDirections(on.map((u) => steps[u])).map((way) => inside.filter((u) => !on.includes(u) || ahead(way, u))) : [];
    for (const face of [inside, ...faces]) if (face.length) discs.set(face.join(), face);
  }
  return [...discs.values()];
}

/** Directions to move a disc in: one between each two in which it begins or ceases to lose a point on its circle. */
function separatingDirections(on) {
  if (on[0]?.length === 1) return [[-1], [1]];
  const turned = on.flatMap(([x, y]) => [-1, 1].map((sign) => Math.atan2(y, x) + (sign * Math.PI) / 2));
  const ends = [...new Set(turned.map((turn) => Number((((turn % TAU) + TAU) % TAU).toFixed(9))))].sort((a, b) => a - b);
  return ends.map((end, k) => (end + (ends[k + 1] ?? ends[0] + TAU)) / 2).map((half) => [Math.cos(half), Math.sin(half)]);
}

/** How many cells of the grid of a page are together no larger than a disc. Throws RangeError if not even one is. */
function cellsOfArea(page, { radius, constraint }) {
  const { kind, cell } = jsonAttribute(page, "domain");
  const cells = Math.floor(Math.PI * ((radius * RAISED) / cell?.[0]) * ((radius * RAISED) / cell?.[1]));
  if (kind !== "grid" || cell.length !== 2 || !(cells >= 1 && cells < 1e150) || constraint !== "posterior-cap")
    throw new RangeError("this page cannot check a limit on areas of this kind");
  return cells;
}

/** The `cells` places with the largest shares of a report, or all of them if they are fewer. */
function likeliestPlaces(joint, cells) {
  return joint.map((_, u) => u).sort((u, v) => (joint[u] < joint[v] ? 1 : joint[u] > joint[v] ? -1 : 0)).slice(0, cells);
}

/** Faults of the limits of a page, how many inequalities were compared, and the worst report: { share, report, disc, posterior }. */
function* capFaults(page, mass) {
  const [faults, points] = [[], axesOf(page, "secret")];
  const reports = array(page, "report_x").length;
  let [compared, worst] = [0, { share: 0 }];
  for (const cap of capsOf(page)) {
    const lift = cap.constraint === "posterior-lift";
    const limit = lift ? fractionOf(cap.factor) : shareWithMargin(cap);
    const cells = cap.centres === "area" ? cellsOfArea(page, cap) : 0;
    const discs = cells ? [] : discsOf(points, cap.radius, cap.centres, lift);
    for (const persons of cap.people) {
      const total = persons.reduce((sum, k) => sum + k, 0);
      const people = persons.map(BigInt);
      for (let y = 0; y < reports; y++) {
        const joint = people.map((k, u) => k * mass[u * reports + y]);
        const all = joint.reduce((sum, part) => sum + part, 0n);
        for (const disc of cells ? [likeliestPlaces(joint, cells)] : discs) {
          const inside = disc.reduce((sum, u) => sum + joint[u], 0n);
          const living = lift ? disc.reduce((sum, u) => sum + people[u], 0n) : 1n;
          compared++;
          const share = Number(inside) / Number(all);
          if (share > worst.share) worst = { share, report: y, disc, byArea: cells > 0, posterior: joint.map((part) => Number(part) / Number(all)) };
          // inside / all <= limit, for a factor times living / total, without a division.
          if (inside * limit[1] * (lift ? BigInt(total) : 1n) > all * limit[0] * living) {
            const [{ one }, shape] = [nounsOfPage(page), shapeOf(page)];
            const what = cells ? `${one} ${disc[0]} and others have` : `${article(shape)} ${shape} with ${one} ${disc[0]} has`;
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

function article(noun) {
  return /^[aeiou]/.test(noun) ? "an" : "a";
}

/** The limits of a page in words. */
function capWords(page) {
  const [{ unit }, { one, many }, shape] = [jsonAttribute(page, "domain"), nounsOfPage(page), shapeOf(page)];
  const centre = `the centre of ${article(one)} ${one}`;
  return capsOf(page).map((cap) => {
    const radius = ofLength(cap.radius, unit, false);
    const size = shape === "interval" ? `${radius} either way` : `radius ${radius}`;
    const round = `${shape} of ${size}${cap.centres === "places" ? ` about ${centre}` : ""}`;
    const disc = cap.centres === "area" ? `${many} that are together no larger than a ${round}` : round;
    const whom = `for an adversary whose prior follows the number of people at the centres of ${many}${cap.people.length > 1 ? `, by any of ${cap.people.length} counts` : ""}`;
    if (cap.constraint === "posterior-lift") {
      const [over, under] = fractionOf(cap.factor).map(Number);
      return `Any one report multiplies the probability of any ${disc} by at most ${figure(over / under, true)}, ${whom}. The limit covers one report; a second one can reveal more.`;
    }
    const [[a, b], [c, d]] = [fractionOf(cap.share).map(Number), fractionOf(cap.wrong_by).map(Number)];
    const wrong = (k) => `if each of these numbers is up to ${k} times too high or too low`;
    const off = c > d ? `, also ${wrong(figure(c / d, false))}` : `. I${wrong(2).slice(1)}, it is at most ${percent((4 * a) / (3 * a + b), true, 3)}`;
    return `After any one report, at most ${percent(a / b, true, 3)} of the probability lies in any ${disc}, ${whom}${off}. The limit covers one report; a second one can reveal more.`;
  }).join(" ");
}
