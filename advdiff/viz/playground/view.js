// The playground itself: controls, canvas and panels around one session, and the link to Python or to the address.
import { readAddress, writeAddress } from "./address.js";
import { format, maths } from "./charts.js";
import { gradientOf, scaleOf } from "./colours.js";
import { button, playerOf, select, slider } from "./controls.js";
import { drawGraph, inksOf } from "./drawing.js";
import { editingOf } from "./editing.js";
import { edit } from "./editor.js";
import { make, write } from "./elements.js";
import { largeDisc } from "./graph.js";
import { numberOf } from "./numbers.js";
import { dividedText, formulaOf, PANELS, panelsOf, settingsOf } from "./panels.js";
import { LARGEST_DENSE, LONGEST, Session } from "./session.js";

/** @typedef {import("./address.js").State} State */

const KEYS = /** @type {(keyof State)[]} */ ([
  "name", "graph", "start", "signal", "second", "beta", "time", "theta", "order", "layers", "normalization", "attention",
  "divided", "panels",
]);
const DISC = "disc of 1,600 nodes";

let views = 0; // labels need ids of their own

/** @param {{model: any, el: HTMLElement}} context @returns {() => void} what anywidget calls when the view goes */
export function render({ model, el }) {
  const id = `pg-${++views}-`, examples = model.get("examples") ?? {};
  const isStatic = Boolean(document.querySelector('script[type="application/vnd.jupyter.widget-state+json"]'));
  const lookUp = (/** @type {string} */ name) => (name === DISC ? largeDisc() : examples[name]);
  const session = new Session(/** @type {any} */ (Object.fromEntries(KEYS.map(key => [key, model.get(key)]))));
  const captioned = session.state.name; // the caption speaks of this graph
  const isCompact = Boolean(model.get("compact")), hasAddress = isStatic && !isCompact; // of several on a page none can own it
  const found = hasAddress ? readAddress(decodeURI(location.hash), lookUp) : null;
  Object.assign(session.state, found ?? {});
  let isSent = Boolean(found); // what an address says, no caption describes
  const first = { ...session.state };
  const past = /** @type {Partial<State>[]} */ ([]);
  let drops = { key: /** @type {"start" | "signal"} */ ("start"), value: 1 };
  let frame = 0, later = 0, addressTimer = 0, isMine = false;

  // -- changing the state ------------------------------------------------------------------------------------------

  /** @param {Partial<State>} patch @param {{undoable?: boolean}} [options] */
  function change(patch, { undoable = false } = {}) {
    if (undoable) {
      past.push(Object.fromEntries(["name", "graph", "start", "signal", "second"].map(key => [key, session.state[/** @type {keyof State} */ (key)]])));
      if (past.length > 100) past.shift();
    }
    Object.assign(session.state, patch);
    isMine = true;
    for (const [key, value] of Object.entries(patch)) model.set(key, value);
    model.save_changes();
    isMine = false;
    if (hasAddress) {
      clearTimeout(addressTimer);
      addressTimer = window.setTimeout(() => history.replaceState(history.state, "", address()), 250);
    }
    schedule();
  }

  const address = () => writeAddress(session.state, lookUp(session.state.name));
  function choose(/** @type {string} */ name) {
    const found = lookUp(name);
    if (!found) return;
    const { points, edges, start, signal } = found;
    const second = session.state.panels.includes("second") && points.length <= LARGEST_DENSE ? edges : null;
    change({ name, graph: { points, edges }, start, signal, second }, { undoable: true });
    say(`${name}: ${points.length} nodes, ${edges.length} edges.`);
  }

  const undo = () => {
    const before = past.pop();
    if (before) change(before);
    else say("There is nothing to undo.");
  };
  function say(/** @type {string} */ text) {
    spoken.textContent = text;
  }

  // -- controls ----------------------------------------------------------------------------------------------------

  const { actions, secondActions, setGraph, readText } = editingOf(session, patch => change(patch, { undoable: true }),
    { arrows: () => arrowBox.checked, drops: () => drops, say, undo, redraw: () => schedule() });
  const setNumber = (/** @type {import("./controls.js").Key} */ key, /** @type {number} */ value) => {
    if (key === "time") player.stop();
    change({ [key]: value });
  };
  const sliders = {
    beta: slider(session, setNumber, "beta", "<i>β</i>", "beta, the weight of the edges", 0, 3, 0.01),
    time: slider(session, setNumber, "time", "<i>T</i>", "time T", 0, LONGEST, 0.01),
    theta: slider(session, setNumber, "theta", "<i>θ</i>", "theta, the shift of the inverse", 0.01, 6, 0.01),
    order: slider(session, setNumber, "order", "<i>K</i>", "K, the number of powers", 1, 6, 1),
    layers: slider(session, setNumber, "layers", "<i>n</i>", "n, the number of layers", 1, 40, 1),
  };
  const graphSelect = select(id + "graph", "Graph", [["", "your own"], ...Object.keys(examples).map(name => /** @type {[string, string]} */ ([name, name])), [DISC, DISC]],
    name => (name ? choose(name) : change({ name: "" })));
  const kindSelect = select(id + "velocity", "V", [["symmetric", "symmetric"], ["row", "row, D⁻¹A"]], value => change({ normalization: value }));
  const attentionSelect = select(id + "attention", "Attention", [["off", "off"], ["uniform", "uniform"], ["places", "from places on the page"], ["signal", "from the second signal"]],
    value => change({ attention: value }));
  const paint = select(id + "paint", "A click drops", [["1", "colour +1"], ["-1", "colour −1"], ["0", "nothing: takes it away"], ["signal", "second signal +1"], ["-signal", "second signal −1"]], value => {
    drops = { key: value.endsWith("signal") ? "signal" : "start", value: value.startsWith("-") ? -1 : value === "0" ? 0 : 1 };
  });
  const dividedBox = make("input", { type: "checkbox", onchange: () => change({ divided: dividedBox.checked }) });
  const dividedLabel = make("span");
  const arrowBox = make("input", { type: "checkbox" });
  const player = playerOf(() => session.state.time, LONGEST, time => change({ time }));
  const spoken = make("p", { class: "pg-spoken", role: "status", "aria-live": "polite" });
  const linkButton = button("Copy the link", copyLink, { hidden: !isStatic, title: "What you see is in the page's address; send it to somebody." });

  async function copyLink() {
    clearTimeout(addressTimer);
    if (hasAddress) history.replaceState(history.state, "", address());
    const link = hasAddress ? location.href : new URL(`playground.html${address()}`, location.href).href;
    try {
      await navigator.clipboard.writeText(link);
      say("The link is on the clipboard.");
    } catch {
      say(hasAddress ? "The link is in the address bar of the browser." : link);
    }
  }
  // -- the page ----------------------------------------------------------------------------------------------------

  const help = "Graph editor. Arrow keys or digits choose a node, Enter drops colour, N adds a node, E and then Enter at the other end joins two nodes, Shift E draws an arrow, Delete removes the node, Control Z undoes.";
  const canvas = make("canvas", { class: "pg-canvas", tabindex: 0, role: "application", "aria-roledescription": "graph editor", "aria-label": help });
  const bar = make("div", { class: "pg-bar" }), barText = make("div", { class: "pg-bar-text" }), readout = make("p", { class: "pg-readout" }), printed = make("p", { class: "pg-printed" });
  const hint = make("p", { class: "pg-hint", html: "<b>Click</b> a node to drop colour, an empty place to add a node. <b>Drag</b> from node to node for an edge, with <kbd>Shift</kbd> for an arrow, to an empty place to move it. <b>Double-click</b> deletes." });
  // The state opens a panel, not the browser, which would tell of it only after the next frame had closed it again.
  function togglePanel(/** @type {Event} */ event, /** @type {string} */ key) {
    event.preventDefault();
    const { panels: open, second, graph } = session.state, isOpen = open.includes(key);
    const needsSecond = key === "second" && !isOpen && !second && session.isSmall;
    change({ panels: isOpen ? open.filter(other => other !== key) : [...open, key], ...(needsSecond ? { second: graph.edges } : {}) });
  }

  const reset = button("Make it like the first", () => change({ second: session.state.graph.edges }, { undoable: true }));
  const contents = panelsOf(session, sliders, { second: secondActions, reset, readText });
  const panels = /** @type {Record<string, HTMLDetailsElement>} */ (Object.fromEntries(PANELS.map(([key, title]) => [key, make("details", { class: "pg-details" },
    make("summary", { onclick: (/** @type {Event} */ event) => togglePanel(event, key) }, title),
    make("div", { class: `pg-panel pg-panel-${key}` }, contents[key].body))])));
  const numbers = make("p", { class: "pg-number" }), more = button("All controls", () => setCompact(!root.classList.contains("pg-compact")));
  function setCompact(/** @type {boolean} */ compact) {
    root.classList.toggle("pg-compact", compact);
    more.textContent = compact ? "All controls" : "Fewer controls";
  }

  const root = make("section", { class: "advdiff-playground", "aria-label": "Playground: advective diffusion on a graph" },
    make("div", { class: "pg-top" }, graphSelect.row,
      make("div", { class: "pg-buttons" },
        button("Undo", undo), button("Empty", () => setGraph({ points: [], edges: [] }, { start: [], signal: [], second: null })),
        button("Reset", () => change({ ...first }, { undoable: true })), linkButton)),
    make("div", { class: "pg-main" },
      make("div", { class: "pg-stage" }, canvas, make("div", { class: "pg-legend" }, barText, bar), printed, readout),
      make("div", { class: "pg-controls" }, sliders.beta.row, sliders.time.row, player.button, kindSelect.row, attentionSelect.row,
        make("div", { class: "pg-extra" }, paint.row),
        make("label", { class: "pg-check" }, dividedBox, dividedLabel),
        make("label", { class: "pg-check pg-extra" }, arrowBox, make("span", {}, "draw arrows instead of edges")))),
    hint, spoken, make("div", { class: "pg-pair" }, panels.curves, panels.spectrum), panels.solvers, panels.layers, panels.second, panels.numbers, panels.edges);
  const caption = make("p", { class: "pg-caption" });
  root.append(numbers, caption);
  if (isCompact) {
    root.append(more);
    setCompact(true);
  }
  el.replaceChildren(root);
  const hand = edit(canvas, actions);

  // -- drawing -----------------------------------------------------------------------------------------------------

  // Asked for once a theme: to ask is to have the page's style computed.
  let inks = /** @type {import("./drawing.js").Inks | null} */ (null);
  function schedule() {
    if (!frame) frame = requestAnimationFrame(draw);
  }
  function draw() {
    frame = 0;
    const { state } = session;
    // The picture comes before all that is written: its size is asked for while the page stands still.
    const z = session.now(), scale = scaleOf(z), colours = inks ??= inksOf(root);
    drawGraph(canvas, { graph: state.graph, values: z, scale, inks: colours, ...hand });
    for (const control of Object.values(sliders)) control.show();
    graphSelect.box.value = lookUp(state.name) ? state.name : "";
    kindSelect.box.value = state.normalization;
    attentionSelect.box.value = state.attention;
    dividedBox.checked = state.divided;
    write(dividedLabel, maths(dividedText(state)));
    write(caption, isSent || state.name !== captioned ? "" : maths(model.get("caption") ?? ""));
    for (const [key] of PANELS) if (panels[key].open !== state.panels.includes(key)) panels[key].open = state.panels.includes(key);
    canvas.dataset.values = session.isSmall ? Array.from(z).join(" ") : "";
    if (bar.dataset.scale !== scale.name) {
      bar.dataset.scale = scale.name;
      bar.style.background = gradientOf(scale.name);
    }
    write(barText, `<span>${maths(format(scale.low, 3))}</span><span>${maths(formulaOf(state))}</span><span>${maths(format(scale.high, 3))}</span>`);
    const { total, largest, at, distance } = Session.summary(z);
    write(readout, session.size
      ? maths(`total ${format(total)} · largest ${format(largest)} at node ${at} · distance to the average ${format(distance)}`)
      : "Click into the empty box: the first node.");
    write(printed, maths(settingsOf(state)));
    // On large graphs the panels wait until the hand rests, so that what it moves keeps up.
    clearTimeout(later);
    if (session.size <= 40) drawPanels(colours);
    else later = window.setTimeout(() => drawPanels(colours), 90);
  }
  function drawPanels(/** @type {import("./drawing.js").Inks} */ colours) {
    for (const [key] of PANELS) if (panels[key].open) contents[key].draw(colours);
    write(numbers, (model.get("told") ?? []).map((/** @type {string} */ key) => numberOf(session, key)).join(" · "));
  }

  // -- life --------------------------------------------------------------------------------------------------------

  const follow = () => {
    if (isMine) return;
    for (const key of KEYS) Object.assign(session.state, { [key]: model.get(key) });
    schedule();
  };
  for (const key of [...KEYS, "caption"]) model.on(`change:${key}`, follow);
  const onHash = () => {
    const sent = hasAddress ? readAddress(decodeURI(location.hash), lookUp) : null;
    isSent ||= Boolean(sent);
    if (sent) change(sent);
  };
  window.addEventListener("hashchange", onHash);
  window.addEventListener("beforeprint", repaint); // paper waits for no frame
  function repaint() {
    inks = null;
    draw();
  }
  const resized = new ResizeObserver(schedule), themed = new MutationObserver(repaint);
  resized.observe(canvas);
  themed.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  themed.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  draw();
  return () => {
    player.stop();
    cancelAnimationFrame(frame);
    clearTimeout(later);
    clearTimeout(addressTimer);
    resized.disconnect();
    themed.disconnect();
    window.removeEventListener("hashchange", onHash);
    window.removeEventListener("beforeprint", repaint);
    for (const key of [...KEYS, "caption"]) model.off(`change:${key}`, follow);
  };
}
