// Cividis: brightness ascends, so that it reads with any colour vision, and in grey.

const STOPS = [
  [0, 32, 77],
  [0, 53, 110],
  [55, 71, 107],
  [88, 89, 109],
  [113, 108, 113],
  [139, 129, 120],
  [169, 151, 117],
  [202, 177, 103],
  [234, 204, 82],
  [255, 234, 70],
];

/** The colour [r, g, b] of a share from 0 to 1. */
function colour(share) {
  const at = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1);
  const [k, part] = [Math.min(Math.floor(at), STOPS.length - 2), at - Math.min(Math.floor(at), STOPS.length - 2)];
  return STOPS[k].map((value, c) => Math.round(value + (STOPS[k + 1][c] - value) * part));
}

/** How values become shares: { least, most, share, constant }, logarithmic from `most` down to `depth` of it where that
 * is given. Values that are not numbers have no share. */
function scaleOf(values, depth = null) {
  let [least, most] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  const constant = !(most > least * (1 + 1e-9));
  if (constant) return { least, most, constant, share: () => 0.5 };
  if (depth === null) return { least, most, constant, share: (value) => (value - least) / (most - least) };
  least = Math.max(least, most * depth);
  return {
    least,
    most,
    constant,
    logarithmic: true,
    share: (value) => Math.log(Math.max(value, least) / least) / Math.log(most / least),
  };
}

/** The legend's gradient. */
function gradient() {
  return `linear-gradient(to right, ${STOPS.map((stop) => `rgb(${stop.join()})`).join()})`;
}
