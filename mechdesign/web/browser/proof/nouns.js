// The nouns for secrets, chosen from the domain of a page.

const METRES = { m: 1, km: 1000, cm: 0.01, mm: 0.001, mi: 1609.344, nmi: 1852, ft: 0.3048, yd: 0.9144, in: 0.0254 };

/** The kind of protected secrets: "positions", "cells" of a grid, or "places", values along a line among them. */
function protectedKind(page) {
  if (positionClaimOf(page)) return "positions";
  const { kind, cell, unit } = jsonAttribute(page, "domain");
  return kind === "grid" && nounsOf({ kind, unit }, cell.length).truth === "position" ? "cells" : "places";
}

/** The nouns for secrets on so many axes: of the exact value, of one secret and of several. As words_for of
 * problem/vocabulary.py. */
function nounsOf({ kind, unit }, axes) {
  if (Object.hasOwn(METRES, unit) || unit === "cell" || (kind !== "nodes" && unit === "1" && axes > 1))
    return kind === "grid" ? { truth: "position", one: "cell", many: "cells" } : { truth: "position", one: "place", many: "places" };
  if (kind === "nodes") return { truth: "class", one: "class", many: "classes" };
  return kind === "grid" ? { truth: "value", one: "interval", many: "intervals" } : { truth: "value", one: "value", many: "values" };
}

/** The noun for the points within a radius: on one axis of values an interval, else a disc. As shape_of there. */
function shapeOf(page) {
  return axesOf(page, "secret").length === 1 && nounsOfPage(page).truth === "value" ? "interval" : "disc";
}

/** The nouns of the secrets of a page. */
function nounsOfPage(page) {
  return nounsOf(jsonAttribute(page, "domain"), axesOf(page, "secret").length);
}
