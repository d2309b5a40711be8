// Run by tests/viz/test_playground.py, or by hand: node --test tests/viz/playground
import assert from "node:assert/strict";
import test from "node:test";
import { readAddress, writeAddress } from "../../../advdiff/viz/playground/address.js";
import { inkOn, levelOf, scaleOf } from "../../../advdiff/viz/playground/colours.js";
import { format, ticks } from "../../../advdiff/viz/playground/charts.js";
import { arcsOf, edgeBetween, layOut, readEdges, toggleEdge, withoutNode, writeEdges } from "../../../advdiff/viz/playground/graph.js";
import { denseGenerator, infinityNorm, logNorm, resolvent, solve, spectralNorm } from "../../../advdiff/viz/playground/dense.js";
import { attention, euler, exponential, normalisedAdjacency, powers } from "../../../advdiff/viz/playground/kernels.js";
import { Session } from "../../../advdiff/viz/playground/session.js";
import { paintStamps, stampsOf } from "../../../advdiff/viz/playground/stamps.js";
import { eigenvalues } from "../../../advdiff/viz/playground/spectrum.js";

const close = (a, b, tolerance = 1e-12) => assert.ok(Math.abs(a - b) <= tolerance, `${a} is not ${b}`);
const flowOf = (edges, size, kind, beta, coupling = null) => ({ size, beta, velocity: normalisedAdjacency(size, arcsOf(edges), kind), coupling });
const COUPLES = [[0, 1, 0, 1], [2, 3, 0, 1]], SWAPPED = [[0, 2, 0, 1], [1, 3, 0, 1]];
const settings = more => ({
  name: "", graph: { points: [[-1, 0.5], [1, 0.5], [-1, -0.5], [1, -0.5]], edges: COUPLES }, start: [1, 1, -1, -1], signal: [1, 1, -1, -1],
  second: SWAPPED, beta: 1, time: 0.7, theta: 2, order: 2, layers: 3, normalization: "symmetric", attention: "off", divided: false, panels: ["second"], ...more,
});

test("couples that agree stay, those that disagree decay like e^{-2T}", () => {
  const z = Float64Array.of(1, 1, -1, -1);
  assert.deepEqual([...exponential(flowOf(COUPLES, 4, "symmetric", 1), z, 3)].map(value => Number(value.toFixed(12))), [1, 1, -1, -1]);
  exponential(flowOf(SWAPPED, 4, "symmetric", 1), z, 0.7).forEach((value, u) => close(value, z[u] * Math.exp(-1.4)));
});

test("the swap of partners: x = 2, variation 1 - e^{-2T}, and all three bounds", () => {
  const { shift, variation, lines } = new Session(settings()).comparison();
  close(shift, 2);
  close(variation, 1 - Math.exp(-1.4));
  const value = Object.fromEntries(lines.map(line => [line.key, line.value]));
  close(value.sharp, 1 - Math.exp(-1.4));
  close(value.chapter, 1.4);
  close(value.paper, 1.4 * Math.exp(1.4));
  assert.ok(lines.every(line => line.applies));
});

test("bounds say when they do not apply", () => {
  const lines = new Session(settings({ attention: "uniform" })).comparison().lines;
  assert.deepEqual(lines.map(line => [line.key, line.applies]), [["sharp", false], ["chapter", true], ["paper", true]]);
  const arrows = new Session(settings({ second: [[0, 2, 1, 1]] })).comparison().lines;
  assert.equal(arrows.find(line => line.key === "sharp").applies, false);
});

test("row-normalised V and attention let ones grow by e^{βT} exactly, and θ* is β", () => {
  const session = new Session(settings({ normalization: "row", attention: "signal", beta: 0.8, start: [1, 1, 1, 1] }));
  session.now().forEach(value => close(value, Math.exp(0.8 * 0.7)));
  close(session.critical(), 0.8, 1e-10);
  session.state.divided = true;
  session.now().forEach(value => close(value, 1));
});

test("at θ* the inverse has no answer, above it solves its equation", () => {
  const flow = flowOf(COUPLES, 4, "row", 0.5, attention(4, []));
  assert.equal(resolvent(flow, Float64Array.of(1, 0, 0, 0), 0.5), null);
  const y = resolvent(flow, Float64Array.of(1, 0, 0, 0), 1.5), L = denseGenerator(flow);
  for (let u = 0; u < 4; u++) {
    let sum = 1.5 * y[u];
    for (let v = 0; v < 4; v++) sum += L[u * 4 + v] * y[v];
    close(sum, u === 0 ? 1.5 : 0);
  }
  assert.equal(solve(new Float64Array(4), Float64Array.of(1, 1)), null);
});

