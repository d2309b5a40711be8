// A graph on a canvas: edges on a layer that is kept, nodes in as few strokes as there are colours, or as stamps.
import { bytesOf, colourOf, inkOn, levelOf } from "./colours.js";
import { paintStamps, stampsOf } from "./stamps.js";

/**
 * @typedef {import("./graph.js").Graph} Graph
 * @typedef {{text: string, page: string, line: string, accent: string, added: string, cut: string}} Inks
 * @typedef {{graph: Graph, values: ArrayLike<number>, scale: import("./colours.js").Scale, inks: Inks, selected?: number,
 *   target?: number, pending?: {from: number, x: number, y: number} | null, marks?: Map<string, "added" | "cut">,
 *   numbers?: boolean}} Picture
 */

/** Pixels of the page's unit. @param {HTMLCanvasElement} canvas */
const unitOf = canvas => canvas.clientHeight / 2.2;

/** @param {HTMLCanvasElement} canvas @param {[number, number]} place @returns {[number, number]} CSS pixels */
export function toPixels(canvas, [x, y]) {
  const unit = unitOf(canvas);
  return [canvas.clientWidth / 2 + x * unit, canvas.clientHeight / 2 - y * unit];
}

/** @param {HTMLCanvasElement} canvas @param {number} px @param {number} py @returns {[number, number]} */
export function fromPixels(canvas, px, py) {
  const unit = unitOf(canvas), round = (/** @type {number} */ value) => Math.round(value * 1000) / 1000;
  return [round((px - canvas.clientWidth / 2) / unit), round((canvas.clientHeight / 2 - py) / unit)];
}

/** @param {HTMLCanvasElement} canvas @param {number} nodes @returns {number} radius of a node in CSS pixels */
export function radiusOf(canvas, nodes) {
  const room = Math.min(canvas.clientWidth, canvas.clientHeight);
  return Math.max(1.6, Math.min(0.042 * room, (0.55 * room) / Math.sqrt(nodes * 6)));
}

/** Places of all nodes; the size of the canvas is asked for once. @param {HTMLCanvasElement} canvas @param {[number, number][]} points @returns {[number, number][]} */
function placesOf(canvas, points) {
  const unit = unitOf(canvas), middle = canvas.clientWidth / 2, height = canvas.clientHeight / 2;
  return points.map(([x, y]) => [middle + x * unit, height - y * unit]);
}

/**
 * @typedef {{key: unknown[], layer: HTMLCanvasElement, places: [number, number][], radius: number,
 *   many: {stamps: import("./stamps.js").Stamps, levels: Uint8Array} | null}} Layer what stays from frame to frame
 */
/** @type {WeakMap<HTMLCanvasElement, Layer>} */
const layers = new WeakMap();
const MANY = 400; // nodes from which they are too small for a rim
const BYTES = { viridis: bytesOf("viridis"), signed: bytesOf("signed"), inferno: bytesOf("inferno") };

