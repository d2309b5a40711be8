// Gestures on the canvas of a graph: pointer, touch and keyboard lead to the same five actions.
import { fromPixels, radiusOf, toPixels } from "./drawing.js";

/**
 * @typedef {import("./graph.js").Graph} Graph
 * @typedef {{graph: () => Graph, arrows: () => boolean, describe: (node: number) => string, say: (text: string) => void,
 *   join: (u: number, v: number, isArrow: boolean) => void, redraw: () => void,
 *   add?: (place: [number, number]) => void, move?: (u: number, place: [number, number]) => void,
 *   removeNode?: (u: number) => void, removeEdge?: (k: number) => void, drop?: (u: number) => void, undo: () => void}} Actions
 * @typedef {{selected: number | undefined, target: number | undefined, pending: {from: number, x: number, y: number} | null}} Hand
 */

const DOUBLE = 350; // milliseconds between the two clicks of a double one
const FAR = 6; // pixels from which a click is a drag

/** @param {HTMLCanvasElement} canvas @param {Actions} actions @returns {Hand} what is marked, for the drawing */
export function edit(canvas, actions) {
  const hand = /** @type {Hand} */ ({ selected: undefined, target: undefined, pending: null });
  let pressed = /** @type {{x: number, y: number, node: number, isDrag: boolean} | null} */ (null);
  let lastClick = { time: -Infinity, x: 0, y: 0 };
  let joining = /** @type {{from: number, isArrow: boolean} | null} */ (null);

  const at = (/** @type {PointerEvent} */ event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top, reach: event.pointerType === "mouse" ? 4 : 14 };
  };
  const nodeAt = (/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ reach) => {
    const { points } = actions.graph(), radius = radiusOf(canvas, points.length) + reach;
    let best = -1, nearest = radius;
    points.forEach((point, u) => {
      const [px, py] = toPixels(canvas, point), distance = Math.hypot(px - x, py - y);
      if (distance <= nearest) [best, nearest] = [u, distance];
    });
    return best;
  };
  const edgeAt = (/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ reach) => {
    const { points, edges } = actions.graph();
    return edges.findIndex(([u, v]) => {
      const [ax, ay] = toPixels(canvas, points[u]), [bx, by] = toPixels(canvas, points[v]);
      const length = (bx - ax) ** 2 + (by - ay) ** 2 || 1;
      const along = Math.max(0, Math.min(1, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length));
      return Math.hypot(x - ax - along * (bx - ax), y - ay - along * (by - ay)) <= 3 + reach;
    });
  };

  canvas.addEventListener("pointerdown", event => {
    if (event.button !== 0) return;
    const { x, y, reach } = at(event);
    pressed = { x, y, node: nodeAt(x, y, reach), isDrag: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => {
    if (!pressed) return;
    const { x, y, reach } = at(event);
    pressed.isDrag ||= Math.hypot(x - pressed.x, y - pressed.y) > FAR;
    if (!pressed.isDrag || pressed.node < 0) return;
    const node = nodeAt(x, y, reach);
    hand.pending = { from: pressed.node, x, y };
    hand.target = node >= 0 && node !== pressed.node ? node : undefined;
    actions.redraw();
  });
  canvas.addEventListener("pointercancel", () => {
    pressed = hand.pending = null;
    actions.redraw();
  });
  canvas.addEventListener("pointerup", event => {
    if (!pressed) return;
    const { x, y, reach } = at(event), { node, isDrag } = pressed;
    pressed = hand.pending = null;
    hand.target = undefined;
    if (isDrag && node >= 0) {
      const end = nodeAt(x, y, reach);
      if (end >= 0 && end !== node) actions.join(node, end, event.shiftKey || actions.arrows());
      else if (end < 0) actions.move?.(node, fromPixels(canvas, x, y));
    } else if (!isDrag) click(x, y, reach, event.timeStamp);
    actions.redraw();
  });

  function click(/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ reach, /** @type {number} */ time) {
    const isDouble = time - lastClick.time < DOUBLE && Math.hypot(x - lastClick.x, y - lastClick.y) < 2 * FAR + reach;
    lastClick = { time: isDouble ? -Infinity : time, x, y };
    const node = nodeAt(x, y, reach), edge = node < 0 ? edgeAt(x, y, reach) : -1;
    if (isDouble) {
      if (node >= 0) actions.removeNode?.(node);
      else if (edge >= 0) actions.removeEdge?.(edge);
      hand.selected = undefined;
    } else if (node >= 0) {
      hand.selected = node;
      actions.drop?.(node);
    } else if (edge < 0) actions.add?.(fromPixels(canvas, x, y));
  }

  /** The nearest node in the direction of an arrow key, or the next by number. */
  function neighbour(/** @type {number} */ from, /** @type {string} */ key) {
    const { points } = actions.graph(), [dx, dy] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[key] ?? [0, 0];
    let best = from, nearest = Infinity;
    points.forEach((point, u) => {
      const px = point[0] - points[from][0], py = point[1] - points[from][1], ahead = px * dx + py * dy;
      const cost = Math.hypot(px, py) + 2 * Math.abs(px * dy - py * dx);
      if (u !== from && ahead > 1e-9 && cost < nearest) [best, nearest] = [u, cost];
    });
    return best;
  }

  canvas.addEventListener("keydown", event => {
    const size = actions.graph().points.length, { key } = event;
    const current = hand.selected !== undefined && hand.selected < size ? hand.selected : -1;
    const select = (/** @type {number} */ u) => {
      hand.selected = u;
      actions.say(actions.describe(u));
    };
    if (key.startsWith("Arrow") && size) select(current < 0 ? 0 : neighbour(current, key));
    else if ((key === "PageDown" || key === "PageUp") && size) select((current + (key === "PageDown" ? 1 : -1) + size) % size);
    else if (/^\d$/.test(key) && Number(key) < size) select(Number(key));
    else if ((key === "n" || key === "N") && actions.add) {
      actions.add(freePlace());
      select(actions.graph().points.length - 1);
    } else if ((key === "e" || key === "E") && current >= 0) {
      joining = { from: current, isArrow: key === "E" || actions.arrows() };
      actions.say(`${joining.isArrow ? "Arrow" : "Edge"} from node ${current}: choose the other end and press Enter.`);
    } else if ((key === "Enter" || key === " ") && current >= 0) {
      if (joining) {
        if (joining.from !== current) actions.join(joining.from, current, joining.isArrow);
        joining = null;
      } else actions.drop?.(current);
    } else if ((key === "Delete" || key === "Backspace") && current >= 0 && actions.removeNode) {
      actions.removeNode(current);
      hand.selected = undefined;
    } else if (key === "Escape" && joining) joining = null;
    else if ((event.ctrlKey || event.metaKey) && key === "z") actions.undo();
    else return;
    event.preventDefault();
    hand.target = joining?.from;
    actions.redraw();
  });
  canvas.addEventListener("blur", () => {
    hand.selected = hand.target = undefined;
    joining = null;
    actions.redraw();
  });

  /** Where a node that the keyboard asks for does not lie on another: the first free place of a widening ring. */
  function freePlace() {
    const { points } = actions.graph();
    for (let k = 0; ; k++) {
      const radius = 0.55 + 0.4 * Math.floor(k / 8) * 0.5, angle = Math.PI / 4 + (k % 8) * (Math.PI / 2) + (k % 8 > 3 ? Math.PI / 4 : 0);
      const place = /** @type {[number, number]} */ ([
        Math.round(1000 * radius * Math.cos(angle)) / 1000, Math.round(1000 * Math.min(1, radius) * Math.sin(angle)) / 1000,
      ]);
      if (k > 80 || points.every(point => Math.hypot(point[0] - place[0], point[1] - place[1]) > 0.15)) return place;
    }
  }
  return hand;
}
