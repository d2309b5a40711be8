// What two graphs on the same nodes have to do with each other: chapter 5 in numbers.
import {
  denseExponential, denseGenerator, densePropagator, infinityNorm, logNorm, minus, spectralNorm,
} from "./dense.js";

/**
 * @typedef {import("./kernels.js").Flow} Flow
 * @typedef {{key: string, formula: string, value: number, applies: boolean, why: string}} Line
 * @typedef {{norm: "2" | "∞", shift: number, variation: number, lines: Line[]}} Comparison
 */

/**
 * The shift x = ‖V′ − V‖, the variation ‖e^{−L′T} − e^{−LT}‖, and the bounds of chapter 5 and of the paper: in the
 * spectral norm for the symmetric V, in the infinity norm for the row-normalised one.
 * @param {Flow} flow @param {Flow} other with the same β and C @param {number} time
 * @param {"symmetric" | "row"} kind @param {{undirected: boolean, isolated: boolean}} both what holds of both graphs
 * @returns {Comparison}
 */
export function compare(flow, other, time, kind, both) {
  const { size, beta, coupling } = flow, symmetric = kind === "symmetric";
  const norm = symmetric ? spectralNorm : infinityNorm;
  const local = (/** @type {Flow} */ f) => densePropagator({ ...f, beta: 1, coupling: null });
  const shift = norm(minus(local(other), local(flow)), size);
  const variation = norm(minus(denseExponential(other, time), denseExponential(flow, time)), size);
  const rate = growthRate(flow, kind);
  const isLocal = !coupling && beta === 1;
  const sharp = symmetric ? -Math.expm1(-shift * time) : -2 * Math.expm1((-shift * time) / 2);
  const why = !isLocal ? "of local diffusion: attention off and β = 1"
    : symmetric && !both.undirected ? "of graphs without arrows"
    : !symmetric && both.isolated ? "of graphs in which every node has an edge that arrives" : "";
  const lines = [
    { key: "sharp", formula: symmetric ? "1 − e^{−xT}" : "2(1 − e^{−xT/2})", value: sharp, applies: !why, why },
    { key: "chapter", formula: "βTx e^{gT}", value: beta * time * shift * Math.exp(rate * time), applies: true,
      why: `g = ${rate.toFixed(3)}` },
  ];
  const size2 = spectralNorm(denseGenerator(flow), size);
  lines.push(isLocal
    ? { key: "paper", formula: "Tx e^{xT}", value: time * shift * Math.exp(shift * time), applies: symmetric && both.undirected,
        why: symmetric && both.undirected ? "" : "of the symmetric V of graphs without arrows" }
    : { key: "paper", formula: "βTx e^{T‖L‖} e^{βTx}",
        value: beta * time * shift * Math.exp(time * (size2 + beta * shift)), applies: symmetric,
        why: symmetric ? "" : "in the spectral norm" });
  return { norm: symmetric ? "2" : "∞", shift, variation, lines };
}

/**
 * A rate g with ‖e^{−Lt}‖ ≤ e^{gt}: μ₂(C) + β − 1 (symmetric, spectral norm), β (row, infinity norm), β − 1 without C.
 * @param {Flow} flow @param {"symmetric" | "row"} kind @returns {number}
 */
export function growthRate({ size, beta, velocity, coupling }, kind) {
  if (!coupling) return beta - 1;
  return kind === "row" ? beta : logNorm(densePropagator({ size, beta: 0, velocity, coupling }), size) + beta - 1;
}
