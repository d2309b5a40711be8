// What the reader's hand does to the graphs: nodes, edges and colour, each step one that can be undone.
import { format } from "./charts.js";
import { edgeBetween, layOut, nodesOf, readEdges, toggleEdge, withoutNode } from "./graph.js";

/**
 * @typedef {import("./address.js").State} State
 * @typedef {import("./session.js").Session} Session
 * @typedef {(patch: Partial<State>) => void} Change
 * @typedef {{
 *   arrows: () => boolean, undo: () => void, redraw: () => void, say: (text: string) => void,
 *   drops: () => {key: "start" | "signal", value: number},
 * }} Page what the controls around a graph say, and what is told to the reader
 */

/** The hand on the first graph and on the second, and a list of edges in place of a drawing. @param {Session} session @param {Change} change @param {Page} page */
export function editingOf(session, change, page) {
  const { say } = page;
  const setGraph = (/** @type {import("./graph.js").Graph} */ graph, /** @type {Partial<State>} */ more = {}) =>
    change({ name: "", graph, ...more });

  const actions = {
    graph: () => session.state.graph,
    ...page,
    describe: (/** @type {number} */ u) => describe(session, u),
    add(/** @type {[number, number]} */ place) {
      const { graph, start, signal } = session.state;
      setGraph({ ...graph, points: [...graph.points, place] }, { start: [...start, 0], signal: [...signal, 0] });
      say(`Node ${graph.points.length} added.`);
    },
    move(/** @type {number} */ u, /** @type {[number, number]} */ place) {
      const points = session.state.graph.points.map((point, v) => (v === u ? place : point));
      setGraph({ ...session.state.graph, points });
    },
    join(/** @type {number} */ u, /** @type {number} */ v, /** @type {boolean} */ isArrow) {
      const edges = toggleEdge(session.state.graph.edges, u, v, isArrow);
      setGraph({ ...session.state.graph, edges });
      say(edgeBetween(edges, u, v) ? `${isArrow ? "Arrow" : "Edge"} from ${u} to ${v}.` : `Nodes ${u} and ${v} are no longer joined.`);
    },
    removeNode(/** @type {number} */ u) {
      const { graph: { points, edges }, start, signal, second } = session.state, keep = (/** @type {any[]} */ list) => list.filter((_, v) => v !== u);
      setGraph({ points: keep(points), edges: withoutNode(edges, u) },
        { start: keep(start), signal: keep(signal), second: second && withoutNode(second, u) });
      say(`Node ${u} deleted; later nodes moved up by one.`);
    },
    removeEdge(/** @type {number} */ k) {
      const [u, v] = session.state.graph.edges[k];
      setGraph({ ...session.state.graph, edges: session.state.graph.edges.filter((_, j) => j !== k) });
      say(`The edge between ${u} and ${v} is deleted.`);
    },
    drop(/** @type {number} */ u) {
      const { key, value } = page.drops(), values = [...session.state[key]];
      values[u] = values[u] === value ? 0 : value;
      change({ [key]: values });
      say(`${key === "signal" ? "Second signal" : "Colour"} ${format(values[u], 2)} on node ${u}.`);
    },
  };
  const secondActions = {
    ...actions,
    graph: () => ({ points: session.state.graph.points, edges: session.state.second ?? [] }),
    add: undefined, move: undefined, removeNode: undefined, drop: undefined,
    join(/** @type {number} */ u, /** @type {number} */ v, /** @type {boolean} */ isArrow) {
      const second = toggleEdge(session.state.second ?? [], u, v, isArrow);
      change({ second });
      say(edgeBetween(second, u, v) ? `On the second graph ${u} and ${v} are joined.` : `On the second graph ${u} and ${v} are cut.`);
    },
    removeEdge(/** @type {number} */ k) {
      change({ second: (session.state.second ?? []).filter((_, j) => j !== k) });
    },
  };

  /** A list of edges takes the place of the graph; throws where a line is none. */
  function readText(/** @type {string} */ text) {
    const edges = readEdges(text), size = Math.max(nodesOf(edges), 1), { graph, start, signal } = session.state;
    const points = size === graph.points.length ? graph.points : layOut(size, edges);
    const kept = (/** @type {number[]} */ list) => Array.from({ length: size }, (_, u) => list[u] ?? 0);
    const z = kept(start);
    setGraph({ points, edges }, { start: z.some(Boolean) ? z : z.map((_, u) => (u ? 0 : 1)), signal: kept(signal), second: null });
    say(`${size} nodes, ${edges.length} edges.`);
  }

  return { actions, secondActions, setGraph, readText };
}

/** A node in words. */
function describe(/** @type {Session} */ session, /** @type {number} */ u) {
  const near = session.state.graph.edges.flatMap(([a, b]) => (a === u ? [b] : b === u ? [a] : []));
  return `Node ${u}, z(0) = ${format(session.state.start[u], 2)}, z(T) = ${plain(format(session.now()[u]))}, joined to ${near.join(", ") || "nobody"}.`;
}
const plain = (/** @type {string} */ text) => text.replace(/\^\{([^}]*)\}/, " to the power $1");