test("isolated nodes and empty graphs", () => {
  const flow = flowOf([[0, 1, 0, 1]], 3, "symmetric", 1);
  close(exponential(flow, Float64Array.of(0, 0, 1), 2)[2], Math.exp(-2));
  const empty = new Session(settings({ graph: { points: [], edges: [] }, start: [], signal: [], second: [], attention: "uniform" }));
  assert.equal(empty.now().length, 0);
  assert.equal(empty.spectrum().length, 0);
  assert.equal(empty.curves().lines[0].values[0], 0);
  assert.equal(Session.summary([]).total, 0);
});

test("norms: one nilpotent entry, equal largest eigenvalues, negative logarithmic norm", () => {
  close(spectralNorm(Float64Array.of(0, 2, 0, 0), 2), 2);
  close(spectralNorm(Float64Array.of(1, 0, 0, -1), 2), 1);
  close(spectralNorm(Float64Array.of(1, 0, 0, 1 - 1e-7), 2), 1, 1e-12);
  assert.equal(spectralNorm(new Float64Array(9), 3), 0);
  assert.equal(infinityNorm(Float64Array.of(1, -2, 0.5, 0), 2), 3);
  close(logNorm(Float64Array.of(-1, 0, 0, -2), 2), -1);
  close(logNorm(Float64Array.of(0, 2, 0, 0), 2), 1);
});

test("eigenvalues: a directed ring has the roots of unity, a path of arrows none but one", () => {
  const ring = new Float64Array(49);
  for (let u = 0; u < 7; u++) ring[((u + 1) % 7) * 7 + u] = 1;
  for (const [re, im] of eigenvalues(ring, 7)) {
    close(Math.hypot(re, im), 1, 1e-10);
    close(Math.cos(7 * Math.atan2(im, re)), 1, 1e-10);
  }
  assert.deepEqual(eigenvalues(Float64Array.of(0, 0, 1, 0), 2), [[0, 0], [0, 0]]);
  assert.deepEqual(eigenvalues(new Float64Array(0), 0), []);
});

test("powers begin with z and grow by one product", () => {
  const found = powers(flowOf(COUPLES, 4, "symmetric", 0.5), Float64Array.of(1, 0, 0, 0), 3);
  assert.deepEqual(found.map(values => [...values].slice(0, 2)), [[1, 0], [0, 0.5], [0.25, 0], [0, 0.125]]);
});

test("layers of step T/n: one by hand, and many come close to the flow", () => {
  const flow = flowOf(COUPLES, 4, "symmetric", 1), z = Float64Array.of(1, 0, 0, 0);
  assert.deepEqual([...euler(flow, z, 0.5, 1)], [0.5, 0.5, 0, 0]);
  assert.deepEqual([...euler(flow, z, 3, 3)].slice(0, 2), [0, 1]); // at τ = 1 the two only change places
  const wanted = exponential(flow, z, 1), errors = [40, 80].map(n => Math.abs(euler(flow, z, 1, n)[0] - wanted[0]));
  close(errors[0] / errors[1], 2, 0.05); // of order one
});

test("a stamp covers its disc, and what is below shows through at the rim", () => {
  const size = 9, below = new Uint8ClampedArray(4 * size * size).fill(200);
  const image = { data: below.slice() };
  const layer = { width: size, height: size, getContext: () => ({ getImageData: () => image }) };
  const stamps = stampsOf(layer, [[4.5, 4.5], [-20, 4]], 2);
  assert.equal(stamps.first[2], stamps.first[1]); // a node outside covers nothing
  close(stamps.cover.reduce((sum, share) => sum + share / 255, 0), 4 * Math.PI, 0.7);
  let painted;
  const pen = { putImageData: found => (painted = found) };
  const pixel = (x, y) => [...painted.data.slice(4 * (y * size + x), 4 * (y * size + x) + 4)];
  paintStamps(pen, stamps, [1, 0], Uint8Array.of(0, 0, 0, 250, 100, 0));
  assert.deepEqual(pixel(4, 4), [250, 100, 0, 255]);
  assert.deepEqual(pixel(0, 0), [200, 200, 200, 200]);
  const [red, green] = pixel(4, 2); // half covered
  assert.ok(red > 200 && red < 250 && green > 100 && green < 200);
  paintStamps(pen, stamps, [0, 0], Uint8Array.of(0, 0, 0, 250, 100, 0));
  assert.deepEqual(pixel(4, 4), [0, 0, 0, 255]); // nothing of the last frame is left
});

