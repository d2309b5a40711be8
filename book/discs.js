// The discs of the landing page wake up: the still pictures are there first, and stay for those who want no motion.
import { arcsOf, disc } from "./graph.js";
import { attention, exponential, normalisedAdjacency } from "./kernels.js";
import { palette } from "./colours.js";

const NODES = 1600, BETA = 18, TIME = 1.25, SECONDS = 5; // those of tools/first_picture.py
const FLOOR = 0.12; // the darkest nodes are still seen

function wake(/** @type {HTMLElement} */ box) {
  const images = [...box.querySelectorAll("img")];
  const graph = disc(NODES), { points } = graph;
  const velocity = normalisedAdjacency(NODES, arcsOf(graph.edges), "row"), coupling = attention(NODES, points);
  const still = { size: NODES, beta: 0, velocity, coupling: null };
  const flows = [null, { ...still, coupling }, { ...still, beta: BETA }, { ...still, beta: BETA, coupling }];
  const colours = palette("inferno").map(colour => `rgb(${colour.join(" ")})`);
  let states = /** @type {Float64Array[]} */ ([]), time = 0, last = 0, running = 0, rest = 0;

  function drop(/** @type {number} */ x, /** @type {number} */ y) {
    const start = Float64Array.from(points, ([px, py]) => Math.exp(-((px - x) ** 2 + (py - y) ** 2) / 0.012));
    states = flows.map(() => start);
    time = rest = 0;
    begin();
  }

  const canvases = images.map((image, k) => {
    const canvas = document.createElement("canvas");
    canvas.className = "live-disc";
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", image.alt);
    image.parentElement?.classList.add("disc-holder");
    image.after(canvas);
    canvas.addEventListener("pointerdown", event => {
      const area = canvas.getBoundingClientRect(), unit = area.width / 2.09;
      drop((event.clientX - area.left - area.width / 2) / unit, -(event.clientY - area.top - area.height / 2) / unit);
    });
    return { canvas, flow: flows[k], edges: /** @type {HTMLCanvasElement | null} */ (null) };
  });

  function paint(/** @type {typeof canvases[0]} */ view, /** @type {Float64Array} */ state) {
    const { canvas } = view, side = Math.round(canvas.clientWidth * (window.devicePixelRatio || 1));
    if (!side) return;
    if (canvas.width !== side) {
      canvas.width = canvas.height = side;
      view.edges = lines(side);
    }
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")), unit = side / 2.09, radius = side / 125;
    pen.drawImage(/** @type {HTMLCanvasElement} */ (view.edges), 0, 0);
    let most = 0;
    for (const value of state) most = Math.max(most, value);
    const levels = /** @type {number[][]} */ (Array.from({ length: 256 }, () => []));
    // Shares of the largest value: the eye compares shapes, not the growth.
    for (let u = 0; u < NODES; u++) {
      const shade = Math.max(0, state[u] / most) ** 0.6;
      levels[Math.round(((shade + FLOOR) / (1 + FLOOR)) * 255)].push(u);
    }
    levels.forEach((nodes, level) => {
      if (!nodes.length) return;
      pen.fillStyle = colours[level];
      pen.beginPath();
      for (const u of nodes) {
        const x = side / 2 + points[u][0] * unit, y = side / 2 - points[u][1] * unit;
        pen.moveTo(x + radius, y);
        pen.arc(x, y, radius, 0, 2 * Math.PI);
      }
      pen.fill();
    });
  }
  function lines(/** @type {number} */ side) {
    const layer = document.createElement("canvas"), unit = side / 2.09;
    layer.width = layer.height = side;
    const pen = /** @type {CanvasRenderingContext2D} */ (layer.getContext("2d"));
    pen.fillStyle = "#13111f";
    pen.fillRect(0, 0, side, side);
    pen.strokeStyle = "#4a4668";
    pen.lineWidth = side / 700;
    pen.beginPath();
    for (const [u, v] of graph.edges)
      if (u < v) {
        pen.moveTo(side / 2 + points[u][0] * unit, side / 2 - points[u][1] * unit);
        pen.lineTo(side / 2 + points[v][0] * unit, side / 2 - points[v][1] * unit);
      }
    pen.stroke();
    return layer;
  }

  function tick(/** @type {number} */ now) {
    const passed = Math.min(0.1, (now - last) / 1000);
    last = now;
    if (time < TIME) {
      const step = Math.min((passed * TIME) / SECONDS, TIME - time);
      time += step;
      states = states.map((state, k) => (flows[k] && step > 0 ? normalised(exponential(/** @type {any} */ (flows[k]), state, step)) : state));
      canvases.forEach((view, k) => paint(view, states[k]));
      if (!box.classList.contains("awake")) box.classList.add("awake");
    } else if ((rest += passed) > 4) return drop(0.55, 0);
    running = requestAnimationFrame(tick);
  }
  /** Only shares are shown, and e^{βT} would soon be large. */
  function normalised(/** @type {Float64Array} */ state) {
    let most = 0;
    for (const value of state) most = Math.max(most, value);
    return state.map(value => value / most);
  }
  function begin() {
    cancelAnimationFrame(running);
    last = performance.now();
    running = requestAnimationFrame(tick);
  }
  new IntersectionObserver(entries => {
    const isSeen = entries[entries.length - 1].isIntersecting;
    if (!isSeen) cancelAnimationFrame(running);
    else if (states.length) begin();
    else drop(0.55, 0);
  }).observe(box);
}

const picture = /** @type {HTMLElement | null} */ (document.querySelector(".first-picture"));
if (picture && !matchMedia("(prefers-reduced-motion: reduce)").matches && !matchMedia("print").matches)
  window.addEventListener("load", () => setTimeout(() => wake(picture), 600));
