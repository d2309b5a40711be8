// The panels below the picture: each is built once, and drawn when it is open.
import { barLength, curvesChart, format, maths, spectrumChart } from "./charts.js";
import { scaleOf } from "./colours.js";
import { drawGraph } from "./drawing.js";
import { edit } from "./editor.js";
import { make, write } from "./elements.js";
import { keyOf, writeEdges } from "./graph.js";
import { LARGEST_DENSE } from "./session.js";

/** @typedef {import("./drawing.js").Inks} Inks */

export const PANELS = /** @type {[string, string][]} */ ([
  ["curves", "Over time"], ["spectrum", "Spectrum"], ["solvers", "Three solvers side by side"], ["layers", "Layers instead of the flow"],
  ["second", "A second graph"], ["numbers", "Numbers"], ["edges", "Edges as text"],
]);
const TOO_LARGE = `<p class="pg-hint">Here matrices are formed: for graphs of up to ${LARGEST_DENSE} nodes.</p>`;

const growthOf = (/** @type {import("./address.js").State} */ state) => (state.attention === "off" ? "e^{(β−1)T}" : "e^{βT}");

/** What the colours of the picture mean. @param {import("./address.js").State} state */
export const formulaOf = state =>
  `${state.divided ? growthOf(state).replace("{", "{−") + " " : ""}e^{−LT} z(0), ${state.attention === "off" ? "L = I − βV" : "L = I − C − βV"}`;
export const dividedText = (/** @type {import("./address.js").State} */ state) => `divide by the growth ${growthOf(state)}`;

const brief = (/** @type {number} */ value) => String(Number(value.toFixed(3)));
/** What the controls say, for paper. @param {import("./address.js").State} state */
export const settingsOf = state => `β = ${brief(state.beta)}, T = ${brief(state.time)}, ${state.normalization === "row" ? "V = D^{−1}A" : "V = Ã"}, attention ${
  { off: "off", uniform: "uniform", places: "from places on the page", signal: "from the second signal" }[state.attention]}${
  state.panels.includes("solvers") ? `, θ = ${brief(state.theta)}` : ""}`;

const picture = (/** @type {string} */ name) => make("canvas", { class: "pg-small", role: "img", "aria-label": name });

/** @param {import("./session.js").Session} session @param {Record<"theta" | "order" | "layers", {row: HTMLElement}>} sliders */
function solversPanel(session, sliders) {
  const pictures = [picture("z(T) by the exponential"), picture("the inverse"), picture("the powers")], texts = pictures.map(() => make("figcaption"));
  const strip = make("div", { class: "pg-strip" }), warning = make("p", { class: "pg-warning", role: "status" });
  const body = make("div", {}, make("div", { class: "pg-two" }, sliders.theta.row, sliders.order.row), warning,
    make("div", { class: "pg-three" }, ...pictures.map((canvas, k) => make("figure", {}, canvas, texts[k]))), strip);
  const draw = (/** @type {Inks} */ inks) => {
    const { state } = session, critical = session.critical(), inverse = session.inverse(), series = session.series();
    const isSingular = critical !== null && state.theta <= critical + 1e-9 * (1 + Math.abs(critical));
    write(warning, !session.isSmall ? TOO_LARGE : isSingular
      ? maths(`θ = ${format(state.theta, 2)} does not exceed θ* = ${format(critical ?? 0)}: at θ* the matrix θI + L is singular, and at or below it the inverse is no longer a smoothing. Take a larger θ.`)
      : "");
    warning.hidden = !warning.innerHTML;
    const shown = /** @type {[Float64Array | null, string][]} */ ([[session.now(), formulaOf(state).split(",")[0]], [inverse, `θ(θI + L)^{−1} z(0), θ* = ${format(critical ?? NaN)}`],
      [series[state.order], `P^{${state.order}} z(0), P = ${state.attention === "off" ? "βV" : "C + βV"}`]]);
    shown.forEach(([found, text], k) => {
      const values = found ?? new Float64Array(session.size), scale = scaleOf(values);
      drawGraph(pictures[k], { graph: state.graph, values, scale, inks });
      pictures[k].classList.toggle("pg-broken", k === 1 && (!found || isSingular));
      write(texts[k], maths(`${text}: ${format(scale.low, 2)} to ${format(scale.high, 3)}`));
    });
    while (strip.children.length > series.length) strip.lastElementChild?.remove();
    while (strip.children.length < series.length) strip.append(make("figure", {}, picture(`power ${strip.children.length}`), make("figcaption")));
    series.forEach((values, k) => {
      const figure = strip.children[k];
      drawGraph(/** @type {HTMLCanvasElement} */ (figure.firstElementChild), { graph: state.graph, values, scale: scaleOf(values), inks });
      write(/** @type {HTMLElement} */ (figure.lastElementChild), maths(k ? `P^{${k}} z` : "z"));
    });
  };
  return { body, draw };
}

