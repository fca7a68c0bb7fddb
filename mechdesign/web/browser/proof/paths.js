// Shortest paths over the edges of a claim.

/** Of every place its neighbours, [place, length]. */
function neighboursOf(count, { tail, head, length }) {
  const neighbours = Array.from({ length: count }, () => []);
  for (let e = 0; e < tail.length; e++) {
    neighbours[tail[e]].push([head[e], length[e]]);
    neighbours[head[e]].push([tail[e], length[e]]);
  }
  return neighbours;
}

/** Dijkstra's distances from one place, endless beyond a limit, with a binary heap of [distance, place]. */
function shortestPaths(neighbours, source, limit = Infinity) {
  const distances = new Float64Array(neighbours.length).fill(Infinity);
  const heap = [[(distances[source] = 0), source]];
  const swap = (i, j) => ([heap[i], heap[j]] = [heap[j], heap[i]]);
  while (heap.length) {
    const [distance, place] = heap[0];
    const last = heap.pop();
    if (heap.length) heap[0] = last;
    for (let i = 0; ;) {
      const least = [2 * i + 1, 2 * i + 2].reduce((a, b) => (b < heap.length && heap[b][0] < heap[a][0] ? b : a), i);
      if (least === i) break;
      swap(i, (i = least));
    }
    // An older entry of a place that was reached by a shorter path since.
    if (distance > distances[place]) continue;
    for (const [other, length] of neighbours[place]) {
      const through = distance + length;
      if (through > limit || through >= distances[other]) continue;
      distances[other] = through;
      let i = heap.push([distances[other], other]) - 1;
      for (let up; i > 0 && heap[(up = (i - 1) >> 1)][0] > heap[i][0]; i = up) swap(i, up);
    }
  }
  return distances;
}
