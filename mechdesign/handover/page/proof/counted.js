// Reports that were counted, and the channel that they went through: tables side by side, each times its share of the
// reports, P(y|u) = w_j P_j(y|u). In doubles: sums of a few thousand products, right to 1e-12 of their largest.

/** The rows of a mechanism's page as probabilities: a function of the secret. Null where the page lacks some. */
function rowsOf(page) {
  const { kind } = page.contents;
  if (kind === "factors") {
    const [factors, sums] = [new Factors(page), storedSums(page)];
    const kernel = Float64Array.from(factors.kernel, Number);
    return (u) => factorRow(factors, kernel, sums, u);
  }
  if (kind !== "table") return null;
  const [mass, width] = [array(page, "mass"), array(page, "report_x").length];
  return (u) => Float64Array.from(mass.subarray(u * width, (u + 1) * width), (m) => Number(m) * 2 ** -62);
}

class Channel {
  /** pages of the mechanisms, and how often each of their reports was made, an array each; those without are left out. */
  constructor(pages, counts) {
    const used = pages.map((page, j) => [page, counts[j]]).filter(([, made]) => made.some((count) => count > 0));
    this.counts = Float64Array.from(used.flatMap(([, made]) => Array.from(made)));
    this.reports = this.counts.reduce((a, b) => a + b, 0);
    this.width = this.counts.length;
    this.secrets = array(pages[0], "prior").length;
    this.parts = [];
    let from = 0;
    for (const [page, made] of used) {
      const share = made.reduce((a, b) => a + b, 0) / this.reports;
      this.parts.push({ from, to: (from += made.length), share, row: rowsOf(page) });
    }
    this.rows = Array.from({ length: this.secrets }, () => new Float64Array(this.width));
  }

  /** Work out the rows, secret by secret. */
  *fill() {
    for (let u = 0; u < this.secrets; u++) {
      for (const { from, share, row } of this.parts)
        row(u).forEach((p, y) => {
          this.rows[u][from + y] = share * p;
        });
      if (u % 16 === 0) yield u / this.secrets;
    }
  }

  /** P^T p (M,) of a distribution. */
  law(distribution) {
    const law = new Float64Array(this.width);
    this.rows.forEach((row, u) => {
      for (let y = 0; y < this.width; y++) law[y] += distribution[u] * row[y];
    });
    return law;
  }

  /** sum_y f(y) (a(y) - mean_j)^order, order 2 or 4, mean_j that of the mechanism which made y. */
  moment(law, weights, order) {
    let total = 0;
    for (const { from, to, share } of this.parts) {
      const raw = [0, 0, 0, 0];
      for (let y = from; y < to; y++) {
        let power = law[y];
        for (let k = 0; k < order; k++) raw[k] += power *= weights[y];
      }
      const mean = raw[0] / share;
      total +=
        order === 2
          ? raw[1] - mean * raw[0]
          : raw[3] - 4 * mean * raw[2] + 6 * mean ** 2 * raw[1] - 3 * mean ** 3 * raw[0];
    }
    return Math.max(total, 0);
  }

  /** Mean, standard error and effective reports of weights; law, fixed beforehand. */
  mean(weights, law, z) {
    const { counts, reports } = this;
    const shares = counts.map((count) => count / reports);
    const padded = counts.map((count, y) => (count + z * z * law[y]) / (reports + z * z));
    const [second, fourth] = [this.moment(padded, weights, 2), this.moment(padded, weights, 4)];
    return {
      mean: shares.reduce((sum, share, y) => sum + share * weights[y], 0),
      error: Math.sqrt(this.moment(shares, weights, 2) / reports),
      effective: fourth > 1e-20 ? ((reports + z * z) * second ** 2) / fourth : Infinity,
    };
  }
}

/** P(Z > z) of a standard normal Z, z > 0.6, by Laplace's continued fraction. */
function normalTail(z) {
  let fraction = 0;
  for (let k = 400; k > 0; k--) fraction = k / (z + fraction);
  return Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI) / (z + fraction);
}

/** e^-x (e x / d)^d for x > d, else 1: see utility/population/fit_test.py. */
function tailBound(x, d) {
  if (x <= d) return 1;
  return d === 0 ? Math.exp(-x) : Math.exp(d - x + d * Math.log(x / d));
}