/** @param {import("./session.js").Session} session @param {Record<"theta" | "order" | "layers", {row: HTMLElement}>} sliders */
function layersPanel(session, sliders) {
  const stepped = picture("layers"), flowed = picture("the flow"), texts = [make("figcaption"), make("figcaption")];
  const body = make("div", {}, make("div", { class: "pg-two" }, sliders.layers.row),
    make("div", { class: "pg-two" }, make("figure", {}, stepped, texts[0]), make("figure", {}, flowed, texts[1])));
  const draw = (/** @type {Inks} */ inks) => {
    const { state } = session, flow = session.now(), layers = session.stepped(), scale = scaleOf(flow);
    const empty = layers.reduce((count, value) => count + (Math.abs(value) < 1e-12 ? 1 : 0), 0);
    drawGraph(stepped, { graph: state.graph, values: layers, scale, inks });
    drawGraph(flowed, { graph: state.graph, values: flow, scale, inks });
    write(texts[0], maths(`${state.layers} layers of step τ = T/${state.layers} = ${format(state.time / state.layers, 3)}; empty nodes: ${empty} of ${session.size}`));
    write(texts[1], maths(`the flow at T = ${format(state.time, 2)}, in the same colours`));
  };
  return { body, draw };
}

/** @param {import("./session.js").Session} session @param {import("./editor.js").Actions} actions @param {HTMLElement} reset */
function secondPanel(session, actions, reset) {
  const canvas = make("canvas", { class: "pg-canvas", tabindex: 0, role: "application", "aria-roledescription": "graph editor", "aria-label": "The second graph. Arrow keys or digits choose a node; E and then Enter at the other end cuts or joins two nodes." });
  const comparison = make("div", { class: "pg-comparison" });
  const body = make("div", {},
    make("p", { class: "pg-hint", html: "The same nodes, and edges that you change: <b>drag</b> from node to node to cut or to join, <b>double-click</b> an edge to cut it." }),
    make("div", { class: "pg-two pg-two-wide" }, make("figure", {}, canvas), comparison), reset);
  const hand = edit(canvas, actions);
  const draw = (/** @type {Inks} */ inks) => {
    const { state } = session, values = session.other(), compared = session.comparison();
    if (!values || !compared) {
      write(comparison, TOO_LARGE);
      return;
    }
    const before = new Set(state.graph.edges.map(keyOf)), after = new Set((state.second ?? []).map(keyOf));
    const marks = /** @type {Map<string, "added" | "cut">} */ (new Map());
    for (const key of after) if (!before.has(key)) marks.set(key, "added");
    for (const key of before) if (!after.has(key)) marks.set(key, "cut");
    const edges = [...(state.second ?? []), ...state.graph.edges.filter(edge => !after.has(keyOf(edge)))];
    drawGraph(canvas, { graph: { points: state.graph.points, edges }, values, scale: scaleOf(values), inks, marks, ...hand });
    const { norm, shift, variation, lines } = compared, sub = `_{${norm}}`, V = state.normalization === "row" ? "V" : "Ã";
    const row = (/** @type {string} */ key, /** @type {string} */ text, /** @type {number} */ value, /** @type {string} */ note, /** @type {string} */ kind) =>
      `<tr class="${kind}"><th scope="row">${maths(text)}</th><td><output data-key="${key}" data-value="${value}">${maths(format(value))}</output></td>
      <td class="pg-length"><span style="width:${barLength(value).toFixed(1)}%"></span></td><td class="pg-note">${maths(note)}</td></tr>`;
    const noteOf = (/** @type {typeof lines[0]} */ line) => (line.key === "paper" ? "paper" : line.key === "chapter" ? "chapter 5" : "chapter 5, sharp") + (line.why ? `; ${line.why}` : "");
    write(comparison, `<table><thead><tr><th scope="col">of the two graphs</th><th scope="col">value</th><th scope="col">10<sup>−3</sup> … 10<sup>3</sup></th><th scope="col">holds</th></tr></thead><tbody>
      ${row("shift", `x = ‖Δ${V}‖${sub}`, shift, "", "pg-shift")}
      ${row("variation", `‖e^{−L′T} − e^{−LT}‖${sub}`, variation, "measured", "pg-measured")}
      ${lines.map(line => row(line.key, line.formula, line.value, noteOf(line), line.applies ? "pg-bound" : "pg-bound pg-off")).join("")}
      ${row("movement", "‖z′(T) − z(T)‖ / √N", session.movement(), "of this z(0)", "pg-measured")}</tbody></table>`);
  };
  return { body, draw };
}

