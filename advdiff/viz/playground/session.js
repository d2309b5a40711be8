// What follows from the reader's settings: the numbers behind every picture, each computed when first asked for.
import { compare } from "./bounds.js";
import { arcsOf } from "./graph.js";
import { denseGenerator, resolvent } from "./dense.js";
import { attention, euler, exponential, normalisedAdjacency, powers } from "./kernels.js";
import { eigenvalues } from "./spectrum.js";

/**
 * @typedef {import("./address.js").State} State
 * @typedef {import("./kernels.js").Flow} Flow
 */

export const LONGEST = 10; // the largest T
export const LARGEST_DENSE = 128; // nodes up to which matrices are formed

export class Session {
  /** @param {State} state */
  constructor(state) {
    this.state = state;
    /** @type {Map<string, {causes: unknown[], value: any}>} */
    this.kept = new Map();
  }

  /** @template T @param {string} name @param {unknown[]} causes @param {() => T} compute @returns {T} */
  remember(name, causes, compute) {
    const found = this.kept.get(name);
    if (found && found.causes.every((cause, k) => cause === causes[k])) return found.value;
    const value = compute();
    this.kept.set(name, { causes, value });
    return value;
  }

  get size() {
    return this.state.graph.points.length;
  }

  get isSmall() {
    return this.size <= LARGEST_DENSE;
  }

  /** C: none, uniform, from the places of the nodes, or from the second signal. */
  coupling() {
    const { attention: kind, signal, graph } = this.state;
    return this.remember("coupling", [kind, signal, graph.points], () => {
      if (kind === "off" || !this.size) return null;
      return attention(this.size, kind === "uniform" ? [] : kind === "places" ? graph.points : signal.map(value => [value]));
    });
  }

  /** L of a list of edges. @param {string} name @param {import("./graph.js").Edge[]} edges @returns {Flow} */
  flowOf(name, edges) {
    const { normalization, beta } = this.state, coupling = this.coupling();
    const velocity = this.remember(`V ${name}`, [edges, this.size, normalization], () =>
      normalisedAdjacency(this.size, arcsOf(edges), /** @type {"row" | "symmetric"} */ (normalization)));
    return this.remember(`L ${name}`, [velocity, beta, coupling], () => ({ size: this.size, beta, velocity, coupling }));
  }

  flow() {
    return this.flowOf("first", this.state.graph.edges);
  }

  /** z(0). */
  start() {
    return this.remember("start", [this.state.start], () => Float64Array.from(this.state.start));
  }

  /** The rate of the growth that "divided" takes away: e^{βT} with attention, whose rows sum to one, e^{(β−1)T} without. */
  rate() {
    return this.state.attention === "off" ? this.state.beta - 1 : this.state.beta;
  }

  /** z(t), divided by its growth if asked for. @param {Float64Array} z @param {number} time */
  scaled(z, time) {
    const factor = this.state.divided ? Math.exp(-this.rate() * time) : 1;
    return factor === 1 ? z : z.map(value => factor * value);
  }

  /** z(T). */
  now() {
    const { time, divided } = this.state, flow = this.flow();
    return this.remember("now", [flow, this.start(), time, divided], () => this.scaled(exponential(flow, this.start(), time), time));
  }

  /** z(T) on the second graph. */
  other() {
    const { time, divided, second } = this.state;
    if (!second) return null;
    const flow = this.flowOf("second", second);
    return this.remember("other", [flow, this.start(), time, divided], () => this.scaled(exponential(flow, this.start(), time), time));
  }

  /** n layers of step T/n in the place of the flow, divided like it. */
  stepped() {
    const { time, divided, layers } = this.state, flow = this.flow();
    return this.remember("stepped", [flow, this.start(), time, divided, layers], () => this.scaled(euler(flow, this.start(), time, layers), time));
  }

  /** ‖z′(T) − z(T)‖ / √N: how far the second graph moves what is shown. */
  movement() {
    const z = this.now(), other = this.other() ?? z;
    let square = 0;
    for (let u = 0; u < z.length; u++) square += (other[u] - z[u]) ** 2;
    return Math.sqrt(square / (z.length || 1));
  }

  /** Total, largest value, distance to the average ‖z − z̄‖. @param {ArrayLike<number>} z */
  static summary(z) {
    let total = 0, largest = z.length ? z[0] : 0, at = 0, square = 0;
    for (let u = 0; u < z.length; u++) {
      total += z[u];
      if (z[u] > largest) [largest, at] = [z[u], u];
    }
    for (let u = 0; u < z.length; u++) square += (z[u] - total / z.length) ** 2;
    return { total, largest, at, distance: Math.sqrt(square) };
  }

  /** The summary over t from 0 to 10. */
  curves() {
    const flow = this.flow(), { divided } = this.state, stops = this.isSmall ? 80 : 30;
    return this.remember("curves", [flow, this.start(), divided], () => {
      const times = Array.from({ length: stops + 1 }, (_, k) => (LONGEST * k) / stops);
      const rows = /** @type {ReturnType<typeof Session.summary>[]} */ ([]);
      let z = this.start();
      for (const time of times) {
        if (time > 0) z = exponential(flow, z, LONGEST / stops);
        rows.push(Session.summary(this.scaled(z, time)));
      }
      const line = (/** @type {string} */ name, /** @type {"total" | "largest" | "distance"} */ key) =>
        ({ name, values: rows.map(row => row[key]) });
      return { times, lines: [line("total", "total"), line("largest", "largest"), line("distance to the average", "distance")] };
    });
  }

  /** Eigenvalues of L; null on large graphs. @returns {[number, number][] | null} */
  spectrum() {
    const flow = this.flow();
    return this.remember("spectrum", [flow], () => (this.isSmall ? eigenvalues(denseGenerator(flow), this.size) : null));
  }

  /** θ* = ρ(C + βV) − 1, where (1 + θ)I − C − βV turns singular; null on large graphs. */
  critical() {
    const spectrum = this.spectrum();
    return spectrum && (spectrum.length ? -spectrum[0][0] : -1);
  }

  /** θ(θI + L)^{−1}z(0); null where it is singular, or the graph large. */
  inverse() {
    const flow = this.flow(), { theta } = this.state;
    return this.remember("inverse", [flow, this.start(), theta], () => (this.isSmall ? resolvent(flow, this.start(), theta) : null));
  }

  /** [z, Pz, …, P^K z] of z(0). */
  series() {
    const flow = this.flow(), { order } = this.state;
    return this.remember("series", [flow, this.start(), order], () => powers(flow, this.start(), order));
  }

  /** Both graphs against each other; null without a second one, or on large graphs. */
  comparison() {
    const { second, graph, time, normalization } = this.state;
    if (!second || !this.isSmall) return null;
    const flow = this.flow(), other = this.flowOf("second", second);
    return this.remember("comparison", [flow, other, time], () => {
      const lists = [graph.edges, second], touched = lists.map(edges => new Set(arcsOf(edges).map(arc => arc.target)));
      const both = {
        undirected: lists.every(edges => edges.every(edge => !edge[2])),
        isolated: touched.some(nodes => nodes.size < this.size),
      };
      return compare(flow, other, time, /** @type {"row" | "symmetric"} */ (normalization), both);
    });
  }
}