/** @param {HTMLCanvasElement} canvas @param {Picture} picture */
export function drawGraph(canvas, picture) {
  const { graph: { points }, values, scale, inks } = picture;
  const ratio = window.devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
  if (!width || !height) return;
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const { layer, places, radius, many } = layerOf(canvas, picture, ratio);
  pen.setTransform(1, 0, 0, 1, 0, 0);
  if (many) {
    for (let u = 0; u < points.length; u++) many.levels[u] = levelOf(values[u], scale);
    paintStamps(pen, many.stamps, many.levels, BYTES[scale.name]);
  } else {
    pen.clearRect(0, 0, width, height);
    pen.drawImage(layer, 0, 0);
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  if (picture.pending) drawPending(pen, picture.pending, places, radius, inks);
  if (!many) drawNodes(pen, picture, places, radius);
  for (const [u, colour] of [[picture.selected, inks.accent], [picture.target, inks.added]])
    if (typeof u === "number" && places[u]) {
      pen.beginPath();
      pen.arc(places[u][0], places[u][1], radius + 3.5, 0, 2 * Math.PI);
      pen.lineWidth = 2.5;
      pen.strokeStyle = /** @type {string} */ (colour);
      pen.stroke();
    }
}

/** @param {CanvasRenderingContext2D} pen @param {Picture} picture @param {[number, number][]} places @param {number} radius */
function drawNodes(pen, { values, scale, inks }, places, radius) {
  const byLevel = /** @type {Map<number, number[]>} */ (new Map());
  for (let u = 0; u < places.length; u++) {
    const level = levelOf(values[u], scale), found = byLevel.get(level);
    if (found) found.push(u);
    else byLevel.set(level, [u]);
  }
  for (const [level, nodes] of byLevel) {
    pen.beginPath();
    for (const u of nodes) {
      pen.moveTo(places[u][0] + radius, places[u][1]);
      pen.arc(places[u][0], places[u][1], radius, 0, 2 * Math.PI);
    }
    pen.fillStyle = colourOf(level, scale.name);
    pen.fill();
    if (radius > 3) {
      pen.strokeStyle = inks.text;
      pen.lineWidth = 0.8;
      pen.stroke();
    }
  }
  if (radius > 8.5) {
    pen.font = `${Math.round(radius * 0.95)}px sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    places.forEach(([x, y], u) => {
      pen.fillStyle = inkOn(levelOf(values[u], scale), scale.name);
      pen.fillText(String(u), x, y + 0.5);
    });
  }
}

/** The edges and the places, made anew only when they, the size or the colours changed. @param {HTMLCanvasElement} canvas @param {Picture} picture @param {number} ratio @returns {Layer} */
function layerOf(canvas, picture, ratio) {
  const { graph: { points, edges }, inks, marks } = picture;
  const markKey = marks ? [...marks].join() : "";
  const key = [points, edges, canvas.width, canvas.height, inks.line, inks.page, markKey];
  const kept = layers.get(canvas);
  if (kept && kept.key.every((part, k) => part === key[k])) return kept;
  const layer = document.createElement("canvas");
  Object.assign(layer, { width: canvas.width, height: canvas.height });
  const pen = /** @type {CanvasRenderingContext2D} */ (layer.getContext("2d", { willReadFrequently: points.length > MANY }));
  pen.scale(ratio, ratio);
  const radius = radiusOf(canvas, points.length), isDense = edges.length > 2000;
  const places = placesOf(canvas, points);
  const heaviest = edges.reduce((most, edge) => Math.max(most, edge[3]), 0) || 1;
  for (const [u, v, isArrow, weight] of edges) {
    const mark = marks?.get(isArrow ? `${u}>${v}` : `${Math.min(u, v)}-${Math.max(u, v)}`);
    const [x, y] = places[u], [a, b] = places[v];
    pen.strokeStyle = pen.fillStyle = mark ? inks[mark] : inks.line;
    pen.lineWidth = isDense ? 0.5 : mark ? 3 : 1.1 + 1.2 * (weight / heaviest) * (heaviest === 1 ? 0.3 : 1);
    pen.setLineDash(mark === "cut" ? [4, 5] : []);
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(a, b);
    pen.stroke();
    if (isArrow && !isDense) arrowHead(pen, x, y, a, b, radius);
  }
  const stamps = points.length > MANY ? stampsOf(layer, places.map(([x, y]) => [x * ratio, y * ratio]), radius * ratio) : null;
  const made = { key, layer, places, radius, many: stamps && { stamps, levels: new Uint8Array(points.length) } };
  layers.set(canvas, made);
  return made;
}

/** @param {CanvasRenderingContext2D} pen @param {number} x @param {number} y @param {number} a @param {number} b @param {number} radius */
function arrowHead(pen, x, y, a, b, radius) {
  const length = Math.hypot(a - x, b - y) || 1, dx = (a - x) / length, dy = (b - y) / length;
  const tipX = a - dx * (radius + 1.5), tipY = b - dy * (radius + 1.5), size = Math.max(6, radius * 0.8);
  pen.beginPath();
  pen.moveTo(tipX, tipY);
  pen.lineTo(tipX - size * (dx + 0.45 * dy), tipY - size * (dy - 0.45 * dx));
  pen.lineTo(tipX - size * (dx - 0.45 * dy), tipY - size * (dy + 0.45 * dx));
  pen.fill();
}

/** @param {CanvasRenderingContext2D} pen @param {{from: number, x: number, y: number}} pending @param {[number, number][]} places @param {number} radius @param {Inks} inks */
function drawPending(pen, { from, x, y }, places, radius, inks) {
  pen.strokeStyle = inks.added;
  pen.lineWidth = 2;
  pen.setLineDash([5, 4]);
  pen.beginPath();
  pen.moveTo(...places[from]);
  pen.lineTo(x, y);
  pen.stroke();
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.stroke();
  pen.setLineDash([]);
}

/** The colours that the style of the page gives to the playground. @param {Element} root @returns {Inks} */
export function inksOf(root) {
  const style = getComputedStyle(root), read = (/** @type {string} */ name) => style.getPropertyValue(`--pg-${name}`).trim();
  return { text: read("text"), page: read("page"), line: read("line"), accent: read("accent"), added: read("added"), cut: read("cut") };
}
