// What the reader set, as the part of the page's address behind #, so that it can be sent to somebody.
import { keyOf, readEdges } from "./graph.js";

const PREFIX = "#playground:";
const NUMBERS = { b: "beta", t: "time", h: "theta" };
const WORDS = { v: "normalization", a: "attention" };

/**
 * @typedef {import("./graph.js").Graph & {start: number[], signal: number[]}} Example
 * @typedef {{name: string, graph: import("./graph.js").Graph, start: number[], signal: number[], second: import("./graph.js").Edge[] | null,
 *   beta: number, time: number, theta: number, order: number, layers: number, normalization: string, attention: string,
 *   divided: boolean, panels: string[]}} State
 */

const short = (/** @type {number} */ value) => String(Number(value.toPrecision(12)));
const writeList = (/** @type {number[]} */ values) =>
  values.flatMap((value, u) => (value ? [`${u}:${short(value)}`] : [])).join(",");
const writeLine = (/** @type {import("./graph.js").Edge[]} */ edges) => edges.map(keyOf).join(",");

/** @param {string} text @param {number} size @returns {number[]} */
function readList(text, size) {
  const values = new Array(size).fill(0);
  for (const part of text.split(",").filter(Boolean)) {
    const [u, value] = part.split(":").map(Number);
    if (u < size && Number.isFinite(value)) values[u] = value;
  }
  return values;
}

/** @param {State} state @param {Example} [example] what the name stands for: its own colours need not be said @returns {string} */
export function writeAddress(state, example) {
  const parts = Object.entries({ ...NUMBERS, ...WORDS }).map(([letter, key]) => {
    const value = state[/** @type {keyof State} */ (key)];
    return `${letter}=${typeof value === "number" ? short(value) : value}`;
  });
  parts.push(`k=${state.order}`, `n=${state.layers}`, `d=${state.divided ? 1 : 0}`, `p=${state.panels.join(",")}`);
  if (state.name) parts.push(`g=${encodeURIComponent(state.name)}`);
  else {
    const places = state.graph.points.flat().map(value => Math.round(value * 1000));
    parts.push(`xy=${places.join(",")}`, `e=${writeLine(state.graph.edges)}`);
  }
  if (String(state.start) !== String(example?.start)) parts.push(`z=${writeList(state.start)}`);
  if (String(state.signal) !== String(example?.signal)) parts.push(`s=${writeList(state.signal)}`);
  if (state.second) parts.push(`e2=${writeLine(state.second)}`);
  return PREFIX + parts.join("&");
}

/**
 * What an address says of a state, or null if it is not one of ours. A graph with a name is looked up.
 * @param {string} address @param {(name: string) => Example | undefined} lookUp
 * @returns {Partial<State> | null}
 */
export function readAddress(address, lookUp) {
  if (!address.startsWith(PREFIX)) return null;
  const parts = new Map(address.slice(PREFIX.length).split("&").map(part => {
    const [key, ...rest] = part.split("=");
    return [key, decodeURIComponent(rest.join("="))];
  }));
  const state = /** @type {any} */ ({});
  for (const [letter, key] of Object.entries(NUMBERS))
    if (Number.isFinite(Number(parts.get(letter) ?? "none"))) state[key] = Number(parts.get(letter));
  for (const [letter, key] of Object.entries(WORDS)) if (parts.has(letter)) state[key] = parts.get(letter);
  for (const [letter, key, most] of /** @type {[string, string, number][]} */ ([["k", "order", 6], ["n", "layers", 40]]))
    if (parts.has(letter)) state[key] = Math.max(1, Math.min(most, Math.round(Number(parts.get(letter))) || 1));
  if (parts.has("d")) state.divided = parts.get("d") === "1";
  if (parts.has("p")) state.panels = parts.get("p")?.split(",").filter(Boolean);
  const named = parts.has("g") ? lookUp(parts.get("g") ?? "") : undefined;
  if (named) {
    const { points, edges, start, signal } = named;
    Object.assign(state, { name: parts.get("g"), graph: { points, edges }, start, signal });
  }
  else if (parts.has("xy")) {
    const flat = (parts.get("xy") ?? "").split(",").filter(Boolean).map(value => Number(value) / 1000);
    const points = flat.flatMap((value, k) => (k % 2 ? [] : [[value, flat[k + 1]]]));
    const edges = readEdges(parts.get("e") ?? "").filter(([u, v]) => u < points.length && v < points.length);
    const none = points.map(() => 0);
    Object.assign(state, { name: "", graph: { points, edges }, start: none, signal: none });
  }
  const size = state.graph?.points.length;
  if (size !== undefined) {
    if (parts.has("z")) state.start = readList(parts.get("z") ?? "", size);
    if (parts.has("s")) state.signal = readList(parts.get("s") ?? "", size);
    state.second = parts.has("e2") ? readEdges(parts.get("e2") ?? "").filter(([u, v]) => u < size && v < size) : null;
  }
  return state;
}
