// The numerics of the playground: sparse V, low-rank C, and what follows from products P z = (C + βV) z alone:
// e^{−LT}z, Euler's layers and P^k z, where L = I − P. What needs a whole matrix is in dense.js. Nothing here draws.

/**
 * @typedef {{source: number, target: number, weight: number}} Arc
 * @typedef {{size: number, start: Int32Array, column: Int32Array, value: Float64Array}} Sparse rows one after another
 * @typedef {{rank: number, left: Float64Array, right: Float64Array}} LowRank C = left · rightᵀ, both N × rank
 * @typedef {{size: number, beta: number, velocity: Sparse, coupling: LowRank | null}} Flow
 */

/**
 * The velocity V: D_in^{−1/2} A D_out^{−1/2} ("symmetric") or D_in^{−1} A ("row"), with V[target, source] the edge
 * source → target. Edges that are listed twice add up; a node without edges has a zero row and column.
 * @param {number} size @param {Arc[]} arcs @param {"symmetric" | "row"} kind @returns {Sparse}
 */
export function normalisedAdjacency(size, arcs, kind) {
  const arriving = new Float64Array(size), leaving = new Float64Array(size);
  const start = new Int32Array(size + 1);
  for (const { source, target, weight } of arcs) {
    arriving[target] += weight;
    leaving[source] += weight;
    start[target + 1] += 1;
  }
  for (let u = 0; u < size; u++) start[u + 1] += start[u];
  const next = start.slice(0, size);
  const column = new Int32Array(arcs.length), value = new Float64Array(arcs.length);
  for (const { source, target, weight } of arcs) {
    const place = next[target]++;
    const scale = kind === "row" ? arriving[target] : Math.sqrt(arriving[target]) * Math.sqrt(leaving[source]);
    column[place] = source;
    value[place] = scale > 0 ? weight / scale : 0;
  }
  return { size, start, column, value };
}

/**
 * Attention c_uv ∝ 1 + q̂_u·k̂_v with one vector per node for both, rows summing to one: U = diag(n)^{−1}[1, Q̂],
 * W = [1, Q̂]. A zero vector attends uniformly, as does one opposite to all others.
 * @param {number} size @param {number[][]} signal one vector per node, or [] for uniform attention @returns {LowRank}
 */
export function attention(size, signal) {
  const width = signal.length ? signal[0].length : 0, rank = width + 1;
  const left = new Float64Array(size * rank), right = new Float64Array(size * rank);
  const sum = new Float64Array(rank);
  for (let u = 0; u < size; u++) {
    right[u * rank] = 1;
    const length = width ? Math.hypot(...signal[u]) : 0;
    for (let k = 0; k < width; k++) right[u * rank + 1 + k] = length > 0 ? signal[u][k] / length : 0;
    for (let k = 0; k < rank; k++) sum[k] += right[u * rank + k];
  }
  for (let u = 0; u < size; u++) {
    let total = 0;
    for (let k = 0; k < rank; k++) total += right[u * rank + k] * sum[k];
    const alone = !(total > 1e-12 * size); // opposite to every key, up to rounding
    for (let k = 0; k < rank; k++)
      left[u * rank + k] = alone ? (k === 0 ? 1 / size : 0) : right[u * rank + k] / total;
  }
  return { rank, left, right };
}

/**
 * out = P z = C z + βV z.
 * @param {Flow} flow @param {Float64Array} z @param {Float64Array} out
 */
export function propagate({ size, beta, velocity: { start, column, value }, coupling }, z, out) {
  for (let u = 0; u < size; u++) {
    let sum = 0;
    for (let e = start[u]; e < start[u + 1]; e++) sum += value[e] * z[column[e]];
    out[u] = beta * sum;
  }
  if (!coupling) return;
  const { rank, left, right } = coupling;
  for (let k = 0; k < rank; k++) {
    let inner = 0;
    for (let u = 0, p = k; u < size; u++, p += rank) inner += right[p] * z[u];
    for (let u = 0, p = k; u < size; u++, p += rank) out[u] += left[p] * inner;
  }
}

/** An upper bound of ‖P‖_∞: the rows of C sum to one. @param {Flow} flow @returns {number} */
export function propagatorBound({ size, beta, velocity: { start, value }, coupling }) {
  let largest = 0;
  for (let u = 0; u < size; u++) {
    let sum = 0;
    for (let e = start[u]; e < start[u + 1]; e++) sum += value[e];
    largest = Math.max(largest, sum);
  }
  return beta * largest + (coupling ? 1 : 0);
}

/**
 * e^{−LT}z = e^{−T} e^{PT}z by Taylor's series, in steps with ‖P‖·step ≤ 4, so that no term exceeds the result by much.
 * A step ends when two terms in a row no longer count.
 * @param {Flow} flow @param {Float64Array} z @param {number} time @returns {Float64Array}
 */
export function exponential(flow, z, time) {
  const { size } = flow, steps = Math.max(1, Math.ceil((propagatorBound(flow) * time) / 4)), step = time / steps;
  const decay = Math.exp(-step);
  let state = Float64Array.from(z), term = new Float64Array(size), next = new Float64Array(size);
  for (let s = 0; s < steps; s++) {
    term.set(state);
    let small = 0;
    for (let k = 1; k < 200 && small < 2; k++) {
      propagate(flow, term, next);
      let largest = 0, most = 0;
      for (let u = 0; u < size; u++) {
        next[u] *= step / k;
        state[u] += next[u];
        largest = Math.max(largest, Math.abs(next[u]));
        most = Math.max(most, Math.abs(state[u]));
      }
      small = largest <= 1e-17 * most ? small + 1 : 0;
      [term, next] = [next, term];
    }
    for (let u = 0; u < size; u++) state[u] *= decay;
  }
  return state;
}

/**
 * n layers of Euler's scheme, (I − τL)^n z with τ = T/n: z ← (1 − τ)z + τPz.
 * @param {Flow} flow @param {Float64Array} z @param {number} time @param {number} layers @returns {Float64Array}
 */
export function euler(flow, z, time, layers) {
  const state = Float64Array.from(z), next = new Float64Array(flow.size), step = time / layers;
  for (let n = 0; n < layers; n++) {
    propagate(flow, state, next);
    for (let u = 0; u < flow.size; u++) state[u] += step * (next[u] - state[u]);
  }
  return state;
}

/** [z, Pz, …, P^K z]. @param {Flow} flow @param {Float64Array} z @param {number} order @returns {Float64Array[]} */
export function powers(flow, z, order) {
  const found = [Float64Array.from(z)];
  for (let k = 1; k <= order; k++) {
    found.push(new Float64Array(flow.size));
    propagate(flow, found[k - 1], found[k]);
  }
  return found;
}
