// Graphs that a reader edits: nodes with a place on the page, edges and arrows between them.

/**
 * @typedef {[number, number, number, number]} Edge from, to, 1 for an arrow or 0 for both directions, weight
 * @typedef {{points: [number, number][], edges: Edge[]}} Graph places with |x| ≤ 4/3, |y| ≤ 1, y upwards
 */

/** Both directions of an edge, one of an arrow. @param {Edge[]} edges @returns {import("./kernels.js").Arc[]} */
export function arcsOf(edges) {
  return edges.flatMap(([u, v, isArrow, weight]) => {
    const there = { source: u, target: v, weight };
    return isArrow || u === v ? [there] : [there, { source: v, target: u, weight }];
  });
}

const joins = (/** @type {Edge} */ [a, b], /** @type {number} */ u, /** @type {number} */ v) =>
  (a === u && b === v) || (a === v && b === u);

/** @param {Edge[]} edges @param {number} u @param {number} v @returns {Edge | undefined} */
export const edgeBetween = (edges, u, v) => edges.find(edge => joins(edge, u, v));

/**
 * Join u and v, or cut what joined them in the same way. An arrow against an arrow makes an edge.
 * @param {Edge[]} edges @param {number} u @param {number} v @param {boolean} isArrow @returns {Edge[]}
 */
export function toggleEdge(edges, u, v, isArrow) {
  if (u === v) return edges;
  const found = edgeBetween(edges, u, v), rest = edges.filter(edge => edge !== found);
  if (!found) return [...rest, [u, v, isArrow ? 1 : 0, 1]];
  const same = isArrow ? found[2] === 1 && found[0] === u : found[2] === 0;
  if (same) return rest;
  return [...rest, [u, v, isArrow && found[2] === 0 ? 1 : 0, found[3]]];
}

/** Without node u; later nodes move up by one. @param {Edge[]} edges @param {number} u @returns {Edge[]} */
export function withoutNode(edges, u) {
  const moved = (/** @type {number} */ v) => (v > u ? v - 1 : v);
  return edges.filter(([a, b]) => a !== u && b !== u).map(([a, b, isArrow, w]) => [moved(a), moved(b), isArrow, w]);
}

/** What distinguishes one list of edges from another. @param {Edge} edge @returns {string} */
export const keyOf = ([u, v, isArrow, weight]) =>
  (isArrow ? `${u}>${v}` : `${Math.min(u, v)}-${Math.max(u, v)}`) + (weight === 1 ? "" : `*${weight}`);

/** @param {Edge[]} edges @returns {string} one edge a line: 0-1, 1>2, 2-3*0.5 */
export const writeEdges = edges => edges.map(keyOf).join("\n");

/**
 * Edges as people write them: "0 1", "0-1", "0,1" for both directions, "0>1" or "0->1" for an arrow, and a weight
 * after * or as a third number. Nodes are numbers from 0.
 * @param {string} text @returns {Edge[]} @throws {Error} with the line that cannot be read
 */
export function readEdges(text) {
  const found = new Map();
  for (const line of text.split(/[\n;]+/).flatMap(part => (/[->]/.test(part) ? part.split(",") : [part]))) {
    if (!line.trim() || line.trim().startsWith("#")) continue;
    const parts = line.match(/^\s*(\d+)\s*(->|→|>|-|–|,|\s)\s*(\d+)(?:\s*[*,\s]\s*(\d*\.?\d+(?:e-?\d+)?))?\s*$/);
    if (!parts) throw new Error(`“${line.trim()}” is not an edge: write 0-1, or 0>1 for an arrow.`);
    const [u, v, weight] = [Number(parts[1]), Number(parts[3]), Number(parts[4] ?? 1)];
    if (Math.max(u, v) >= 400) throw new Error(`Node ${Math.max(u, v)} is too much: nodes are numbered from 0 to 399.`);
    const edge = /** @type {Edge} */ ([u, v, /[>→]/.test(parts[2]) ? 1 : 0, weight]);
    found.set(keyOf(edge), edge);
  }
  return [...found.values()];
}

/** Nodes that the edges speak of: the largest number and those below. @param {Edge[]} edges @returns {number} */
export const nodesOf = edges => edges.reduce((most, [u, v]) => Math.max(most, u + 1, v + 1), 0);

/**
 * Places for the nodes: springs along the edges, all nodes pushing each other away, from a circle; always the same.
 * @param {number} size @param {Edge[]} edges @returns {[number, number][]}
 */
