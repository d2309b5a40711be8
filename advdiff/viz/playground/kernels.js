// The numerics of the playground: V, C and L = I − C − βV, e^{−LT}z, θ(θI + L)^{−1}z, P^k z, and norms.
// Vectors are Float64Array; a dense matrix is one of N·N numbers, row by row. Nothing here draws.

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

/** P = C + βV, dense. @param {Flow} flow @returns {Float64Array} */
export function densePropagator(flow) {
  const { size } = flow, matrix = new Float64Array(size * size), column = new Float64Array(size);
  const unit = new Float64Array(size);
  for (let v = 0; v < size; v++) {
    unit[v] = 1;
    propagate(flow, unit, column);
    unit[v] = 0;
    for (let u = 0; u < size; u++) matrix[u * size + v] = column[u];
  }
  return matrix;
}

/** L = I − P, dense. @param {Flow} flow @returns {Float64Array} */
export function denseGenerator(flow) {
  const matrix = densePropagator(flow).map(entry => -entry);
  for (let u = 0; u < flow.size; u++) matrix[u * flow.size + u] += 1;
  return matrix;
}

/** e^{−LT}, column by column. @param {Flow} flow @param {number} time @returns {Float64Array} */
export function denseExponential(flow, time) {
  const { size } = flow, matrix = new Float64Array(size * size), unit = new Float64Array(size);
  for (let v = 0; v < size; v++) {
    unit.fill(0);
    unit[v] = 1;
    const column = exponential(flow, unit, time);
    for (let u = 0; u < size; u++) matrix[u * size + v] = column[u];
  }
  return matrix;
}

/**
 * The solution of M y = z by elimination with row pivots; null where a pivot vanishes.
 * @param {Float64Array} matrix @param {Float64Array} z @returns {Float64Array | null}
 */
export function solve(matrix, z) {
  const size = z.length, m = Float64Array.from(matrix), y = Float64Array.from(z);
  const scale = m.reduce((most, entry) => Math.max(most, Math.abs(entry)), 0);
  for (let k = 0; k < size; k++) {
    let pivot = k;
    for (let i = k + 1; i < size; i++) if (Math.abs(m[i * size + k]) > Math.abs(m[pivot * size + k])) pivot = i;
    if (Math.abs(m[pivot * size + k]) <= 1e-13 * scale) return null;
    if (pivot !== k) {
      for (let j = k; j < size; j++)
        [m[k * size + j], m[pivot * size + j]] = [m[pivot * size + j], m[k * size + j]];
      [y[k], y[pivot]] = [y[pivot], y[k]];
    }
    for (let i = k + 1; i < size; i++) {
      const factor = m[i * size + k] / m[k * size + k];
      if (factor === 0) continue;
      for (let j = k + 1; j < size; j++) m[i * size + j] -= factor * m[k * size + j];
      y[i] -= factor * y[k];
    }
  }
  for (let i = size - 1; i >= 0; i--) {
    for (let j = i + 1; j < size; j++) y[i] -= m[i * size + j] * y[j];
    y[i] /= m[i * size + i];
  }
  return y;
}

/**
 * θ(θI + L)^{−1}z by a dense solve; null where the matrix is singular.
 * @param {Flow} flow @param {Float64Array} z @param {number} theta @returns {Float64Array | null}
 */
export function resolvent(flow, z, theta) {
  const matrix = denseGenerator(flow);
  for (let u = 0; u < flow.size; u++) matrix[u * flow.size + u] += theta;
  const found = solve(matrix, z);
  return found && found.map(entry => theta * entry);
}

/** A − B. @param {Float64Array} a @param {Float64Array} b @returns {Float64Array} */
export const minus = (a, b) => a.map((entry, k) => entry - b[k]);

/**
 * The largest eigenvalue of a symmetric matrix without negative ones, by the power method: after k squarings
 * G ← G² / trace the columns are those of G^(2^k), of which the longest is the vector, whatever the gap.
 * @param {Float64Array} gram @param {number} size @returns {number}
 */
function largestEigenvalue(gram, size) {
  let power = Float64Array.from(gram);
  for (let k = 0; k < 42; k++) {
    let trace = 0;
    for (let u = 0; u < size; u++) trace += power[u * size + u];
    if (!(trace > 0)) return 0;
    const scaled = power.map(entry => entry / trace);
    power = multiply(scaled, scaled, size);
    let change = 0;
    for (let e = 0; e < power.length; e++) change = Math.max(change, Math.abs(power[e] - scaled[e]));
    if (change < 1e-16) break;
  }
  let best = 0;
  for (let u = 1; u < size; u++) if (power[u * size + u] > power[best * size + best]) best = u;
  let above = 0, below = 0;
  for (let u = 0; u < size; u++) {
    let product = 0;
    for (let v = 0; v < size; v++) product += gram[u * size + v] * power[v * size + best];
    above += power[u * size + best] * product;
    below += power[u * size + best] ** 2;
  }
  return above / below;
}

/** A B for a symmetric B, whose rows are its columns. @param {Float64Array} a @param {Float64Array} b @param {number} size */
function multiply(a, b, size) {
  const out = new Float64Array(size * size);
  for (let u = 0; u < size; u++)
    for (let v = 0; v < size; v++) {
      let sum = 0;
      for (let k = 0, p = u * size, q = v * size; k < size; k++, p++, q++) sum += a[p] * b[q];
      out[u * size + v] = sum;
    }
  return out;
}

/** ‖M‖₂, the root of the largest eigenvalue of MMᵀ. @param {Float64Array} matrix @param {number} size @returns {number} */
export function spectralNorm(matrix, size) {
  const most = matrix.reduce((largest, entry) => Math.max(largest, Math.abs(entry)), 0);
  if (most === 0) return 0;
  const scaled = matrix.map(entry => entry / most), gram = new Float64Array(size * size);
  for (let u = 0; u < size; u++)
    for (let v = 0; v <= u; v++) {
      let sum = 0;
      for (let k = 0; k < size; k++) sum += scaled[u * size + k] * scaled[v * size + k];
      gram[u * size + v] = gram[v * size + u] = sum;
    }
  return most * Math.sqrt(largestEigenvalue(gram, size));
}

/** ‖M‖_∞, the largest row sum of absolute values. @param {Float64Array} matrix @param {number} size @returns {number} */
export function infinityNorm(matrix, size) {
  let largest = 0;
  for (let u = 0; u < size; u++) {
    let sum = 0;
    for (let v = 0; v < size; v++) sum += Math.abs(matrix[u * size + v]);
    largest = Math.max(largest, sum);
  }
  return largest;
}

/** μ₂(M) = λ_max((M + Mᵀ)/2), the logarithmic norm. @param {Float64Array} matrix @param {number} size @returns {number} */
export function logNorm(matrix, size) {
  if (size === 0) return 0;
  const half = new Float64Array(size * size);
  for (let u = 0; u < size; u++)
    for (let v = 0; v < size; v++) half[u * size + v] = (matrix[u * size + v] + matrix[v * size + u]) / 2;
  const shift = infinityNorm(half, size); // lifts all eigenvalues to zero or above
  for (let u = 0; u < size; u++) half[u * size + u] += shift;
  return largestEigenvalue(half, size) - shift;
}
