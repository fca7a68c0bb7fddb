// Files that somebody drops on the page: points for the prior, and lines for the map. They stay in this browser.

const MOST_POINTS = 1_000_000;
const COLUMNS = { longitude: ["longitude", "lon", "lng", "x"], latitude: ["latitude", "lat", "y"], weight: ["weight", "count", "people", "population"] };

/** Points [longitude, latitude, weight] and lines (lists of [longitude, latitude]) of a CSV or GeoJSON file. Throws RangeError
 * with a sentence about the part that cannot be read. */
function readPlaces(name, text) {
  const found = /^\s*[{[]/.test(text) ? placesOfGeojson(name, text) : { points: pointsOfTable(name, text), lines: [] };
  // The third number of a line is a height.
  const places = [...found.points, ...found.lines.flat().map(([longitude, latitude]) => [longitude, latitude, 0])];
  const isPlace = (place) => place.every(Number.isFinite) && Math.abs(place[0]) <= 180 && Math.abs(place[1]) <= 90 && place[2] >= 0;
  const wrong = places.find((place) => !isPlace(place));
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
  const places = rows.map(cells);
  // Decimal commas between commas would be read as further columns.
  const long = places.findIndex((row) => row.slice(titles.length).some((cell) => cell !== ""));
  if (long >= 0) throw new RangeError(`${name}: ${rows[long]} has more numbers than the first line has columns`);
  return places.map((row) => [fieldNumber(row[x]), fieldNumber(row[y]), weight < 0 ? 1 : fieldNumber(row[weight])]);
}

/** The number of a field, NaN if it is empty. */
function fieldNumber(field) {
  return String(field ?? "").trim() === "" ? NaN : Number(field);
}

/** The points and lines of GeoJSON, in degrees: borders of polygons are lines. A property weight, count, people or population
 * is the weight of a point. */
function placesOfGeojson(name, text) {
  const found = { points: [], lines: [] };
  const add = ({ type, coordinates, geometries }, weight) => {
    if (type === "Point") found.points.push([coordinates[0], coordinates[1], weight]);
    else if (type === "MultiPoint") for (const [x, y] of coordinates) found.points.push([x, y, weight]);
    else if (type === "LineString") found.lines.push(coordinates);
    else if (type === "MultiLineString" || type === "Polygon") for (const line of coordinates) found.lines.push(line);
    else if (type === "MultiPolygon") for (const line of coordinates.flat()) found.lines.push(line);
    else if (type === "GeometryCollection") for (const part of geometries) add(part, weight);
    else throw new RangeError(`${name}: ${type} is not a geometry of GeoJSON`);
  };
  const weightOf = (properties) => fieldNumber(COLUMNS.weight.map((key) => properties?.[key]).find((value) => value !== undefined && value !== null) ?? 1);
  try {
    const whole = JSON.parse(text);
    const features = whole.type === "FeatureCollection" ? whole.features : whole.type === "Feature" ? [whole] : [{ geometry: whole }];
    for (const { geometry, properties } of features) if (geometry) add(geometry, weightOf(properties));
  } catch (error) {
    throw error instanceof RangeError ? error : new RangeError(`${name} is not GeoJSON`);
  }
  return found;
}
