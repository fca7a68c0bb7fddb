// Longitude and latitude to metres east and north of a centre, and back: the azimuthal equidistant plane on WGS 84.
//
// A point at geodesic distance s and azimuth a from the centre lies at s (sin a, cos a). With reduced latitudes beta,
// the geodesic lies over a great circle; a0 is its azimuth at the equator, sigma the arc along it from there, and
//
//   (1)  s = b times the integral of sqrt(1 + k^2 sin^2 sigma),   k^2 = e'^2 cos^2 a0
//   (2)  longitude = omega - f sin a0 times the integral of (2 - f) / (1 + (1 - f) sqrt(1 + k^2 sin^2 sigma))
//
// (Karney 2013, "Algorithms for geodesics", equations 7 and 8; omega is the longitude on the sphere). The integrands are
// smooth and nearly constant, so ten Gauss points are exact to the last digits of a double over half the Earth.

const MAJOR = 6378137;
const FLATTENING = 1 / 298.257223563;
const MINOR = MAJOR * (1 - FLATTENING);
const SECOND = (FLATTENING * (2 - FLATTENING)) / (1 - FLATTENING) ** 2; // e'^2
const AT_CENTRE = 1e-10; // radians: PROJ treats nearer points as the centre itself, and so do we
const MOST_STEPS = 50;
export const NODES = [0.1488743389816312, 0.4333953941292472, 0.6794095682990244, 0.8650633666889845, 0.9739065285171717];
export const WEIGHTS = [0.2955242247147529, 0.2692667193099963, 0.219086362515982, 0.1494513491505806, 0.0666713443086881];

/** Metres [east, north] of degrees, on the plane about `centre` {longitude, latitude}. Within nanometres of PROJ's for
 * cities and countries; near the point opposite to the centre only the direction suffers. */
export function forward(centre, longitude, latitude) {
  const apart = radians(normaliseDegrees(longitude - centre.longitude));
  if (Math.abs(apart) < AT_CENTRE && Math.abs(radians(latitude - centre.latitude)) < AT_CENTRE) return [0, 0];
  const [sine1, cosine1] = reducedLatitude(centre.latitude);
  const [sine2, cosine2] = reducedLatitude(latitude);
  // omega - apart depends on the arc, and the arc on omega: a fixed point of (2).
  let omega = apart;
  for (let step = 0; ; step++) {
    const toEast = cosine2 * Math.sin(omega);
    const toNorth = cosine1 * sine2 - sine1 * cosine2 * Math.cos(omega);
    const across = Math.hypot(toEast, toNorth);
    if (across === 0) return [0, 0];
    const arc = Math.atan2(across, sine1 * sine2 + cosine1 * cosine2 * Math.cos(omega));
    const path = pathOf(sine1, cosine1, toEast / across, toNorth / across);
    const next = apart + lag(path, arc);
    if (Math.abs(next - omega) < 1e-16 || step === MOST_STEPS) {
      const length = MINOR * stretch(path, arc);
      return [(length * toEast) / across, (length * toNorth) / across];
    }
    omega = next;
  }
}

/** Degrees [longitude within (-180, 180], latitude] of metres on the plane about `centre`. */
export function backward(centre, east, north) {
  const length = Math.hypot(east, north);
  if (length === 0) return [centre.longitude, centre.latitude];
  const path = pathOf(...reducedLatitude(centre.latitude), east / length, north / length);
  // Newton's method for the arc of length s in (1), whose derivative is `speed`.
  let arc = length / MINOR;
  for (let step = 0; step < MOST_STEPS; step++) {
    const excess = stretch(path, arc) - length / MINOR;
    arc -= excess / speed(path, path.start + arc);
    if (Math.abs(excess) < 1e-16) break;
  }
  const at = path.start + arc;
  const sine = path.cosine0 * Math.sin(at);
  const latitude = Math.atan2(sine, (1 - FLATTENING) * Math.hypot(path.cosine0 * Math.cos(at), path.sine0));
  const omega = longitudeOn(path, at) - longitudeOn(path, path.start);
  return [normaliseDegrees(centre.longitude + degrees(omega - lag(path, arc))), degrees(latitude)];
}

/** The great circle through a point of the auxiliary sphere in a direction: a0, the arc of the point, k^2. */
function pathOf(sine, cosine, east, north) {
  const sine0 = east * cosine;
  const cosine0 = Math.hypot(north, east * sine);
  return { sine0, cosine0, start: Math.atan2(sine, north * cosine), k2: SECOND * cosine0 * cosine0 };
}

function longitudeOn(path, at) {
  return Math.atan2(path.sine0 * Math.sin(at), Math.cos(at));
}

function speed(path, at) {
  return Math.sqrt(1 + path.k2 * Math.sin(at) ** 2);
}

/** The length of an arc in units of b, (1). */
function stretch(path, arc) {
  return integral((at) => speed(path, at), path.start, arc);
}

/** The difference of omega and the longitude, (2). */
function lag(path, arc) {
  const slow = (at) => (2 - FLATTENING) / (1 + (1 - FLATTENING) * speed(path, at));
  return FLATTENING * path.sine0 * integral(slow, path.start, arc);
}

function integral(integrand, start, arc) {
  const [half, middle] = [arc / 2, start + arc / 2];
  return NODES.reduce(
    (sum, node, k) => sum + WEIGHTS[k] * half * (integrand(middle - half * node) + integrand(middle + half * node)),
    0,
  );
}

/** Sine and cosine of the reduced latitude. */
function reducedLatitude(latitude) {
  const [sine, cosine] = [(1 - FLATTENING) * Math.sin(radians(latitude)), Math.cos(radians(latitude))];
  const size = Math.hypot(sine, cosine);
  return [sine / size, cosine / size];
}

/** A longitude within (-180, 180]. */
function normaliseDegrees(angle) {
  const within = angle - 360 * Math.round(angle / 360);
  return within === -180 ? 180 : within;
}

function radians(angle) {
  return (angle * Math.PI) / 180;
}

function degrees(angle) {
  return (angle * 180) / Math.PI;
}
