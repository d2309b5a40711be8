// The numbers that a preset speaks of; the same in Python: playground_numbers.py.
import { format, maths } from "./charts.js";

/** @typedef {import("./session.js").Session} Session */

const TOLD = /** @type {Record<string, [string, (session: Session) => number]>} */ ({
  smallest: ["smallest value", session => session.now().reduce((least, value) => Math.min(least, value), Infinity)],
  leftmost: ["leftmost eigenvalue of L", session => -(session.critical() ?? NaN)],
  critical: ["θ*", session => session.critical() ?? NaN],
  steps: ["largest difference between layers and flow", session => session.stepped().reduce((most, value, u) => Math.max(most, Math.abs(value - session.now()[u])), 0)],
  shift: ["shift x", session => session.comparison()?.shift ?? 0],
  variation: ["variation", session => session.comparison()?.variation ?? 0],
  movement: ["movement ‖z′ − z‖ / √N", session => session.movement()],
});

/** @param {Session} session @param {string} key @returns {number} */
export const toldValue = (session, key) => TOLD[key][1](session);

/** @param {Session} session @param {string} key @returns {string} HTML */
export function numberOf(session, key) {
  const value = toldValue(session, key);
  return `${TOLD[key][0]} <output class="pg-told" data-told="${key}" data-value="${value}">${maths(format(value))}</output>`;
}