export function layOut(size, edges) {
  const x = new Float64Array(size), y = new Float64Array(size);
  for (let u = 0; u < size; u++) {
    x[u] = Math.cos((2 * Math.PI * u) / size);
    y[u] = Math.sin((2 * Math.PI * u) / size);
  }
  const rest = 1.2 / Math.sqrt(Math.max(size, 1)), rounds = size > 150 ? 60 : 240;
  for (let round = 0; round < rounds; round++) {
    const dx = new Float64Array(size), dy = new Float64Array(size), heat = 0.12 * (1 - round / rounds);
    for (let u = 0; u < size; u++)
      for (let v = 0; v < u; v++) {
        const px = x[u] - x[v], py = y[u] - y[v], push = (rest * rest) / (px * px + py * py + 1e-6);
        dx[u] += push * px, dy[u] += push * py, dx[v] -= push * px, dy[v] -= push * py;
      }
    for (const [u, v] of edges) {
      const px = x[u] - x[v], py = y[u] - y[v], pull = Math.hypot(px, py) / rest;
      dx[u] -= pull * px, dy[u] -= pull * py, dx[v] += pull * px, dy[v] += pull * py;
    }
    for (let u = 0; u < size; u++) {
      dx[u] -= 0.4 * x[u], dy[u] -= 0.4 * y[u]; // parts that hang together by nothing stay on the page
      const length = Math.hypot(dx[u], dy[u]) || 1, step = Math.min(length, heat) / length;
      x[u] += step * dx[u], y[u] += step * dy[u];
    }
  }
  return fitted(Array.from(x, (value, u) => [value, y[u]]));
}

/** Moved and scaled, the same both ways, to fill the page. @param {[number, number][]} points @returns {[number, number][]} */
function fitted(points) {
  if (!points.length) return [];
  const range = (/** @type {number} */ k) => {
    const all = points.map(point => point[k]);
    return [Math.min(...all), Math.max(...all)];
  };
  const [[left, right], [low, high]] = [range(0), range(1)];
  const scale = 1 / Math.max((right - left) / 2.3, (high - low) / 1.7, 1e-9);
  const place = (/** @type {number} */ value) => Math.round(value * 1000) / 1000;
  return points.map(([px, py]) => [place((px - (left + right) / 2) * scale), place((py - (low + high) / 2) * scale)]);
}

/**
 * The disc of the landing page: a sunflower's seeds, slightly shaken, each joined to those nearby; an arrow weighs what
 * a current around the centre carries along it. The library has the same one: examples.disc_with_current.
 * @param {number} size @returns {Graph}
 */
export function disc(size) {
  const part = (/** @type {number} */ value) => value - Math.floor(value);
  const points = Array.from({ length: size }, (_, k) => {
    const radius = Math.sqrt((k + 0.5) / size), angle = (k + 0.5) * Math.PI * (1 + Math.sqrt(5));
    const shake = 0.52 / Math.sqrt(size); // about a third of the way to a neighbour
    return /** @type {[number, number]} */ ([
      radius * Math.cos(angle) + shake * (part(k * Math.SQRT2) - 0.5),
      radius * Math.sin(angle) + shake * (part(k * Math.sqrt(3)) - 0.5),
    ]);
  });
  const reach = 2.5 / Math.sqrt(size), cell = (/** @type {number} */ value) => Math.floor(value / reach);
  const cells = new Map();
  points.forEach(([x, y], u) => {
    const key = `${cell(x)},${cell(y)}`;
    cells.set(key, [...(cells.get(key) ?? []), u]);
  });
  const edges = /** @type {Edge[]} */ ([]);
  points.forEach(([x, y], u) => {
    for (let i = -1; i <= 1; i++)
      for (let j = -1; j <= 1; j++)
        for (const v of cells.get(`${cell(x) + i},${cell(y) + j}`) ?? []) {
          const dx = points[v][0] - x, dy = points[v][1] - y, length = Math.sqrt(dx * dx + dy * dy);
          if (v === u || length >= reach) continue;
          const mx = (points[v][0] + x) / 2, my = (points[v][1] + y) / 2;
          const along = (dy * mx - dx * my) / (length * Math.max(Math.sqrt(mx * mx + my * my), 1e-9));
          edges.push([u, v, 1, Math.exp(3.5 * along)]);
        }
  });
  return { points, edges };
}

/** @type {Graph & {start: number[], signal: number[]} | undefined} */
let keptDisc;

/** The disc as an example: 1,600 nodes, a drop of colour right of the centre; made when it is first asked for. */
export function largeDisc() {
  if (!keptDisc) {
    const graph = disc(1600);
    const start = graph.points.map(([x, y]) => Math.exp(-((x - 0.55) ** 2 + y ** 2) / 0.012)).map(value => (value < 1e-6 ? 0 : value));
    keptDisc = { ...graph, start, signal: graph.points.map(([x]) => x) };
  }
  return keptDisc;
}