test("edges: drawn, turned, cut, renumbered", () => {
  let edges = toggleEdge([], 0, 1, false);
  assert.deepEqual(edges, [[0, 1, 0, 1]]);
  assert.deepEqual(toggleEdge(edges, 1, 0, false), []);
  edges = toggleEdge(edges, 1, 0, true);
  assert.deepEqual(edges, [[1, 0, 1, 1]]);
  assert.deepEqual(toggleEdge(edges, 0, 1, true), [[0, 1, 0, 1]]);
  assert.deepEqual(toggleEdge(edges, 1, 0, true), []);
  assert.deepEqual(toggleEdge(edges, 2, 2, false), edges);
  assert.deepEqual(withoutNode([[0, 1, 0, 1], [1, 2, 1, 1], [2, 3, 0, 2]], 1), [[1, 2, 0, 2]]);
  assert.equal(edgeBetween(edges, 0, 1)[0], 1);
});

test("edges as people write them, and what is none", () => {
  const text = "0 1\n1-2, 2>3; 3->4 0.5\n# a remark\n\n2-1\n5,6,2.5";
  assert.deepEqual(readEdges(text), [[0, 1, 0, 1], [2, 1, 0, 1], [2, 3, 1, 1], [3, 4, 1, 0.5], [5, 6, 0, 2.5]]);
  assert.deepEqual(readEdges(writeEdges([[0, 1, 0, 1], [2, 3, 1, 0.25]])), [[0, 1, 0, 1], [2, 3, 1, 0.25]]);
  assert.throws(() => readEdges("a-b"), /“a-b” is not an edge/);
  assert.throws(() => readEdges("0-100000"), /too much/);
});

test("places of a pasted list stay on the page", () => {
  const points = layOut(30, readEdges("0-1,1-2,2-3"));
  assert.ok(points.every(([x, y]) => Math.abs(x) <= 4 / 3 && Math.abs(y) <= 1));
  assert.equal(new Set(points.map(String)).size, 30);
  assert.deepEqual(layOut(1, []), [[0, 0]]);
});

test("an address gives back what was set", () => {
  const state = settings({ second: [[0, 2, 1, 0.5]], start: [1, 0, -0.25, 0] });
  const found = readAddress(writeAddress(state), () => undefined);
  for (const key of Object.keys(state)) assert.deepEqual(found[key], state[key], key);
  const example = { ...state.graph, start: state.start, signal: [0, 0, 1, 1] };
  const short = writeAddress({ ...state, name: "x y", second: null }, example);
  assert.ok(!short.includes("&z=") && short.includes("&s=0:1,1:1,2:-1,3:-1"));
  const named = readAddress(short, name => (name === "x y" ? example : undefined));
  assert.deepEqual([named.name, named.start, named.signal], ["x y", state.start, state.signal]);
  assert.equal(named.second, null);
  assert.equal(readAddress("#some-heading", () => undefined), null);
  assert.deepEqual(readAddress("#playground:b=nonsense&g=unknown", () => undefined), {});
});

test("colours: from 0 for one sign, about 0 for two", () => {
  assert.deepEqual(scaleOf([0, 0.5]), { low: 0, high: 0.5, name: "viridis" });
  assert.deepEqual(scaleOf([-1, 0.5]), { low: -1, high: 1, name: "signed" });
  assert.equal(scaleOf([]).high, 1);
  assert.equal(levelOf(9, { low: 0, high: 1, name: "viridis" }), 255);
  assert.deepEqual([inkOn(0, "viridis"), inkOn(255, "viridis")], ["#fff", "#000"]);
});

test("numbers as they stand on the page", () => {
  assert.deepEqual([format(0.86466), format(-0.5, 2), format(0), format(1234.5678), format(3.2e7), format(Infinity), format(1e-7)],
    ["0.8647", "−0.50", "0.0000", "1234.57", "3.20 · 10^{7}", "∞", "1.00 · 10^{−7}"]);
  assert.deepEqual(ticks(0, 10), [0, 2.5, 5, 7.5, 10]);
});
