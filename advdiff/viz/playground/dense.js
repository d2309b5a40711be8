// The numerics of the playground on small graphs, with whole matrices: L, e^{−LT}, θ(θI + L)^{−1}z, and norms.
// A matrix is a Float64Array of N·N numbers, row by row.
import { exponential, propagate } from "./kernels.js";

/** @typedef {import("./kernels.js").Flow} Flow */

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
