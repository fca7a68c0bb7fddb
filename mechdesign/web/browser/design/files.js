// Files that somebody drops on the page: points for the prior, and lines for the map. They stay in this browser.

const MOST_POINTS = 1_000_000;
const COLUMNS = { longitude: ["longitude", "lon", "lng", "x"], latitude: ["latitude", "lat", "y"], weight: ["weight", "count", "people", "population"] };

/** Points [longitude, latitude, weight] and lines (lists of [longitude, latitude]) of a CSV or GeoJSON file. Throws RangeError
 * with a sentence about the part that cannot be read. */
function readPlaces(name, text) {
  const found = /^\s*[{[]/.test(text) ? placesOfGeojson(name, text) : { points: pointsOfTable(name, text), lines: [] };
  const isPlace = ([longitude, latitude, weight = 1]) => Math.abs(longitude) <= 180 && Math.abs(latitude) <= 90 && weight >= 0 && weight < Infinity;
  const wrong = [...found.points, ...found.lines.flat()].find((place) => !isPlace(place));
  if (wrong) throw new RangeError(`${name}: ${wrong.join(", ")} is not a longitude, a latitude, and a weight of at least 0`);
  if (found.points.length + found.lines.length === 0) throw new RangeError(`${name} has no points and no lines`);
  if (found.points.length > MOST_POINTS) throw new RangeError(`${name} has more than ${MOST_POINTS.toLocaleString("en")} points`);
  return { name, ...found };
}

/** The points of a table with commas, semicolons or tabs; its first line names the columns. */
function pointsOfTable(name, text) {
  const [head, ...rows] = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  const separator = [";", "\t", ","].find((mark) => head?.includes(mark)) ?? ",";
  const cells = (line) => line.split(separator).map((cell) => cell.trim().replace(/^"(.*)"$/, "$1"));
  const titles = cells((head ?? "").toLowerCase());
  const [x, y, weight] = Object.values(COLUMNS).map((names) => titles.findIndex((title) => names.includes(title)));
  if (x < 0 || y < 0) throw new RangeError(`${name}: the first line must name the columns longitude and latitude, and weight if there is one`);
  const numberOf = (cell) => (cell === undefined || cell === "" ? NaN : Number(cell));
  return rows.map(cells).map((row) => [numberOf(row[x]), numberOf(row[y]), weight < 0 ? 1 : numberOf(row[weight])]);
}

/** The points and lines of GeoJSON, in degrees: borders of polygons are lines. A property weight, count, people or population
 * is the weight of a point. */
function placesOfGeojson(name, text) {
  const found = { points: [], lines: [] };
  const add = ({ type, coordinates, geometries }, weight) => {
    if (type === "Point") found.points.push([coordinates[0], coordinates[1], weight]);
    else if (type === "MultiPoint") for (const [x, y] of coordinates) found.points.push([x, y, weight]);
    else if (type === "LineString") found.lines.push(coordinates);
    else if (type === "MultiLineString" || type === "Polygon") found.lines.push(...coordinates);
    else if (type === "MultiPolygon") found.lines.push(...coordinates.flat());
    else if (type === "GeometryCollection") for (const part of geometries) add(part, weight);
    else throw new RangeError(`${name}: ${type} is not a geometry of GeoJSON`);
  };
  const weightOf = (properties) => Number(COLUMNS.weight.map((key) => properties?.[key]).find((value) => value !== undefined && value !== null) ?? 1);
  try {
    const whole = JSON.parse(text);
    const features = whole.type === "FeatureCollection" ? whole.features : whole.type === "Feature" ? [whole] : [{ geometry: whole }];
    for (const { geometry, properties } of features) if (geometry) add(geometry, weightOf(properties));
  } catch (error) {
    throw error instanceof RangeError ? error : new RangeError(`${name} is not GeoJSON`);
  }
  return found;
}