/** @param {import("./session.js").Session} session */
function numbersPanel(session) {
  const body = make("div");
  const draw = () => {
    const { state } = session, shown = Math.min(session.size, 60), z = session.now(), inverse = session.inverse(), series = session.series();
    const cell = (/** @type {number | undefined} */ value) => `<td>${value === undefined ? "" : maths(format(value))}</td>`;
    const rows = Array.from({ length: shown }, (_, u) =>
      `<tr><th scope="row">${u}</th>${cell(state.start[u])}${cell(z[u])}${cell(inverse?.[u])}${cell(series[state.order][u])}</tr>`).join("");
    write(body, `<div class="pg-scroll" tabindex="0" role="region" aria-label="Numbers of the nodes"><table><thead><tr><th scope="col">node</th><th scope="col">z(0)</th><th scope="col">${maths(state.divided ? "z(T), divided" : "z(T)")}</th><th scope="col">${maths("θ(θI + L)^{−1}z")}</th><th scope="col">${maths(`P^{${state.order}}z`)}</th></tr></thead><tbody>${rows}</tbody></table></div>`);
  };
  return { body, draw };
}

/** @param {import("./session.js").Session} session @param {(text: string) => void} draws what is done with the text; throws where it is none */
function edgesPanel(session, draws) {
  const text = make("textarea", { rows: 7, spellcheck: "false", "aria-label": "Edges, one a line" });
  const error = make("p", { class: "pg-warning", role: "status" });
  const read = () => {
    try {
      draws(text.value);
      error.textContent = "";
    } catch (problem) {
      error.textContent = /** @type {Error} */ (problem).message;
    }
  };
  const body = make("div", {},
    make("p", { class: "pg-hint", html: "One edge a line: <code>0-1</code>, an arrow <code>0&gt;1</code>, a weight <code>0-1*2.5</code>. Nodes are numbers from 0." }),
    text, make("button", { type: "button", onclick: read }, "Draw these"), error);
  const draw = () => {
    const { edges } = session.state.graph;
    if (document.activeElement !== text) text.value = edges.length <= 2000 ? writeEdges(edges) : `# ${edges.length} edges`;
  };
  return { body, draw };
}

/** @param {import("./session.js").Session} session */
function curvesPanel(session) {
  const body = make("div");
  const draw = () => {
    const { times, lines } = session.curves();
    const legend = lines.map((line, k) => `<span class="pg-key pg-key-${k}">${line.name}</span>`).join("");
    write(body, `${curvesChart(lines, times, session.state.time)}<p class="pg-keys">${legend}</p>`);
  };
  return { body, draw };
}

/** @param {import("./session.js").Session} session */
function spectrumPanel(session) {
  const body = make("div");
  const draw = () => {
    const values = session.spectrum(), critical = session.critical() ?? 0, { beta, theta } = session.state;
    write(body, values
      ? `${spectrumChart(values, beta, theta, critical)}<p class="pg-keys">${maths(`Left of 0 (shaded) a mode grows. The leftmost stands at −θ*, θ* = `)}<output data-key="critical">${format(critical)}</output>${maths("; × is the pole −θ of the inverse.")}</p>`
      : TOO_LARGE);
  };
  return { body, draw };
}

/**
 * @param {import("./session.js").Session} session @param {Record<"theta" | "order" | "layers", {row: HTMLElement}>} sliders
 * @param {{second: import("./editor.js").Actions, reset: HTMLElement, readText: (text: string) => void}} hands
 * @returns {Record<string, {body: HTMLElement, draw: (inks: Inks) => void}>}
 */
export function panelsOf(session, sliders, { second, reset, readText }) {
  return {
    curves: curvesPanel(session), spectrum: spectrumPanel(session), solvers: solversPanel(session, sliders), layers: layersPanel(session, sliders),
    second: secondPanel(session, second, reset), numbers: numbersPanel(session), edges: edgesPanel(session, readText),
  };
}
